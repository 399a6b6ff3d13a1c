//! Sequential inputs and outputs: FIFOs, devices, sockets, and descriptors such as the standard
//! output.
//!
//! Waits are short and check in between whether the statement was interrupted, because the other
//! side may never respond.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write};
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, SeekFrom};
use rustix::io::Errno;
use tessera_context::{Interrupt, Output, RangeReader};
use tessera_types::{Error, Result, io_cause};

use crate::atomic::AtomicFile;
use crate::reader::FileReader;
use crate::target::Target;
use crate::{descriptor, io_error};

/// The duration of one wait.
const WAIT: Duration = Duration::from_millis(50);
/// The interval of checks for the reader of a FIFO.
const WAIT_FOR_READER: Duration = Duration::from_millis(10);
/// A ready pipe takes this many bytes at once; more might block.
const PIPE_BYTES: usize = 4 << 10;
/// The bytes read or written at once.
const STEP_BYTES: usize = 1 << 20;

/// Starts writing at `path`: a regular file appears completely or not at all, anything else is
/// written as a stream. `interrupt` ends waits.
///
/// # Errors
/// The path is not writable, or is a directory or a block device.
pub fn create(path: &str, interrupt: &Arc<Interrupt>) -> Result<Box<dyn Output>> {
    let failed = |error| io_error("write", path, error);
    let target = match Target::of(path)? {
        Target::File(target, replaced) => {
            return Ok(Box::new(AtomicFile::replacing(path, target, replaced)?));
        }
        Target::Descriptor(number) => Stream::of_descriptor(number, interrupt),
        Target::Socket(target) => Stream::of_socket(&target, interrupt),
        Target::Device(target) => {
            return Ok(Box::new(StreamFile::new(
                path,
                Stream::of_device(path, &target, interrupt)?,
            )));
        }
    };
    Ok(Box::new(StreamFile::new(path, target.map_err(failed)?)))
}

/// Whether a write failed because the reader of this program's standard output has closed it.
pub fn is_standard_output_closed(error: &Error) -> bool {
    let source =
        std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    source.and_then(io::Error::get_ref).is_some_and(|inner| inner.is::<Closed>())
}

/// The reader of the standard output has closed it.
#[derive(Debug, thiserror::Error)]
#[error("its reader has gone")]
struct Closed;

/// An output stream.
#[derive(Debug)]
struct StreamFile {
    path: String,
    /// `None` after the output was completed.
    writer: Option<BufWriter<Stream>>,
}

impl StreamFile {
    fn new(path: &str, stream: Stream) -> StreamFile {
        StreamFile {
            path: path.to_string(),
            writer: Some(BufWriter::with_capacity(1 << 18, stream)),
        }
    }
}

impl Write for StreamFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.writer {
            Some(writer) => writer.write(bytes),
            None => Err(io::Error::other("the stream was already completed")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Output for StreamFile {
    fn commit(mut self: Box<Self>) -> Result<()> {
        self.flush().map_err(|error| io_error("write", &self.path, error))
    }

    fn is_stream(&self) -> bool {
        true
    }
}

impl Drop for StreamFile {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            // After an error, discards buffered bytes instead of writing them.
            drop(writer.into_parts());
        }
    }
}

/// An open stream.
#[derive(Debug)]
struct Stream {
    file: File,
    interrupt: Arc<Interrupt>,
    /// The most bytes written at once.
    step: usize,
    is_standard_output: bool,
}

impl Stream {
    /// Opens a descriptor for writing at its current position, after output of other programs.
    fn of_descriptor(number: RawFd, interrupt: &Arc<Interrupt>) -> io::Result<Stream> {
        let file = File::from(descriptor::duplicate(number)?);
        if (rustix::fs::fcntl_getfl(&file)? & OFlags::ACCMODE) == OFlags::RDONLY {
            return Err(io::Error::other("it is open for reading only"));
        }
        let kind = file.metadata()?.file_type();
        // Its flags are shared with other programs, so it cannot be made non-blocking.
        let step = if kind.is_file() { STEP_BYTES } else { PIPE_BYTES };
        Ok(Stream { file, interrupt: interrupt.clone(), step, is_standard_output: number == 1 })
    }

