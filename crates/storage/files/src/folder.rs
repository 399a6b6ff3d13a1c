//! Folders of files that appear at the end, and not at all where a statement fails. The files are
//! renamed one after the other: a crash of the machine meanwhile leaves some of them.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;
use tessera_context::{FolderMode, Output, OutputFolder};
use tessera_types::{Error, Result};

use crate::io_error;
use crate::listing::walk;

/// The start and the end of a staging folder's name. Listings skip names that start with a dot.
const PREFIX: &str = ".tessera-";
const SUFFIX: &str = ".tmp";
/// The file in a staging folder that its writer locks.
const LOCK: &str = ".lock";
/// The bytes of a file that are written at once.
const BUFFER_BYTES: usize = 1 << 18;

/// Whether a file of this path is data.
type IsData = Box<dyn Fn(&str) -> bool + Send>;

/// A folder whose new files are written to a staging folder within it and renamed at the end. If it
/// is dropped before that, nothing remains.
///
/// The staging folder is locked while it is written. One without a lock was left by a killed
/// process; the next writer of the folder removes it.
pub struct StagedFolder {
    /// The path as the user wrote it.
    path: String,
    mode: FolderMode,
    is_data: IsData,
    /// The new files by their paths within the folder.
    files: Vec<String>,
    staging: TempDir,
    /// Whether the folder was created and is removed if nothing is committed.
    is_new: bool,
    _lock: File,
}

impl std::fmt::Debug for StagedFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let StagedFolder { path, mode, .. } = self;
        f.debug_struct("StagedFolder")
            .field("path", path)
            .field("mode", mode)
            .finish_non_exhaustive()
    }
}

impl StagedFolder {
    /// Begins to write a folder, which is created if its parent exists.
    ///
    /// # Errors
    /// The path is a file, is not writable, or has files and the mode is [`FolderMode::New`].
    pub fn create(path: &str, mode: FolderMode, is_data: IsData) -> Result<StagedFolder> {
        let failed = |error| io_error("write", path, error);
        let folder = Path::new(path);
        let is_new = match fs::metadata(folder) {
            Ok(metadata) if !metadata.is_dir() => {
                return Err(Error::io(format!(
                    "cannot write '{path}': PARTITION_BY writes a folder, but it is a file; name a folder"
                )));
            }
            Ok(_) => false,
            Err(_) => {
                fs::create_dir(folder).map_err(failed)?;
                true
            }
        };
        let begun = StagedFolder::begin(path, mode, is_data, is_new);
        if begun.is_err() && is_new {
            drop(fs::remove_dir(folder));
        }
        begun
    }

    fn begin(path: &str, mode: FolderMode, is_data: IsData, is_new: bool) -> Result<StagedFolder> {
        let failed = |error| io_error("write", path, error);
        let folder = Path::new(path);
        remove_abandoned(folder);
        let mut entries = fs::read_dir(folder).map_err(failed)?;
        if mode == FolderMode::New && entries.any(|entry| !entry.is_ok_and(|e| is_staging(&e))) {
            return Err(Error::io(format!(
                "the folder '{path}' is not empty; with OVERWRITE, its data files are removed, with OVERWRITE_OR_IGNORE, \
                 those of the same names are replaced, and with APPEND, files are added"
            )));
        }
        let mut builder = tempfile::Builder::new();
        let staging = builder.prefix(PREFIX).suffix(SUFFIX).tempdir_in(folder).map_err(failed)?;
        let lock = File::create(staging.path().join(LOCK)).map_err(failed)?;
        // Some file systems have no locks. There, no later writer removes the folder either.
        flock(&lock, FlockOperation::NonBlockingLockExclusive).ok();
        let path = path.to_string();
        Ok(StagedFolder { path, mode, is_data, files: Vec::new(), staging, is_new, _lock: lock })
    }

