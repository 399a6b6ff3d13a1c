//! The progress line of statements that take more than a second, on a terminal only.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tessera_session::Cancel;

/// The running time after which the progress line is shown.
const SHOW_AFTER: Duration = Duration::from_secs(1);
/// The time between two updates.
const UPDATE_INTERVAL: Duration = Duration::from_millis(200);

/// A line on the standard error that is overwritten in place.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgressLine {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the line has text.
    is_shown: bool,
    /// Whether rows are being written to the same terminal.
    is_paused: bool,
}

impl ProgressLine {
    /// Shows the progress of a session's statements from a new thread.
    pub(crate) fn of_session(cancel: Cancel) -> ProgressLine {
        let line = ProgressLine::default();
        if !stderr().is_terminal() {
            return line;
        }
        let shared = line.clone();
        let watch = move || {
            loop {
                std::thread::sleep(UPDATE_INTERVAL);
                match cancel.progress().filter(|progress| progress.elapsed >= SHOW_AFTER) {
                    Some(progress) if progress.waiting => shared.show(&format!(
                        "{:.1} s, waiting for memory that other statements hold",
                        progress.elapsed.as_secs_f64()
                    )),
                    Some(progress) => shared.show(&format!(
                        "{:.1} s, {} of {} morsels",
                        progress.elapsed.as_secs_f64(),
                        progress.morsels_done,
                        progress.morsels
                    )),
                    None => shared.clear(),
                }
            }
        };
        // Without a thread, there is no progress line.
        drop(std::thread::Builder::new().name("progress".to_string()).spawn(watch));
        line
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the text of the line.
    pub(crate) fn show(&self, text: &str) {
        let mut state = self.state();
        if !state.is_paused {
            state.is_shown =
                write!(stderr(), "\r\x1b[K{text}").and_then(|()| stderr().flush()).is_ok();
        }
    }

    /// Clears the line, and hides it until [`ProgressLine::resume`] if rows go to the terminal.
    pub(crate) fn pause(&self) {
        self.clear();
        self.state().is_paused = stdout().is_terminal();
    }

    /// Shows the line again after all rows were written.
    pub(crate) fn resume(&self) {
        self.clear();
        self.state().is_paused = false;
    }

    /// Clears the line before other output.
    pub(crate) fn clear(&self) {
        let mut state = self.state();
        if std::mem::take(&mut state.is_shown) {
            drop(write!(stderr(), "\r\x1b[K").and_then(|()| stderr().flush()));
        }
    }
}
