//! Checks in users' functions: whatever their loops and calls do, they [ask](crate::ask) within a
//! millisecond or so whether to go on, and return early if not.
//!
//! The head of a loop counts iterations, and asks after many. A function that has loops, may call
//! itself or is long asks as it begins. A call of a function that may return early is followed by a
//! load of a word that says whether any thread is being ended; only then does the code ask. Other
//! functions stay as they are, so that loops that call them are vectorized.

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

use crate::ask::{ASK, ENDING_NAME};
use crate::lower::{Built, ask_function};

/// About how many instructions run between two questions.
const SPAN: u64 = 1 << 18;
/// The most iterations between them.
const ITERATIONS_MAX: u64 = 1 << 14;
/// A function with more instructions, those of its callees included, asks as it begins.
const LONG: u64 = 1 << 10;

/// What a call is to the function that makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Callee {
    /// A function of the module, by its number.
    Own(usize),
    /// Nobody knows which.
    Unknown,
}

/// A function of the module.
#[derive(Debug)]
struct Own<'ctx> {
    function: FunctionValue<'ctx>,
    /// The heads of its loops.
    loops: Vec<BasicBlock<'ctx>>,
    calls: Vec<(CallSiteValue<'ctx>, Callee)>,
    instructions: u64,
}

/// What is known of a function.
#[derive(Debug, Clone, Copy, Default)]
struct Bounds {
    /// Instructions that a call runs before it asks or returns, each loop's body once.
    cost: u64,
    /// Whether it asks as it begins.
    asks: bool,
    /// Whether it, or what it calls, may return early.
    may_end: bool,
}

/// Adds checks to the functions of a user's module; `main` is the one that queries call.
pub(super) fn bound<'ctx>(
    (context, module): (&'ctx Context, &Module<'ctx>),
    main: FunctionValue<'ctx>,
) -> Built<()> {
    let defined: Vec<FunctionValue<'ctx>> =
        module.get_functions().filter(|function| function.count_basic_blocks() > 0).collect();
    let numbers: HashMap<FunctionValue<'ctx>, usize> =
        defined.iter().enumerate().map(|(number, function)| (*function, number)).collect();
    let own: Vec<Own<'ctx>> =
        defined.iter().map(|function| Own::new(*function, &numbers)).collect();
    let bounds = bounds(&own);
    // The names are ours.
    for name in [ASK, ENDING_NAME] {
        if let Some(function) = module.get_function(name) {
            function.as_global_value().set_name("user's");
        }
        if let Some(global) = module.get_global(name) {
            global.set_name("user's");
        }
    }
    for (function, own_bounds) in own.iter().zip(&bounds) {
        if own_bounds.may_end {
            let ends = |callee: &Callee| match callee {
                Callee::Own(number) => bounds[*number].may_end,
                Callee::Unknown => true,
            };
            Checks::new((context, module), function, function.function == main)?
                .add(own_bounds, ends)?;
        }
    }
    Ok(())
}