    /// The data files that the folder has before the new ones are moved. Files in linked folders
    /// belong to others.
    fn old_files(&self) -> Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        walk(Path::new(&self.path), 0, &mut paths)?;
        let real = |path: &Path| fs::canonicalize(path).ok();
        let root = real(Path::new(&self.path));
        let is_within = |path: &Path| {
            let folder = path.parent().and_then(real);
            root.as_ref().is_some_and(|root| folder.is_some_and(|folder| folder.starts_with(root)))
        };
        let files = paths.into_iter().filter(|path| (self.is_data)(path)).map(PathBuf::from);
        Ok(files.filter(|path| is_within(path)).collect())
    }

    fn publish(&mut self) -> io::Result<()> {
        let folder = PathBuf::from(&self.path);
        let old = match self.mode {
            FolderMode::Overwrite => self.old_files().map_err(io::Error::other)?,
            _ => Vec::new(),
        };
        let may_replace = matches!(self.mode, FolderMode::Overwrite | FolderMode::Replace);
        for name in self.files.iter().filter(|_| !may_replace) {
            if fs::symlink_metadata(folder.join(name)).is_ok() {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    format!("its file {name} exists"),
                ));
            }
        }
        for name in &self.files {
            let target = folder.join(name);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            if fs::symlink_metadata(&target).is_ok_and(|found| !found.is_file()) {
                return Err(io::Error::other(format!("its file {name} is not a regular file")));
            }
            fs::rename(self.staging.path().join(name), &target)?;
        }
        self.is_new = false;
        let new: std::collections::HashSet<PathBuf> =
            self.files.iter().map(|name| folder.join(name)).collect();
        for path in old.iter().filter(|path| !new.contains(*path)) {
            fs::remove_file(path)?;
            remove_empty(path.parent(), &folder);
        }
        // Renames are durable only once their directory is synced.
        let mut folders: Vec<&Path> = new.iter().filter_map(|path| path.parent()).collect();
        folders.sort_unstable();
        folders.dedup();
        for folder in folders {
            File::open(folder).and_then(|folder| folder.sync_all()).ok();
        }
        Ok(())
    }
}

/// Removes partition folders that have become empty, up to the written folder.
fn remove_empty(folder: Option<&Path>, root: &Path) {
    let mut next = folder;
    while let Some(folder) = next.filter(|folder| *folder != root && folder.starts_with(root)) {
        if fs::remove_dir(folder).is_err() {
            return;
        }
        next = folder.parent();
    }
}

fn is_staging(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name();
    name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX))
}

/// Removes staging folders of killed processes. Those that cannot be examined remain; they only use
/// space.
fn remove_abandoned(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(is_staging) {
        let lock = File::options().read(true).write(true).open(entry.path().join(LOCK));
        let is_free =
            |file: File| flock(&file, FlockOperation::NonBlockingLockExclusive).map(|()| file);
        if let Ok(Ok(_lock)) = lock.map(is_free) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

impl OutputFolder for StagedFolder {
    fn create(&mut self, name: &str) -> Result<Box<dyn Output>> {
        let path = format!("{}/{name}", self.path.trim_end_matches('/'));
        let failed = |error| io_error("write", &path, error);
        let staged = self.staging.path().join(name);
        if let Some(parent) = staged.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let file = File::create_new(&staged).map_err(failed)?;
        self.files.push(name.to_string());
        Ok(Box::new(StagedFile { path, writer: BufWriter::with_capacity(BUFFER_BYTES, file) }))
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        let published = self.publish();
        published.map_err(|error| {
            let path = &self.path;
            Error::io(format!("cannot write '{path}': {}", tessera_types::io_cause(&error)))
                .caused_by(error)
        })
    }
}

impl Drop for StagedFolder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(self.staging.path()));
        if self.is_new {
            drop(fs::remove_dir(&self.path));
        }
    }
}

/// A file of a staging folder.
#[derive(Debug)]
struct StagedFile {
    path: String,
    writer: BufWriter<File>,
}

