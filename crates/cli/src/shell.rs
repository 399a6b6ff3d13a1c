//! The shell: statements from a person at a terminal.

use std::cell::RefCell;
use std::io::Write;
use std::path::PathBuf;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use crate::EXIT_ERROR;
use crate::history::History;
use crate::output::{Failure, TableLimits};
use crate::runner::{Outcome, Runner, complain};
use crate::script::{Piece, Script};

const PROMPT: &str = "tessera> ";
const PROMPT_MORE: &str = "    ...> ";
/// Rows shown of a result.
const ROWS_SHOWN: usize = 40;
/// Values of a table that are wider are cut, unless all rows are shown.
const CELL_WIDTH_MAX: usize = 80;
/// Statements the history keeps.
const HISTORY_ENTRIES_MAX: usize = 1_000;

const HELP: &str = "\
Statements end with a semicolon and may span lines. Commands, each on a line of its own:
  .tables            tables and views
  .rows N | all      how many rows of a result are shown
  .timer on | off    the time of each statement
  .help, help        this text
  .quit, quit, exit  leave (also Ctrl-D)
Ctrl-C drops the statement that is being written, and cancels the one that runs. What was entered is in the history
(arrow up, Ctrl-R), which all shells share.
";

/// What a line that is no SQL asked for.
enum Next {
    Line,
    Quit,
}

/// What the line editor is told: it only remembers what has been typed, which is gone otherwise
/// when Ctrl-C ends a line.
#[derive(Debug, Default)]
struct Typed {
    line: RefCell<String>,
}

impl Helper for Typed {}
impl Highlighter for Typed {}
impl Validator for Typed {}

impl Completer for Typed {
    type Candidate = String;

    /// A tab, which pasted text may hold, becomes a space.
    fn complete(
        &self,
        _: &str,
        at: usize,
        _: &Context<'_>,
    ) -> Result<(usize, Vec<String>), ReadlineError> {
        Ok((at, vec![" ".to_string()]))
    }
}

impl Hinter for Typed {
    type Hint = String;

    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<String> {
        *self.line.borrow_mut() = line.to_string();
        None
    }
}

/// The terminal and what has been entered there.
struct Terminal {
    editor: Editor<Typed, MemHistory>,
    history: Option<History>,
}

impl Terminal {
    fn open() -> Result<Terminal, ReadlineError> {
        let config = Config::builder()
            .max_history_size(HISTORY_ENTRIES_MAX)?
            .completion_type(CompletionType::List)
            .build();
        let entered = MemHistory::with_config(&config);
        let mut editor = Editor::with_history(config, entered)?;
        editor.set_helper(Some(Typed::default()));
        let history = history_file().map(History::new);
        if let Some(history) = &history {
            // A file that cannot be read costs the history, nothing else.
            drop(history.cut(HISTORY_ENTRIES_MAX));
            for entry in history.entries().unwrap_or_default() {
                drop(editor.add_history_entry(entry));
            }
        }
        Ok(Terminal { editor, history })
    }

    fn line(&mut self, prompt: &str) -> Result<String, ReadlineError> {
        self.typed();
        self.editor.readline(prompt)
    }

    /// Takes what stood on the last line.
    fn typed(&mut self) -> String {
        self.editor.helper().map(|typed| typed.line.take()).unwrap_or_default()
    }

    /// Adds what was not run, unless it is there: it may have been fetched from the history.
    fn remember_dropped(&mut self, entry: &str) {
        let is_there = self.editor.history().into_iter().any(|known| known == entry.trim());
        if !is_there {
            self.remember(entry);
        }
    }

    /// Adds to the history what is not blank.
    fn remember(&mut self, entry: &str) {
        let entry = entry.trim();
        // One that repeats the last is not added again.
        let added = !entry.is_empty() && self.editor.add_history_entry(entry).unwrap_or(false);
        if let Some(history) = self.history.as_ref().filter(|_| added) {
            // A home directory that cannot be written costs the history, nothing else.
            drop(history.append(entry));
        }
    }
}

/// Reads and runs statements until the person leaves; gives the exit code.
pub(crate) fn main<W: Write + Send>(runner: &mut Runner<W>) -> u8 {
    runner.interrupt.stay();
    runner.printer.limits = shown();
    let mut terminal = match Terminal::open() {
        Ok(terminal) => terminal,
        Err(error) => {
            complain(&format!("error: cannot use the terminal: {error}"));
            return EXIT_ERROR;
        }
    };
    println!(
        "Tessera {}. Statements end with ; and .help explains the rest.",
        env!("CARGO_PKG_VERSION")
    );
    read(runner, &mut terminal);
    0
}

