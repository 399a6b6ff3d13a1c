//! Adds stop checks to user-defined functions: whatever their loops and calls do, they
//! [poll](crate::stop) within about a millisecond and return early if they must stop.
//!
//! A loop head counts iterations and polls after many. A function that loops, may recurse or is
//! long polls at its entry. After a call of a function that may return early, the code loads a word
//! that says whether any thread is stopping, and polls only then. Other functions stay unchanged,
//! so that loops that call them can be vectorized.

use std::collections::HashMap;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::Context;
use inkwell::llvm_sys::LLVMTailCallKind;
use inkwell::module::Module;
use inkwell::values::{
    BasicValue, CallSiteValue, FunctionValue, InstructionOpcode, InstructionValue, IntValue,
    Operand, PointerValue,
};
use inkwell::{AtomicOrdering, IntPredicate};
use tessera_codegen::Status;

use crate::lower::{Built, poll_function};
use crate::stop::{POLL, STOPPING_NAME};

/// Approximate number of instructions between two polls.
const INSTRUCTIONS_PER_POLL: u64 = 1 << 18;
/// The most iterations between two polls.
const ITERATIONS_MAX: u64 = 1 << 14;
/// A function with more instructions, including its callees, polls at its entry.
const LONG_FUNCTION: u64 = 1 << 10;

/// The target of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Callee {
    /// A function of the module, by its index.
    Defined(usize),
    /// An unknown function, called by a pointer.
    Unknown,
}

/// A function of the module with its loops and calls.
#[derive(Debug)]
struct DefinedFunction<'ctx> {
    function: FunctionValue<'ctx>,
    /// The heads of its loops.
    loops: Vec<BasicBlock<'ctx>>,
    calls: Vec<(CallSiteValue<'ctx>, Callee)>,
    instructions: u64,
}

/// The properties of a function that decide where it polls.
#[derive(Debug, Clone, Copy, Default)]
struct Bounds {
    /// Instructions that a call executes before it polls or returns, with each loop body counted
    /// once.
    cost: u64,
    /// Whether it polls at its entry.
    polls: bool,
    /// Whether it or one of its callees may return early.
    may_return_early: bool,
}

/// Adds stop checks to the functions of a user's module; `main` is its entry point.
pub(super) fn bound<'ctx>(
    (context, module): (&'ctx Context, &Module<'ctx>),
    main: FunctionValue<'ctx>,
) -> Built<()> {
    let defined: Vec<FunctionValue<'ctx>> =
        module.get_functions().filter(|function| function.count_basic_blocks() > 0).collect();
    let numbers: HashMap<FunctionValue<'ctx>, usize> =
        defined.iter().enumerate().map(|(number, function)| (*function, number)).collect();
    let functions: Vec<DefinedFunction<'ctx>> =
        defined.iter().map(|function| DefinedFunction::new(*function, &numbers)).collect();
    let bounds = bounds(&functions);
    // These names are reserved.
    for name in [POLL, STOPPING_NAME] {
        if let Some(function) = module.get_function(name) {
            function.as_global_value().set_name("user's");
        }
        if let Some(global) = module.get_global(name) {
            global.set_name("user's");
        }
    }
    for (function, properties) in functions.iter().zip(&bounds) {
        if properties.may_return_early {
            let returns_early = |callee: &Callee| match callee {
                Callee::Defined(number) => bounds[*number].may_return_early,
                Callee::Unknown => true,
            };
            StopChecks::new((context, module), function, function.function == main)?
                .add(properties, returns_early)?;
        }
    }
    Ok(())
}

