//! The interactive shell.

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
use crate::runner::{Outcome, Runner, print_stderr};
use crate::script::{Script, StatementText};

const PROMPT: &str = "tessera> ";
const PROMPT_MORE: &str = "    ...> ";
/// The default number of rows to show.
const ROWS_SHOWN: usize = 40;
/// The maximum width of a cell, unless all rows are shown.
const CELL_WIDTH_MAX: usize = 80;
/// The maximum number of history entries.
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

/// The effect of a shell command.
enum CommandEffect {
    Line,
    Quit,
}

/// Records the current line of the editor, which discards it on Ctrl-C.
#[derive(Debug, Default)]
struct LineRecorder {
    line: RefCell<String>,
}

impl Helper for LineRecorder {}
impl Highlighter for LineRecorder {}
impl Validator for LineRecorder {}

impl Completer for LineRecorder {
    type Candidate = String;

    /// Replaces a tab, for example in pasted text, by a space.
    fn complete(
        &self,
        _: &str,
        at: usize,
        _: &Context<'_>,
    ) -> Result<(usize, Vec<String>), ReadlineError> {
        Ok((at, vec![" ".to_string()]))
    }
}

impl Hinter for LineRecorder {
    type Hint = String;

    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<String> {
        *self.line.borrow_mut() = line.to_string();
        None
    }
}

/// The line editor and its history.
struct Terminal {
    editor: Editor<LineRecorder, MemHistory>,
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
        editor.set_helper(Some(LineRecorder::default()));
        let history = history_file().map(History::new);
        if let Some(history) = &history {
            // A failure only loses the history.
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

    /// Takes the text of the last line.
    fn typed(&mut self) -> String {
        self.editor.helper().map(|typed| typed.line.take()).unwrap_or_default()
    }

    /// Adds discarded text to the history, unless it is there, for example because it was recalled.
    fn remember_dropped(&mut self, entry: &str) {
        let is_there = self.editor.history().into_iter().any(|known| known == entry.trim());
        if !is_there {
            self.remember(entry);
        }
    }

    /// Adds an entry to the history unless it is blank.
    fn remember(&mut self, entry: &str) {
        let entry = entry.trim();
        // `add_history_entry` ignores a repetition of the last entry.
        let added = !entry.is_empty() && self.editor.add_history_entry(entry).unwrap_or(false);
        if let Some(history) = self.history.as_ref().filter(|_| added) {
            // A failure only loses the history.
            drop(history.append(entry));
        }
    }
}

/// Reads and runs statements until the user leaves. Returns the exit code.
pub(crate) fn main<W: Write + Send>(runner: &mut Runner<W>) -> u8 {
    runner.interrupt.stay();
    runner.printer.limits = default_limits();
    let mut terminal = match Terminal::open() {
        Ok(terminal) => terminal,
        Err(error) => {
            print_stderr(&format!("error: cannot use the terminal: {error}"));
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

/// The default limits of tables.
fn default_limits() -> TableLimits {
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
                    Ok(CommandEffect::Line) => {}
                    Ok(CommandEffect::Quit) | Err(_) => return,
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
                let pieces: Vec<StatementText> = std::iter::from_fn(|| script.next()).collect();
                if !pieces.is_empty() {
                    // Before the statements run, because they may not return.
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
                print_stderr(&format!("error: cannot read from the terminal: {error}"));
                return;
            }
        }
    }
}

/// Runs statements until one is interrupted. Returns whether the shell continues.
fn run<W: Write + Send>(runner: &mut Runner<W>, pieces: &[StatementText]) -> bool {
    for piece in pieces {
        match runner.statement(piece) {
            Outcome::Closed => return false,
            Outcome::Interrupted => break,
            Outcome::Done | Outcome::Failed => {}
        }
    }
    !runner.interrupt.is_to_end()
}

/// Whether a line is a shell command.
fn is_command(line: &str) -> bool {
    line.trim_start().starts_with('.') || word(line).is_some()
}

/// The command of a line such as `quit`, without a dot.
fn word(line: &str) -> Option<&'static str> {
    let line = line.trim().trim_end_matches(';').trim_end();
    let known = [("exit", ".quit"), ("quit", ".quit"), ("help", ".help")];
    known.iter().find(|(word, _)| line.eq_ignore_ascii_case(word)).map(|(_, command)| *command)
}

/// Runs a shell command.
fn command<W: Write + Send>(runner: &mut Runner<W>, line: &str) -> Result<CommandEffect, Failure> {
    let line = word(line).unwrap_or(line);
    let words: Vec<&str> = line.trim_end_matches(';').split_whitespace().collect();
    match words.as_slice() {
        [".quit" | ".exit" | ".q"] => return Ok(CommandEffect::Quit),
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
            runner.printer.limits = TableLimits { rows_max, ..default_limits() };
        }
        _ => print_stderr(&format!("error: unknown command {line}; .help lists the commands")),
    }
    Ok(CommandEffect::Line)
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
