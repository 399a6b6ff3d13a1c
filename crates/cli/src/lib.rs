//! The program `tessera`: SQL over files from a command line, a script or a shell.
//!
//! Parts: `allocator`; `arguments` the command line; `script` cuts text into statements as it
//! arrives; `batch` runs `-c` and `-f`, `shell` talks to a person, whose `history` it keeps;
//! `output` writes rows in five formats; `interrupt` is Ctrl-C, `progress` the line that moves;
//! `extensions` lists the platforms; `generate` and `run` are the subcommands. Exit codes: 0 ok, 1
//! an error of a statement or a file, 2 usage, 130 interrupted.

mod allocator;
mod arguments;
mod batch;
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
use std::process::ExitCode;
use std::sync::Arc;

use tessera_engine::{Extension, Launch, LaunchRole, LaunchValues, Launched};
use tessera_session::{Cancel, Config, Session};

use crate::arguments::{Command, Place};
use crate::interrupt::Interrupt;
use crate::runner::complain;

/// An error of a statement or a file.
const EXIT_ERROR: u8 = 1;
/// The command line makes no sense.
const EXIT_USAGE: u8 = 2;
/// Ended by Ctrl-C, as shells report it.
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

/// Plays a part of a platform; gives the exit code.
fn play(role: &LaunchRole, values: &LaunchValues) -> u8 {
    (role.play)(values).unwrap_or_else(|error| failed(&error))
}

/// Starts the platform and does what the command line says; gives the exit code.
fn start(mut command: Command, place: &Place) -> u8 {
    let launcher = place.launcher;
    if !launcher.has_shell() && command.reads_input() && stdin().is_terminal() {
        complain(&format!(
            "error: there is no shell on platform {}; give statements with -c or -f, or on the standard input",
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
        // The services end after the session.
        Ok(Launched::Here { extension, database, stores, report, services: _services }) => {
            command.change(|config| {
                config.database = database;
                config.stores = stores;
            });
            if let Some(report) = report {
                command.set_report(report);
            }
            run_on(command, launcher.name(), &extension, |_| {})
        }
        Ok(Launched::Elsewhere { interrupted: true, .. }) => EXIT_INTERRUPTED,
        Ok(Launched::Elsewhere { code, .. }) => code,
        Err(error) => failed(&error),
    }
}

/// What every program here begins with.
pub fn prepare() {
    allocator::keep_freed_memory();
    // The executor and the session turn a panic into an error that is printed as such; this is for
    // whoever mends it.
    std::panic::set_hook(Box::new(|info| {
        if tessera_context::guard::is_guarded() {
            return;
        }
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let message = info.payload_as_str().unwrap_or("no message");
        eprintln!("internal failure at {place}: {}", message.replace('\n', " "));
    }));
}

/// One of `count` processes of a platform, with the first one's command line and their handle on
/// what runs.
#[derive(Debug, Clone)]
pub struct Part {
    /// The name of the platform.
    pub platform: &'static str,
    /// Brings it.
    pub extension: Arc<dyn Extension>,
    /// Which process this is.
    pub index: usize,
    /// How many share the machine.
    pub count: usize,
    /// Whether what has started this process tells it of interruptions: then it does not listen for
    /// signals.
    pub is_watched: bool,
}

/// The program as one of several processes of a platform: the first does what the command line
/// says, the others their part of it. `started` gets the handle that cancels. Gives the exit code.
pub fn part(part: Part, started: impl FnOnce(Cancel) + Send) -> u8 {
    if part.is_watched {
        interrupt::leave_to_launcher();
    }
    let (command, _) = arguments::parse();
    let mut command = command.shared_by(part.count);
    if part.index == 0 {
        return run_on(command, part.platform, &part.extension, started);
    }
    command.change(|config| on(config, part.platform, &part.extension));
    let served = Session::new(command.config()).and_then(|mut session| {
        started(session.cancel_handle());
        session.serve()
    });
    served.map_or_else(|error| failed(&error), |_| 0)
}

/// Lets a session run statements on this platform.
fn on(config: &mut Config, platform: &str, extension: &Arc<dyn Extension>) {
    config.platform = platform.to_string();
    config.extensions = extensions::extensions(platform, extension);
}

fn run_on(
    mut command: Command,
    platform: &str,
    extension: &Arc<dyn Extension>,
    started: impl FnOnce(Cancel) + Send,
) -> u8 {
    command.change(|config| on(config, platform, extension));
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