    fn of_socket(path: &Path, interrupt: &Arc<Interrupt>) -> io::Result<Stream> {
        let socket = UnixStream::connect(path)?;
        socket.set_nonblocking(true)?;
        Ok(Stream::own(File::from(OwnedFd::from(socket)), interrupt))
    }

    /// Opens a FIFO or a device, waiting for the reader of a FIFO.
    fn of_device(path: &str, target: &Path, interrupt: &Arc<Interrupt>) -> Result<Stream> {
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::APPEND;
        let mut options = File::options();
        options.write(true).custom_flags(flags.bits() as i32);
        loop {
            match options.open(target) {
                Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                    interrupt.check()?;
                    std::thread::sleep(WAIT_FOR_READER);
                }
                Err(error) => return Err(io_error("write", path, error)),
                Ok(file) => return Ok(Stream::own(file, interrupt)),
            }
        }
    }

    /// Wraps a non-blocking file that this program has opened.
    fn own(file: File, interrupt: &Arc<Interrupt>) -> Stream {
        Stream { file, interrupt: interrupt.clone(), step: STEP_BYTES, is_standard_output: false }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let step = bytes.get(..self.step).unwrap_or(bytes);
        loop {
            wait_for(&self.file, PollFlags::OUT, &self.interrupt)?;
            match self.file.write(step) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Err(match self.is_standard_output {
                        true => io::Error::new(io::ErrorKind::BrokenPipe, Closed),
                        false => io::Error::new(io::ErrorKind::BrokenPipe, "its reader has gone"),
                    });
                }
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Waits until a file is readable or writable.
fn wait_for(file: &impl AsFd, flags: PollFlags, interrupt: &Interrupt) -> io::Result<()> {
    loop {
        interrupt.check().map_err(io::Error::other)?;
        let mut polled = [PollFd::new(file, flags)];
        let wait = Timespec { tv_sec: 0, tv_nsec: WAIT.subsec_nanos().into() };
        match poll(&mut polled, Some(&wait)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// An input that is read sequentially or through a descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputStream {
    path: PathBuf,
    descriptor: Option<RawFd>,
    /// Whether it is a regular file at its beginning, whose ranges can be read.
    is_file: bool,
}

impl InputStream {
    /// Returns the stream at a path if it is a FIFO, a device, a socket or any descriptor.
    pub fn at(path: &str) -> Option<InputStream> {
        let path = Path::new(path);
        let descriptor = descriptor::named(path);
        let is_file = match descriptor {
            Some(number) => descriptor::duplicate(number)
                .is_ok_and(|own| is_file_at_its_beginning(File::from(own))),
            None => {
                let kind = fs::metadata(path).ok()?.file_type();
                if kind.is_file() || kind.is_dir() {
                    return None;
                }
                false
            }
        };
        Some(InputStream { path: path.to_path_buf(), descriptor, is_file })
    }

    /// Returns a key that identifies the stream regardless of its path.
    pub fn key(&self) -> String {
        match self.descriptor {
            Some(number) => format!("/dev/fd/{number}"),
            None => self.path.to_string_lossy().into_owned(),
        }
    }

    /// Whether it is exhausted after one read; a FIFO may get another writer.
    pub fn is_read_once(&self) -> bool {
        self.descriptor.is_some() && !self.is_file
    }

    /// Whether it is this program's standard input.
    pub fn is_standard_input(&self) -> bool {
        self.descriptor == Some(0)
    }

    /// Copies the stream to its end into an unnamed file in `directory`. A regular file is not
    /// copied.
    ///
    /// # Errors
    /// The stream cannot be read, the disk is full, or `interrupt` ends it.
    pub fn spool(&self, directory: &Path, interrupt: &Interrupt) -> Result<Arc<dyn RangeReader>> {
        let path = self.path.to_string_lossy().into_owned();
        let cannot_read = |error| io_error("read", &path, error);
        let no_room = |error: io::Error| {
            Error::io(format!(
                "'{path}' cannot be kept in the temporary directory '{}' while it is read: {}; name another with \
                 --temp-directory DIR (or SET temp_directory)",
                directory.display(),
                io_cause(&error)
            ))
            .caused_by(error)
        };
        let mut input = self.open().map_err(cannot_read)?;
        if self.is_file {
            let metadata = input.metadata().map_err(cannot_read)?;
            return Ok(Arc::new(FileReader::shared(path, input, &metadata)));
        }
        let mut file = tempfile::tempfile_in(directory).map_err(no_room)?;
        let mut buffer = vec![0; STEP_BYTES];
        let mut len = 0;
        loop {
            if let Err(error) = wait_for(&input, PollFlags::IN, interrupt) {
                interrupt.check()?;
                return Err(cannot_read(error));
            }
            let count = match input.read(&mut buffer) {
                Ok(0) => {
                    let modified = None;
                    return Ok(Arc::new(FileReader { path, file, len, modified, version: None }));
                }
                Ok(count) => count,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) =>
                {
                    continue;
                }
                Err(error) => return Err(cannot_read(error)),
            };
            file.write_all(buffer.get(..count).unwrap_or_default()).map_err(no_room)?;
            len += count as u64;
        }
    }

    /// Opens the stream; a FIFO opens before its writer connects.
    fn open(&self) -> io::Result<File> {
        if let Some(number) = self.descriptor {
            return Ok(File::from(descriptor::duplicate(number)?));
        }
        if fs::metadata(&self.path)?.file_type().is_socket() {
            return Ok(File::from(OwnedFd::from(UnixStream::connect(&self.path)?)));
        }
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        File::options().read(true).custom_flags(flags.bits() as i32).open(&self.path)
    }
}

/// Whether a descriptor is a regular file at its beginning.
fn is_file_at_its_beginning(file: File) -> bool {
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    is_file && rustix::fs::seek(&file, SeekFrom::Current(0)).is_ok_and(|position| position == 0)
}

#[cfg(test)]
mod tests {
    use std::io::Seek;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixListener;

    use rustix::io::FdFlags;
    use tessera_context::{Read, ReadBuffer};

    use super::*;

    fn fifo(folder: &tempfile::TempDir, name: &str) -> String {
        let path = folder.path().join(name).to_str().unwrap().to_string();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from(0o600),
            0,
        )
        .unwrap();
        path
    }

    fn write(path: &str, bytes: &[u8]) -> Result<()> {
        let mut output = create(path, &Arc::default())?;
        output.write_all(bytes).map_err(|error| io_error("write", path, error))?;
        output.commit()
    }

    fn whole(reader: &dyn RangeReader) -> Vec<u8> {
        match reader.read_into(0..reader.len(), ReadBuffer::default()).unwrap() {
            Read::Ready(bytes) => bytes.to_vec(),
            Read::Blocked(_) => panic!("local files never block"),
        }
    }

    /// A descriptor as a parent process passes it.
    fn handed_down(file: &File) -> String {
        rustix::io::fcntl_setfd(file, FdFlags::empty()).unwrap();
        format!("/dev/fd/{}", file.as_raw_fd())
    }

    #[test]
    fn a_fifo_is_written_and_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = fifo(&folder, "pipe");
        let long = b"0123456789".repeat(300_000);
        let read = std::thread::spawn({
            let path = path.clone();
            move || fs::read(path).unwrap()
        });
        write(&path, &long).unwrap();
        assert_eq!(read.join().unwrap(), long);
        assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn waits_for_another_program_end_when_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = fifo(&folder, "pipe");
        let soon = || Arc::new(Interrupt::after(Duration::from_millis(100)));
        assert!(
            create(&path, &soon()).unwrap_err().message().contains("deadline"),
            "no reader comes"
        );
        let spooled = |path: &str| InputStream::at(path).unwrap().spool(folder.path(), &soon());
        assert!(spooled(&path).unwrap_err().message().contains("deadline"), "no writer comes");
        let silent = File::options().read(true).write(true).open(&path).unwrap();
        assert!(spooled(&path).unwrap_err().message().contains("deadline"), "the writer is silent");
        let mut output = create(&path, &soon()).unwrap();
        let error = output.write_all(&[0; 1 << 20]).unwrap_err();
        assert!(error.to_string().contains("deadline"), "the reader does not read: {error}");
        drop(silent);
    }

    #[test]
    fn a_reader_that_goes_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = fifo(&folder, "pipe");
        let reader = File::options()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(&path)
            .unwrap();
        let mut output = create(&path, &Arc::default()).unwrap();
        drop(reader);
        let error = output.write_all(&[0; 1 << 20]).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (io::ErrorKind::BrokenPipe, "its reader has gone")
        );
    }

    #[test]
    fn a_descriptor_is_written_where_it_stands() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"before ").unwrap();
        let path = handed_down(&file);
        write(&path, b"one ").unwrap();
        write(&path, b"two").unwrap();
        file.rewind().unwrap();
        assert_eq!(io::read_to_string(&file).unwrap(), "before one two");
        write("/dev/null", b"x").unwrap();
        let full = write("/dev/full", b"x").unwrap_err();
        assert!(full.message().contains("the disk is full"), "{full}");
        let closed = write("/dev/fd/999999", b"x").unwrap_err();
        assert!(closed.message().contains("/dev/fd/999999"), "{closed}");
        let reading = File::open("/dev/null").unwrap();
        let error = write(&handed_down(&reading), b"x").unwrap_err();
        assert!(error.message().contains("for reading only"), "{error}");
    }

    #[test]
    fn a_socket_is_written_and_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let text = path.to_str().unwrap();
        let served = std::thread::spawn(move || {
            let received = io::read_to_string(listener.accept().unwrap().0).unwrap();
            listener.accept().unwrap().0.write_all(b"a\n1\n").unwrap();
            received
        });
        write(text, b"hello").unwrap();
        let reader =
            InputStream::at(text).unwrap().spool(folder.path(), &Interrupt::default()).unwrap();
        assert_eq!(
            (served.join().unwrap().as_str(), whole(&*reader)),
            ("hello", b"a\n1\n".to_vec())
        );
        assert!(fs::metadata(&path).unwrap().file_type().is_socket());
    }

    #[test]
    fn streams_are_told_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"head\nrest").unwrap();
        let path = handed_down(&file);
        file.rewind().unwrap();
        let read = |stream: &InputStream| {
            whole(&*stream.spool(folder.path(), &Interrupt::default()).unwrap())
        };
        let stream = InputStream::at(&path).unwrap();
        assert_eq!(
            (read(&stream), read(&stream), stream.is_read_once()),
            (b"head\nrest".to_vec(), b"head\nrest".to_vec(), false)
        );
        file.seek(io::SeekFrom::Start(5)).unwrap();
        let stream = InputStream::at(&path).unwrap();
        assert_eq!((read(&stream), read(&stream)), (b"rest".to_vec(), Vec::new()));
        assert!(InputStream::at(folder.path().to_str().unwrap()).is_none());
        assert!(InputStream::at("/no/such/file").is_none());
        let pipe = fifo(&folder, "pipe");
        let again = InputStream::at(&pipe).unwrap();
        assert!(!again.is_read_once() && stream.is_read_once() && !stream.is_standard_input());
        assert_eq!(InputStream::at("/proc/self/fd/999999").unwrap().key(), "/dev/fd/999999");
        let writer = std::thread::spawn(move || fs::write(pipe, b"x".repeat(3 << 20)).unwrap());
        assert_eq!(again.spool(folder.path(), &Interrupt::default()).unwrap().len(), 3 << 20);
        writer.join().unwrap();
    }
}
