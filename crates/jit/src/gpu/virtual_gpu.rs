//! The virtual GPU: GPU-shaped code that a separate process runs on the CPU. Only that process maps
//! the device's memory, so the host cannot access it by mistake, and GPU logic is tested on every
//! machine.

use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use inkwell::targets::FileType;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use tessera_context::lock;
use tessera_types::{Error, Result};

use super::device::{ANSWER_WORDS, read_words, request, version, write_words};
use super::{Device, Grid, Session};
use crate::target::Processor;

/// The environment variable with the path of the device program; by default it is next to this
/// program.
const PROGRAM_VARIABLE: &str = "TESSERA_VIRTUAL_GPU";
const PROGRAM: &str = "tessera-virtual-gpu";
/// Bytes of device memory: far more than chunks need. Pages are allocated on first write.
const MEMORY_BYTES: usize = 1 << 30;
/// Candidate base addresses, which Linux does not hand out on its own.
const BASES: std::ops::Range<u64> = 32..64;
const BASE_SHIFT: u32 = 40;
/// The fewest blocks and lanes that still show interactions between them.
const BLOCKS: u64 = 4;
const LANES: u64 = 32;

/// A virtual GPU.
#[derive(Debug)]
pub(crate) struct VirtualGpu {
    processor: Processor,
    base: u64,
    memory: File,
    line: Mutex<UnixStream>,
    process: Child,
}

impl Drop for VirtualGpu {
    fn drop(&mut self) {
        // The process ends when its socket is closed.
        let _ = lock(&self.line).shutdown(Shutdown::Both);
        let _ = self.process.wait();
    }
}

fn connection_error(error: std::io::Error) -> Error {
    Error::io(format!(
        "lost the connection to the virtual GPU: {error}; restart, or run with --device cpu"
    ))
}

impl VirtualGpu {
    /// Returns the virtual GPU of this process.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn get() -> Result<Arc<VirtualGpu>> {
        static DEVICE: OnceLock<Result<Arc<VirtualGpu>>> = OnceLock::new();
        DEVICE.get_or_init(|| VirtualGpu::start().map(Arc::new)).clone()
    }

    pub(super) fn start() -> Result<VirtualGpu> {
        let memory = memfd_create("tessera virtual gpu", MemfdFlags::CLOEXEC);
        let memory = File::from(memory.map_err(|error| failed("share its memory", error.into()))?);
        memory.set_len(MEMORY_BYTES as u64).map_err(|error| failed("share its memory", error))?;
        let (line, other) = UnixStream::pair().map_err(|error| failed("be connected", error))?;
        let program = program()?;
        let shared = memory.try_clone().map_err(|error| failed("share its memory", error))?;
        let process = Command::new(&program)
            .stdin(Stdio::from(OwnedFd::from(other)))
            .stdout(Stdio::from(shared))
            .spawn()
            .map_err(|error| failed(&format!("be started as '{}'", program.display()), error))?;
        let base = reserve()?;
        let processor = Processor::at_hand()?.as_grid();
        let device = VirtualGpu { processor, base, memory, line: Mutex::new(line), process };
        call_device(
            &mut lock(&device.line),
            [request::MAP, base, MEMORY_BYTES as u64, version(), 0, 0],
            &[],
        )?;
        Ok(device)
    }
}

fn failed(to: &str, error: std::io::Error) -> Error {
    Error::io(format!("the virtual GPU could not {to}: {error}; run with --device cpu"))
}

/// Returns the path of the device program: from the environment, or next to this program or one
/// directory above, because test binaries are in their own directory.
fn program() -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(PROGRAM_VARIABLE) {
        return Ok(program.into());
    }
    let own = std::env::current_exe().map_err(|error| failed("be found", error))?;
    let beside = own.ancestors().skip(1).take(2).map(|directory| directory.join(PROGRAM));
    beside.into_iter().find(|path| path.exists()).ok_or_else(|| {
        Error::unsupported(format!(
            "cannot find the program {PROGRAM} next to this program; build it (cargo build --release -p tessera-jit --features llvm) or set \
             {PROGRAM_VARIABLE}"
        ))
    })
}

