//! The device process of the virtual GPU. It alone maps the device's memory, and runs kernels for
//! its parent process, block by block on two threads, until the parent closes the connection.
//!
//! A request is six words: the operation and up to five arguments. `LOAD` is followed by the code
//! and the kernel's name. An answer is three words (success, a number, the length of the message)
//! and the message.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap};
use tessera_types::{Error, Result};
use tessera_vector::hash::word_of_bytes;

use super::Slots;
use crate::code_cache::VERSION;
use crate::linker::LoadedCode;
use crate::target::Processor;

/// Returns the version of the sources; host and device must agree.
pub(crate) fn version() -> u64 {
    word_of_bytes(VERSION.as_bytes())
}

/// The operations of a request.
pub(crate) mod request {
    /// Maps the memory. Arguments: address, bytes, version of the host.
    pub(crate) const MAP: u64 = 1;
    /// Loads a kernel. Arguments: bytes of the code, bytes of the kernel's name.
    pub(crate) const LOAD: u64 = 2;
    /// Unloads a kernel. Argument: its number.
    pub(crate) const UNLOAD: u64 = 3;
    /// Runs a kernel. Arguments: its number, address of its parameters, blocks, lanes, bytes of
    /// scratchpad.
    pub(crate) const LAUNCH: u64 = 4;
}

/// Words of a request and of an answer.
pub(crate) const REQUEST_WORDS: usize = 6;
pub(crate) const ANSWER_WORDS: usize = 3;
/// The number of blocks that run concurrently.
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

/// The state of the device.
#[derive(Default)]
struct Device {
    kernels: Slots<LoadedCode>,
}

/// Serves requests on the socket at standard input, with the memory file at standard output, until
/// the socket is closed.
///
/// # Errors
/// The streams are not a socket and a file, or I/O fails.
pub fn serve() -> Result<()> {
    let failed = |error: std::io::Error| {
        Error::io(format!(
            "cannot serve a virtual GPU here: {error}; start it with tessera --device virtual-gpu"
        ))
    };
    let requests = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let memory = std::io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
    let mut line = std::os::unix::net::UnixStream::from(requests);
    line.peer_addr().map_err(failed)?;
    // LLVM must be initialized before it links.
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
                "the virtual GPU program is from another build; rebuild it (cargo build --release -p tessera-jit --features llvm)",
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
            other => Err(Error::internal(format!("unknown request {other} to the virtual GPU"))),
        }
    }

    fn load(&mut self, code: &[u8], name: &str) -> Result<u64> {
        Ok(self.kernels.add(LoadedCode::new(code, name)?))
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
            .ok_or_else(|| Error::internal("unknown kernel on the virtual GPU"))?;
        // SAFETY: `Provider::join` made the kernel at this address with these parameters; it stays
        // loaded as long as `self` lives.
        let run: Kernel = unsafe { std::mem::transmute(kernel.address() as usize) };
        let next = AtomicU64::new(0);
        let work = || {
            let mut own = vec![0; (scratchpad as usize).div_ceil(8)];
            loop {
                let block = next.fetch_add(1, Ordering::Relaxed);
                if block >= blocks {
                    return;
                }
                // SAFETY: the host has written the kernel's parameters and their targets into the
                // mapped memory; each thread has its own scratchpad.
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

/// Maps the memory at an address; returns the address.
fn map(memory: BorrowedFd<'_>, address: u64, bytes: u64) -> Result<u64> {
    let file =
        File::from(memory.try_clone_to_owned().map_err(|error| Error::io(error.to_string()))?);
    let flags = MapFlags::SHARED | MapFlags::FIXED_NOREPLACE;
    // SAFETY: an existing mapping is not replaced, and only the parent process also holds the file.
    let mapped = unsafe {
        mmap(address as *mut _, bytes as usize, ProtFlags::READ | ProtFlags::WRITE, flags, &file, 0)
    };
    let mapped = mapped.map_err(|error| {
        Error::io(format!(
            "the virtual GPU could not map its memory: {error}; run with --device cpu"
        ))
    })?;
    match mapped as u64 == address {
        true => Ok(address),
        false => Err(Error::io(
            "the memory of the virtual GPU was mapped at another address; run with --device cpu",
        )),
    }
}