/// Of each function, what is known.
fn bounds(own: &[Own<'_>]) -> Vec<Bounds> {
    let knows_callees =
        own.iter().all(|one| one.calls.iter().all(|(_, callee)| *callee != Callee::Unknown));
    let callees = |number: usize| {
        own[number].calls.iter().filter_map(|(_, callee)| match callee {
            Callee::Own(callee) => Some(*callee),
            Callee::Unknown => None,
        })
    };
    let graph: Vec<Vec<usize>> = (0..own.len()).map(|number| callees(number).collect()).collect();
    let (heads, order) = heads(&graph, 0..own.len());
    let mut bounds: Vec<Bounds> = vec![Bounds::default(); own.len()];
    // Who may be called from anywhere may be called by itself.
    for (number, one) in own.iter().enumerate() {
        bounds[number].asks = heads[number] || !one.loops.is_empty() || !knows_callees;
    }
    // Callees before callers, but for those that ask.
    for number in order {
        let cost = |callee: &usize| match bounds[*callee] {
            Bounds { asks: true, .. } => 1,
            Bounds { cost, .. } => cost,
        };
        let below = graph[number].iter().map(cost).fold(0, u64::saturating_add);
        let cost = own[number].instructions.saturating_add(below);
        let asks = bounds[number].asks || cost > LONG;
        let may_end = |callee: &usize| bounds[*callee].asks || bounds[*callee].may_end;
        let may_end = asks || graph[number].iter().any(may_end);
        bounds[number] = Bounds { cost, asks, may_end };
    }
    bounds
}

/// The nodes of a graph that a depth-first search comes back to (each cycle has one), and all nodes
/// in post-order.
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

impl<'ctx> Own<'ctx> {
    fn new(
        function: FunctionValue<'ctx>,
        numbers: &HashMap<FunctionValue<'ctx>, usize>,
    ) -> Own<'ctx> {
        let blocks = function.get_basic_blocks();
        let block_numbers: HashMap<BasicBlock<'ctx>, usize> =
            blocks.iter().enumerate().map(|(number, block)| (*block, number)).collect();
        let next = |block: &BasicBlock<'ctx>| -> Vec<usize> {
            let to = successors(*block);
            to.iter().filter_map(|block| block_numbers.get(block).copied()).collect()
        };
        let graph: Vec<Vec<usize>> = blocks.iter().map(next).collect();
        // The first block is where it begins; what cannot be reached does not loop.
        let (heads, _) = heads(&graph, 0..blocks.len().min(1));
        let loops =
            blocks.iter().zip(heads).filter_map(|(block, is_head)| is_head.then_some(*block));
        let (mut calls, mut instructions) = (Vec::new(), 0);
        for instruction in blocks.iter().flat_map(|block| block.get_instructions()) {
            instructions += 1;
            let Ok(call) = CallSiteValue::try_from(instruction) else { continue };
            match call.get_called_fn_value() {
                Some(callee) => {
                    calls.extend(numbers.get(&callee).map(|number| (call, Callee::Own(*number))));
                }
                None => calls.push((call, Callee::Unknown)),
            }
        }
        Own { function, loops: loops.collect(), calls, instructions }
    }
}