impl Write for StagedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Output for StagedFile {
    fn commit(mut self: Box<Self>) -> Result<()> {
        let written = self.writer.flush().and_then(|()| self.writer.get_ref().sync_all());
        written.map_err(|error| io_error("write", &self.path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::list;

    fn begin(path: &Path, mode: FolderMode) -> Result<StagedFolder> {
        StagedFolder::create(
            path.to_str().unwrap(),
            mode,
            Box::new(|path: &str| path.ends_with(".csv")),
        )
    }

    fn write(folder: &mut StagedFolder, name: &str, text: &str) {
        let mut file = folder.create(name).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.commit().unwrap();
    }

    fn files(path: &Path) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![path.to_path_buf()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                match entry.path() {
                    path if path.is_dir() => open.push(path),
                    file => found.push(file.strip_prefix(path).unwrap().display().to_string()),
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn files_appear_together_or_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("out");
        let mut folder = begin(&path, FolderMode::New).unwrap();
        write(&mut folder, "a=1/x.csv", "1");
        drop(folder);
        assert!(!path.exists());
        let mut folder = begin(&path, FolderMode::New).unwrap();
        write(&mut folder, "a=1/x.csv", "1");
        write(&mut folder, "a=2/x.csv", "2");
        let staged = list(path.to_str().unwrap(), &|_| true);
        assert!(staged.is_err(), "{staged:?}");
        Box::new(folder).commit().unwrap();
        assert_eq!(files(&path), ["a=1/x.csv", "a=2/x.csv"]);
    }

    #[test]
    fn modes_of_folders_with_files() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path();
        for (name, text) in [("a=1/x.csv", "old"), ("a=9/x.csv", "old"), ("README", "mine")] {
            fs::create_dir_all(path.join(name).parent().unwrap()).unwrap();
            fs::write(path.join(name), text).unwrap();
        }
        let refused = begin(path, FolderMode::New).unwrap_err();
        assert!(refused.message().contains("is not empty"), "{refused}");
        let run = |mode, name: &str| {
            let mut folder = begin(path, mode).unwrap();
            write(&mut folder, name, "new");
            Box::new(folder).commit()
        };
        let taken = run(FolderMode::Append, "a=1/x.csv").unwrap_err();
        assert!(taken.message().contains("a=1/x.csv exists"), "{taken}");
        assert_eq!(fs::read(path.join("a=1/x.csv")).unwrap(), b"old");
        run(FolderMode::Append, "a=1/y.csv").unwrap();
        assert_eq!(files(path), ["README", "a=1/x.csv", "a=1/y.csv", "a=9/x.csv"]);
        run(FolderMode::Replace, "a=1/x.csv").unwrap();
        assert_eq!(fs::read(path.join("a=1/x.csv")).unwrap(), b"new");
        assert_eq!(files(path), ["README", "a=1/x.csv", "a=1/y.csv", "a=9/x.csv"]);
        run(FolderMode::Overwrite, "a=2/x.csv").unwrap();
        assert_eq!(files(path), ["README", "a=2/x.csv"]);
        assert!(!path.join("a=9").exists());
    }

    #[test]
    fn files_in_linked_folders_are_not_removed() {
        let root = tempfile::tempdir().unwrap();
        let (path, other) = (root.path().join("out"), root.path().join("other"));
        for folder in [&path, &other] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("old.csv"), "old").unwrap();
        }
        std::os::unix::fs::symlink(&other, path.join("linked")).unwrap();
        std::os::unix::fs::symlink(other.join("old.csv"), path.join("link.csv")).unwrap();
        let mut folder = begin(&path, FolderMode::Overwrite).unwrap();
        write(&mut folder, "a=1/x.csv", "new");
        Box::new(folder).commit().unwrap();
        assert_eq!(fs::read(other.join("old.csv")).unwrap(), b"old");
        assert!(!path.join("old.csv").exists() && path.join("a=1/x.csv").exists());
    }

    #[test]
    fn folders_of_killed_writers_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let folder = begin(root.path(), FolderMode::New).unwrap();
        // A living writer keeps its staging folder.
        let other = begin(root.path(), FolderMode::New).unwrap();
        assert_eq!(files(root.path()).len(), 2);
        drop((folder, other));
        let left = root.path().join(".tessera-left.tmp");
        fs::create_dir(&left).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        drop(begin(root.path(), FolderMode::New).unwrap());
        assert!(!left.exists());
    }
}
