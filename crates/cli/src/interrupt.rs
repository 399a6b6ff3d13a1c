//! Handling of SIGINT and SIGTERM: the first signal cancels the running statement, the second ends
//! the program. Ctrl-C does not end a shell, which would lose its temporary tables.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tessera_session::Cancel;

use crate::EXIT_INTERRUPTED;
use crate::runner::print_stderr;

/// Whether the launcher of this process forwards interruptions.
static LEFT_TO_LAUNCHER: AtomicBool = AtomicBool::new(false);

/// Disables signal handling in a process of a platform, whose launcher cancels statements. A signal
/// then ends the process.
pub(crate) fn leave_to_launcher() {
    LEFT_TO_LAUNCHER.store(true, Ordering::Release);
}

/// Counts interruptions of the running statement.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt {
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    count: AtomicUsize,
    /// Whether Ctrl-C does not end the program, as in a shell.
    stays: AtomicBool,
    /// Whether the program ends after the running statement.
    ends: AtomicBool,
}

impl Interrupt {
    /// Starts to handle signals. `cancel` returns whether a statement was running. If not, a
    /// program other than the shell exits at once.
    pub(crate) fn listen(cancel: impl Fn() -> bool + Send + 'static) -> Interrupt {
        let interrupt = Interrupt::default();
        let state = interrupt.state.clone();
        // If no handler can be installed, Ctrl-C ends the process directly.
        if let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) {
            let listen = move || {
                for signal in signals.forever() {
                    let before = state.count.fetch_add(1, Ordering::AcqRel);
                    let stays = signal == SIGINT && state.stays.load(Ordering::Acquire);
                    // Set before the cancellation, so that no next statement begins if the current
                    // one has just ended.
                    state.ends.fetch_or(!stays, Ordering::AcqRel);
                    let cancelled = cancel();
                    if stays {
                        if cancelled && before == 1 {
                            print_stderr("(the statement is ending; Ctrl-\\ ends the program)");
                        }
                        continue;
                    }
                    if before > 0 || !cancelled {
                        // Exits without destructors, because other threads may still use the data
                        // of a library. SAFETY: the call ends the process in any state.
                        unsafe { libc::_exit(EXIT_INTERRUPTED.into()) }
                    }
                }
            };
            drop(std::thread::Builder::new().name("signals".to_string()).spawn(listen));
        }
        interrupt
    }

    /// Handles signals for a session, unless its launcher does.
    pub(crate) fn of_session(cancel: Cancel) -> Interrupt {
        if LEFT_TO_LAUNCHER.load(Ordering::Acquire) {
            return Interrupt::default();
        }
        Interrupt::listen(move || cancel.cancel())
    }

    /// Resets the count when a statement begins.
    pub(crate) fn reset(&self) {
        self.state.count.store(0, Ordering::Release);
    }

    /// Whether an interruption has happened since the last reset.
    pub(crate) fn happened(&self) -> bool {
        self.state.count.load(Ordering::Acquire) > 0 || self.is_to_end()
    }

    /// Whether the program ends and no other statement begins.
    pub(crate) fn is_to_end(&self) -> bool {
        self.state.ends.load(Ordering::Acquire)
    }

    /// Keeps the program running on Ctrl-C.
    pub(crate) fn stay(&self) {
        self.state.stays.store(true, Ordering::Release);
    }
}
