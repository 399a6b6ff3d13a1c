//! Statements from the command line, from files and from the standard input.

use std::fs;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use tessera_session::{Config, Session};
use tessera_types::{Error, Result};

use crate::arguments::{Format, Input, Query, RunPlan};
use crate::output::Printer;
use crate::runner::{Outcome, Runner, Timing, print_stderr};
use crate::script::{Script, StatementText};
use crate::{EXIT_ERROR, EXIT_USAGE, shell};

/// The maximum number of rows of a table on a terminal.
const TERMINAL_ROWS: usize = 1_000;

/// The maximum length of a line of the standard input.
const LINE_BYTES_MAX: u64 = 64 << 20;

type Output = io::BufWriter<io::Stdout>;

/// Runs the statements of the command line. Returns the exit code.
pub(crate) fn main(query: Query, session: impl FnOnce(Config) -> Result<Session>) -> u8 {
    if let Some(code) = refuse_binary(query.format) {
        return code;
    }
    let shell = query.inputs.is_empty() && io::stdin().is_terminal();
    let mut runner = match runner(session(query.config), query.format, query.timing) {
        Ok(runner) => runner,
        Err(code) => return code,
    };
    if shell {
        return shell::main(&mut runner);
    }
    let stdin_alone = [Input::Stdin];
    let inputs = if query.inputs.is_empty() { &stdin_alone[..] } else { &query.inputs[..] };
    for input in inputs {
        let passed = query.input_socket.as_deref().filter(|_| input.is_standard_input());
        let outcome = match (input, passed) {
            (Input::Text(sql), _) => Ok(script(&mut runner, sql)),
            (Input::File(path), None) => read(path).map(|sql| script(&mut runner, &sql)),
            (Input::File(_), Some(socket)) => {
                read_passed(socket).map(|sql| script(&mut runner, &sql))
            }
            (Input::Stdin, None) => Ok(standard_input(&mut runner, io::stdin().lock())),
            (Input::Stdin, Some(socket)) => UnixStream::connect(socket)
                .map_err(|error| unreadable(&error))
                .map(|passed| standard_input(&mut runner, io::BufReader::new(passed))),
        };
        let outcome = outcome.unwrap_or_else(|error| {
            print_stderr(&format!("error: {error}"));
            Outcome::Failed
        });
        if outcome != Outcome::Done {
            return outcome.exit_code();
        }
    }
    0
}

/// Runs a plan from a file. Returns the exit code.
pub(crate) fn run_plan(run: &RunPlan, session: impl FnOnce(Config) -> Result<Session>) -> u8 {
    if let Some(code) = refuse_binary(run.format) {
        return code;
    }
    match runner(session(run.config.clone()), run.format, run.timing.clone()) {
        Ok(mut runner) => match read(&run.plan) {
            Ok(text) => runner.plan(text).exit_code(),
            Err(error) => {
                print_stderr(&format!("error: {error}"));
                EXIT_ERROR
            }
        },
        Err(code) => code,
    }
}

/// Rejects a binary format on a terminal. Returns the exit code.
fn refuse_binary(format: Format) -> Option<u8> {
    if !format.is_binary() || !io::stdout().is_terminal() {
        return None;
    }
    let name = format.name();
    print_stderr(&format!(
        "error: cannot write binary format {name} to a terminal; redirect it: tessera … --format {name} > rows.{name}"
    ));
    Some(EXIT_USAGE)
}

fn runner(
    session: Result<Session>,
    format: Format,
    timing: Timing,
) -> std::result::Result<Runner<Output>, u8> {
    match session {
        Ok(session) => {
            let out = io::BufWriter::with_capacity(1 << 16, io::stdout());
            let mut printer = Printer::new(out, format);
            if io::stdout().is_terminal() {
                printer.limits.rows_max = TERMINAL_ROWS;
                printer.limits.hint = "--format csv or a pipe shows all";
            }
            Ok(Runner::new(session, printer, timing))
        }
        Err(error) => {
            print_stderr(&format!("error: {error}"));
            Err(EXIT_ERROR)
        }
    }
}

fn read(path: &Path) -> Result<String> {
    let shown = path.display();
    let bytes =
        fs::read(path).map_err(|error| Error::io(format!("cannot read '{shown}': {error}")))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count() + 1;
        Error::data(format!("'{shown}' is not valid UTF-8 in line {line}; convert it"))
    })
}

/// Reads the whole standard input of the launcher.
fn read_passed(socket: &Path) -> Result<String> {
    let mut sql = String::new();
    UnixStream::connect(socket)
        .and_then(|mut passed| passed.read_to_string(&mut sql))
        .map_err(|error| unreadable(&error))?;
    Ok(sql)
}

fn unreadable(error: &io::Error) -> Error {
    Error::io(format!("cannot read the standard input: {error}"))
}

/// Runs the statements of a text until one fails.
fn script<W: Write + Send>(runner: &mut Runner<W>, sql: &str) -> Outcome {
    let mut script = Script::default();
    script.push(sql);
    loop {
        let Some(piece) = script.next().or_else(|| script.finish()) else { return Outcome::Done };
        let outcome = runner.statement(&piece);
        if outcome != Outcome::Done {
            return outcome;
        }
    }
}

/// Runs each statement of the standard input as soon as it is complete. Continues after a failed
/// statement.
fn standard_input<W: Write + Send>(runner: &mut Runner<W>, mut input: impl BufRead) -> Outcome {
    let mut failed = false;
    let mut script = Script::default();
    let mut line = Vec::new();
    loop {
        if runner.interrupt.is_to_end() {
            return Outcome::Interrupted;
        }
        line.clear();
        let read = input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        match read {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                print_stderr(&format!("error: {}", unreadable(&error)));
                return Outcome::Failed;
            }
        }
        match std::str::from_utf8(&line) {
            Ok(text) => script.push(text),
            Err(_) => {
                print_stderr(
                    "error: the standard input is not valid UTF-8; the statement was skipped",
                );
                failed = true;
                script = Script::default();
                continue;
            }
        }
        while let Some(piece) = script.next() {
            match statement(runner, &piece, &mut failed) {
                Outcome::Done | Outcome::Failed => {}
                outcome => return outcome,
            }
        }
    }
    if let Some(piece) = script.finish() {
        let outcome = statement(runner, &piece, &mut failed);
        if outcome != Outcome::Done {
            return outcome;
        }
    }
    if failed { Outcome::Failed } else { Outcome::Done }
}

fn statement<W: Write + Send>(
    runner: &mut Runner<W>,
    piece: &StatementText,
    failed: &mut bool,
) -> Outcome {
    let outcome = runner.statement(piece);
    *failed |= outcome == Outcome::Failed;
    outcome
}
