//! The GPU compiler. Each run copies its input to device memory and its results back: the device
//! never sees the state of operators, which the host updates after a successful run.

pub(crate) mod cuda;
pub(crate) mod device;
mod layout;
mod virtual_gpu;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(crate) use cuda::Cuda;
use inkwell::targets::FileType;
use tessera_codegen::{
    Compiler, InputPlace, MachineType, Op, Promise, Select, SelectCode, StateCode, StepCode,
    Update, UpdateCode, ValueCode,
};
use tessera_context::Place;
use tessera_types::{Error, Result};
pub(crate) use virtual_gpu::VirtualGpu;

use crate::compiler::{CompileTime, Piece, emit_piece, thread_nanoseconds};
use crate::constants::RuntimeConstants;
use crate::target::{Host, Processor};

/// The size of a kernel's grid, and the scratchpad of each block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    pub(crate) blocks: u64,
    pub(crate) lanes: u64,
    pub(crate) scratchpad_bytes: u64,
}

/// Bytes of scratchpad in a block: available by default on every NVIDIA GPU since Kepler.
pub(crate) const SCRATCHPAD_BYTES: u64 = 48 << 10;

/// Objects of a device by number; numbers of freed objects are reused.
#[derive(Debug)]
pub(crate) struct Slots<T>(Vec<Option<T>>);

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots(Vec::new())
    }
}

impl<T> Slots<T> {
    pub(crate) fn add(&mut self, value: T) -> u64 {
        let at = self.0.iter().position(Option::is_none).unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        });
        self.0[at] = Some(value);
        at as u64
    }

    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        self.0.get(number as usize)?.as_ref()
    }

    pub(crate) fn take(&mut self, number: u64) -> Option<T> {
        self.0.get_mut(number as usize)?.take()
    }
}

/// Exclusive use of a device's memory and processor.
pub(crate) trait Session {
    /// Returns the device address where memory begins.
    fn base(&self) -> u64;

    /// Returns the size of the memory in bytes.
    fn size(&self) -> usize;

    /// Copies bytes to an offset of the memory.
    fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<()>;

    /// Copies bytes from an offset of the memory.
    fn read(&mut self, offset: usize, bytes: &mut [u8]) -> Result<()>;

    /// Runs a kernel with its parameters at the beginning of the memory, until it ends.
    fn launch(&mut self, kernel: u64, grid: Grid) -> Result<()>;
}

/// A GPU.
pub(crate) trait Device: std::fmt::Debug + Send + Sync {
    /// Returns the target of its code.
    fn processor(&self) -> &Processor;

    /// Returns the file type of its code.
    fn form(&self) -> FileType;

    /// Returns the number of concurrent blocks, and the most lanes of a block.
    fn grid(&self) -> (u64, u64);

    /// Loads a kernel by its name; returns its number.
    fn load(&self, code: &[u8], name: &str) -> Result<u64>;

    /// Unloads a kernel.
    fn unload(&self, kernel: u64);

    /// Locks the device for one user.
    fn session(&self) -> Result<Box<dyn Session + '_>>;
}

/// A kernel loaded on its device.
#[derive(Debug)]
struct Kernel {
    device: Arc<dyn Device>,
    number: u64,
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.device.unload(self.number);
    }
}

/// The compiler for a GPU.
#[derive(Debug)]
pub(crate) struct GpuCompiler {
    device: Arc<dyn Device>,
    /// The memory place where its buffers are counted.
    place: Place,
    compile_time: Arc<CompileTime>,
}

impl GpuCompiler {
    /// Creates the compiler of a device.
    pub(crate) fn new(device: Arc<dyn Device>, place: Place) -> GpuCompiler {
        GpuCompiler { device, place, compile_time: Arc::default() }
    }

    fn offload(
        &self,
        (piece, constants): (Piece, RuntimeConstants),
        is_supported: bool,
    ) -> OffloadedPiece {
        OffloadedPiece {
            device: self.device.clone(),
            place: self.place,
            compile_time: self.compile_time.clone(),
            piece,
            constants,
            is_supported,
            kernel: OnceLock::new(),
            failed: OnceLock::new(),
        }
    }
}

