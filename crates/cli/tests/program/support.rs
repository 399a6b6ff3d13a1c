//! Helpers that run the program and create its data.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The time limit of a run, after which a hanging program is killed.
const PATIENCE: Duration = Duration::from_secs(120);

/// The output of a run of the program.
#[derive(Debug)]
pub(crate) struct FinishedRun {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) err: String,
}

impl FinishedRun {
    /// The output of a run that succeeded without messages.
    pub(crate) fn ok(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{}", self.out);
        self.out
    }

    /// The error of a run that failed: the first line of the standard error. The line of the
    /// statement and a caret may follow.
    pub(crate) fn error(self) -> String {
        assert_eq!(self.code, Some(1), "{} {}", self.out, self.err);
        let lines: Vec<&str> = self.err.lines().collect();
        match lines[..] {
            [error] if error.starts_with("error: ") => error.to_string(),
            [error, line, caret] if line.starts_with("line ") && caret.trim() == "^" => {
                error.to_string()
            }
            _ => panic!("one error is expected: {}", self.err),
        }
    }
}

/// The program with these arguments, not started yet.
pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tessera"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program to its end.
pub(crate) fn run(arguments: &[&str]) -> FinishedRun {
    finish(program(arguments).spawn().unwrap(), "")
}

/// Runs the program with this standard input.
pub(crate) fn run_with_input(arguments: &[&str], input: &str) -> FinishedRun {
    finish(program(arguments).stdin(Stdio::piped()).spawn().unwrap(), input)
}

/// Runs one text of SQL and prints CSV.
pub(crate) fn csv(database: &Path, sql: &str) -> FinishedRun {
    run(&[database.to_str().unwrap(), "--format", "csv", "-c", sql])
}

/// Waits for a started program.
pub(crate) fn finish(mut child: Child, input: &str) -> FinishedRun {
    let mut stdout = child.stdout.take().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let stdin = child.stdin.take();
    let input = input.to_string();
    let write = std::thread::spawn(move || {
        if let Some(mut stdin) = stdin {
            // Fails if the program ended early.
            drop(stdin.write_all(input.as_bytes()));
        }
    });
    let out = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let err = std::thread::spawn(move || {
        let mut text = String::new();
        stderr.read_to_string(&mut text).unwrap();
        text
    });
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > PATIENCE {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    write.join().unwrap();
    let bytes = out.join().unwrap();
    let out = String::from_utf8_lossy(&bytes).into_owned();
    FinishedRun { code: status.code(), out, bytes, err: err.join().unwrap() }
}

/// TPC-H at the smallest scale factor, generated once.
pub(crate) fn tpch() -> &'static Path {
    static DATA: OnceLock<PathBuf> = OnceLock::new();
    DATA.get_or_init(|| {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tpch-{}", std::process::id()));
        let options = tessera_generate::Options { overwrite: true, ..Default::default() };
        tessera_generate::generate(tessera_generate::Suite::Tpch, 0.001, &folder, &options)
            .unwrap();
        // Removes the data of earlier runs.
        for entry in std::fs::read_dir(env!("CARGO_TARGET_TMPDIR")).unwrap() {
            let path = entry.unwrap().path();
            let old = |path: &Path| {
                let age = path
                    .metadata()
                    .and_then(|metadata| metadata.modified())
                    .ok()?
                    .elapsed()
                    .ok()?;
                Some(age > Duration::from_secs(3_600))
            };
            if path != folder && old(&path) == Some(true) {
                drop(std::fs::remove_dir_all(&path));
            }
        }
        folder
    })
}

/// An empty folder and its name.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Writes a file below a folder.
pub(crate) fn file(folder: &tempfile::TempDir, name: &str, contents: impl AsRef<[u8]>) -> String {
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, contents).unwrap();
    path.to_str().unwrap().to_string()
}

/// The names of the entries of a folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Compares a page with the file that holds it, or writes it if `TESSERA_WRITE_REFERENCE` is set.
pub(crate) fn compare_with_file(page: &str, path: &Path) {
    if std::env::var_os("TESSERA_WRITE_REFERENCE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, page).unwrap();
        return;
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    let differs = page.lines().zip(written.lines()).enumerate().find(|(_, (new, old))| new != old);
    assert!(
        page == written,
        "{}: {differs:?}; set TESSERA_WRITE_REFERENCE=1 to write it",
        path.display()
    );
}
