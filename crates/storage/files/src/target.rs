//! Resolves the path of an output.

use std::fs::{self, FileType, Metadata};
use std::os::fd::RawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use tessera_types::{Error, Result};

use crate::descriptor;
use crate::io_error;

/// The most symbolic links to follow, as in Linux.
const LINKS_MAX: usize = 40;

/// The target of an output path.
#[derive(Debug)]
pub(crate) enum Target {
    /// An existing or new regular file; no symbolic link.
    File(PathBuf, Option<Metadata>),
    /// A FIFO or a character device.
    Device(PathBuf),
    /// A local socket.
    Socket(PathBuf),
    /// An open descriptor.
    Descriptor(RawFd),
}

impl Target {
    /// Resolves links one by one, because the last may lead to a descriptor or to a file that does
    /// not exist yet.
    ///
    /// # Errors
    /// The path is a directory or a block device, its links form a cycle, or it is not accessible.
    pub(crate) fn of(path: &str) -> Result<Target> {
        let failed = |error| io_error("write", path, error);
        let cannot = |cause: &str| Err(Error::io(format!("cannot write '{path}': {cause}")));
        let mut current = PathBuf::from(path);
        for _ in 0..LINKS_MAX {
            if let Some(number) = descriptor::named(&current) {
                return Ok(Target::Descriptor(number));
            }
            if current.is_dir() || current.as_os_str().as_encoded_bytes().ends_with(b"/") {
                return cannot("it is a directory; name a file");
            }
            let Some(name) = current.file_name() else { return cannot("the file name is missing") };
            let folder = folder_of(&current);
            // A folder may be a link, too, such as /dev/fd.
            let folder = folder.canonicalize().unwrap_or(folder);
            let full = folder.join(name);
            if let Some(number) = descriptor::named(&full) {
                return Ok(Target::Descriptor(number));
            }
            let metadata = match fs::symlink_metadata(&full) {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Ok(Target::File(full, None));
                }
                Err(error) => return Err(failed(error)),
            };
            // The text of a link in /proc is not a path.
            if metadata.is_symlink() && !full.starts_with("/proc") {
                current = folder.join(fs::read_link(&full).map_err(failed)?);
                continue;
            }
            let metadata = fs::metadata(&full).map_err(failed)?;
            return match metadata.file_type() {
                // Another process's descriptor, or a system setting.
                kind if kind.is_file() && full.starts_with("/proc") => {
                    cannot("it is in /proc; name a file elsewhere")
                }
                kind if kind.is_file() => Ok(Target::File(full, Some(metadata))),
                kind if is_device(kind) => Ok(Target::Device(full)),
                kind if kind.is_socket() => Ok(Target::Socket(full)),
                kind if kind.is_block_device() => cannot("it is a block device; name a file"),
                _ => cannot("it is a directory; name a file"),
            };
        }
        cannot("its symbolic links form a cycle")
    }
}

/// Whether an output path leads to this program's standard output.
pub fn is_standard_output(path: &str) -> bool {
    matches!(Target::of(path), Ok(Target::Descriptor(1)))
}

fn is_device(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_char_device()
}

/// Returns the folder of a path.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_to_their_end() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        let of = |name: &str| Target::of(at(name).to_str().unwrap());
        fs::create_dir(at("deep")).unwrap();
        fs::write(at("deep/file"), "x").unwrap();
        symlink("deep/file", at("one")).unwrap();
        symlink(at("one"), at("two")).unwrap();
        symlink("deep/none", at("dangling")).unwrap();
        symlink("circle", at("circle")).unwrap();
        symlink("/dev/stdout", at("out")).unwrap();
        symlink("/proc/self/fd", at("descriptors")).unwrap();
        symlink("deep", at("folder")).unwrap();
        symlink("/proc/self/comm", at("setting")).unwrap();
        assert!(
            matches!(of("two").unwrap(), Target::File(path, Some(_)) if path == at("deep/file"))
        );
        assert!(
            matches!(of("dangling").unwrap(), Target::File(path, None) if path == at("deep/none"))
        );
        assert!(matches!(of("out").unwrap(), Target::Descriptor(1)));
        assert!(matches!(of("descriptors/2").unwrap(), Target::Descriptor(2)));
        assert!(matches!(Target::of("/dev/null").unwrap(), Target::Device(_)));
        assert!(is_standard_output("/dev/fd/1") && !is_standard_output("/dev/fd/2"));
        for (name, cause) in [
            ("circle", "cycle"),
            ("folder", "is a directory"),
            ("deep/", "is a directory"),
            ("new/", "is a directory"),
            ("setting", "in /proc"),
        ] {
            let message = of(name).unwrap_err().message().to_string();
            assert!(message.contains(cause), "{name}: {message}");
        }
    }
}
