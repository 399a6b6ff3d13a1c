//! Private files of this program: samples, and other data that can be recreated.
//!
//! Only their owner may read and write them. Another user may have write access to their directory
//! and could place a file of the same name there. So a file is opened without following a link, and
//! the open file's owner and mode are checked.

use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// The mode of directories that this program creates: for the owner only.
const DIRECTORY_MODE: u32 = 0o700;

/// Reads a private file of this user.
///
/// # Errors
/// The file does not exist, is not a regular file, is longer than `bytes_max`, or others may have
/// written it.
pub fn read_private(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits() as i32).open(path)?;
    let metadata = file.metadata()?;
    if !is_private(&metadata) || metadata.len() > bytes_max {
        return Err(io::Error::other("it is not a file that this program has written"));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_private(metadata: &Metadata) -> bool {
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    metadata.is_file() && is_ours && metadata.mode() & 0o022 == 0
}

/// Writes a file for its owner alone, replacing an existing one. It appears completely.
///
/// # Errors
/// The file cannot be written.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = crate::target::folder_of(path);
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(&folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut builder = tempfile::Builder::new();
    let mut file = builder.prefix(&format!("{name}.")).suffix(".tmp").tempfile_in(&folder)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|refused| refused.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn what_is_written_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/new/file");
        write_private(&path, b"one").unwrap();
        write_private(&path, b"two").unwrap();
        assert_eq!(read_private(&path, 3).unwrap(), b"two");
        assert!(read_private(&path, 2).is_err());
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&path), mode(&folder.path().join("deep"))), (0o600, 0o700));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn what_others_can_have_written_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_private(&path, b"x").unwrap();
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(read_private(&link, 10).is_err());
        assert!(read_private(folder.path(), 10).is_err());
        assert!(read_private(Path::new("/dev/zero"), 10).is_err());
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        assert!(read_private(&path, 10).is_err());
        // A link in the file's place is replaced; its target is not written.
        fs::rename(&link, &path).unwrap();
        let other = folder.path().join("other");
        fs::write(&other, "theirs").unwrap();
        fs::remove_file(&path).unwrap();
        symlink(&other, &path).unwrap();
        write_private(&path, b"ours").unwrap();
        assert_eq!(
            (fs::read(&other).unwrap(), read_private(&path, 10).unwrap()),
            (b"theirs".to_vec(), b"ours".to_vec())
        );
    }
}
