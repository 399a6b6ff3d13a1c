//! Files that appear completely or not at all.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Gid, OFlags, Uid, fchown, flock};
use tempfile::{NamedTempFile, TempPath};
use tessera_context::Output;
use tessera_types::{Error, Result};

use crate::io_error;
use crate::target::{Target, folder_of};

/// The part of a temporary file's name between the target's name and the random part.
const MARK: &str = ".tessera-";
/// The suffix of a temporary file's name.
const SUFFIX: &str = ".tmp";
/// The number of random letters in a temporary file's name.
const RANDOM_LETTERS: usize = 12;
/// The most bytes of the target's name in the temporary name, as file systems allow 255 bytes.
const NAME_BYTES_MAX: usize = 200;
/// The number of names to try, in case a cleaner removed the file as abandoned.
const ATTEMPTS_MAX: usize = 100;
/// The mode bits that a new version of a file inherits: the read, write and execute permissions.
const MODE_MASK: u32 = 0o777;

/// A file that is written next to its target and renamed when complete. If it is dropped before
/// that, nothing remains.
///
/// The temporary file is locked while it is written. One without a lock was left by a killed
/// process; the next writer of the same target removes it.
#[derive(Debug)]
pub struct AtomicFile {
    /// The path as the user wrote it.
    path: String,
    target: PathBuf,
    replaced: Option<Metadata>,
    temporary: Option<TempPath>,
    writer: Option<BufWriter<File>>,
}

impl AtomicFile {
    /// Starts writing the file at `path`, in its directory. A symbolic link remains, and the file
    /// it leads to is written.
    ///
    /// # Errors
    /// The directory does not exist or is not writable, or `path` does not lead to a regular file.
    pub fn create(path: &str) -> Result<AtomicFile> {
        match Target::of(path)? {
            Target::File(target, replaced) => AtomicFile::replacing(path, target, replaced),
            _ => Err(Error::io(format!("cannot write '{path}': it is not a regular file"))),
        }
    }

    /// Like [`AtomicFile::create`], for a path whose links were resolved.
    pub(crate) fn replacing(
        path: &str,
        target: PathBuf,
        replaced: Option<Metadata>,
    ) -> Result<AtomicFile> {
        let failed = |error| io_error("write", path, error);
        if replaced.is_some() {
            may_be_written(&target).map_err(failed)?;
        }
        let (file, temporary) = begin(&target, replaced.is_some()).map_err(failed)?;
        if let Some(replaced) = &replaced {
            keep_owner(&file, replaced).map_err(|error| {
                Error::io(format!(
                    "cannot replace '{path}': it belongs to user {} and group {}, which a new version cannot keep; write another \
                     file, or remove this one first",
                    replaced.uid(),
                    replaced.gid()
                ))
                .caused_by(error)
            })?;
        }
        let writer = Some(BufWriter::with_capacity(1 << 18, file));
        Ok(AtomicFile {
            path: path.to_string(),
            target,
            replaced,
            temporary: Some(temporary),
            writer,
        })
    }

    /// Makes the file appear, complete and durable. Without `overwrite`, an existing file is an
    /// error. Returns its path with all links resolved.
    ///
    /// # Errors
    /// The file cannot be written or exists; nothing remains of it.
    pub fn publish(mut self, overwrite: bool) -> io::Result<PathBuf> {
        self.move_into_place(overwrite)?;
        Ok(self.target.clone())
    }

    fn move_into_place(&mut self, overwrite: bool) -> io::Result<()> {
        let (Some(writer), Some(temporary)) = (self.writer.take(), self.temporary.take()) else {
            return Err(io::Error::other("the file was already completed"));
        };
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        // The target may have changed since `create`.
        match fs::symlink_metadata(&self.target) {
            Ok(now) if now.is_file() => self.replaced = Some(now),
            Ok(_) => {
                return Err(io::Error::other(
                    "it was replaced by something other than a regular file",
                ));
            }
            Err(_) => {}
        }
        if let Some(replaced) = &self.replaced {
            keep_owner(&file, replaced)?;
            keep_access_list(&self.target, &file)?;
            file.set_permissions(Permissions::from_mode(replaced.mode() & MODE_MASK))?;
        }
        file.sync_all()?;
        match overwrite {
            true => temporary.persist(&self.target).map_err(|refused| refused.error)?,
            false => temporary.persist_noclobber(&self.target).map_err(|refused| refused.error)?,
        }
        // The rename is durable only once the directory is synced.
        if let Ok(folder) = File::open(folder_of(&self.target)) {
            folder.sync_all().ok();
        }
        Ok(())
    }
}

