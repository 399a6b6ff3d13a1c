//! User-defined functions in LLVM IR: checks their modules, links them into pieces of code, and
//! compiles them for columns.

mod bounds;

use std::sync::Arc;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{Linkage, Module};
use inkwell::targets::FileType;
use inkwell::types::AnyTypeEnum;
use inkwell::values::{FunctionValue, InstructionOpcode, InstructionValue};
use tessera_codegen::{Function, FunctionCode, MachineType, RawInput};
use tessera_types::{Code, Error, Result};

use crate::compiler::{Piece, emit_piece};
use crate::linker::{LoadedCode, is_in_library};
use crate::lower::{FUNCTION, Provider, linked_name};
use crate::stop::run_stoppable;
use crate::target::{Host, Processor};

type ColumnFunction =
    unsafe extern "C" fn(*const RawInput, *const u32, u64, *const u64, *mut u8, *mut u32) -> u64;

/// The compiled loop of a function over columns.
#[derive(Debug)]
struct CompiledFunction {
    code: LoadedCode,
}

impl Function for CompiledFunction {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        rows: usize,
        values: *mut u8,
        statuses: *mut u32,
    ) -> Result<()> {
        // SAFETY: `lower_function` made the function at this address with these parameters; it
        // stays loaded as long as `self` lives.
        let function: ColumnFunction = unsafe { std::mem::transmute(self.code.address() as usize) };
        // SAFETY: the caller keeps the contract of `Function::run`; the code reads neither
        // positions nor runtime constants.
        run_stoppable(|| unsafe {
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

/// See [`crate::function`].
pub(crate) fn compile(mut code: FunctionCode) -> Result<(Arc<FunctionCode>, Arc<dyn Function>)> {
    let context = Context::create();
    let (module, function) = parse(&context, &code)?;
    check(&code, function)?;
    code.is_self_contained =
        is_self_contained(&module).map_err(|error| error.context(in_function(&code)))?;
    let code = Arc::new(code);
    let host = Host::new(Processor::at_hand()?)?;
    let object = emit_piece(&host, &Piece::Function(code.clone()), FileType::Object)?;
    let compiled = CompiledFunction { code: LoadedCode::new(&object, FUNCTION)? };
    Ok((code, Arc::new(compiled)))
}

fn in_function(code: &FunctionCode) -> String {
    format!("function {}", code.name)
}

/// Parses the module of a function; returns it and the function.
fn parse<'ctx>(
    context: &'ctx Context,
    code: &FunctionCode,
) -> Result<(Module<'ctx>, FunctionValue<'ctx>)> {
    let wrong = |error: inkwell::support::LLVMString| {
        let message = format!(
            "{}: invalid LLVM IR (version 19): {}",
            in_function(code),
            error.to_string().trim()
        );
        Error::new(Code::Syntax, message)
    };
    // LLVM's parser reads up to the zero byte after the text.
    let text = MemoryBuffer::create_from_memory_range_copy(code.ir.as_bytes(), &code.name);
    let module = context.create_module_from_ir(text).map_err(wrong)?;
    module.verify().map_err(wrong)?;
    let function =
        module.get_function(&code.name).filter(|function| function.count_basic_blocks() > 0);
    let function = function.ok_or_else(|| {
        Error::semantic(format!(
            "function {0}: missing function @{0} in its module; define it there",
            code.name
        ))
    })?;
    Ok((module, function))
}

/// Checks that the function has the declared parameters.
fn check(code: &FunctionCode, function: FunctionValue<'_>) -> Result<()> {
    let own = function.get_type();
    let actual: Vec<String> =
        own.get_param_types().iter().map(|actual| actual.print_to_string().to_string()).collect();
    let is_of = |(machine, actual): (&MachineType, &String)| {
        *actual == llvm_type(*machine) || *machine == MachineType::Boolean && actual == "i1"
    };
    let fits = actual.first().is_some_and(|first| first == "ptr")
        && actual.len() == code.args.len() + 1
        && code.args.iter().zip(&actual[1..]).all(is_of)
        && own
            .get_return_type()
            .is_some_and(|status| status.print_to_string().to_string() == "i32")
        && !own.is_var_arg();
    if fits {
        return Ok(());
    }
    let args: String =
        code.args.iter().map(|machine| format!(", {}", llvm_type(*machine))).collect();
    let (name, result, own) =
        (&code.name, llvm_type(code.result), own.print_to_string().to_string());
    Err(Error::semantic(format!(
        "function {name}: define it as i32 @{name}(ptr{args}), which writes a value of {result} to the pointer and returns 0; found {own}"
    )))
}

/// Returns LLVM's name of a type.
fn llvm_type(machine: MachineType) -> String {
    match machine {
        MachineType::Boolean => "i8".to_string(),
        MachineType::Integer { bits, .. } => format!("i{bits}"),
        MachineType::Float32 => "float".to_string(),
        MachineType::Float64 => "double".to_string(),
    }
}

/// Returns whether a module uses only operations that every processor has. Unresolved symbols are
/// errors.
fn is_self_contained(module: &Module<'_>) -> Result<bool> {
    use InstructionOpcode::{CallBr, Invoke};
    if let Some(global) = module.get_globals().find(|global| global.get_initializer().is_none()) {
        let name = global.get_name().to_string_lossy();
        return Err(Error::semantic(format!(
            "undefined global {name} in its module; define it there"
        )));
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
                        "unsupported instruction invoke or callbr in its function {name}; use call"
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
                "undefined function {name} in its module; define it there or call C's functions on floats (exp, log, pow, sin, …)"
            )));
        }
    }
    Ok(whole)
}

/// Prefixes of the intrinsics that every target compiles to instructions.
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

/// Returns whether every target compiles an operation to instructions. Float remainders and 128-bit
/// divisions call a library.
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

/// Links a user-defined function into the module of a piece, to be inlined. On a CPU it also gets
/// stop checks.
pub(crate) fn link<'ctx>(
    (context, module): (&'ctx Context, &Module<'ctx>),
    provider: Provider,
    code: &FunctionCode,
) -> Result<()> {
    let (own, function) = parse(context, code)?;
    own.strip_debug_info();
    if provider.is_single_threaded() {
        let failed = |error| {
            Error::internal(format!("{} could not get stop checks: {error}", in_function(code)))
        };
        bounds::bound((context, &own), function).map_err(failed)?;
    }
    own.set_triple(&module.get_triple());
    own.set_data_layout(&module.get_data_layout());
    for other in own.get_functions().filter(|function| function.count_basic_blocks() > 0) {
        other.set_linkage(Linkage::Internal);
        // Avoids collisions with the names of the piece.
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
    // The linker finds only external symbols.
    let name = linked_name(code);
    function.set_linkage(Linkage::External);
    function.as_global_value().set_name(&name);
    let failed = |error: &str| {
        Error::internal(format!("{} could not be linked: {error}", in_function(code)))
    };
    module.link_in_module(own).map_err(|error| failed(&error.to_string()))?;
    let linked =
        module.get_function(&name).ok_or_else(|| failed("the linked function is missing"))?;
    linked.set_linkage(Linkage::Internal);
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