impl Compiler for GpuCompiler {
    fn update(&self, code: UpdateCode) -> Arc<dyn Promise<dyn Update>> {
        let is_supported = runs_update(&code);
        Arc::new(self.offload(Piece::of_update(code), is_supported))
    }

    fn select(&self, code: SelectCode) -> Arc<dyn Promise<dyn Select>> {
        let is_supported = runs_select(&code);
        Arc::new(self.offload(Piece::of_select(code), is_supported))
    }

    fn compile_stats(&self) -> (usize, Duration) {
        self.compile_time.get()
    }
}

/// Returns whether a GPU can run the updates.
pub(crate) fn runs_update(code: &UpdateCode) -> bool {
    let mut all = code.stages.iter().flat_map(|stage| &stage.states).all(has_atomics);
    code.each_value(|value| all &= has_instructions(value));
    all
}

/// Returns whether a GPU can run a predicate.
pub(crate) fn runs_select(code: &SelectCode) -> bool {
    code.inputs.iter().all(|input| input.place == InputPlace::Column)
        && has_instructions(&code.predicate)
}

/// Returns whether a state can be updated one word at a time.
fn has_atomics(state: &StateCode) -> bool {
    let is_long = |arg: &ValueCode| matches!(arg.machine, MachineType::Integer { bits: 128, .. });
    !(matches!(state.step, StepCode::Min | StepCode::Max) && state.args.iter().any(is_long))
}

/// Returns whether an expression compiles without library functions, which GPUs lack; 128-bit
/// divisions and checked multiplications need one.
fn has_instructions(code: &ValueCode) -> bool {
    use tessera_codegen::Operation::{Div, Mod, Mul};
    let is_long = matches!(code.machine, MachineType::Integer { bits: 128, .. });
    let is_native = match &code.op {
        Op::Arithmetic(Div | Mod | Mul, _) => !is_long,
        Op::Function(function, _) => function.is_self_contained,
        // The buffers of texts are not on the device.
        Op::TextEquals(_) | Op::Like(_) => false,
        _ => true,
    };
    let mut below = true;
    code.each_operand(&mut |operand| below &= has_instructions(operand));
    is_native && below
}

/// A piece of code for a GPU.
#[derive(Debug)]
struct OffloadedPiece {
    device: Arc<dyn Device>,
    place: Place,
    compile_time: Arc<CompileTime>,
    piece: Piece,
    constants: RuntimeConstants,
    /// Whether the GPU can run it.
    is_supported: bool,
    kernel: OnceLock<Result<Kernel>>,
    /// The error of an earlier run.
    failed: OnceLock<Error>,
}

impl OffloadedPiece {
    fn compile(&self) -> Result<Kernel> {
        let started = thread_nanoseconds();
        let host = Host::new(self.device.processor())?;
        let code = emit_piece(&host, &self.piece, self.device.form())?;
        self.compile_time.add(thread_nanoseconds().saturating_sub(started));
        Ok(Kernel {
            device: self.device.clone(),
            number: self.device.load(&code, self.piece.name())?,
        })
    }

    fn is_ready(&self) -> Result<bool> {
        if !self.is_supported {
            return Ok(false);
        }
        if let Some(error) = self.failed.get() {
            return Err(error.clone());
        }
        let _guard = crate::lease::compilation_guard();
        self.kernel.get_or_init(|| self.compile()).as_ref().map(|_| true).map_err(Clone::clone)
    }

    /// Returns the grid for `rows` tuples.
    fn grid(&self, rows: usize, scratchpad_bytes: u64) -> Grid {
        let (blocks, lanes) = self.device.grid();
        Grid { blocks: (rows as u64).div_ceil(lanes).clamp(1, blocks), lanes, scratchpad_bytes }
    }
}

impl Promise<dyn Update> for OffloadedPiece {
    fn get(&self, _: usize) -> Result<Option<&(dyn Update + 'static)>> {
        Ok(self.is_ready()?.then_some(self))
    }
}

impl Promise<dyn Select> for OffloadedPiece {
    fn get(&self, _: usize) -> Result<Option<&(dyn Select + 'static)>> {
        Ok(self.is_ready()?.then_some(self))
    }
}
