//! The program `tessera-mpi`: `tessera` as one rank of an MPI world. It is started by `mpiexec -n 4
//! tessera-mpi …`, or by `tessera --platform mpi --ranks 4 …`, which also monitors the ranks.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use tessera_platform_mpi::Mpi;
use tessera_platform_mpi::control::Control;
use tessera_platform_mpi::world;
use tessera_session::Cancel;

fn main() -> ExitCode {
    let state: Arc<Mutex<CancelState>> = Arc::default();
    let control_state = state.clone();
    let control = Control::connect(move || with(&control_state, CancelState::cancel));
    tessera_cli::prepare();
    let result = world::run(|link| {
        control.ready();
        let (index, count) = (link.rank(), link.ranks());
        let part = tessera_cli::Part {
            platform: tessera_platform_mpi::NAME,
            extension: Arc::new(Mpi::new(link)),
            index,
            count,
            input: std::env::var_os(tessera_platform_mpi::launcher::INPUT).map(Into::into),
            is_watched: std::env::var_os(tessera_platform_mpi::launcher::CONTROL).is_some(),
        };
        let code = tessera_cli::part(part, |session| with(&state, |state| state.begin(session)));
        if index == 0 {
            control.exit(code);
        }
        code
    });
    let code = match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    // The launcher already knows the exit code, and `mpiexec` complains about ranks that exit with
    // another than 0.
    if control.done() { ExitCode::SUCCESS } else { ExitCode::from(code) }
}

/// The session to cancel. A cancellation before it starts is remembered.
#[derive(Debug, Default)]
struct CancelState {
    session: Option<Cancel>,
    cancelled: bool,
}

fn with(state: &Mutex<CancelState>, act: impl FnOnce(&mut CancelState)) {
    act(&mut state.lock().unwrap_or_else(PoisonError::into_inner));
}

impl CancelState {
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
