//! What the system's errors of files mean, in the words that every message uses.

use std::io::{self, ErrorKind};

/// The system's numbers for a process, or a system, that has too many files open.
const TOO_MANY_OPEN: [i32; 2] = [24, 23];

/// The cause of an error of the system's, for a message that says what was being done, and with
/// which file.
///
/// ```
/// let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
/// let expected = "the disk is full; free some space or name another place";
/// assert_eq!(tessera_types::io_cause(&full), expected);
/// ```
pub fn io_cause(error: &io::Error) -> String {
    let cause = match error.kind() {
        ErrorKind::NotFound => "no such file or directory",
        ErrorKind::PermissionDenied => "permission denied",
        ErrorKind::IsADirectory => "it is a directory",
        ErrorKind::NotADirectory => "a part of the path is not a directory",
        ErrorKind::ReadOnlyFilesystem => "its file system is read-only",
        ErrorKind::StorageFull => "the disk is full; free some space or name another place",
        ErrorKind::QuotaExceeded => {
            "the user's share of the disk is used up; free some space or name another place"
        }
        ErrorKind::FileTooLarge => "a file may not have so many bytes; see ulimit -f",
        _ if error.raw_os_error().is_some_and(|number| TOO_MANY_OPEN.contains(&number)) => {
            "too many files are open; allow more with ulimit -n"
        }
        _ => return error.to_string(),
    };
    cause.to_string()
}
