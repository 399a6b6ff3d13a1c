//! Device providers: the parts of a function that depend on the device. Everything else is shared
//! (Proteus §5.1, Table 5.1).

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::Context;
use inkwell::module::{Linkage, Module};
use inkwell::types::BasicMetadataTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, BasicValue, FunctionValue, IntValue, PointerValue};
use inkwell::{AddressSpace, AtomicOrdering, AtomicRMWBinOp, IntPredicate};

use super::emitter::{FunctionEmitter, Steps};
use super::value::Built;

/// LLVM's number of the calling convention of kernels (`PTX_Kernel`).
const KERNEL_CONVENTION: u32 = 71;
/// LLVM's address space of a block's scratchpad.
const SCRATCHPAD_SPACE: u16 = 3;
/// The parameters of a phase: its parameter words, the scratchpad, block, blocks, lane and lanes.
const PHASE_PARAMETERS: u32 = 6;

/// The kind of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provider {
    /// A CPU thread, which is a worker by itself.
    Cpu,
    /// A CPU that emulates a grid: a loop runs the lanes of a block in turn, up to each barrier.
    VirtualGpu,
    /// An NVIDIA GPU.
    Nvptx,
}

/// The threads that run a function together: a worker is one CPU thread, or a whole GPU with a grid
/// of blocks of lanes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Worker<'ctx> {
    pub(crate) block: IntValue<'ctx>,
    pub(crate) blocks: IntValue<'ctx>,
    pub(crate) lane: IntValue<'ctx>,
    pub(crate) lanes: IntValue<'ctx>,
    /// Memory that the lanes of a block share.
    pub(crate) scratchpad: PointerValue<'ctx>,
}

/// The beginning of a function.
pub(crate) struct FunctionStart<'ctx> {
    pub(crate) function: FunctionValue<'ctx>,
    pub(crate) worker: Worker<'ctx>,
    /// The pointers to inputs, positions and runtime constants, then the function's own parameters.
    pub(crate) addresses: Vec<PointerValue<'ctx>>,
    pub(crate) rows: IntValue<'ctx>,
}

/// Whether other threads update the same memory concurrently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    Exclusive,
    Worker,
}

type LlvmBuilder<'a, 'ctx> = (&'ctx Context, &'a Module<'ctx>, &'a Builder<'ctx>);

impl Provider {
    /// Returns whether a worker has only one thread.
    pub(crate) fn is_single_threaded(self) -> bool {
        self == Provider::Cpu
    }

    /// Begins a function (on a GPU: a phase) with `parameter_count` pointers as its own parameters.
    pub(crate) fn begin<'ctx>(
        self,
        of: LlvmBuilder<'_, 'ctx>,
        name: &str,
        parameter_count: usize,
    ) -> Built<FunctionStart<'ctx>> {
        match self.is_single_threaded() {
            true => Ok(begin_function(of, name, parameter_count)),
            false => begin_phase(of, name, parameter_count),
        }
    }

    /// Builds a kernel that runs phases with barriers between them. A worker of one thread needs
    /// neither.
    pub(crate) fn join<'ctx>(
        self,
        (context, module): (&'ctx Context, &Module<'ctx>),
        name: &str,
        phases: &[FunctionValue<'ctx>],
    ) -> Built<()> {
        match self {
            Provider::Cpu => Ok(()),
            Provider::VirtualGpu => join_by_loops(context, module, name, phases),
            Provider::Nvptx => join_by_barriers(context, module, name, phases),
        }
    }
}

fn begin_function<'ctx>(
    (context, module, builder): LlvmBuilder<'_, 'ctx>,
    name: &str,
    parameter_count: usize,
) -> FunctionStart<'ctx> {
    let (wide, pointer) = (context.i64_type(), context.ptr_type(AddressSpace::default()));
    let mut parameters = vec![pointer.into(), pointer.into(), wide.into(), pointer.into()];
    parameters.extend(std::iter::repeat_n(BasicMetadataTypeEnum::from(pointer), parameter_count));
    let function = module.add_function(name, wide.fn_type(&parameters, false), None);
    let no_alias = context.create_enum_attribute(Attribute::get_named_enum_kind_id("noalias"), 0);
    for parameter in (0..parameters.len() as u32).filter(|parameter| *parameter != 2) {
        function.add_attribute(AttributeLoc::Param(parameter), no_alias);
    }
    builder.position_at_end(context.append_basic_block(function, "entry"));
    let (zero, one) = (wide.const_zero(), wide.const_int(1, false));
    let values = function.get_params();
    let addresses = values.iter().filter(|value| value.is_pointer_value());
    FunctionStart {
        function,
        worker: Worker {
            block: zero,
            blocks: one,
            lane: zero,
            lanes: one,
            scratchpad: pointer.const_null(),
        },
        addresses: addresses.map(|value| value.into_pointer_value()).collect(),
        rows: values
            .iter()
            .find(|value| value.is_int_value())
            .map_or(zero, |value| value.into_int_value()),
    }
}

