//! The files of the services: private directories, and names that stay below them.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::access::random;

/// The prefix of temporary directories, followed by random digits.
const SCRATCH: &str = "tessera-serverless-";
/// The maximum length of a key, as in Amazon's store, and of a file name.
const KEY_BYTES_MAX: usize = 1024;
const NAME_BYTES_MAX: usize = 255;

/// A temporary directory that is removed on drop. Directories of killed processes are removed by
/// the next process.
///
/// It is locked while its process lives. A process number would not identify the owner: numbers are
/// reused, and containers that share a directory have the same ones.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    pub(crate) fn new() -> io::Result<Scratch> {
        let all = std::env::temp_dir();
        remove_abandoned(&all)?;
        loop {
            let path = all.join(format!("{SCRATCH}{}", random::<8>()?));
            // Fails if the directory exists, since another process owns it.
            DirBuilder::new().mode(0o700).create(&path)?;
            let lock = File::open(&path)?;
            // Another process may have removed the directory as abandoned before it was locked.
            // That cannot happen on file systems without locks.
            let taken = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
            if !taken && path.exists() {
                return Ok(Scratch { path, _lock: lock });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.path));
    }
}

fn is_scratch(name: &str) -> bool {
    let random = name.strip_prefix(SCRATCH).unwrap_or_default();
    random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Removes this user's temporary directories of processes that have ended.
fn remove_abandoned(all: &Path) -> io::Result<()> {
    for entry in fs::read_dir(all)?.flatten() {
        if entry.file_name().to_str().is_some_and(is_scratch) {
            drop(remove_unlocked(&entry.path()));
        }
    }
    Ok(())
}

fn remove_unlocked(path: &Path) -> io::Result<()> {
    let directory =
        File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_DIRECTORY).open(path)?;
    // SAFETY: the call returns a number.
    if directory.metadata()?.uid() != unsafe { libc::geteuid() } || directory.try_lock().is_err() {
        return Ok(());
    }
    fs::remove_dir_all(path)
}

/// Creates a directory and its parents with access for this user only; an existing one keeps its
/// mode.
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Whether this is a plain file name, which leads to no other directory.
pub(crate) fn is_name(part: &str) -> bool {
    !matches!(part, "" | "." | "..") && part.len() <= NAME_BYTES_MAX && !part.contains(['/', '\0'])
}

/// Returns the path of a key below a directory. No component is a symbolic link.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`]: the key is not a path of plain names, or a component is a link.
pub(crate) fn resolve(root: &Path, key: &str) -> io::Result<PathBuf> {
    let refused = || io::Error::from(io::ErrorKind::InvalidInput);
    if key.len() > KEY_BYTES_MAX || !key.split('/').all(is_name) {
        return Err(refused());
    }
    let mut path = root.to_path_buf();
    for part in key.split('/') {
        path.push(part);
        if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink()) {
            return Err(refused());
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn scratch_is_private_and_has_no_name_to_guess() {
        let (one, other) = (Scratch::new().unwrap(), Scratch::new().unwrap());
        let mode = fs::metadata(one.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_ne!(one.path(), other.path());
        let path = one.path().to_path_buf();
        drop(one);
        assert!(!path.exists() && other.path().exists());
    }

    #[test]
    fn what_is_left_of_the_dead_goes_and_nothing_else() {
        let all = tempfile::tempdir().unwrap();
        let path = |name: &str| all.path().join(format!("{SCRATCH}{name}"));
        let (dead, alive, link) =
            (path("00000000000000ab"), path("00000000000000cd"), path("00000000000000ef"));
        let (of_users, linked) = (path("notes"), all.path().join("linked"));
        for folder in [&dead, &alive, &of_users, &linked] {
            create_private(&folder.join("inside")).unwrap();
        }
        symlink(&linked, &link).unwrap();
        let lock = File::open(&alive).unwrap();
        lock.try_lock().unwrap();
        remove_abandoned(all.path()).unwrap();
        assert!(!dead.exists() && alive.join("inside").exists() && of_users.exists());
        assert!(linked.join("inside").exists() && link.is_symlink());
    }

    #[test]
    fn keys_stay_below() {
        let root = tempfile::tempdir().unwrap();
        create_private(&root.path().join("in")).unwrap();
        symlink("/etc", root.path().join("out")).unwrap();
        symlink("in", root.path().join("inner")).unwrap();
        assert_eq!(
            resolve(root.path(), "a/b..c/%2e%2e/ d").unwrap(),
            root.path().join("a/b..c/%2e%2e/ d")
        );
        let long = "x/".repeat(600) + "x";
        let wrong = [
            "",
            "/",
            "..",
            ".",
            "../x",
            "a/../../x",
            "a/./b",
            "a//b",
            "/etc/passwd",
            "a/",
            "a\0b",
            "out/passwd",
            "out",
            "inner/x",
            &long,
        ];
        for key in wrong {
            assert_eq!(
                resolve(root.path(), key).unwrap_err().kind(),
                io::ErrorKind::InvalidInput,
                "{key:.40}"
            );
        }
    }
}
