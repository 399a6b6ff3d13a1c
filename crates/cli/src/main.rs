//! The program `tessera`: SQL over files from a command line, a script or a shell.
//!
//! Parts: `allocator`; `arguments` the command line; `script` cuts text into statements as it arrives; `batch` runs `-c` and `-f`,
//! `shell` talks to a person; `output` writes rows in five formats; `interrupt` is Ctrl-C, `progress` the line that
//! moves; `generate` and `run` are the subcommands. Exit codes: 0 ok, 1 an error of a statement or a file, 2 usage,
//! 130 interrupted.

mod allocator;
mod arguments;
mod batch;
mod generate;
mod interrupt;
mod output;
mod progress;
mod runner;
mod script;
mod shell;

use std::process::ExitCode;

/// An error of a statement or a file.
const EXIT_ERROR: u8 = 1;
/// The command line makes no sense.
const EXIT_USAGE: u8 = 2;
/// Ended by Ctrl-C, as shells report it.
const EXIT_INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    allocator::keep_freed_memory();
    // The executor and the session turn a panic into an error that is printed as such; this is for whoever mends it.
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let message = info.payload_as_str().unwrap_or("no message");
        eprintln!("internal failure at {place}: {}", message.replace('\n', " "));
    }));
    let arguments = arguments::parse();
    // Deeply nested statements are planned recursively; one big stack serves the whole run.
    let code = tessera_session::with_big_stack(|| {
        Ok(match arguments {
            arguments::Command::Query(query) => batch::main(query),
            arguments::Command::Run(run) => batch::run_plan(&run),
            arguments::Command::Generate(generate) => generate::main(&generate),
        })
    });
    let code = code.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        EXIT_ERROR
    });
    ExitCode::from(code)
}
