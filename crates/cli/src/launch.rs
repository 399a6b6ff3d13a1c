//! Statements on ranks that `mpiexec` starts: the same command line, given to `tessera-mpi`.

use std::io::{IsTerminal, stdin};
use std::time::Duration;

use tessera_platform_mpi::launcher::{self, Canceller};
use tessera_types::Code;

use crate::arguments::Command;
use crate::failed;
use crate::interrupt::Interrupt;
use crate::runner::complain;
use crate::{EXIT_INTERRUPTED, EXIT_USAGE};

/// Runs the command on this many ranks; gives the exit code.
pub(crate) fn ranks(command: &Command, ranks: usize, start_timeout: Option<Duration>) -> u8 {
    if command.reads_input() && stdin().is_terminal() {
        complain(
            "error: there is no shell on platform mpi; give statements with -c or -f, or on the standard input",
        );
        return EXIT_USAGE;
    }
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let canceller = Canceller::default();
    let cancelled = canceller.clone();
    let interrupt = Interrupt::listen(move || {
        cancelled.cancel();
        true
    });
    let launched = launcher::launch(ranks, &arguments, command.reads_input(), &canceller);
    match launched.and_then(|launched| launched.wait(start_timeout)) {
        Ok(code) if code != 0 && interrupt.happened() => EXIT_INTERRUPTED,
        Ok(code) => code,
        Err(error) => {
            let code = failed(&error);
            if error.code() == Code::Cancelled { EXIT_INTERRUPTED } else { code }
        }
    }
}