/// The blocks that a block leads to.
fn successors(block: BasicBlock<'_>) -> Vec<BasicBlock<'_>> {
    use InstructionOpcode::{Br, IndirectBr, Switch};
    match block.get_terminator() {
        Some(last) if matches!(last.get_opcode(), Br | Switch | IndirectBr) => {
            last.get_operands().flatten().filter_map(Operand::block).collect()
        }
        _ => Vec::new(),
    }
}

/// Adds checks to a function.
struct Checks<'a, 'ctx> {
    own: &'a Own<'ctx>,
    context: &'ctx Context,
    builder: Builder<'ctx>,
    ask: FunctionValue<'ctx>,
    ending: PointerValue<'ctx>,
    /// Where it returns early.
    exit: BasicBlock<'ctx>,
}

impl<'a, 'ctx> Checks<'a, 'ctx> {
    fn new(
        (context, module): (&'ctx Context, &Module<'ctx>),
        own: &'a Own<'ctx>,
        is_main: bool,
    ) -> Built<Checks<'a, 'ctx>> {
        let (builder, word) = (context.create_builder(), context.i32_type());
        let ask = ask_function(context, module);
        let ending = module
            .get_global(ENDING_NAME)
            .unwrap_or_else(|| module.add_global(word, None, ENDING_NAME));
        let exit = context.append_basic_block(own.function, "ended");
        builder.position_at_end(exit);
        // A loop over tuples goes no further.
        let wrong = word.const_int(Status::Wrong as u64, false);
        let zero = own.function.get_type().get_return_type().map(|of| of.const_zero());
        let value = if is_main { Some(wrong.into()) } else { zero };
        builder.build_return(value.as_ref().map(|value| value as &dyn BasicValue<'ctx>))?;
        Ok(Checks { own, context, builder, ask, ending: ending.as_pointer_value(), exit })
    }

    fn add(&self, bounds: &Bounds, ends: impl Fn(&Callee) -> bool) -> Built<()> {
        self.remove_promises(
            self.own.calls.iter().filter(|(_, callee)| ends(callee)).map(|(call, _)| *call),
        );
        let Some(first) = self.own.function.get_first_basic_block() else { return Ok(()) };
        // In this order: what a block begins with is looked for before calls cut it into pieces.
        if bounds.asks {
            let begin = self.cut(first, Self::allocates_always)?;
            if !self.own.loops.is_empty() {
                self.count_iterations(begin, (SPAN / bounds.cost.max(1)).clamp(1, ITERATIONS_MAX))?;
            }
            self.builder.position_at_end(begin);
            self.ask_or_go_on(first)?;
        }
        for (call, _) in self.own.calls.iter().filter(|(_, callee)| ends(callee)) {
            self.check_behind(*call)?;
        }
        Ok(())
    }

    /// What is said of a function that never returns early, and of its value, no longer holds.
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
        let function = self.own.function;
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

    /// Moves the beginning of a block to a new block, which takes over its predecessors; returns
    /// that block, without a terminator. The successors keep the old block, so that no phi changes.
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
        // Without its terminator, or LLVM would change the phis of the successors, too.
        let end = block.get_terminator().ok_or(BuilderError::UnsetPosition)?;
        end.remove_from_basic_block();
        block.replace_all_uses_with(&before);
        self.builder.position_at_end(block);
        self.builder.insert_instruction(&end, None);
        Ok(before)
    }

    /// Whether an instruction allocates memory of a known size, which stays in the first block.
    fn allocates_always(instruction: &InstructionValue<'ctx>) -> bool {
        let size = || instruction.get_operand(0).and_then(Operand::value);
        instruction.get_opcode() == InstructionOpcode::Alloca
            && size()
                .is_some_and(|size| size.is_int_value() && size.into_int_value().is_constant_int())
    }

    /// Ends the current block: returns early if told to, else goes on.
    fn ask_or_go_on(&self, next: BasicBlock<'ctx>) -> Built<()> {
        let byte = self.context.i8_type();
        let answer = self.builder.build_call(self.ask, &[], "")?.try_as_basic_value().basic();
        let answer = answer.ok_or(BuilderError::UnsetPosition)?.into_int_value();
        let goes_on =
            self.builder.build_int_compare(IntPredicate::EQ, answer, byte.const_zero(), "")?;
        self.builder.build_conditional_branch(goes_on, next, self.exit)?;
        Ok(())
    }

    /// Branches to a new block, which is then the current one, if a condition holds.
    fn branch(&self, condition: IntValue<'ctx>, next: BasicBlock<'ctx>) -> Built<()> {
        let asking = self.context.prepend_basic_block(self.exit, "ask");
        self.builder.build_conditional_branch(condition, asking, next)?;
        self.builder.position_at_end(asking);
        Ok(())
    }

    /// Each loop asks when so many iterations, all loops' together, have passed.
    fn count_iterations(&self, begin: BasicBlock<'ctx>, iterations: u64) -> Built<()> {
        let (builder, of) = (&self.builder, self.context.i32_type());
        builder.position_at_end(begin);
        let left = builder.build_alloca(of, "left")?;
        let all = of.const_int(iterations, false);
        builder.build_store(left, all)?;
        for block in &self.own.loops {
            let head =
                self.cut(*block, |instruction| instruction.get_opcode() == InstructionOpcode::Phi)?;
            builder.position_at_end(head);
            let before = builder.build_load(of, left, "")?.into_int_value();
            let after = builder.build_int_sub(before, of.const_int(1, false), "")?;
            builder.build_store(left, after)?;
            let none = builder.build_int_compare(IntPredicate::EQ, after, of.const_zero(), "")?;
            self.branch(none, *block)?;
            builder.build_store(left, all)?;
            self.ask_or_go_on(*block)?;
        }
        Ok(())
    }

    /// Where any thread is being ended, the value of a call may be worthless.
    fn check_behind(&self, call: CallSiteValue<'ctx>) -> Built<()> {
        // Whoever called this function checks what such a call gives.
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
        self.ask_or_go_on(block)
    }
}

fn instruction_of<'ctx>(call: CallSiteValue<'ctx>) -> Built<InstructionValue<'ctx>> {
    use inkwell::values::ValueKind;
    match call.try_as_basic_value() {
        ValueKind::Basic(value) => value.as_instruction_value().ok_or(BuilderError::UnsetPosition),
        ValueKind::Instruction(instruction) => Ok(instruction),
    }
}