/// Reserves addresses for device memory, which the host can neither read nor write.
fn reserve() -> Result<u64> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
    for base in BASES.map(|number| number << BASE_SHIFT) {
        // SAFETY: an existing mapping is not replaced.
        let mapped =
            unsafe { mmap_anonymous(base as *mut _, MEMORY_BYTES, ProtFlags::empty(), flags) };
        if mapped.is_ok_and(|mapped| mapped as u64 == base) {
            return Ok(base);
        }
    }
    Err(Error::io(
        "cannot reserve addresses for the memory of the virtual GPU; run with --device cpu",
    ))
}

/// Sends a request to the device and waits for the answer.
fn call_device(line: &mut UnixStream, words: [u64; 6], payload: &[&[u8]]) -> Result<u64> {
    write_words(line, &words).map_err(connection_error)?;
    for bytes in payload {
        line.write_all(bytes).map_err(connection_error)?;
    }
    let [went_well, number, length]: [u64; ANSWER_WORDS] =
        read_words(line).map_err(connection_error)?;
    let mut message = vec![0; length as usize];
    line.read_exact(&mut message).map_err(connection_error)?;
    match went_well {
        1 => Ok(number),
        _ => Err(Error::internal(String::from_utf8_lossy(&message))),
    }
}

impl Device for VirtualGpu {
    fn processor(&self) -> &Processor {
        &self.processor
    }

    fn form(&self) -> FileType {
        FileType::Object
    }

    fn grid(&self) -> (u64, u64) {
        (BLOCKS, LANES)
    }

    fn load(&self, code: &[u8], name: &str) -> Result<u64> {
        let words = [request::LOAD, code.len() as u64, name.len() as u64, 0, 0, 0];
        call_device(&mut lock(&self.line), words, &[code, name.as_bytes()])
    }

    fn unload(&self, kernel: u64) {
        // A dead device has no kernels.
        let _ = call_device(&mut lock(&self.line), [request::UNLOAD, kernel, 0, 0, 0, 0], &[]);
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(VirtualGpuSession { device: self, line: lock(&self.line) }))
    }
}

/// A session that holds the device's lock.
struct VirtualGpuSession<'a> {
    device: &'a VirtualGpu,
    line: MutexGuard<'a, UnixStream>,
}

impl Session for VirtualGpuSession<'_> {
    fn base(&self) -> u64 {
        self.device.base
    }

    fn size(&self) -> usize {
        MEMORY_BYTES
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.device.memory.write_all_at(bytes, offset as u64).map_err(connection_error)
    }

    fn read(&mut self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        self.device.memory.read_exact_at(bytes, offset as u64).map_err(connection_error)
    }

    fn launch(&mut self, kernel: u64, grid: Grid) -> Result<()> {
        let words = [
            request::LAUNCH,
            kernel,
            self.device.base,
            grid.blocks,
            grid.lanes,
            grid.scratchpad_bytes,
        ];
        call_device(&mut self.line, words, &[]).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    /// Set in the child process that reads device memory.
    const READS: &str = "TESSERA_TEST_READS_DEVICE_MEMORY";

    #[test]
    fn the_host_cannot_read_the_memory_of_a_device() {
        const NAME: &str = "gpu::virtual_gpu::tests::the_host_cannot_read_the_memory_of_a_device";
        let device = VirtualGpu::start().unwrap();
        let mut session = device.session().unwrap();
        session.write(0, &[7; 100]).unwrap();
        let mut bytes = [0; 100];
        session.read(0, &mut bytes).unwrap();
        assert_eq!(bytes, [7; 100]);
        if std::env::var_os(READS).is_some() {
            // SAFETY: none; the process must crash here.
            let byte = unsafe { std::ptr::read_volatile(session.base() as *const u8) };
            unreachable!("the host has read {byte}");
        }
        let mut again = Command::new(std::env::current_exe().unwrap());
        let done = again.args(["--exact", NAME]).env(READS, "").output().unwrap();
        assert_eq!(done.status.signal(), Some(11), "{done:?}");
    }

    #[test]
    fn a_device_that_is_gone_is_told_of() {
        let mut device = VirtualGpu::start().unwrap();
        let refused = device.load(b"no code", "kernel").unwrap_err().to_string();
        assert!(refused.contains("could not be linked"), "{refused}");
        device.process.kill().unwrap();
        device.process.wait().unwrap();
        let gone = device.load(b"no code", "kernel").unwrap_err().to_string();
        assert!(gone.contains("--device cpu"), "{gone}");
        let grid = Grid { blocks: 1, lanes: 1, scratchpad_bytes: 0 };
        assert!(device.session().unwrap().launch(0, grid).is_err());
    }
}
