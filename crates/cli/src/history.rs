//! The history file, which all shells share. An entry is appended when it is entered, so that a
//! killed shell loses none.
//!
//! Layout: the line [`HEADER`], then one line per entry, with `\n` and `\\` for line ends and
//! backslashes.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::time::Duration;

use tessera_files::AtomicFile;

const HEADER: &str = "#V2\n";
/// The file mode. Only the owner has access, because statements may contain secrets.
const MODE: u32 = 0o600;
/// The number of attempts to lock the file, and the time between them.
const LOCK_ATTEMPTS: usize = 20;
const LOCK_WAIT: Duration = Duration::from_millis(10);
/// A shell truncates the file at its start if it has this many times the maximum of entries.
const ENTRIES_FACTOR: usize = 2;

/// The history file.
#[derive(Debug)]
pub(crate) struct History {
    path: PathBuf,
}

impl History {
    /// A history in a file that may not exist yet.
    pub(crate) fn new(path: PathBuf) -> History {
        History { path }
    }

    /// All entries, the oldest first.
    ///
    /// # Errors
    /// The file cannot be read. A missing file has no entries.
    pub(crate) fn entries(&self) -> io::Result<Vec<String>> {
        let bytes = match std::fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            bytes => bytes?,
        };
        let text = String::from_utf8_lossy(&bytes);
        let entries = text.strip_prefix(HEADER).unwrap_or(&text).lines();
        Ok(entries.filter(|line| !line.is_empty()).map(unescaped).collect())
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn append(&self, entry: &str) -> io::Result<()> {
        let mut file = self.lock()?;
        let line = format!("{}\n", entry.replace('\\', "\\\\").replace('\n', "\\n"));
        let text = match last_byte(&mut file)? {
            None => format!("{HEADER}{line}"),
            Some(b'\n') => line,
            // The last write was incomplete: a shell was killed, or the disk was full.
            Some(_) => format!("\n{line}"),
        };
        file.write_all(text.as_bytes())
    }

    /// Removes the oldest entries if there are far more than `entries_max`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn cut(&self, entries_max: usize) -> io::Result<()> {
        if !self.path.exists() {
            return Ok(());
        }
        let mut file = self.lock()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let Some(entries) = bytes.strip_prefix(HEADER.as_bytes()) else { return Ok(()) };
        let lines: Vec<&[u8]> = entries.split_inclusive(|byte| *byte == b'\n').collect();
        if lines.len() <= entries_max * ENTRIES_FACTOR {
            return Ok(());
        }
        let path = self.path.to_str().ok_or_else(|| io::Error::other("its name is not UTF-8"))?;
        let mut shorter = AtomicFile::create(path).map_err(io::Error::other)?;
        shorter.write_all(HEADER.as_bytes())?;
        shorter.write_all(&lines[lines.len() - entries_max..].concat())?;
        shorter.publish(true).map(drop)
    }

    /// Opens and locks the file, and restricts access to its owner.
    fn lock(&self) -> io::Result<File> {
        for _ in 0..LOCK_ATTEMPTS {
            let mut options = File::options();
            let file = options.read(true).append(true).create(true).mode(MODE).open(&self.path)?;
            if file.try_lock().is_err() {
                std::thread::sleep(LOCK_WAIT);
                continue;
            }
            let metadata = file.metadata()?;
            // Another shell may have replaced the file while truncating it.
            if std::fs::metadata(&self.path).is_ok_and(|now| is_same(&now, &metadata)) {
                if metadata.mode() & 0o077 != 0 {
                    file.set_permissions(Permissions::from_mode(MODE))?;
                }
                return Ok(file);
            }
        }
        Err(io::Error::other("another shell holds it"))
    }
}

/// Decodes an entry. A backslash before any other character is literal.
fn unescaped(line: &str) -> String {
    let mut entry = String::with_capacity(line.len());
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        let plain = match (character, characters.peek()) {
            ('\\', Some('n')) => '\n',
            ('\\', Some('\\')) => '\\',
            _ => {
                entry.push(character);
                continue;
            }
        };
        characters.next();
        entry.push(plain);
    }
    entry
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

fn last_byte(file: &mut File) -> io::Result<Option<u8>> {
    if file.metadata()?.len() == 0 {
        return Ok(None);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut byte = [0];
    file.read_exact(&mut byte)?;
    Ok(Some(byte[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(history: &History) -> Vec<String> {
        history.entries().unwrap()
    }

    #[test]
    fn entries_are_added_behind_those_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        let (one, other) = (History::new(path.clone()), History::new(path.clone()));
        one.append("select 1;").unwrap();
        other.append("select\n'a\\n';").unwrap();
        File::options().append(true).open(&path).unwrap().write_all(b"cut off").unwrap();
        one.append("select 2;").unwrap();
        assert_eq!(entries(&one), ["select 1;", "select\n'a\\n';", "cut off", "select 2;"]);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        one.append("select 3;").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn the_oldest_go() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::new(folder.path().join("history"));
        history.cut(2).unwrap();
        for (entry, left) in [("1", 1), ("2", 2), ("3", 3), ("4", 4), ("5", 2)] {
            history.append(entry).unwrap();
            history.cut(2).unwrap();
            assert_eq!(entries(&history).len(), left);
        }
        assert_eq!(entries(&history), ["4", "5"]);
        assert_eq!(std::fs::metadata(&history.path).unwrap().mode() & 0o777, 0o600);
        history.append("6").unwrap();
        assert_eq!(entries(&history), ["4", "5", "6"]);
    }

    #[test]
    fn shells_at_the_same_time_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        std::thread::scope(|scope| {
            for shell in 0..4 {
                let history = History::new(path.clone());
                scope.spawn(move || {
                    (0..50).for_each(|n| history.append(&format!("{shell}: {n}")).unwrap())
                });
            }
        });
        assert_eq!(entries(&History::new(path)).len(), 200);
    }
}
