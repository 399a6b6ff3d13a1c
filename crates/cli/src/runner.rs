//! Runs one statement after the other and shows what comes back.

use std::io::{Write, stderr};
use std::time::Instant;

use tessera_engine::Report;
use tessera_files::is_standard_output_closed;
use tessera_session::{ResultStream, Session, StatementOutput};
use tessera_types::{Code, Error};

use crate::interrupt::Interrupt;
use crate::output::{Failure, Printer};
use crate::progress::ProgressLine;
use crate::script::Piece;
use crate::{EXIT_ERROR, EXIT_INTERRUPTED};

/// How a statement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It did what it should.
    Done,
    /// It failed; the message has been printed.
    Failed,
    /// Somebody interrupted it.
    Interrupted,
    /// Nobody reads the output any more.
    Closed,
}

impl Outcome {
    /// The exit code of a program that ends with this.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Outcome::Done | Outcome::Closed => 0,
            Outcome::Failed => EXIT_ERROR,
            Outcome::Interrupted => EXIT_INTERRUPTED,
        }
    }
}

/// What is said after a statement on the standard error.
#[derive(Clone, Default)]
pub(crate) struct Timing {
    pub(crate) wanted: bool,
    /// What the platform has to say.
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

/// A session with somewhere to print.
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

    /// Runs the statement and prints its result, or its error.
    pub(crate) fn statement(&mut self, piece: &Piece) -> Outcome {
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
        self.show(output, piece, started)
    }

    /// Shows the rows of a plan while it runs, or the error.
    pub(crate) fn plan(
        &mut self,
        run: impl FnOnce(&mut Session) -> Result<ResultStream, Error>,
    ) -> Outcome {
        self.interrupt.reset();
        let started = Instant::now();
        let piece = Piece { text: String::new(), line: 1, column: 1 };
        match run(&mut self.session) {
            Ok(rows) => self.show(StatementOutput::Rows(rows), &piece, started),
            Err(error) => self.failed(&error, &piece),
        }
    }

    fn show(&mut self, output: StatementOutput, piece: &Piece, started: Instant) -> Outcome {
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
            Err(failure) => self.not_written(failure, piece),
        }
    }

    /// What was printed has been flushed: this line tells a program that the answer is complete.
    fn time(&self, started: Instant) {
        if !self.timing.wanted {
            return;
        }
        if let Some(text) = self.timing.report.as_ref().and_then(|report| report()) {
            complain(&text);
        }
        complain(&format!("Time: {:.3} ms", started.elapsed().as_secs_f64() * 1e3));
    }

    fn failed(&self, error: &Error, piece: &Piece) -> Outcome {
        self.progress.clear();
        if is_standard_output_closed(error) {
            return Outcome::Closed;
        }
        print_error(error, piece);
        let cancelled = error.code() == Code::Cancelled && self.interrupt.happened();
        if cancelled { Outcome::Interrupted } else { Outcome::Failed }
    }

    fn not_written(&self, failure: Failure, piece: &Piece) -> Outcome {
        match failure {
            Failure::Closed => Outcome::Closed,
            Failure::Query(error, rows) => {
                let outcome = self.failed(&error, piece);
                if rows > 0 {
                    complain(&format!(
                        "the result is incomplete: the error came after {rows} of its rows"
                    ));
                }
                outcome
            }
            Failure::Error(error) => {
                complain(&format!("error: {error}"));
                Outcome::Failed
            }
        }
    }
}

/// Prints an error with its place in the whole text, of which the statement is a piece.
pub(crate) fn print_error(error: &Error, piece: &Piece) {
    match error.span() {
        Some(span) => {
            let column = if span.line == 1 { piece.column + span.column - 1 } else { span.column };
            let line = piece.line + span.line - 1;
            complain(&format!("error: {} (line {line}, column {column})", error.message()));
        }
        None => complain(&format!("error: {error}")),
    }
}

/// A line on the standard error; where that is closed, nobody wants to know.
pub(crate) fn complain(text: &str) {
    drop(writeln!(stderr(), "{text}"));
}
