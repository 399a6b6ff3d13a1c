//! Users' functions: their modules, checked, linked into pieces of code, and compiled for columns.

mod bounds;

use std::sync::Arc;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{Linkage, Module};
use inkwell::targets::FileType;
use inkwell::types::AnyTypeEnum;
use inkwell::values::{FunctionValue, InstructionOpcode, InstructionValue};
use tessera_codegen::{Function, FunctionCode, Machine, RawInput};
use tessera_types::{Code, Error, Result};

use crate::ask::answered;
use crate::compiler::{Piece, emitted};
use crate::loaded::{Loaded, is_in_library};
use crate::lower::{FUNCTION, Provider, linked_name};
use crate::target::{Host, Processor};

type ColumnFunction =
    unsafe extern "C" fn(*const RawInput, *const u32, u64, *const u64, *mut u8, *mut u32) -> u64;

/// Code of a function over columns.
#[derive(Debug)]
struct Compiled {
    code: Loaded,
}

impl Function for Compiled {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        rows: usize,
        values: *mut u8,
        statuses: *mut u32,
    ) -> Result<()> {
        // SAFETY: the address is that of a function which `lower_function` made with these
        // parameters; it is there for as long as `self`.
        let function: ColumnFunction = unsafe { std::mem::transmute(self.code.address() as usize) };
        // SAFETY: the caller keeps the promises of `Function::run`; neither positions nor given
        // numbers are read.
        answered(|| unsafe {
            function(
                inputs.as_ptr(),
                std::ptr::null(),
                rows as u64,
                std::ptr::null(),
                values,
                statuses,
            );
        })
    }
}

/// As [`crate::function`].
pub(crate) fn compiled(mut code: FunctionCode) -> Result<(Arc<FunctionCode>, Arc<dyn Function>)> {
    let context = Context::create();
    let (module, function) = parsed(&context, &code)?;
    check(&code, function)?;
    code.is_whole = is_whole(&module).map_err(|error| error.context(in_function(&code)))?;
    let code = Arc::new(code);
    let host = Host::new(Processor::at_hand()?)?;
    let object = emitted(&host, &Piece::Function(code.clone()), FileType::Object)?;
    let compiled = Compiled { code: Loaded::new(&object, FUNCTION)? };
    Ok((code, Arc::new(compiled)))
}

fn in_function(code: &FunctionCode) -> String {
    format!("function {}", code.name)
}

/// The module of a function, and the function.
fn parsed<'ctx>(
    context: &'ctx Context,
    code: &FunctionCode,
) -> Result<(Module<'ctx>, FunctionValue<'ctx>)> {
    let wrong = |error: inkwell::support::LLVMString| {
        let message = format!(
            "{}: this is no LLVM IR of version 19: {}",
            in_function(code),
            error.to_string().trim()
        );
        Error::new(Code::Syntax, message)
    };
    // LLVM reads text up to a zero behind its end.
    let text = MemoryBuffer::create_from_memory_range_copy(code.ir.as_bytes(), &code.name);
    let module = context.create_module_from_ir(text).map_err(wrong)?;
    module.verify().map_err(wrong)?;
    let function =
        module.get_function(&code.name).filter(|function| function.count_basic_blocks() > 0);
    let function = function.ok_or_else(|| {
        Error::semantic(format!("function {0}: its module defines no function @{0}", code.name))
    })?;
    Ok((module, function))
}

/// Whether a function has the parameters of its declaration.
fn check(code: &FunctionCode, function: FunctionValue<'_>) -> Result<()> {
    let own = function.get_type();
    let given: Vec<String> =
        own.get_param_types().iter().map(|given| given.print_to_string().to_string()).collect();
    let is_of = |(machine, given): (&Machine, &String)| {
        *given == written(*machine) || *machine == Machine::Boolean && given == "i1"
    };
    let fits = given.first().is_some_and(|first| first == "ptr")
        && given.len() == code.args.len() + 1
        && code.args.iter().zip(&given[1..]).all(is_of)
        && own
            .get_return_type()
            .is_some_and(|status| status.print_to_string().to_string() == "i32")
        && !own.is_var_arg();
    if fits {
        return Ok(());
    }
    let args: String = code.args.iter().map(|machine| format!(", {}", written(*machine))).collect();
    let (name, result, own) = (&code.name, written(code.result), own.print_to_string().to_string());
    Err(Error::semantic(format!(
        "function {name}: define it as i32 @{name}(ptr{args}), which writes a value of {result} to the pointer and gives 0; it is {own}"
    )))
}

/// A type as LLVM writes it.
fn written(machine: Machine) -> String {
    match machine {
        Machine::Boolean => "i8".to_string(),
        Machine::Integer { bits, .. } => format!("i{bits}"),
        Machine::Float32 => "float".to_string(),
        Machine::Float64 => "double".to_string(),
    }
}

