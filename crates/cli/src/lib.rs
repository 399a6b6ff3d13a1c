//! The program `tessera`: SQL over files from a command line, a script or a shell.
//!
//! Parts: `allocator`; `arguments` the command line; `script` cuts text into statements as it arrives; `batch` runs `-c` and `-f`,
//! `shell` talks to a person, whose `history` it keeps; `output` writes rows in five formats; `interrupt` is Ctrl-C, `progress` the line that
//! moves; `launch` starts ranks, `serverless` workers; `select` evaluates what the store on loopback selects; `generate` and `run` are the subcommands. Exit codes: 0 ok, 1 an error of a statement or a file, 2 usage,
//! 130 interrupted.

mod allocator;
mod arguments;
mod batch;
mod generate;
mod history;
mod interrupt;
mod launch;
mod output;
mod progress;
mod runner;
mod script;
mod select;
mod serverless;
mod shell;
mod timeouts;

use std::process::ExitCode;
use std::sync::Arc;

use tessera_engine::Platform;
use tessera_local::Local;
use tessera_session::{Cancel, Config, Session};

/// An error of a statement or a file.
const EXIT_ERROR: u8 = 1;
/// The command line makes no sense.
const EXIT_USAGE: u8 = 2;
/// Ended by Ctrl-C, as shells report it.
const EXIT_INTERRUPTED: u8 = 130;

/// The program `tessera`.
pub fn main() -> ExitCode {
    prepare();
    // A function service starts the program without arguments.
    if std::env::args_os().len() == 1 && std::env::var_os("AWS_LAMBDA_RUNTIME_API").is_some() {
        return ExitCode::from(serverless::worker(None));
    }
    let (command, place) = arguments::parse();
    allocator::keep_budget(command.config().memory_bytes);
    match place {
        arguments::Place::Local => ExitCode::from(run(command, Arc::new(Local))),
        arguments::Place::Mpi { ranks, start_timeout } => {
            ExitCode::from(launch::ranks(&command, ranks, start_timeout))
        }
        arguments::Place::Serverless(line) => ExitCode::from(serverless::on_workers(command, &line)),
    }
}

/// What every program here begins with.
pub fn prepare() {
    allocator::keep_freed_memory();
    // The executor and the session turn a panic into an error that is printed as such; this is for whoever mends it.
    std::panic::set_hook(Box::new(|info| {
        if tessera_context::guard::is_guarded() {
            return;
        }
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let message = info.payload_as_str().unwrap_or("no message");
        eprintln!("internal failure at {place}: {}", message.replace('\n', " "));
    }));
}

/// One of `count` processes of a platform, with the first one's command line and their handle on what runs.
#[derive(Debug, Clone)]
pub struct Part {
    /// Where statements run.
    pub platform: Arc<dyn Platform>,
    /// Which process this is.
    pub index: usize,
    /// How many share the machine.
    pub count: usize,
}

/// The program as one of several processes of a platform: the first does what the command line says, the others their part of
/// it. `started` gets the handle that cancels. Gives the exit code.
pub fn part(part: Part, started: impl FnOnce(Cancel) + Send) -> u8 {
    let (command, _) = arguments::parse();
    let command = command.shared_by(part.count);
    if part.index == 0 {
        return run_with(command, part.platform, started);
    }
    let served = Session::on(part.platform, command.config()).and_then(|mut session| {
        started(session.cancel_handle());
        session.serve()
    });
    served.map_or_else(|error| failed(&error), |_| 0)
}

fn run(command: arguments::Command, platform: Arc<dyn Platform>) -> u8 {
    run_with(command, platform, |_| {})
}

fn run_with(
    command: arguments::Command,
    platform: Arc<dyn Platform>,
    started: impl FnOnce(Cancel) + Send,
) -> u8 {
    // Deeply nested statements are planned recursively; one big stack serves the whole run.
    let code = tessera_session::with_big_stack(|| {
        let session = |config: Config| {
            let session = Session::on(platform, config)?;
            started(session.cancel_handle());
            Ok(session)
        };
        Ok(match command {
            arguments::Command::Query(query) => batch::main(query, session),
            arguments::Command::Run(run) => batch::run_plan(&run, session),
            arguments::Command::Generate(generate) => generate::main(&generate),
            arguments::Command::Worker { threads } => serverless::worker(threads),
            arguments::Command::Store { data } => serverless::store(data),
        })
    });
    code.unwrap_or_else(|error| failed(&error))
}

fn failed(error: &tessera_types::Error) -> u8 {
    eprintln!("error: {error}");
    EXIT_ERROR
}
