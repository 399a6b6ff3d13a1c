//! The program `tessera-mpi`: `tessera` as one rank of an MPI world, started by `mpiexec -n 4
//! tessera-mpi …`, or by `tessera --platform mpi --ranks 4 …`, which watches over the ranks too.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use tessera_platform_mpi::Mpi;
use tessera_platform_mpi::control::Control;
use tessera_platform_mpi::world;
use tessera_session::Cancel;

fn main() -> ExitCode {
    let running: Arc<Mutex<Running>> = Arc::default();
    let cancelled = running.clone();
    let control = Control::connect(move || with(&cancelled, Running::cancel));
    tessera_cli::prepare();
    let ran = world::run(|link| {
        control.ready();
        let (index, count) = (link.rank(), link.ranks());
        let part = tessera_cli::Part {
            platform: tessera_platform_mpi::NAME,
            extension: Arc::new(Mpi::new(link)),
            index,
            count,
            is_watched: std::env::var_os(tessera_platform_mpi::launcher::CONTROL).is_some(),
        };
        let code =
            tessera_cli::part(part, |session| with(&running, |running| running.begin(session)));
        if index == 0 {
            control.exit(code);
        }
        code
    });
    let Ok(code) = ran else {
        eprintln!("error: MPI could not be started twice in one process");
        return ExitCode::FAILURE;
    };
    // A launcher knows the code already; a rank that ends with another than 0 makes mpiexec
    // complain.
    if control.done() { ExitCode::SUCCESS } else { ExitCode::from(code) }
}

/// What there is to cancel; a cancellation that comes before is kept.
#[derive(Debug, Default)]
struct Running {
    session: Option<Cancel>,
    cancelled: bool,
}

fn with(running: &Mutex<Running>, act: impl FnOnce(&mut Running)) {
    act(&mut running.lock().unwrap_or_else(PoisonError::into_inner));
}

impl Running {
    fn begin(&mut self, session: Cancel) {
        if self.cancelled {
            session.cancel_all();
        }
        self.session = Some(session);
    }

    fn cancel(&mut self) {
        self.cancelled = true;
        if let Some(session) = &self.session {
            session.cancel_all();
        }
    }
}
