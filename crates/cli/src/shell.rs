//! The shell: statements from a person at a terminal.

use std::io::Write;
use std::path::PathBuf;

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};

use crate::EXIT_ERROR;
use crate::output::Failure;
use crate::runner::{Outcome, Runner, complain};
use crate::script::Script;

const PROMPT: &str = "tessera> ";
const PROMPT_MORE: &str = "    ...> ";
/// Rows shown of a result, until `.rows` says otherwise.
const ROWS_SHOWN: usize = 40;
/// Statements the history keeps.
const HISTORY_ENTRIES_MAX: usize = 1_000;

const HELP: &str = "\
Statements end with a semicolon and may span lines. Commands, each on a line of its own:
  .tables            tables and views
  .rows N | all      how many rows of a result are shown
  .timer on | off    the time of each statement
  .help              this text
  .quit              leave (also Ctrl-D, and Ctrl-C twice)
While a statement runs, Ctrl-C cancels it.
";

/// What a line that is no SQL asked for.
enum Next {
    Line,
    Quit,
}

/// Reads and runs statements until the person leaves; gives the exit code.
pub(crate) fn main<W: Write + Send>(runner: &mut Runner<W>) -> u8 {
    runner.interrupt.stay();
    runner.printer.rows_max = ROWS_SHOWN;
    let config = Config::builder().max_history_size(HISTORY_ENTRIES_MAX).map(|builder| builder.build());
    let editor: Result<Editor<(), FileHistory>, ReadlineError> = config.and_then(Editor::with_config);
    let mut editor = match editor {
        Ok(editor) => editor,
        Err(error) => {
            complain(&format!("error: cannot use the terminal: {error}"));
            return EXIT_ERROR;
        }
    };
    let history = history_file();
    if let Some(path) = &history {
        // The first time there is none.
        drop(editor.load_history(path));
    }
    println!("Tessera {}. Statements end with ; and .help explains the rest.", env!("CARGO_PKG_VERSION"));
    read(runner, &mut editor);
    if let Some(path) = &history {
        // A home directory that cannot be written costs the history, nothing else.
        drop(editor.save_history(path));
    }
    0
}

fn read<W: Write + Send>(runner: &mut Runner<W>, editor: &mut Editor<(), FileHistory>) {
    let mut script = Script::default();
    let mut entry = String::new();
    let mut interrupted = false;
    loop {
        let blank = script.is_blank();
        match editor.readline(if blank { PROMPT } else { PROMPT_MORE }) {
            Ok(line) if blank && line.trim_start().starts_with('.') => {
                interrupted = false;
                drop(editor.add_history_entry(line.trim()));
                match command(runner, line.trim()) {
                    Ok(Next::Line) => {}
                    Ok(Next::Quit) | Err(_) => return,
                }
            }
            Ok(line) => {
                interrupted = false;
                if blank {
                    script = Script::default();
                    entry.clear();
                }
                entry.push_str(&line);
                entry.push('\n');
                script.push(&line);
                script.push("\n");
                let mut ran = false;
                while let Some(piece) = script.next() {
                    ran = true;
                    if runner.statement(&piece) == Outcome::Closed {
                        return;
                    }
                }
                if ran && script.is_blank() {
                    drop(editor.add_history_entry(entry.trim_end()));
                }
            }
            Err(ReadlineError::Interrupted) if blank && interrupted => return,
            Err(ReadlineError::Interrupted) => {
                interrupted = blank;
                if blank {
                    println!("(Ctrl-C again, or .quit, leaves)");
                }
                script = Script::default();
            }
            Err(ReadlineError::Eof) => return,
            Err(error) => {
                complain(&format!("error: cannot read from the terminal: {error}"));
                return;
            }
        }
    }
}

fn command<W: Write + Send>(runner: &mut Runner<W>, line: &str) -> Result<Next, Failure> {
    let words: Vec<&str> = line.trim_end_matches(';').split_whitespace().collect();
    match words.as_slice() {
        [".quit" | ".exit" | ".q"] => return Ok(Next::Quit),
        [".help"] => runner.printer.text(HELP)?,
        [".tables"] => {
            let names = runner.session.table_names();
            runner.printer.text(&if names.is_empty() { "(none)".to_string() } else { names.join("\n") })?;
        }
        [".timer", "on"] => runner.timing.wanted = true,
        [".timer", "off"] => runner.timing.wanted = false,
        [".rows", "all"] => runner.printer.rows_max = usize::MAX,
        [".rows", number] if number.parse::<usize>().is_ok_and(|number| number > 0) => {
            runner.printer.rows_max = number.parse().unwrap_or(ROWS_SHOWN);
        }
        _ => complain(&format!("error: there is no command {line}; .help lists those there are")),
    }
    Ok(Next::Line)
}

/// `$XDG_STATE_HOME/tessera_history`, else `~/.tessera_history`.
fn history_file() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    match folder("XDG_STATE_HOME") {
        Some(state) => Some(state.join("tessera_history")),
        None => folder("HOME").map(|home| home.join(".tessera_history")),
    }
}
