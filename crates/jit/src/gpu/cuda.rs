//! NVIDIA GPUs through the CUDA driver library, which is loaded on first use of a GPU.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use inkwell::targets::FileType;
use libloading::Library;
use tessera_context::lock;
use tessera_types::{Error, Result};

use super::{Device, Grid, Session, Slots};
use crate::target::Processor;

/// The driver library.
const LIBRARY: &str = "libcuda.so.1";
/// Identifiers of device attributes (`CUdevice_attribute`).
const MULTIPROCESSORS: c_int = 16;
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;
/// Compute capabilities that LLVM 19 supports; a newer device gets code for the last one.
const CAPABILITIES: [c_int; 6] = [70, 75, 80, 86, 89, 90];
/// Blocks for each multiprocessor and lanes for each block: enough to hide memory latency.
const BLOCKS: u64 = 8;
const LANES: u64 = 256;
/// Bytes of device memory that are used: many times the input of a chunk.
const MEMORY_BYTES: usize = 4 << 30;

/// Total kernel time of this process in nanoseconds.
static BUSY: AtomicU64 = AtomicU64::new(0);

/// Returns the total time that kernels ran on a GPU in this process, from launch to completion, in
/// nanoseconds.
pub fn kernel_nanoseconds() -> u64 {
    BUSY.load(Ordering::Relaxed)
}

type Code = c_int;
type Handle = *mut c_void;
type Address = u64;

/// Declares the driver's functions by their symbol names.
macro_rules! driver {
    ($($field:ident = $name:literal ($($arg:ty),*);)*) => {
        /// The driver's functions.
        #[derive(Debug)]
        struct Driver {
            $($field: unsafe extern "C" fn($($arg),*) -> Code,)*
            /// Keeps the functions loaded.
            _library: Library,
        }

        impl Driver {
            fn load() -> std::result::Result<Driver, libloading::Error> {
                // SAFETY: loading the driver library has no preconditions; its functions have these
                // parameters (`cuda.h`).
                unsafe {
                    let library = Library::new(LIBRARY)?;
                    $(let $field = *library.get::<unsafe extern "C" fn($($arg),*) -> Code>($name)?;)*
                    Ok(Driver { $($field,)* _library: library })
                }
            }
        }
    };
}

driver! {
    init = b"cuInit\0" (c_uint);
    device = b"cuDeviceGet\0" (*mut c_int, c_int);
    attribute = b"cuDeviceGetAttribute\0" (*mut c_int, c_int, c_int);
    retain = b"cuDevicePrimaryCtxRetain\0" (*mut Handle, c_int);
    set_current = b"cuCtxSetCurrent\0" (Handle);
    synchronize = b"cuCtxSynchronize\0" ();
    load_module = b"cuModuleLoadData\0" (*mut Handle, *const c_void);
    unload_module = b"cuModuleUnload\0" (Handle);
    function = b"cuModuleGetFunction\0" (*mut Handle, Handle, *const c_char);
    allocate = b"cuMemAlloc_v2\0" (*mut Address, usize);
    to_device = b"cuMemcpyHtoD_v2\0" (Address, *const c_void, usize);
    to_host = b"cuMemcpyDtoH_v2\0" (*mut c_void, Address, usize);
    launch = b"cuLaunchKernel\0" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
    );
    error_text = b"cuGetErrorString\0" (Code, *mut *const c_char);
}

impl Driver {
    /// Converts a CUDA error code to an error.
    fn check(&self, code: Code, doing: &str) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let mut text = std::ptr::null();
        // SAFETY: the driver's messages are constants; the pointer stays null for an unknown code.
        let text = unsafe {
            (self.error_text)(code, &mut text);
            if text.is_null() { c"unknown error" } else { CStr::from_ptr(text) }
        };
        Err(Error::io(format!(
            "the GPU could not {doing}: {} (CUDA error {code}); run with --device cpu",
            text.to_string_lossy()
        )))
    }
}

/// A loaded kernel: its module and its function.
#[derive(Debug, Clone, Copy)]
struct LoadedKernel {
    module: Handle,
    function: Handle,
}

/// State that one thread at a time uses.
#[derive(Debug, Default)]
struct State {
    kernels: Slots<LoadedKernel>,
}

/// An NVIDIA GPU: the first that the driver lists.
#[derive(Debug)]
pub(crate) struct Cuda {
    driver: Driver,
    processor: Processor,
    multiprocessors: u64,
    context: Handle,
    base: Address,
    state: Mutex<State>,
}

// SAFETY: the context may be current on any thread; its objects are used by one thread at a time,
// under the lock.
unsafe impl Send for Cuda {}
// SAFETY: as above.
unsafe impl Sync for Cuda {}
// SAFETY: as above.
unsafe impl Send for State {}

impl Cuda {
    /// Returns the GPU of this process.
    ///
    /// # Errors
    /// The driver, a GPU or enough memory is missing.
    pub(crate) fn get() -> Result<Arc<Cuda>> {
        static DEVICE: OnceLock<Result<Arc<Cuda>>> = OnceLock::new();
        DEVICE.get_or_init(|| Cuda::start().map(Arc::new)).clone()
    }

