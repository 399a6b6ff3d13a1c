//! The other side of a virtual GPU: the process that is the device. It has memory that nobody else
//! has mapped, and runs kernels for whoever started it, block after block on two threads, until
//! that one hangs up.
//!
//! Requests are six words (what, and up to five numbers) and, of code, its bytes and the kernel's
//! name; answers are three words (whether it went well, a number, the length of a message) and the
//! message.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap};
use tessera_types::{Error, Result};
use tessera_vector::hash::word_of_bytes;

use super::Slots;
use crate::kept::VERSION;
use crate::loaded::Loaded;
use crate::target::Processor;

/// The build of this program: host and device are to be of one.
pub(crate) fn version() -> u64 {
    word_of_bytes(VERSION.as_bytes())
}

/// What is asked of a device.
pub(crate) mod request {
    /// Its memory is to begin at an address, and has so many bytes; the host is of a build.
    pub(crate) const MAP: u64 = 1;
    /// Code of so many bytes, and the name of its kernel, of so many.
    pub(crate) const LOAD: u64 = 2;
    /// A kernel is not needed any more.
    pub(crate) const UNLOAD: u64 = 3;
    /// A kernel is to run: its words, blocks, lanes, bytes of scratchpad.
    pub(crate) const LAUNCH: u64 = 4;
}

/// Words of a request, and of an answer.
pub(crate) const REQUEST_WORDS: usize = 6;
pub(crate) const ANSWER_WORDS: usize = 3;
/// How many blocks run at once.
const THREADS: u64 = 2;
/// The most bytes of code.
const CODE_BYTES_MAX: u64 = 64 << 20;

type Kernel = unsafe extern "C" fn(*const u64, *mut u64, u64, u64, u64);

/// Reads words.
pub(crate) fn read_words<const N: usize>(from: &mut impl Read) -> std::io::Result<[u64; N]> {
    let mut words = [0; N];
    for word in &mut words {
        let mut bytes = [0; 8];
        from.read_exact(&mut bytes)?;
        *word = u64::from_ne_bytes(bytes);
    }
    Ok(words)
}

/// Writes words.
pub(crate) fn write_words(to: &mut impl Write, words: &[u64]) -> std::io::Result<()> {
    to.write_all(&words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>())
}

/// A device's state.
#[derive(Default)]
struct Device {
    kernels: Slots<Loaded>,
}

/// Serves whoever is at the other end of the standard input, with the memory file that is the
/// standard output, until the other end is closed.
///
/// # Errors
/// These are no such files, or reading and writing fails.
pub fn serve() -> Result<()> {
    let failed = |error: std::io::Error| {
        Error::io(format!(
            "this is no program to be started by hand, but by tessera --device virtual-gpu: {error}"
        ))
    };
    let requests = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let memory = std::io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
    let mut line = std::os::unix::net::UnixStream::from(requests);
    line.peer_addr().map_err(failed)?;
    // LLVM is to know the processor before it links anything.
    Processor::at_hand()?;
    let mut device = Device::default();
    loop {
        let request = match read_words(&mut line) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
            request => request.map_err(failed)?,
        };
        let answer = device.answer(request, &mut line, memory.as_fd());
        let text = answer.as_ref().map_or_else(ToString::to_string, |_| String::new());
        let number = *answer.as_ref().unwrap_or(&0);
        let words = [u64::from(answer.is_ok()), number, text.len() as u64];
        write_words(&mut line, &words)
            .and_then(|()| line.write_all(text.as_bytes()))
            .map_err(failed)?;
    }
}

impl Device {
    fn answer(
        &mut self,
        request: [u64; REQUEST_WORDS],
        line: &mut impl Read,
        memory: BorrowedFd<'_>,
    ) -> Result<u64> {
        let [what, first, second, blocks, lanes, scratchpad] = request;
        match what {
            request::MAP if blocks != version() => Err(Error::unsupported(
                "the program of the virtual GPU is of another build: build it again (cargo build --release -p tessera-jit --features llvm)",
            )),
            request::MAP => map(memory, first, second),
            request::LOAD => {
                if first.max(second) > CODE_BYTES_MAX {
                    return Err(Error::internal("a kernel is too large"));
                }
                let (mut code, mut name) = (vec![0; first as usize], vec![0; second as usize]);
                let read = line.read_exact(&mut code).and_then(|()| line.read_exact(&mut name));
                read.map_err(|error| Error::io(error.to_string()))?;
                self.load(&code, &String::from_utf8_lossy(&name))
            }
            request::UNLOAD => {
                self.kernels.take(first);
                Ok(0)
            }
            request::LAUNCH => self.launch(first, second, (blocks, lanes, scratchpad)),
            other => Err(Error::internal(format!("a virtual GPU was asked for {other}"))),
        }
    }

    fn load(&mut self, code: &[u8], name: &str) -> Result<u64> {
        Ok(self.kernels.add(Loaded::new(code, name)?))
    }

    /// Runs all blocks of a kernel.
    fn launch(
        &self,
        kernel: u64,
        words: u64,
        (blocks, lanes, scratchpad): (u64, u64, u64),
    ) -> Result<u64> {
        let kernel = self
            .kernels
            .get(kernel)
            .ok_or_else(|| Error::internal("a virtual GPU has no such kernel"))?;
        // SAFETY: the address is that of a kernel which `Provider::join` made with these
        // parameters; it is there for as long as `self`.
        let run: Kernel = unsafe { std::mem::transmute(kernel.address() as usize) };
        let next = AtomicU64::new(0);
        let work = || {
            let mut own = vec![0; (scratchpad as usize).div_ceil(8)];
            loop {
                let block = next.fetch_add(1, Ordering::Relaxed);
                if block >= blocks {
                    return;
                }
                // SAFETY: whoever asks has put the kernel's words, and all that they point to, into
                // the memory that was mapped; each thread has a scratchpad of its own.
                unsafe { run(words as *const u64, own.as_mut_ptr(), block, blocks, lanes) };
            }
        };
        std::thread::scope(|scope| {
            (1..THREADS.min(blocks)).for_each(|_| drop(scope.spawn(work)));
            work();
        });
        Ok(0)
    }
}

/// Maps the memory where it is to be; gives the address.
fn map(memory: BorrowedFd<'_>, address: u64, bytes: u64) -> Result<u64> {
    let file =
        File::from(memory.try_clone_to_owned().map_err(|error| Error::io(error.to_string()))?);
    let flags = MapFlags::SHARED | MapFlags::FIXED_NOREPLACE;
    // SAFETY: nothing that is mapped already is replaced, and nobody has the file beside whoever
    // started this process.
    let mapped = unsafe {
        mmap(address as *mut _, bytes as usize, ProtFlags::READ | ProtFlags::WRITE, flags, &file, 0)
    };
    let mapped =
        mapped.map_err(|error| Error::io(format!("a virtual GPU has no memory: {error}")))?;
    match mapped as u64 == address {
        true => Ok(address),
        false => Err(Error::io("a virtual GPU has its memory elsewhere")),
    }
}