/// Rejects a target that the user may not write, even if its directory permits replacing it.
fn may_be_written(target: &Path) -> io::Result<()> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    match File::options().write(true).custom_flags(flags.bits() as i32).open(target) {
        // A running program can be replaced, but not written.
        Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => Ok(()),
        opened => opened.map(drop),
    }
}

/// Creates a locked temporary file. If it replaces a file, only its owner has access until it takes
/// over the other's mode; otherwise it has the default mode.
fn begin(target: &Path, replaces: bool) -> io::Result<(File, TempPath)> {
    let folder = folder_of(target);
    let prefix = prefix_of(target);
    remove_abandoned(&folder, &prefix);
    let mode = if replaces { 0o600 } else { 0o666 };
    for _ in 0..ATTEMPTS_MAX {
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(SUFFIX).rand_bytes(RANDOM_LETTERS);
        let (file, temporary) = builder
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(&folder)
            .map(NamedTempFile::into_parts)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // Some file systems have no locks; a cleaner then does not remove the file either.
            Ok(()) if file.metadata()?.nlink() == 0 => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            _ => return Ok((file, temporary)),
        }
    }
    Err(io::Error::other("other programs remove the temporary file next to it"))
}

/// Returns the prefix of the names of temporary files for a target.
fn prefix_of(target: &Path) -> String {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!(".{}{MARK}", &name[..end])
}

/// Removes temporary files of killed processes. Files that cannot be examined remain; they only use
/// space.
fn remove_abandoned(folder: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let random = name.to_str().and_then(|name| name.strip_prefix(prefix)?.strip_suffix(SUFFIX));
        let is_ours = |random: &str| {
            random.len() == RANDOM_LETTERS
                && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        if random.is_some_and(is_ours) {
            drop(remove_if_abandoned(&entry.path()));
        }
    }
}

fn remove_if_abandoned(path: &Path) -> io::Result<()> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file =
        File::options().read(true).write(true).custom_flags(flags.bits() as i32).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    // Its writer may have renamed it before this process got the lock.
    let now = fs::symlink_metadata(path)?;
    match (now.dev(), now.ino()) == (metadata.dev(), metadata.ino()) {
        true => fs::remove_file(path),
        false => Ok(()),
    }
}

/// Gives a new version of a file the owner and the group of the old one.
fn keep_owner(file: &File, replaced: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    let user = (new.uid() != replaced.uid()).then(|| Uid::from_raw(replaced.uid()));
    let group = (new.gid() != replaced.gid()).then(|| Gid::from_raw(replaced.gid()));
    if user.is_some() || group.is_some() {
        fchown(file, user, group)?;
    }
    Ok(())
}

