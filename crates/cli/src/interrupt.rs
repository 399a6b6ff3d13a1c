//! Ctrl-C and requests to end: the first cancels what runs, the second leaves. A shell leaves for
//! no Ctrl-C: its temporary tables would be gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tessera_session::Cancel;

use crate::EXIT_INTERRUPTED;
use crate::runner::complain;

/// Whether this process hears of interruptions from what has started it.
static LEFT_TO_LAUNCHER: AtomicBool = AtomicBool::new(false);

/// Sessions do not listen for signals: this process is a part of a platform, whose launcher
/// cancels. A signal comes from what ends the whole platform then.
pub(crate) fn leave_to_launcher() {
    LEFT_TO_LAUNCHER.store(true, Ordering::Release);
}

/// Counts interruptions of what is being done.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt {
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    count: AtomicUsize,
    /// A shell stays, whatever Ctrl-C does.
    stays: AtomicBool,
    /// The program was asked to end, which it does when the statement has ended.
    ends: AtomicBool,
}

impl Interrupt {
    /// Listens from now on. `cancel` says whether there was something to cancel; where there was
    /// not, a program that is no shell ends at once.
    pub(crate) fn listen(cancel: impl Fn() -> bool + Send + 'static) -> Interrupt {
        let interrupt = Interrupt::default();
        let state = interrupt.state.clone();
        // Without signals the program works as well; Ctrl-C then ends it the hard way.
        if let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) {
            let listen = move || {
                for signal in signals.forever() {
                    let before = state.count.fetch_add(1, Ordering::AcqRel);
                    let stays = signal == SIGINT && state.stays.load(Ordering::Acquire);
                    // Before the cancellation: where that comes too late for one statement, the
                    // next does not begin.
                    state.ends.fetch_or(!stays, Ordering::AcqRel);
                    let cancelled = cancel();
                    if stays {
                        if cancelled && before == 1 {
                            complain("(the statement is ending; Ctrl-\\ ends the program)");
                        }
                        continue;
                    }
                    if before > 0 || !cancelled {
                        // At once: other threads are at work, perhaps in a library whose data an
                        // orderly end would take away. SAFETY: ends the process, whatever its
                        // state.
                        unsafe { libc::_exit(EXIT_INTERRUPTED.into()) }
                    }
                }
            };
            drop(std::thread::Builder::new().name("signals".to_string()).spawn(listen));
        }
        interrupt
    }

    /// Listens on behalf of a session.
    pub(crate) fn of_session(cancel: Cancel) -> Interrupt {
        if LEFT_TO_LAUNCHER.load(Ordering::Acquire) {
            return Interrupt::default();
        }
        Interrupt::listen(move || cancel.cancel())
    }

    /// A new statement begins: nobody has interrupted it yet.
    pub(crate) fn reset(&self) {
        self.state.count.store(0, Ordering::Release);
    }

    /// Whether there has been an interruption since.
    pub(crate) fn happened(&self) -> bool {
        self.state.count.load(Ordering::Acquire) > 0 || self.is_to_end()
    }

    /// Whether the program is to end: no other statement begins.
    pub(crate) fn is_to_end(&self) -> bool {
        self.state.ends.load(Ordering::Acquire)
    }

    /// Does not end the program at Ctrl-C.
    pub(crate) fn stay(&self) {
        self.state.stays.store(true, Ordering::Release);
    }
}
