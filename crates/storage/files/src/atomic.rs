//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tessera_ops::Output;
use tessera_types::{Error, Result};

use crate::io_error;

/// A file that is written beside its place and moved there when complete; dropped before that, it leaves nothing.
#[derive(Debug)]
pub struct AtomicFile {
    path: String,
    temporary: PathBuf,
    writer: Option<BufWriter<File>>,
}

impl AtomicFile {
    /// Starts writing what shall become the file at `path`, in the same directory.
    ///
    /// # Errors
    /// The directory does not exist or may not be written.
    pub fn create(path: &str) -> Result<AtomicFile> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let target = Path::new(path);
        if target.is_dir() {
            return Err(Error::io(format!("cannot write '{path}': it is a directory; name a file")));
        }
        let Some(name) = target.file_name() else {
            return Err(Error::io(format!("cannot write '{path}': it names no file")));
        };
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let hidden = format!(".{}.{}-{number}.tmp", name.to_string_lossy(), std::process::id());
        let temporary = target.with_file_name(hidden);
        let file = File::options()
            .write(true)
            .create_new(true)
            .open(&temporary)
            .map_err(|error| io_error("write", path, error))?;
        Ok(AtomicFile {
            path: path.to_string(),
            temporary,
            writer: Some(BufWriter::with_capacity(1 << 18, file)),
        })
    }

    fn move_into_place(&mut self) -> io::Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(&self.temporary, &self.path)?;
        // The rename itself is durable only once the directory is.
        let folder = Path::new(&self.path).parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
            folder.sync_all().ok();
        }
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.writer {
            Some(writer) => writer.write(bytes),
            None => Err(io::Error::other("the file is complete")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Output for AtomicFile {
    fn commit(mut self: Box<Self>) -> Result<()> {
        self.move_into_place().map_err(|error| {
            fs::remove_file(&self.temporary).ok();
            io_error("write", &self.path, error)
        })
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.writer.take().is_some() {
            fs::remove_file(&self.temporary).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            AtomicFile::create("/no/such/folder/x.csv").unwrap_err().to_string().contains("no such file")
        );
    }
}
