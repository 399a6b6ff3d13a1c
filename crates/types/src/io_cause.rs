//! The wording of operating system errors about files, shared by all messages.

use std::io::{self, ErrorKind};

/// The `errno` values of too many open files: EMFILE (process) and ENFILE (system).
const TOO_MANY_OPEN: [i32; 2] = [24, 23];

/// Returns the cause of an operating system error, for a message that names the action and the
/// file.
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
            "the user's disk quota is used up; free some space or name another place"
        }
        ErrorKind::FileTooLarge => {
            "the file exceeds the size limit of the process; raise it with ulimit -f"
        }
        _ if error.raw_os_error().is_some_and(|number| TOO_MANY_OPEN.contains(&number)) => {
            "too many files are open; allow more with ulimit -n"
        }
        _ => return error.to_string(),
    };
    cause.to_string()
}
