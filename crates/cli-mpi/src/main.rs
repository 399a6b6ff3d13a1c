//! The program `tessera-mpi`: `tessera` as one rank of an MPI world, started by `mpiexec -n 4 tessera-mpi …`, or by
//! `tessera --platform mpi --ranks 4 …`, which watches over the ranks too.

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use tessera_cli::Cancel;
use tessera_platform_mpi::Mpi;
use tessera_platform_mpi::control::Control;
use tessera_platform_mpi::world;

fn main() -> ExitCode {
    let running: Arc<OnceLock<Cancel>> = Arc::default();
    let cancelled = running.clone();
    let control = Control::connect(move || {
        cancelled.get().map(Cancel::cancel);
    });
    tessera_cli::prepare();
    let ran = world::run(|link| {
        let (index, count) = (link.rank(), link.ranks());
        let part = tessera_cli::Part { platform: Arc::new(Mpi::new(link)), index, count };
        let code = tessera_cli::part(part, |cancel| drop(running.set(cancel)));
        if index == 0 {
            control.exit(code);
        }
        code
    });
    let Ok(code) = ran else {
        eprintln!("error: MPI could not be started twice in one process");
        return ExitCode::FAILURE;
    };
    // A launcher knows the code already; a rank that ends with another than 0 makes mpiexec complain.
    if control.done() { ExitCode::SUCCESS } else { ExitCode::from(code) }
}