/// A phase loads its parameters from device memory.
fn begin_phase<'ctx>(
    (context, module, builder): LlvmBuilder<'_, 'ctx>,
    name: &str,
    parameter_count: usize,
) -> Built<FunctionStart<'ctx>> {
    let (wide, pointer) = (context.i64_type(), context.ptr_type(AddressSpace::default()));
    let parameters =
        [pointer.into(), pointer.into(), wide.into(), wide.into(), wide.into(), wide.into()];
    let function = module.add_function(
        name,
        context.void_type().fn_type(&parameters, false),
        Some(Linkage::Private),
    );
    builder.position_at_end(context.append_basic_block(function, "entry"));
    let values = function.get_params();
    let number = |at: usize| values[at].into_int_value();
    let words = values[0].into_pointer_value();
    let word = |at: u64| {
        // SAFETY: this only computes an address; the launch passes all parameter words.
        unsafe { builder.build_in_bounds_gep(wide, words, &[wide.const_int(at, false)], "") }
    };
    let mut addresses = Vec::with_capacity(parameter_count + 3);
    for at in (0..4 + parameter_count as u64).filter(|at| *at != 2) {
        addresses.push(builder.build_load(pointer, word(at)?, "")?.into_pointer_value());
    }
    Ok(FunctionStart {
        function,
        worker: Worker {
            block: number(2),
            blocks: number(3),
            lane: number(4),
            lanes: number(5),
            scratchpad: values[1].into_pointer_value(),
        },
        addresses,
        rows: builder.build_load(wide, word(2)?, "rows")?.into_int_value(),
    })
}

/// The kernel of a virtual GPU runs one block: each phase in a loop over the lanes.
fn join_by_loops<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
    name: &str,
    phases: &[FunctionValue<'ctx>],
) -> Built<()> {
    let (wide, pointer) = (context.i64_type(), context.ptr_type(AddressSpace::default()));
    let parameters = [pointer.into(), pointer.into(), wide.into(), wide.into(), wide.into()];
    let kernel = module.add_function(name, context.void_type().fn_type(&parameters, false), None);
    let builder = context.create_builder();
    let mut before = context.append_basic_block(kernel, "entry");
    builder.position_at_end(before);
    let values = kernel.get_params();
    let lanes = values[4].into_int_value();
    for phase in phases {
        let (lane_block, next) = (
            context.append_basic_block(kernel, "lane"),
            context.append_basic_block(kernel, "barrier"),
        );
        builder.build_unconditional_branch(lane_block)?;
        builder.position_at_end(lane_block);
        let lane = builder.build_phi(wide, "lane")?;
        let number = lane.as_basic_value();
        let mut arguments: Vec<BasicMetadataValueEnum> =
            values[..4].iter().map(|value| (*value).into()).collect();
        arguments.extend([number, values[4]].map(BasicMetadataValueEnum::from));
        builder.build_call(*phase, &arguments, "")?;
        let following =
            builder.build_int_nuw_add(number.into_int_value(), wide.const_int(1, false), "")?;
        lane.add_incoming(&[(&wide.const_zero(), before), (&following, lane_block)]);
        let more = builder.build_int_compare(IntPredicate::ULT, following, lanes, "")?;
        builder.build_conditional_branch(more, lane_block, next)?;
        builder.position_at_end(next);
        before = next;
    }
    builder.build_return(None)?;
    Ok(())
}

