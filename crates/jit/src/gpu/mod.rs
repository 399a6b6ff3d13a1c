//! Pieces of code on a GPU: what a compiler for one gives. Each run copies what it reads to the
//! device's memory, and what comes of it back: a device never sees the state of operators, which
//! the host brings up to date when all went well.

pub(crate) mod cuda;
pub(crate) mod device;
mod layout;
mod virtual_gpu;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use inkwell::targets::FileType;
use tessera_codegen::{
    Compiler, InputPlace, Machine, Op, Promise, Select, SelectCode, StateCode, StepCode, Update,
    UpdateCode, ValueCode,
};
use tessera_types::{Error, Result};

use crate::compiler::{Piece, Spent, emitted, worked};
use crate::given::Given;
use crate::target::{Host, Processor};
pub(crate) use cuda::Cuda;
pub(crate) use virtual_gpu::VirtualGpu;

/// What a grid is like, and what a block has in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    pub(crate) blocks: u64,
    pub(crate) lanes: u64,
    pub(crate) scratchpad_bytes: u64,
}

/// How large a block's scratchpad is, in bytes: that of every NVIDIA GPU since Kepler, without
/// asking for more.
pub(crate) const SCRATCHPAD_BYTES: u64 = 48 << 10;

/// What a device was given, by number; numbers of what it has forgotten are given again.
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

/// A device's memory and its processor, while nobody else uses them.
pub(crate) trait Session {
    /// Where memory begins, in the device's own addresses.
    fn base(&self) -> u64;

    /// How much there is, in bytes.
    fn size(&self) -> usize;

    /// Copies bytes to so many behind the beginning.
    fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<()>;

    /// Copies bytes from so many behind the beginning on.
    fn read(&mut self, offset: usize, bytes: &mut [u8]) -> Result<()>;

    /// Runs a kernel, whose words are at the beginning, to its end.
    fn launch(&mut self, kernel: u64, grid: Grid) -> Result<()>;
}

/// A GPU.
pub(crate) trait Device: std::fmt::Debug + Send + Sync {
    /// What its code is made for.
    fn processor(&self) -> &Processor;

    /// What its code is handed over as.
    fn form(&self) -> FileType;

    /// How many blocks run at once, and how many lanes each has at most.
    fn grid(&self) -> (u64, u64);

    /// Takes code with a kernel of this name; gives its number.
    fn load(&self, code: &[u8], name: &str) -> Result<u64>;

    /// Forgets a kernel.
    fn unload(&self, kernel: u64);

    /// The device, for one user.
    fn session(&self) -> Result<Box<dyn Session + '_>>;
}

/// A kernel on its device.
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

/// Who compiles for a GPU.
#[derive(Debug)]
pub(crate) struct Gpu {
    device: Arc<dyn Device>,
    spent: Arc<Spent>,
}

impl Gpu {
    /// For a device.
    pub(crate) fn new(device: Arc<dyn Device>) -> Gpu {
        Gpu { device, spent: Arc::default() }
    }

    fn offloaded(&self, (piece, given): (Piece, Given), runs: bool) -> Offloaded {
        Offloaded {
            device: self.device.clone(),
            spent: self.spent.clone(),
            piece,
            given,
            runs,
            kernel: OnceLock::new(),
            failed: OnceLock::new(),
        }
    }
}

impl Compiler for Gpu {
    fn update(&self, code: UpdateCode) -> Arc<dyn Promise<dyn Update>> {
        let runs = runs_update(&code);
        Arc::new(self.offloaded(Piece::of_update(code), runs))
    }

    fn select(&self, code: SelectCode) -> Arc<dyn Promise<dyn Select>> {
        let runs = runs_select(&code);
        Arc::new(self.offloaded(Piece::of_select(code), runs))
    }

    fn spent(&self) -> (usize, Duration) {
        self.spent.get()
    }
}

/// Whether a GPU can run updates.
pub(crate) fn runs_update(code: &UpdateCode) -> bool {
    let mut all = code.stages.iter().flat_map(|stage| &stage.states).all(has_atomics);
    code.each_value(|value| all &= has_instructions(value));
    all
}

/// Whether a GPU can run a predicate.
pub(crate) fn runs_select(code: &SelectCode) -> bool {
    code.inputs.iter().all(|input| input.place == InputPlace::Column)
        && has_instructions(&code.predicate)
}

/// Whether a state is changed a word at a time.
fn has_atomics(state: &StateCode) -> bool {
    let is_long = |arg: &ValueCode| matches!(arg.machine, Machine::Integer { bits: 128, .. });
    !(matches!(state.step, StepCode::Min | StepCode::Max) && state.args.iter().any(is_long))
}

/// Whether it can be computed without functions of a library, which a GPU does not have: divisions
/// of 128 bits would take one, and checked multiplications.
fn has_instructions(code: &ValueCode) -> bool {
    use tessera_codegen::Operation::{Div, Mod, Mul};
    let is_long = matches!(code.machine, Machine::Integer { bits: 128, .. });
    let own = match &code.op {
        Op::Arithmetic(Div | Mod | Mul, _) => !is_long,
        Op::Function(function, _) => function.is_whole,
        // The buffers that they lie in are not on the device.
        Op::SameText(_) | Op::Like(_) => false,
        _ => true,
    };
    let mut below = true;
    code.each_operand(&mut |operand| below &= has_instructions(operand));
    own && below
}

/// A piece of code for a GPU.
#[derive(Debug)]
struct Offloaded {
    device: Arc<dyn Device>,
    spent: Arc<Spent>,
    piece: Piece,
    given: Given,
    /// Whether the device can run it.
    runs: bool,
    kernel: OnceLock<Result<Kernel>>,
    /// What went wrong when it ran.
    failed: OnceLock<Error>,
}

impl Offloaded {
    fn compile(&self) -> Result<Kernel> {
        let started = worked();
        let host = Host::new(self.device.processor())?;
        let code = emitted(&host, &self.piece, self.device.form())?;
        self.spent.add(worked().saturating_sub(started));
        Ok(Kernel {
            device: self.device.clone(),
            number: self.device.load(&code, self.piece.name())?,
        })
    }

    fn is_there(&self) -> Result<bool> {
        if !self.runs {
            return Ok(false);
        }
        if let Some(error) = self.failed.get() {
            return Err(error.clone());
        }
        let _until_done = crate::in_use::compiling();
        self.kernel.get_or_init(|| self.compile()).as_ref().map(|_| true).map_err(Clone::clone)
    }

    /// A grid for so many tuples.
    fn grid(&self, rows: usize, scratchpad_bytes: u64) -> Grid {
        let (blocks, lanes) = self.device.grid();
        Grid { blocks: (rows as u64).div_ceil(lanes).clamp(1, blocks), lanes, scratchpad_bytes }
    }
}

impl Promise<dyn Update> for Offloaded {
    fn get(&self, _: usize) -> Result<Option<&(dyn Update + 'static)>> {
        Ok(self.is_there()?.then_some(self))
    }
}

impl Promise<dyn Select> for Offloaded {
    fn get(&self, _: usize) -> Result<Option<&(dyn Select + 'static)>> {
        Ok(self.is_there()?.then_some(self))
    }
}