/// Copies the access control list: with a mode alone, the file's group could do what the list
/// forbids.
#[cfg(target_os = "linux")]
fn keep_access_list(replaced: &Path, file: &File) -> io::Result<()> {
    const LIST: &str = "system.posix_acl_access";
    const LIST_BYTES_MAX: usize = 1 << 16;
    let mut list = vec![0; LIST_BYTES_MAX];
    match rustix::fs::lgetxattr(replaced, LIST, &mut list) {
        Ok(len) => {
            let list = list.get(..len).unwrap_or_default();
            Ok(rustix::fs::fsetxattr(file, LIST, list, rustix::fs::XattrFlags::empty())?)
        }
        // No list, or a file system without lists.
        Err(_) => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn keep_access_list(_replaced: &Path, _file: &File) -> io::Result<()> {
    Ok(())
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.writer {
            Some(writer) => writer.write(bytes),
            None => Err(io::Error::other("the file was already completed")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Output for AtomicFile {
    fn commit(mut self: Box<Self>) -> Result<()> {
        self.move_into_place(true).map_err(|error| io_error("write", &self.path, error))
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            // Discards buffered bytes instead of writing them.
            drop(writer.into_parts());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let name =
            |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
        names.sort();
        names
    }

    fn write(path: &Path, bytes: &[u8]) -> Result<()> {
        let mut file = AtomicFile::create(path.to_str().unwrap())?;
        file.write_all(bytes).unwrap();
        Box::new(file).commit()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn nothing_is_left_behind_unless_committed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        let text = path.to_str().unwrap();
        let mut file = AtomicFile::create(text).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let mut file = AtomicFile::create(text).unwrap();
        file.write_all(b"whole").unwrap();
        assert!(!path.exists());
        Box::new(file).commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(
            AtomicFile::create("/no/such/folder/x.csv")
                .unwrap_err()
                .to_string()
                .contains("no such file")
        );
    }

    #[test]
    fn a_link_stays_and_what_it_leads_to_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("deep")).unwrap();
        fs::write(at("deep/file"), "old").unwrap();
        symlink("deep/file", at("link")).unwrap();
        symlink("deep/new", at("dangling")).unwrap();
        write(&at("link"), b"new").unwrap();
        write(&at("dangling"), b"made").unwrap();
        assert_eq!(fs::read(at("deep/file")).unwrap(), b"new");
        assert_eq!(fs::read(at("deep/new")).unwrap(), b"made");
        assert!(at("link").is_symlink() && at("dangling").is_symlink());
        assert_eq!(names(&at("deep")), ["file", "new"]);
    }

    #[test]
    fn a_file_keeps_its_mode_and_is_never_more_readable() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret.csv");
        for wanted in [0o600, 0o640, 0o664, 0o755] {
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(wanted)).unwrap();
            let mut file = AtomicFile::create(path.to_str().unwrap()).unwrap();
            let beside =
                names(folder.path()).into_iter().find(|name| name.ends_with(SUFFIX)).unwrap();
            assert_eq!(mode(&folder.path().join(beside)), 0o600);
            file.write_all(b"new").unwrap();
            Box::new(file).commit().unwrap();
            assert_eq!((mode(&path), fs::read(&path).unwrap()), (wanted, b"new".to_vec()));
        }
        // A new file has the default mode.
        let (new, other) = (folder.path().join("new.csv"), folder.path().join("other"));
        write(&new, b"x").unwrap();
        fs::write(&other, "x").unwrap();
        assert_eq!(mode(&new), mode(&other));
    }

    #[test]
    fn what_killed_writers_left_goes_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        let left = ".x.csv.tessera-AbCdEf012345.tmp";
        let of_users = [
            ".x.csv.tmp",
            ".x.csv.tessera-notes.tmp",
            ".y.csv.tessera-AbCdEf012345.tmp",
            "x.csv.old",
        ];
        for name in of_users.iter().chain([&left]) {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        let living = AtomicFile::create(path.to_str().unwrap()).unwrap();
        assert!(!folder.path().join(left).exists());
        let with_living = names(folder.path());
        write(&path, b"second").unwrap();
        assert!(
            with_living.iter().all(|name| folder.path().join(name).exists()),
            "{with_living:?}"
        );
        Box::new(living).commit().unwrap();
        let mut expected: Vec<&str> = of_users.to_vec();
        expected.push("x.csv");
        expected.sort_unstable();
        assert_eq!(names(folder.path()), expected);
    }

    #[test]
    fn long_names_and_places_that_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join(format!("{}.csv", "ä".repeat(120)));
        write(&long, b"x").unwrap();
        assert!(long.exists());
        let path = folder.path().join("x.csv");
        let file = AtomicFile::create(path.to_str().unwrap()).unwrap();
        fs::write(&path, "theirs").unwrap();
        assert_eq!(file.publish(false).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let file = AtomicFile::create(path.to_str().unwrap()).unwrap();
        fs::remove_file(&path).unwrap();
        symlink("elsewhere", &path).unwrap();
        assert!(
            Box::new(file).commit().unwrap_err().message().contains("other than a regular file")
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
