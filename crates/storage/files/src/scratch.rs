//! Files for spilled data.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tessera_context::Scratch;
use tessera_types::{Error, Result, io_cause};

/// An unnamed file. Nothing remains of it when it is closed or when the process ends, even by a
/// crash.
#[derive(Debug)]
pub struct ScratchFile {
    file: File,
    /// The directory of the file, for messages.
    directory: PathBuf,
    /// The start of the next append. Appends reserve their range first, so they run concurrently.
    end: AtomicU64,
}

impl ScratchFile {
    /// Creates a file on the file system of a directory.
    ///
    /// # Errors
    /// The directory does not exist or is not writable.
    pub fn create(directory: &Path) -> Result<ScratchFile> {
        let file =
            tempfile::tempfile_in(directory).map_err(|error| cannot_spill(directory, &error))?;
        Ok(ScratchFile { file, directory: directory.to_path_buf(), end: AtomicU64::new(0) })
    }
}

/// The error that data cannot be spilled to a directory.
fn cannot_spill(directory: &Path, error: &io::Error) -> Error {
    let cause = io_cause(error);
    Error::io(format!(
        "the query exceeds its memory budget, and cannot spill to the temporary directory '{}': {cause}; \
         name another with --temp-directory DIR (or SET temp_directory), or allow more with --memory SIZE (or SET memory)",
        directory.display()
    ))
}

impl Scratch for ScratchFile {
    fn append(&self, bytes: &[u8]) -> Result<u64> {
        let start = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file
            .write_all_at(bytes, start)
            .map_err(|error| cannot_spill(&self.directory, &error))?;
        Ok(start)
    }

    fn read(&self, start: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, start).map_err(|error| {
            Error::io(format!(
                "spilled data in the temporary directory '{}' cannot be read back: {}; check its disk, or name \
                 another with --temp-directory DIR (or SET temp_directory)",
                self.directory.display(),
                io_cause(&error)
            ))
        })?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appended_bytes_are_read_back_and_the_file_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = ScratchFile::create(folder.path()).unwrap();
        let places =
            [b"one".as_slice(), b"", b"three"].map(|bytes| (file.append(bytes).unwrap(), bytes));
        for (start, bytes) in places {
            assert_eq!(file.read(start, bytes.len()).unwrap(), bytes);
        }
        assert!(file.read(6, 100).unwrap_err().message().contains("cannot be read back"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn errors_name_a_missing_directory() {
        let message =
            ScratchFile::create(Path::new("/no/such/folder")).unwrap_err().message().to_string();
        assert!(
            message.contains("/no/such/folder") && message.contains("--temp-directory"),
            "{message}"
        );
    }
}
