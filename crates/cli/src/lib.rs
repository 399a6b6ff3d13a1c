//! The program `tessera`: SQL over files from a command line, a script or a shell.
//!
//! Modules: `arguments` parses the command line; `script` splits input into statements; `batch`
//! runs `-c`, `-f` and plans; `shell` is the interactive shell with its `history`; `output` writes
//! rows in five formats; `interrupt` handles Ctrl-C; `progress` shows the progress line;
//! `extensions` lists the platforms; `generate` writes benchmark data. Exit codes: 0 success, 1 an
//! error of a statement or a file, 2 usage, 130 interrupted. `allocator` and `interrupt` contain
//! unsafe code.

mod allocator;
mod arguments;
mod batch;
mod caret;
mod extensions;
mod generate;
mod history;
mod interrupt;
mod output;
mod progress;
mod runner;
mod script;
mod shell;
mod timeouts;

use std::io::{IsTerminal, stdin};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use tessera_engine::{Extension, Launch, LaunchOutcome, LaunchRole, LaunchValues};
use tessera_session::{Cancel, Config, Session};

use crate::arguments::{Command, PlatformChoice};
use crate::interrupt::Interrupt;
use crate::runner::print_stderr;

/// An error of a statement or a file.
const EXIT_ERROR: u8 = 1;
/// The command line is invalid.
const EXIT_USAGE: u8 = 2;
/// Interrupted by Ctrl-C, as in shells.
const EXIT_INTERRUPTED: u8 = 130;

/// The program `tessera`.
pub fn main() -> ExitCode {
    prepare();
    if std::env::args_os().len() == 1 {
        let is_meant = |variable: &str| std::env::var_os(variable).is_some();
        if let Some(role) = arguments::roles().find(|role| role.variable.is_some_and(is_meant)) {
            return ExitCode::from(play(role, &LaunchValues::default()));
        }
    }
    let (command, place) = arguments::parse();
    allocator::keep_budget(command.config().memory_bytes);
    ExitCode::from(start(command, &place))
}

/// Runs a role of a platform. Returns the exit code.
fn play(role: &LaunchRole, values: &LaunchValues) -> u8 {
    (role.play)(values).unwrap_or_else(|error| failed(&error))
}

/// Starts the platform and runs the command. Returns the exit code.
fn start(mut command: Command, place: &PlatformChoice) -> u8 {
    let launcher = place.launcher;
    if !launcher.has_shell() && command.reads_input() && stdin().is_terminal() {
        print_stderr(&format!(
            "error: platform {} has no shell; pass statements with -c or -f, or on the standard input",
            launcher.name()
        ));
        return EXIT_USAGE;
    }
    let config = command.config();
    let launch = Launch {
        values: &place.values,
        arguments: std::env::args_os().skip(1).collect(),
        database: config.database,
        stores: config.stores,
        reads_input: command.reads_input(),
        on_interrupt: &|cancel| {
            let interrupt = Interrupt::listen(cancel);
            Box::new(move || interrupt.happened())
        },
    };
    match launcher.launch(&launch) {
        // `_services` is dropped after the session has ended.
        Ok(LaunchOutcome::Here { extension, database, stores, report, services: _services }) => {
            command.change(|config| {
                config.database = database;
                config.stores = stores;
            });
            if let Some(report) = report {
                command.set_report(report);
            }
            run_on(command, launcher.name(), &extension, |_| {})
        }
        Ok(LaunchOutcome::Elsewhere { interrupted: true, .. }) => EXIT_INTERRUPTED,
        Ok(LaunchOutcome::Elsewhere { code, .. }) => code,
        Err(error) => failed(&error),
    }
}

/// Sets up the allocator and the panic hook. Every program calls this first.
pub fn prepare() {
    allocator::keep_freed_memory();
    // The engine and the session convert a panic to an error. This line gives developers its
    // location.
    std::panic::set_hook(Box::new(|info| {
        if tessera_context::guard::is_guarded() {
            return;
        }
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let message = info.payload_as_str().unwrap_or("no message");
        eprintln!("internal failure at {place}: {}", message.replace('\n', " "));
    }));
}

/// One of the processes of a platform. All have the same command line.
#[derive(Debug, Clone)]
pub struct Part {
    /// The name of the platform.
    pub platform: &'static str,
    /// The extension that installs the platform.
    pub extension: Arc<dyn Extension>,
    /// The number of this process, from 0.
    pub index: usize,
    /// The number of processes on the machine.
    pub count: usize,
    /// The socket where the first process gets the standard input, if its launcher passes it on.
    pub input: Option<PathBuf>,
    /// Whether the launcher forwards interruptions, so that this process does not handle signals.
    pub is_watched: bool,
}

/// Runs the program as one of several processes of a platform. The first runs the command, the
/// others serve it. `started` receives the cancel handle. Returns the exit code.
pub fn part(part: Part, started: impl FnOnce(Cancel) + Send) -> u8 {
    if part.is_watched {
        interrupt::leave_to_launcher();
    }
    let (command, _) = arguments::parse();
    let mut command = command.shared_by(part.count);
    command.set_input(part.input);
    if part.index == 0 {
        return run_on(command, part.platform, &part.extension, started);
    }
    command.change(|config| set_platform(config, part.platform, &part.extension));
    let served = Session::new(command.config()).and_then(|mut session| {
        started(session.cancel_handle());
        session.serve()
    });
    served.map_or_else(|error| failed(&error), |_| 0)
}

/// Configures a session for a platform.
fn set_platform(config: &mut Config, platform: &str, extension: &Arc<dyn Extension>) {
    config.platform = platform.to_string();
    config.extensions = extensions::extensions(platform, extension);
}

fn run_on(
    mut command: Command,
    platform: &str,
    extension: &Arc<dyn Extension>,
    started: impl FnOnce(Cancel) + Send,
) -> u8 {
    command.change(|config| set_platform(config, platform, extension));
    // Deeply nested statements are planned recursively; one big stack serves the whole run.
    let code = tessera_session::with_big_stack(|| {
        let session = |config: Config| {
            let session = Session::new(config)?;
            started(session.cancel_handle());
            Ok(session)
        };
        Ok(match command {
            Command::Query(query) => batch::main(query, session),
            Command::Run(run) => batch::run_plan(&run, session),
            Command::Generate(generate) => generate::main(&generate),
            Command::Role(role, values) => play(&role, &values),
        })
    });
    code.unwrap_or_else(|error| failed(&error))
}

fn failed(error: &tessera_types::Error) -> u8 {
    eprintln!("error: {error}");
    EXIT_ERROR
}