/// Computes the properties of each function.
fn bounds(functions: &[DefinedFunction<'_>]) -> Vec<Bounds> {
    let knows_callees =
        functions.iter().all(|one| one.calls.iter().all(|(_, callee)| *callee != Callee::Unknown));
    let callees = |number: usize| {
        functions[number].calls.iter().filter_map(|(_, callee)| match callee {
            Callee::Defined(callee) => Some(*callee),
            Callee::Unknown => None,
        })
    };
    let graph: Vec<Vec<usize>> =
        (0..functions.len()).map(|number| callees(number).collect()).collect();
    let (heads, order) = heads(&graph, 0..functions.len());
    let mut bounds: Vec<Bounds> = vec![Bounds::default(); functions.len()];
    // With calls through pointers, any function may be recursive.
    for (number, one) in functions.iter().enumerate() {
        bounds[number].polls = heads[number] || !one.loops.is_empty() || !knows_callees;
    }
    // Callees come before callers, except for recursive functions, which poll.
    for number in order {
        let cost = |callee: &usize| match bounds[*callee] {
            Bounds { polls: true, .. } => 1,
            Bounds { cost, .. } => cost,
        };
        let below = graph[number].iter().map(cost).fold(0, u64::saturating_add);
        let cost = functions[number].instructions.saturating_add(below);
        let polls = bounds[number].polls || cost > LONG_FUNCTION;
        let may_return_early =
            |callee: &usize| bounds[*callee].polls || bounds[*callee].may_return_early;
        let may_return_early = polls || graph[number].iter().any(may_return_early);
        bounds[number] = Bounds { cost, polls, may_return_early };
    }
    bounds
}

/// Runs a depth-first search; returns the targets of back edges (at least one in each cycle) and
/// all nodes in post-order.
fn heads(graph: &[Vec<usize>], roots: impl Iterator<Item = usize>) -> (Vec<bool>, Vec<usize>) {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let (mut states, mut heads) = (vec![State::New; graph.len()], vec![false; graph.len()]);
    let (mut order, mut path) = (Vec::with_capacity(graph.len()), Vec::new());
    for root in roots {
        if states[root] != State::New {
            continue;
        }
        states[root] = State::Open;
        path.push((root, 0));
        while let Some((node, next)) = path.last_mut() {
            let Some(to) = graph[*node].get(*next).copied() else {
                states[*node] = State::Done;
                order.push(*node);
                path.pop();
                continue;
            };
            *next += 1;
            match states[to] {
                State::New => {
                    states[to] = State::Open;
                    path.push((to, 0));
                }
                State::Open => heads[to] = true,
                State::Done => {}
            }
        }
    }
    (heads, order)
}

impl<'ctx> DefinedFunction<'ctx> {
    fn new(
        function: FunctionValue<'ctx>,
        numbers: &HashMap<FunctionValue<'ctx>, usize>,
    ) -> DefinedFunction<'ctx> {
        let blocks = function.get_basic_blocks();
        let block_numbers: HashMap<BasicBlock<'ctx>, usize> =
            blocks.iter().enumerate().map(|(number, block)| (*block, number)).collect();
        let next = |block: &BasicBlock<'ctx>| -> Vec<usize> {
            let to = successors(*block);
            to.iter().filter_map(|block| block_numbers.get(block).copied()).collect()
        };
        let graph: Vec<Vec<usize>> = blocks.iter().map(next).collect();
        // The first block is the entry; unreachable blocks do not loop.
        let (heads, _) = heads(&graph, 0..blocks.len().min(1));
        let loops =
            blocks.iter().zip(heads).filter_map(|(block, is_head)| is_head.then_some(*block));
        let (mut calls, mut instructions) = (Vec::new(), 0);
        for instruction in blocks.iter().flat_map(|block| block.get_instructions()) {
            instructions += 1;
            let Ok(call) = CallSiteValue::try_from(instruction) else { continue };
            match call.get_called_fn_value() {
                Some(callee) => {
                    calls.extend(
                        numbers.get(&callee).map(|number| (call, Callee::Defined(*number))),
                    );
                }
                None => calls.push((call, Callee::Unknown)),
            }
        }
        DefinedFunction { function, loops: loops.collect(), calls, instructions }
    }
}

