//! Paths that represent an open descriptor: `/dev/stdin`, `/dev/stdout`, `/dev/stderr`,
//! `/dev/fd/N`, `/proc/self/fd/N`.
//!
//! Opening such a path opens the underlying file again, at its beginning, and fails for a socket.
//! So the descriptor is duplicated instead, which shares its position.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_getfd};

/// Returns the descriptor that a path represents by its text alone.
pub(crate) fn named(path: &Path) -> Option<RawFd> {
    let path = path.to_str()?;
    match path {
        "/dev/stdin" => return Some(0),
        "/dev/stdout" => return Some(1),
        "/dev/stderr" => return Some(2),
        _ => {}
    }
    if let Some(number) = path.strip_prefix("/dev/fd/") {
        return parse(number);
    }
    let (process, rest) = path.strip_prefix("/proc/")?.split_once('/')?;
    if !is_this(process) {
        return None;
    }
    match rest.split('/').collect::<Vec<_>>().as_slice() {
        ["fd", number] | ["task", _, "fd", number] => parse(number),
        _ => None,
    }
}

fn is_this(process: &str) -> bool {
    let is_linked = || std::fs::read_link("/proc/self").is_ok_and(|own| own == Path::new(process));
    matches!(process, "self" | "thread-self") || is_linked()
}

fn parse(number: &str) -> Option<RawFd> {
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok()).flatten()
}

/// Duplicates an open descriptor.
///
/// # Errors
/// It is not open, or this program opened it for itself.
pub(crate) fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    match number {
        0 => return own_of(io::stdin().as_fd()),
        1 => return own_of(io::stdout().as_fd()),
        2 => return own_of(io::stderr().as_fd()),
        _ => {}
    }
    // SAFETY: the borrow ends with this function, which only queries flags and duplicates the
    // descriptor. If the number is not open, or another thread closes it meanwhile, these calls
    // fail; nothing is read, written or closed through it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    // Inherited descriptors lack this flag; descriptors that this program opens have it.
    if fcntl_getfd(borrowed)?.contains(FdFlags::CLOEXEC) {
        return Err(Errno::BADF.into());
    }
    own_of(borrowed)
}

fn own_of(descriptor: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // Above the first three: a closed one of these must not be reused.
    Ok(fcntl_dupfd_cloexec(descriptor, 3)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_descriptors() {
        let own = format!("/proc/{}/fd/9", std::process::id());
        for (path, number) in [
            ("/dev/stdin", 0),
            ("/dev/stdout", 1),
            ("/dev/stderr", 2),
            ("/dev/fd/63", 63),
            ("/proc/self/fd/7", 7),
            ("/proc/thread-self/fd/7", 7),
            (&own, 9),
        ] {
            assert_eq!(named(Path::new(path)), Some(number), "{path}");
        }
        for path in ["/dev/null", "/dev/fd/", "/dev/fd/x", "/dev/fd/+1", "/proc/1/fd/1", "stdout"] {
            assert_eq!(named(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn own_files_are_not_given_away() {
        use std::os::fd::AsRawFd;
        let file = tempfile::tempfile().unwrap();
        assert!(duplicate(file.as_raw_fd()).is_err());
        rustix::io::fcntl_setfd(&file, FdFlags::empty()).unwrap();
        assert!(duplicate(file.as_raw_fd()).is_ok());
        assert!(duplicate(1_000_000).is_err());
    }
}