/// Whether a module is made of what every processor has; an error where it needs what there is not.
fn is_whole(module: &Module<'_>) -> Result<bool> {
    use InstructionOpcode::{CallBr, Invoke};
    if let Some(global) = module.get_globals().find(|global| global.get_initializer().is_none()) {
        let name = global.get_name().to_string_lossy();
        return Err(Error::semantic(format!("its module reads {name}, which it does not define")));
    }
    let mut whole = true;
    for function in module.get_functions() {
        let name = function.get_name().to_string_lossy();
        if function.count_basic_blocks() > 0 {
            for instruction in
                function.get_basic_block_iter().flat_map(|block| block.get_instructions())
            {
                if matches!(instruction.get_opcode(), Invoke | CallBr) {
                    return Err(Error::semantic(format!(
                        "its function {name} has an invoke or a callbr, which functions cannot have"
                    )));
                }
                whole &= has_instruction(instruction);
            }
        } else if name.starts_with("llvm.") {
            whole &= INTRINSICS.iter().any(|known| name.starts_with(known));
        } else if is_in_library(&name) {
            whole = false;
        } else {
            return Err(Error::semantic(format!(
                "its module calls {name}, which it does not define; there are C's functions on floats (exp, log, pow, sin, …)"
            )));
        }
    }
    Ok(whole)
}

/// Beginnings of the names of intrinsics that are instructions everywhere.
const INTRINSICS: [&str; 26] = [
    "llvm.abs.",
    "llvm.assume",
    "llvm.bswap.",
    "llvm.ceil.",
    "llvm.copysign.",
    "llvm.ctlz.",
    "llvm.ctpop.",
    "llvm.cttz.",
    "llvm.dbg.",
    "llvm.fabs.",
    "llvm.floor.",
    "llvm.fma.",
    "llvm.fmuladd.",
    "llvm.fsh",
    "llvm.lifetime.",
    "llvm.rint.",
    "llvm.sadd.",
    "llvm.smax.",
    "llvm.smin.",
    "llvm.sqrt.",
    "llvm.ssub.",
    "llvm.trunc.",
    "llvm.uadd.",
    "llvm.umax.",
    "llvm.umin.",
    "llvm.usub.",
];

/// Whether an instruction is one everywhere: remainders of floats and divisions of 128 bits are
/// functions of a library.
fn has_instruction(instruction: InstructionValue<'_>) -> bool {
    use InstructionOpcode::{FRem, Mul, SDiv, SRem, UDiv, URem};
    let is_long = || match instruction.get_type() {
        AnyTypeEnum::IntType(of) => of.get_bit_width() > 64,
        _ => false,
    };
    match instruction.get_opcode() {
        FRem => false,
        SDiv | SRem | UDiv | URem | Mul => !is_long(),
        _ => true,
    }
}

/// Adds a user's function to the module of a piece that calls it, to be inlined. On a processor it
/// asks whether to go on.
pub(crate) fn link<'ctx>(
    (context, module): (&'ctx Context, &Module<'ctx>),
    provider: Provider,
    code: &FunctionCode,
) -> Result<()> {
    let (own, function) = parsed(context, code)?;
    own.strip_debug_info();
    if provider.is_alone() {
        let failed =
            |error| Error::internal(format!("{} cannot be bounded: {error}", in_function(code)));
        bounds::bound((context, &own), function).map_err(failed)?;
    }
    own.set_triple(&module.get_triple());
    own.set_data_layout(&module.get_data_layout());
    for other in own.get_functions().filter(|function| function.count_basic_blocks() > 0) {
        other.set_linkage(Linkage::Internal);
        // So that none has the name of one of the piece's own.
        let name = other.get_name().to_string_lossy().into_owned();
        other.as_global_value().set_name(&format!("{}.{name}", linked_name(code)));
        for name in ["noinline", "optnone"] {
            other.remove_enum_attribute(
                AttributeLoc::Function,
                Attribute::get_named_enum_kind_id(name),
            );
        }
    }
    for global in own.get_globals().filter(|global| global.get_initializer().is_some()) {
        let name = global.get_name().to_string_lossy().into_owned();
        if !name.starts_with("llvm.") {
            global.set_linkage(Linkage::Internal);
            global.set_name(&format!("data.{}.{name}", code.name));
        }
    }
    let inlined =
        context.create_enum_attribute(Attribute::get_named_enum_kind_id("alwaysinline"), 0);
    function.add_attribute(AttributeLoc::Function, inlined);
    // Only what is seen from outside can be found once it is linked.
    let name = linked_name(code);
    function.set_linkage(Linkage::External);
    function.as_global_value().set_name(&name);
    let failed =
        |error: &str| Error::internal(format!("{} cannot be linked: {error}", in_function(code)));
    module.link_in_module(own).map_err(|error| failed(&error.to_string()))?;
    let linked = module.get_function(&name).ok_or_else(|| failed("it is gone"))?;
    linked.set_linkage(Linkage::Internal);
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