/// Returns the successors of a block.
fn successors(block: BasicBlock<'_>) -> Vec<BasicBlock<'_>> {
    use InstructionOpcode::{Br, IndirectBr, Switch};
    match block.get_terminator() {
        Some(last) if matches!(last.get_opcode(), Br | Switch | IndirectBr) => {
            last.get_operands().flatten().filter_map(Operand::block).collect()
        }
        _ => Vec::new(),
    }
}

/// Inserts the stop checks of one function.
struct StopChecks<'a, 'ctx> {
    target: &'a DefinedFunction<'ctx>,
    context: &'ctx Context,
    builder: Builder<'ctx>,
    poll: FunctionValue<'ctx>,
    ending: PointerValue<'ctx>,
    /// The block that returns early.
    exit: BasicBlock<'ctx>,
}

impl<'a, 'ctx> StopChecks<'a, 'ctx> {
    fn new(
        (context, module): (&'ctx Context, &Module<'ctx>),
        target: &'a DefinedFunction<'ctx>,
        is_main: bool,
    ) -> Built<StopChecks<'a, 'ctx>> {
        let (builder, word) = (context.create_builder(), context.i32_type());
        let poll = poll_function(context, module);
        let ending = module
            .get_global(STOPPING_NAME)
            .unwrap_or_else(|| module.add_global(word, None, STOPPING_NAME));
        let exit = context.append_basic_block(target.function, "ended");
        builder.position_at_end(exit);
        // Any status but a value ends the loop over tuples.
        let wrong = word.const_int(Status::InvalidArguments as u64, false);
        let zero = target.function.get_type().get_return_type().map(|of| of.const_zero());
        let value = if is_main { Some(wrong.into()) } else { zero };
        builder.build_return(value.as_ref().map(|value| value as &dyn BasicValue<'ctx>))?;
        Ok(StopChecks { target, context, builder, poll, ending: ending.as_pointer_value(), exit })
    }

    fn add(&self, bounds: &Bounds, returns_early: impl Fn(&Callee) -> bool) -> Built<()> {
        self.remove_promises(
            self.target
                .calls
                .iter()
                .filter(|(_, callee)| returns_early(callee))
                .map(|(call, _)| *call),
        );
        let Some(first) = self.target.function.get_first_basic_block() else { return Ok(()) };
        // Entry and heads first: the calls below split blocks.
        if bounds.polls {
            let begin = self.cut(first, Self::allocates_always)?;
            if !self.target.loops.is_empty() {
                self.count_iterations(
                    begin,
                    (INSTRUCTIONS_PER_POLL / bounds.cost.max(1)).clamp(1, ITERATIONS_MAX),
                )?;
            }
            self.builder.position_at_end(begin);
            self.poll_or_continue(first)?;
        }
        for (call, _) in self.target.calls.iter().filter(|(_, callee)| returns_early(callee)) {
            self.check_after(*call)?;
        }
        Ok(())
    }

    /// Removes attributes that an early return invalidates.
    fn remove_promises(&self, calls: impl Iterator<Item = CallSiteValue<'ctx>>) {
        let number = Attribute::get_named_enum_kind_id;
        let of_function = [
            "memory",
            "willreturn",
            "mustprogress",
            "speculatable",
            "nosync",
            "norecurse",
            "nofree",
            "nocallback",
        ]
        .map(|name| (AttributeLoc::Function, number(name)));
        let of_value = [
            "noundef",
            "nonnull",
            "range",
            "dereferenceable",
            "dereferenceable_or_null",
            "align",
            "noalias",
            "nofpclass",
        ]
        .map(|name| (AttributeLoc::Return, number(name)));
        let promises = || of_function.iter().chain(&of_value);
        let returned = number("returned");
        let function = self.target.function;
        promises().for_each(|(place, name)| function.remove_enum_attribute(*place, *name));
        for parameter in 0..function.count_params() {
            function.remove_enum_attribute(AttributeLoc::Param(parameter), returned);
        }
        for call in calls {
            promises().for_each(|(place, name)| call.remove_enum_attribute(*place, *name));
            for argument in 0..call.count_arguments() {
                call.remove_enum_attribute(AttributeLoc::Param(argument), returned);
            }
        }
    }

    /// Moves the matching instructions of a block to a new block, which takes over its
    /// predecessors; returns the new block, without a terminator. Successors keep the old block, so
    /// that their phis stay valid.
    fn cut(
        &self,
        block: BasicBlock<'ctx>,
        is_moved: impl Fn(&InstructionValue<'ctx>) -> bool,
    ) -> Built<BasicBlock<'ctx>> {
        let before = self.context.prepend_basic_block(block, "");
        let moved: Vec<InstructionValue<'ctx>> =
            block.get_instructions().filter(is_moved).collect();
        self.builder.position_at_end(before);
        for instruction in moved {
            instruction.remove_from_basic_block();
            self.builder.insert_instruction(&instruction, None);
        }
        // The terminator is removed first; otherwise LLVM would also rewrite the phis of the
        // successors.
        let end = block.get_terminator().ok_or(BuilderError::UnsetPosition)?;
        end.remove_from_basic_block();
        block.replace_all_uses_with(&before);
        self.builder.position_at_end(block);
        self.builder.insert_instruction(&end, None);
        Ok(before)
    }

    /// Returns whether an instruction is an `alloca` of constant size, which must stay in the entry
    /// block.
    fn allocates_always(instruction: &InstructionValue<'ctx>) -> bool {
        let size = || instruction.get_operand(0).and_then(Operand::value);
        instruction.get_opcode() == InstructionOpcode::Alloca
            && size()
                .is_some_and(|size| size.is_int_value() && size.into_int_value().is_constant_int())
    }

    /// Ends the current block: polls, and returns early or continues at `next`.
    fn poll_or_continue(&self, next: BasicBlock<'ctx>) -> Built<()> {
        let byte = self.context.i8_type();
        let answer = self.builder.build_call(self.poll, &[], "")?.try_as_basic_value().basic();
        let answer = answer.ok_or(BuilderError::UnsetPosition)?.into_int_value();
        let goes_on =
            self.builder.build_int_compare(IntPredicate::EQ, answer, byte.const_zero(), "")?;
        self.builder.build_conditional_branch(goes_on, next, self.exit)?;
        Ok(())
    }

    /// Branches to a new block if a condition holds, else to `next`; the new block becomes the
    /// current one.
    fn branch(&self, condition: IntValue<'ctx>, next: BasicBlock<'ctx>) -> Built<()> {
        let state = self.context.prepend_basic_block(self.exit, "ask");
        self.builder.build_conditional_branch(condition, state, next)?;
        self.builder.position_at_end(state);
        Ok(())
    }

    /// Makes all loops poll after `iterations` iterations of any of them.
    fn count_iterations(&self, begin: BasicBlock<'ctx>, iterations: u64) -> Built<()> {
        let (builder, of) = (&self.builder, self.context.i32_type());
        builder.position_at_end(begin);
        let left = builder.build_alloca(of, "left")?;
        let all = of.const_int(iterations, false);
        builder.build_store(left, all)?;
        for block in &self.target.loops {
            let head =
                self.cut(*block, |instruction| instruction.get_opcode() == InstructionOpcode::Phi)?;
            builder.position_at_end(head);
            let before = builder.build_load(of, left, "")?.into_int_value();
            let after = builder.build_int_sub(before, of.const_int(1, false), "")?;
            builder.build_store(left, after)?;
            let none = builder.build_int_compare(IntPredicate::EQ, after, of.const_zero(), "")?;
            self.branch(none, *block)?;
            builder.build_store(left, all)?;
            self.poll_or_continue(*block)?;
        }
        Ok(())
    }

    /// Checks after a call whether any thread is stopping, since the result may then be
    /// meaningless.
    fn check_after(&self, call: CallSiteValue<'ctx>) -> Built<()> {
        // The caller of this function checks the result of a `musttail` call.
        if call.get_tail_call_kind() == LLVMTailCallKind::LLVMTailCallKindMustTail {
            return Ok(());
        }
        let call = instruction_of(call)?;
        let block = call.get_parent().ok_or(BuilderError::UnsetPosition)?;
        let is_behind = std::cell::Cell::new(false);
        let before = self.cut(block, |instruction| {
            let is_moved = !is_behind.get();
            is_behind.set(is_behind.get() || *instruction == call);
            is_moved
        })?;
        let (builder, word) = (&self.builder, self.context.i32_type());
        builder.position_at_end(before);
        let ending = builder.build_load(word, self.ending, "")?;
        if let Some(load) = ending.as_instruction_value() {
            load.set_atomic_ordering(AtomicOrdering::Monotonic)
                .map_err(|_| BuilderError::UnsetPosition)?;
        }
        let any = builder.build_int_compare(
            IntPredicate::NE,
            ending.into_int_value(),
            word.const_zero(),
            "",
        )?;
        self.branch(any, block)?;
        self.poll_or_continue(block)
    }
}

fn instruction_of<'ctx>(call: CallSiteValue<'ctx>) -> Built<InstructionValue<'ctx>> {
    use inkwell::values::ValueKind;
    match call.try_as_basic_value() {
        ValueKind::Basic(value) => value.as_instruction_value().ok_or(BuilderError::UnsetPosition),
        ValueKind::Instruction(instruction) => Ok(instruction),
    }
}
