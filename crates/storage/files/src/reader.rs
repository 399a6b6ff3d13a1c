//! A local file, read by ranges.

use std::fs::{File, Metadata};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::OFlags;
use tessera_context::{RangeReader, Read, ReadBuffer, file_changed};
use tessera_types::{Error, Result};

use crate::io_error;

/// A local file. Positioned reads let workers share it without a lock.
#[derive(Debug)]
pub struct FileReader {
    pub(crate) path: String,
    pub(crate) file: File,
    pub(crate) len: u64,
    /// The time of the last change of the file that the bytes come from.
    pub(crate) modified: Option<SystemTime>,
    /// The version that was opened; every read compares it. `None` for a scratch file, which
    /// nothing else writes.
    pub(crate) version: Option<FileVersion>,
}

/// Identifies a version of a file, to detect replacement and modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileVersion {
    device: u64,
    inode: u64,
    len: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
}

/// Opens a local file.
///
/// # Errors
/// The file does not exist, is a directory, or is not readable; the message has the reason and the
/// path.
pub fn open(path: &str) -> Result<Arc<dyn RangeReader>> {
    open_version(path).map(|(reader, _)| reader)
}

/// Like [`open`], and returns the version of the opened file.
///
/// # Errors
/// Those of [`open`].
pub fn open_version(path: &str) -> Result<(Arc<dyn RangeReader>, FileVersion)> {
    // Opening a FIFO or a device must not block.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| io_error("open", path, error))?;
    let metadata = file.metadata().map_err(|error| io_error("open", path, error))?;
    if metadata.is_dir() {
        let hint = "name a file in it, or a pattern such as 'folder/*.parquet'";
        return Err(Error::io(format!("cannot open '{path}': it is a directory; {hint}")));
    }
    if !metadata.is_file() {
        return Err(Error::io(format!("cannot open '{path}': it is not a regular file")));
    }
    let reader = FileReader::shared(path.to_string(), file, &metadata);
    Ok((Arc::new(reader), FileVersion::of(&metadata)))
}

impl FileVersion {
    fn of(metadata: &Metadata) -> FileVersion {
        FileVersion {
            device: metadata.dev(),
            inode: metadata.ino(),
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

impl FileReader {
    /// Creates a reader of a file that other programs may write to, at its current version.
    pub(crate) fn shared(path: String, file: File, metadata: &Metadata) -> FileReader {
        let (len, modified) = (metadata.len(), metadata.modified().ok());
        FileReader { path, file, len, modified, version: Some(FileVersion::of(metadata)) }
    }

    /// Reads exactly `len` bytes from `offset`, into memory that needs no clearing first.
    #[cfg(unix)]
    fn read_at(&self, len: usize, offset: u64, buffer: &mut Vec<u8>) -> std::io::Result<()> {
        while buffer.len() < len {
            let at = offset + buffer.len() as u64;
            match rustix::io::pread(&self.file, rustix::buffer::spare_capacity(buffer), at) {
                Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        buffer.truncate(len);
        Ok(())
    }

    #[cfg(not(unix))]
    fn read_at(&self, len: usize, offset: u64, buffer: &mut Vec<u8>) -> std::io::Result<()> {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(offset))?;
        buffer.resize(len, 0);
        file.read_exact(buffer)
    }
}

impl RangeReader for FileReader {
    fn path(&self) -> &str {
        &self.path
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn modified(&self) -> Option<SystemTime> {
        self.modified
    }

    fn read_into(&self, range: Range<u64>, mut buffer: ReadBuffer) -> Result<Read> {
        if range.start > range.end || range.end > self.len {
            return Err(Error::data(format!(
                "'{}' ends at byte {}, but bytes {} to {} are needed: the file is truncated or damaged",
                self.path, self.len, range.start, range.end
            )));
        }
        let len = (range.end - range.start) as usize;
        let read = self.read_at(len, range.start, buffer.reserve(len));
        read.map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => file_changed(&self.path),
            _ => io_error("read", &self.path, error),
        })?;
        // Checked after the read, so that a write before or during it is detected.
        if let Some(version) = self.version {
            let now = self.file.metadata().map_err(|error| io_error("read", &self.path, error))?;
            if FileVersion::of(&now) != version {
                return Err(file_changed(&self.path));
            }
        }
        Ok(Read::Ready(buffer))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn errors_name_path_and_cause() {
        let missing = open("/no/such/file.parquet").unwrap_err();
        assert_eq!(
            missing.message(),
            "cannot open '/no/such/file.parquet': no such file or directory"
        );
        let folder = std::env::temp_dir();
        let message = open(folder.to_str().unwrap()).unwrap_err().to_string();
        assert!(message.contains("is a directory"), "{message}");
    }

    #[test]
    fn a_file_that_is_written_to_after_it_was_opened_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let changes: [fn(&File); 3] = [
            |file| file.write_all_at(b"other", 0).unwrap(),
            |file| file.write_all_at(b"more", 10).unwrap(),
            |file| file.set_len(4).unwrap(),
        ];
        for change in changes {
            std::fs::write(&path, b"0123456789").unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            // The system's file timestamps are coarse.
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
            let reader = open(path.to_str().unwrap()).unwrap();
            for read in [0..2, 2..10] {
                assert!(reader.read_into(read, ReadBuffer::default()).is_ok());
            }
            change(&file);
            for read in [0..2, 2..10] {
                let error = reader.read_into(read, ReadBuffer::default()).unwrap_err();
                assert!(error.message().contains("changed while it was read"), "{error}");
            }
        }
    }

    #[test]
    fn ranges_outside_the_file_are_errors() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"0123456789").unwrap();
        let reader = open(file.path().to_str().unwrap()).unwrap();
        match reader.read_into(2..5, ReadBuffer::default()).unwrap() {
            Read::Ready(bytes) => assert_eq!(&bytes[..], b"234"),
            Read::Blocked(_) => panic!("local files never block"),
        }
        assert!(
            reader
                .read_into(5..11, ReadBuffer::default())
                .unwrap_err()
                .to_string()
                .contains("truncated")
        );
    }
}
