//! Runs statements one after the other and prints their results.

use std::io::{Write, stderr};
use std::time::Instant;

use tessera_engine::Report;
use tessera_files::is_standard_output_closed;
use tessera_session::{Session, StatementOutput};
use tessera_types::{Code, Error};

use crate::allocator;
use crate::caret::excerpt;
use crate::interrupt::Interrupt;
use crate::output::{Failure, Printer};
use crate::progress::ProgressLine;
use crate::script::StatementText;
use crate::{EXIT_ERROR, EXIT_INTERRUPTED};

/// How a statement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It succeeded.
    Done,
    /// It failed; the message has been printed.
    Failed,
    /// The user interrupted it.
    Interrupted,
    /// The reader has closed the output.
    Closed,
}

impl Outcome {
    /// The exit code of the program after this outcome.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Outcome::Done | Outcome::Closed => 0,
            Outcome::Failed => EXIT_ERROR,
            Outcome::Interrupted => EXIT_INTERRUPTED,
        }
    }
}

/// The `--timing` output after a statement.
#[derive(Clone, Default)]
pub(crate) struct Timing {
    pub(crate) wanted: bool,
    /// The additional lines of the platform.
    pub(crate) report: Option<Report>,
}

impl std::fmt::Debug for Timing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timing").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

impl From<bool> for Timing {
    fn from(wanted: bool) -> Timing {
        Timing { wanted, report: None }
    }
}

/// A session and its output.
#[derive(Debug)]
pub(crate) struct Runner<W> {
    pub(crate) session: Session,
    pub(crate) printer: Printer<W>,
    pub(crate) interrupt: Interrupt,
    pub(crate) timing: Timing,
    progress: ProgressLine,
}

impl<W: Write + Send> Runner<W> {
    pub(crate) fn new(session: Session, printer: Printer<W>, timing: Timing) -> Self {
        let cancel = session.cancel_handle();
        let progress = ProgressLine::of_session(cancel.clone());
        Runner { session, printer, interrupt: Interrupt::of_session(cancel), timing, progress }
    }

    /// Runs a statement and prints its result or error.
    pub(crate) fn statement(&mut self, piece: &StatementText) -> Outcome {
        if self.interrupt.is_to_end() {
            return Outcome::Interrupted;
        }
        self.interrupt.reset();
        let started = Instant::now();
        let output = match self.session.statement(&piece.text) {
            Ok(Some(output)) => output,
            Ok(None) => return Outcome::Done,
            Err(error) => return self.failed(&error, piece),
        };
        // The statement may have been `SET memory`.
        allocator::keep_budget(self.session.memory_bytes());
        self.show(output, piece, started)
    }

    /// Runs the text of a plan and prints its rows or its error.
    pub(crate) fn plan(&mut self, text: String) -> Outcome {
        self.interrupt.reset();
        let started = Instant::now();
        let piece = StatementText { text, line: 1, column: 1 };
        match self.session.query_plan(&piece.text) {
            Ok(rows) => self.show(StatementOutput::Rows(rows), &piece, started),
            Err(error) => self.failed(&error, &piece),
        }
    }

    fn show(
        &mut self,
        output: StatementOutput,
        piece: &StatementText,
        started: Instant,
    ) -> Outcome {
        let written = match output {
            StatementOutput::Rows(rows) => {
                let written = self.printer.rows(rows, || self.progress.pause());
                self.progress.resume();
                written
            }
            StatementOutput::Text(text) => {
                self.progress.clear();
                self.printer.text(&text)
            }
            StatementOutput::Done(text) => {
                self.progress.clear();
                self.printer.done(&text)
            }
        };
        match written {
            Ok(()) => {
                self.time(started);
                Outcome::Done
            }
            Err(failure) => self.output_failed(failure, piece),
        }
    }

    /// Prints the time of a statement. The rows were flushed before, so that programs can take this
    /// line as the end of the result.
    fn time(&self, started: Instant) {
        if !self.timing.wanted {
            return;
        }
        if let Some(text) = self.timing.report.as_ref().and_then(|report| report()) {
            print_stderr(&text);
        }
        print_stderr(&format!("Time: {:.3} ms", started.elapsed().as_secs_f64() * 1e3));
    }

    fn failed(&self, error: &Error, piece: &StatementText) -> Outcome {
        self.progress.clear();
        if is_standard_output_closed(error) {
            return Outcome::Closed;
        }
        print_error(error, piece);
        let cancelled = error.code() == Code::Cancelled && self.interrupt.happened();
        if cancelled { Outcome::Interrupted } else { Outcome::Failed }
    }

    fn output_failed(&self, failure: Failure, piece: &StatementText) -> Outcome {
        match failure {
            Failure::Closed => Outcome::Closed,
            Failure::Query(error, rows) => {
                let outcome = self.failed(&error, piece);
                if rows > 0 {
                    print_stderr(&format!(
                        "the result is incomplete: the error occurred after {rows} rows"
                    ));
                }
                outcome
            }
            Failure::Error(error) => {
                print_stderr(&format!("error: {error}"));
                Outcome::Failed
            }
        }
    }
}

/// Prints an error with its position in the whole input.
pub(crate) fn print_error(error: &Error, piece: &StatementText) {
    match error.span() {
        Some(span) => {
            let column = if span.line == 1 { piece.column + span.column - 1 } else { span.column };
            let line = piece.line + span.line - 1;
            print_stderr(&format!("error: {} (line {line}, column {column})", error.message()));
            if let Some(lines) = excerpt(&piece.text, span, line) {
                print_stderr(&lines);
            }
        }
        None => print_stderr(&format!("error: {error}")),
    }
}

/// Prints a line to the standard error. Ignores a failure.
pub(crate) fn print_stderr(text: &str) {
    drop(writeln!(stderr(), "{text}"));
}