/// The kernel of a GPU: all lanes run at once and wait for each other at barriers.
fn join_by_barriers<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
    name: &str,
    phases: &[FunctionValue<'ctx>],
) -> Built<()> {
    let (wide, pointer) = (context.i64_type(), context.ptr_type(AddressSpace::default()));
    let kernel =
        module.add_function(name, context.void_type().fn_type(&[pointer.into()], false), None);
    kernel.set_call_conventions(KERNEL_CONVENTION);
    let space = AddressSpace::from(SCRATCHPAD_SPACE);
    let scratchpad = module.add_global(wide.array_type(0), Some(space), "scratchpad");
    scratchpad.set_linkage(Linkage::External);
    scratchpad.set_alignment(16);
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(kernel, "entry"));
    let register = |name: &str| {
        let name = format!("llvm.nvvm.read.ptx.sreg.{name}.x");
        let kind = context.i32_type().fn_type(&[], false);
        let read =
            module.get_function(&name).unwrap_or_else(|| module.add_function(&name, kind, None));
        let value = builder.build_call(read, &[], "")?.try_as_basic_value().basic();
        let value = value.ok_or(BuilderError::UnsetPosition)?.into_int_value();
        builder.build_int_z_extend(value, wide, "")
    };
    let numbers = [register("ctaid")?, register("nctaid")?, register("tid")?, register("ntid")?];
    let generic = builder.build_address_space_cast(scratchpad.as_pointer_value(), pointer, "")?;
    let mut arguments = vec![kernel.get_params()[0].into(), generic.into()];
    arguments.extend(numbers.map(BasicMetadataValueEnum::from));
    debug_assert_eq!(arguments.len(), PHASE_PARAMETERS as usize);
    let barrier =
        module.add_function("llvm.nvvm.barrier0", context.void_type().fn_type(&[], false), None);
    for (number, phase) in phases.iter().enumerate() {
        if number > 0 {
            builder.build_call(barrier, &[], "")?;
        }
        builder.build_call(*phase, &arguments, "")?;
    }
    builder.build_return(None)?;
    Ok(())
}

impl<'ctx> Worker<'ctx> {
    /// Returns the index of this thread in its worker.
    pub(crate) fn thread(&self, builder: &Builder<'ctx>) -> Built<IntValue<'ctx>> {
        builder.build_int_add(
            builder.build_int_mul(self.block, self.lanes, "")?,
            self.lane,
            "thread",
        )
    }

    /// Returns the number of threads of the worker.
    pub(crate) fn threads(&self, builder: &Builder<'ctx>) -> Built<IntValue<'ctx>> {
        builder.build_int_mul(self.blocks, self.lanes, "threads")
    }
}

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// Returns the range of this lane in a loop that the lanes of a block share.
    pub(crate) fn by_lanes(&self, below: IntValue<'ctx>) -> Steps<'ctx> {
        Steps { first: self.worker.lane, below, step: self.worker.lanes }
    }

    /// Adds to a word (worker-scoped atomic); returns its previous value.
    pub(crate) fn add(
        &self,
        sharing: Sharing,
        place: PointerValue<'ctx>,
        value: IntValue<'ctx>,
    ) -> Built<IntValue<'ctx>> {
        let builder = &self.builder;
        if sharing == Sharing::Worker {
            return builder.build_atomicrmw(
                AtomicRMWBinOp::Add,
                place,
                value,
                AtomicOrdering::Monotonic,
            );
        }
        let before = builder.build_load(value.get_type(), place, "")?.into_int_value();
        builder.build_store(place, builder.build_int_add(before, value, "")?)?;
        Ok(before)
    }

    /// Updates a word (worker-scoped atomic).
    pub(crate) fn change(
        &self,
        sharing: Sharing,
        place: PointerValue<'ctx>,
        change: impl Fn(IntValue<'ctx>) -> Built<IntValue<'ctx>>,
    ) -> Built<()> {
        let (builder, wide) = (&self.builder, self.context.i64_type());
        let before = builder.build_load(wide, place, "")?;
        if sharing == Sharing::Exclusive {
            builder.build_store(place, change(before.into_int_value())?)?;
            return Ok(());
        }
        let order = AtomicOrdering::Monotonic;
        if let Some(load) = before.as_instruction_value() {
            load.set_atomic_ordering(order).map_err(|_| BuilderError::UnsetPosition)?;
        }
        // Another thread may have changed the word in the meantime: retry with the new value.
        let Some(above) = builder.get_insert_block() else {
            return Err(BuilderError::UnsetPosition);
        };
        let (again, done) = (self.block("change"), self.block("changed"));
        builder.build_unconditional_branch(again)?;
        builder.position_at_end(again);
        let expected = builder.build_phi(wide, "")?;
        let old = expected.as_basic_value().into_int_value();
        let swapped = builder.build_cmpxchg(place, old, change(old)?, order, order)?;
        let found = builder.build_extract_value(swapped, 0, "")?;
        let succeeded = builder.build_extract_value(swapped, 1, "")?.into_int_value();
        let Some(below) = builder.get_insert_block() else {
            return Err(BuilderError::UnsetPosition);
        };
        expected.add_incoming(&[(&before, above), (&found, below)]);
        builder.build_conditional_branch(succeeded, done, again)?;
        builder.position_at_end(done);
        Ok(())
    }
}