    fn start() -> Result<Cuda> {
        let driver = Driver::load().map_err(|error| {
            Error::unsupported(format!(
                "cannot find an NVIDIA GPU: {error}; run with --device cpu or --device virtual-gpu"
            ))
        })?;
        let (mut device, mut context, mut base) = (0, null_mut(), 0);
        // SAFETY: each call writes to locals; the device and context come from the calls before.
        unsafe {
            driver.check((driver.init)(0), "start")?;
            driver.check((driver.device)(&mut device, 0), "be found")?;
            driver.check((driver.retain)(&mut context, device), "be selected")?;
            driver.check((driver.set_current)(context), "be selected")?;
            driver.check((driver.allocate)(&mut base, MEMORY_BYTES), "allocate 4 GiB of memory")?;
        }
        let attribute = |number| {
            let mut value = 0;
            // SAFETY: as above.
            driver.check(
                unsafe { (driver.attribute)(&mut value, number, device) },
                "report its attributes",
            )?;
            Ok::<_, Error>(value)
        };
        let capability = attribute(CAPABILITY_MAJOR)? * 10 + attribute(CAPABILITY_MINOR)?;
        let known =
            CAPABILITIES.into_iter().rfind(|known| *known <= capability).ok_or_else(|| {
                Error::unsupported(format!(
                    "unsupported compute capability {capability} of the GPU; expected 70 or more; run with --device cpu"
                ))
            })?;
        let multiprocessors = attribute(MULTIPROCESSORS)?.max(1) as u64;
        let processor = Processor::nvidia(&format!("sm_{known}"));
        Ok(Cuda { driver, processor, multiprocessors, context, base, state: Mutex::default() })
    }

    /// Locks the device and makes its context current on this thread.
    fn state(&self) -> Result<MutexGuard<'_, State>> {
        let state = lock(&self.state);
        // SAFETY: the context is never released.
        self.driver.check(unsafe { (self.driver.set_current)(self.context) }, "be selected")?;
        Ok(state)
    }
}

impl Device for Cuda {
    fn processor(&self) -> &Processor {
        &self.processor
    }

    fn form(&self) -> FileType {
        FileType::Assembly
    }

    fn grid(&self) -> (u64, u64) {
        (self.multiprocessors * BLOCKS, LANES)
    }

    fn load(&self, code: &[u8], name: &str) -> Result<u64> {
        let text = |bytes: &[u8]| {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            CString::new(&bytes[..end])
                .map_err(|_| Error::internal("the text of a kernel contains a zero byte"))
        };
        let (code, name) = (text(code)?, text(name.as_bytes())?);
        let mut state = self.state()?;
        let mut loaded = LoadedKernel { module: null_mut(), function: null_mut() };
        // SAFETY: both texts end with 0; the driver writes to locals.
        unsafe {
            let code = (self.driver.load_module)(&mut loaded.module, code.as_ptr().cast());
            self.driver.check(code, "take code")?;
            let code = (self.driver.function)(&mut loaded.function, loaded.module, name.as_ptr());
            self.driver.check(code, "find a kernel")?;
        }
        Ok(state.kernels.add(loaded))
    }

    fn unload(&self, kernel: u64) {
        let Ok(mut state) = self.state() else { return };
        if let Some(loaded) = state.kernels.take(kernel) {
            // SAFETY: the module is no longer used. On failure it stays loaded until the process
            // ends.
            let _ = unsafe { (self.driver.unload_module)(loaded.module) };
        }
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(CudaSession { device: self, state: self.state()? }))
    }
}

/// A session that holds the device's lock.
struct CudaSession<'a> {
    device: &'a Cuda,
    state: MutexGuard<'a, State>,
}

impl Session for CudaSession<'_> {
    fn base(&self) -> u64 {
        self.device.base
    }

    fn size(&self) -> usize {
        MEMORY_BYTES
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        within(offset, bytes.len())?;
        let (driver, to) = (&self.device.driver, self.device.base + offset as u64);
        // SAFETY: `within` checked that the device memory holds the range.
        driver.check(
            unsafe { (driver.to_device)(to, bytes.as_ptr().cast(), bytes.len()) },
            "be written to",
        )
    }

    fn read(&mut self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        within(offset, bytes.len())?;
        let (driver, from) = (&self.device.driver, self.device.base + offset as u64);
        // SAFETY: as above, and `bytes` has room.
        driver.check(
            unsafe { (driver.to_host)(bytes.as_mut_ptr().cast(), from, bytes.len()) },
            "be read",
        )
    }

    fn launch(&mut self, kernel: u64, grid: Grid) -> Result<()> {
        let loaded = self.state.kernels.get(kernel);
        let function = loaded.ok_or_else(|| Error::internal("unknown kernel on the GPU"))?.function;
        let (driver, mut words) = (&self.device.driver, self.device.base);
        let mut parameters = [(&raw mut words).cast::<c_void>()];
        let (blocks, lanes, bytes) =
            (grid.blocks as c_uint, grid.lanes as c_uint, grid.scratchpad_bytes as c_uint);
        let started = Instant::now();
        // SAFETY: the kernel's only parameter is an address of data that was written before. The
        // kernel ends before this returns.
        unsafe {
            let launched = (driver.launch)(
                function,
                blocks,
                1,
                1,
                lanes,
                1,
                1,
                bytes,
                null_mut(),
                parameters.as_mut_ptr(),
                null_mut(),
            );
            driver.check(launched, "start a kernel")?;
            driver.check((driver.synchronize)(), "end a kernel")?;
        }
        BUSY.fetch_add(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// Checks that a range lies within the device's memory.
fn within(offset: usize, bytes: usize) -> Result<()> {
    match offset.checked_add(bytes) {
        Some(end) if end <= MEMORY_BYTES => Ok(()),
        _ => Err(Error::internal("an access beyond the memory of the GPU")),
    }
}