/// What is shown of a result, until `.rows` says otherwise.
fn shown() -> TableLimits {
    TableLimits {
        rows_max: ROWS_SHOWN,
        cell_width_max: CELL_WIDTH_MAX,
        hint: ".rows all shows all",
    }
}

fn read<W: Write + Send>(runner: &mut Runner<W>, terminal: &mut Terminal) {
    let mut script = Script::default();
    loop {
        let blank = script.is_blank();
        if blank {
            script = Script::default();
        }
        match terminal.line(if blank { PROMPT } else { PROMPT_MORE }) {
            Ok(line) if blank && is_command(&line) => {
                terminal.remember(&line);
                match command(runner, line.trim()) {
                    Ok(Next::Line) => {}
                    Ok(Next::Quit) | Err(_) => return,
                }
            }
            Ok(line) => {
                if word(&line).is_some() {
                    println!(
                        "(a statement is being written: a semicolon ends it, Ctrl-C drops it, Ctrl-D leaves)"
                    );
                }
                let before = script.rest().to_string();
                script.push(&line);
                script.push("\n");
                let pieces: Vec<Piece> = std::iter::from_fn(|| script.next()).collect();
                if !pieces.is_empty() {
                    // Before they run: they may never end.
                    terminal.remember(&(before + &line));
                }
                if !run(runner, &pieces) {
                    return;
                }
            }
            Err(ReadlineError::Interrupted) => {
                let dropped = format!("{}{}", script.rest(), terminal.typed());
                match dropped.trim().is_empty() {
                    true => println!("(Ctrl-D, or quit, leaves)"),
                    false => terminal.remember_dropped(&dropped),
                }
                script = Script::default();
            }
            Err(ReadlineError::Eof) => {
                terminal.remember_dropped(script.rest());
                return;
            }
            Err(error) => {
                complain(&format!("error: cannot read from the terminal: {error}"));
                return;
            }
        }
    }
}

/// Runs statements, until one is interrupted; whether the shell goes on.
fn run<W: Write + Send>(runner: &mut Runner<W>, pieces: &[Piece]) -> bool {
    for piece in pieces {
        match runner.statement(piece) {
            Outcome::Closed => return false,
            Outcome::Interrupted => break,
            Outcome::Done | Outcome::Failed => {}
        }
    }
    !runner.interrupt.is_to_end()
}

/// Whether a line is no SQL.
fn is_command(line: &str) -> bool {
    line.trim_start().starts_with('.') || word(line).is_some()
}

/// The command that a line without a dot is.
fn word(line: &str) -> Option<&'static str> {
    let line = line.trim().trim_end_matches(';').trim_end();
    let known = [("exit", ".quit"), ("quit", ".quit"), ("help", ".help")];
    known.iter().find(|(word, _)| line.eq_ignore_ascii_case(word)).map(|(_, command)| *command)
}

fn command<W: Write + Send>(runner: &mut Runner<W>, line: &str) -> Result<Next, Failure> {
    let line = word(line).unwrap_or(line);
    let words: Vec<&str> = line.trim_end_matches(';').split_whitespace().collect();
    match words.as_slice() {
        [".quit" | ".exit" | ".q"] => return Ok(Next::Quit),
        [".help"] => runner.printer.text(HELP)?,
        [".tables"] => {
            let names = runner.session.table_names();
            runner.printer.text(&if names.is_empty() {
                "(none)".to_string()
            } else {
                names.join("\n")
            })?;
        }
        [".timer", "on"] => runner.timing.wanted = true,
        [".timer", "off"] => runner.timing.wanted = false,
        [".rows", "all"] => {
            runner.printer.limits = TableLimits::default();
        }
        [".rows", number] if number.parse::<usize>().is_ok_and(|number| number > 0) => {
            let rows_max = number.parse().unwrap_or(ROWS_SHOWN);
            runner.printer.limits = TableLimits { rows_max, ..shown() };
        }
        _ => complain(&format!("error: there is no command {line}; .help lists those there are")),
    }
    Ok(Next::Line)
}

/// `$XDG_STATE_HOME/tessera_history`, else `~/.tessera_history`.
fn history_file() -> Option<PathBuf> {
    let folder =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    match folder("XDG_STATE_HOME") {
        Some(state) => Some(state.join("tessera_history")),
        None => folder("HOME").map(|home| home.join(".tessera_history")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_commands() {
        for (line, command) in
            [("quit", ".quit"), (" EXIT ;", ".quit"), ("Help;;", ".help"), ("quit;  ", ".quit")]
        {
            assert_eq!(word(line), Some(command), "{line}");
        }
        for line in ["", ";", "quit now", "select 1", "helper"] {
            assert_eq!(word(line), None, "{line}");
        }
    }
}
