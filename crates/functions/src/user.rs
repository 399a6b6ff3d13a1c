//! User-defined functions in LLVM IR. Compiled code inlines them; the vectorized tier calls them
//! here, column by column.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, BooleanArray, make_array};
use arrow::buffer::{Buffer, MutableBuffer, NullBuffer};
use arrow::compute::concat;
use arrow::util::display::array_value_to_string;
use tessera_codegen::{Function, FunctionCode, MachineType, Op, RawInput, Status, ValueCode};
use tessera_context::interrupt::check_here;
use tessera_types::{Atom, Code, Error, Result};
use tessera_vector::CHUNK_ROWS;

use super::compiled::raw;
use tessera_values::kernel::{Argument, Kernel};
use tessera_values::types::{Arg, ResolvedCall, common_type, decimal_of, expect_arguments};

/// The assumed cost of a call, which is mostly inlined.
const COST: u32 = 10;

/// A user-defined function.
#[derive(Debug)]
pub struct UserFunction {
    args: Vec<Atom>,
    result: Atom,
    volatile: bool,
    code: Arc<FunctionCode>,
    compiled: Arc<dyn Function>,
}

impl UserFunction {
    /// Returns the compiler's description of a function with these types.
    ///
    /// # Errors
    /// A type has no fixed width, or results cannot be checked against its range.
    pub fn code(name: &str, ir: &str, args: &[Atom], result: &Atom) -> Result<FunctionCode> {
        let machine = |atom: &Atom| match atom {
            Atom::Time(_) | Atom::Duration(_) => Err(refused(atom)),
            atom => MachineType::from_atom(atom).ok_or_else(|| refused(atom)),
        };
        let limit = match result {
            Atom::Decimal(precision, _) => 10i128.checked_pow((*precision).into()),
            _ => None,
        };
        let (args, result) = (args.iter().map(machine).collect::<Result<_>>()?, machine(result)?);
        Ok(FunctionCode {
            name: name.into(),
            ir: ir.into(),
            args,
            result,
            limit,
            is_self_contained: false,
        })
    }

    /// Creates a function from its types, its code, and the compiled code.
    pub fn new(
        (args, result): (Vec<Atom>, Atom),
        volatile: bool,
        (code, compiled): (Arc<FunctionCode>, Arc<dyn Function>),
    ) -> UserFunction {
        UserFunction { args, result, volatile, code, compiled }
    }

    /// The name.
    pub fn name(&self) -> &Arc<str> {
        &self.code.name
    }

    /// The types of the arguments and of the result.
    pub fn types(&self) -> (&[Atom], &Atom) {
        (&self.args, &self.result)
    }

    /// Whether two calls with the same arguments may return different values.
    pub fn is_volatile(&self) -> bool {
        self.volatile
    }

    /// Checks that arguments of these types can be cast to the declared types.
    ///
    /// # Errors
    /// The number or the types of the arguments do not match.
    pub fn check(&self, given: &[Atom]) -> Result<()> {
        let mut pairs = given.iter().zip(&self.args);
        if given.len() == self.args.len() && pairs.all(|(given, own)| takes(given, own)) {
            return Ok(());
        }
        let list =
            |atoms: &[Atom]| atoms.iter().map(Atom::to_string).collect::<Vec<_>>().join(", ");
        let (name, own, given) = (self.name(), list(&self.args), list(given));
        Err(Error::semantic(format!(
            "function {name} takes ({own}), not ({given}); cast the arguments"
        )))
    }

    /// Resolves a call.
    pub fn resolve(self: Arc<Self>, args: &[Arg<'_>]) -> Result<ResolvedCall> {
        expect_arguments(self.name(), args, self.args.len())?;
        self.check(&args.iter().map(|arg| arg.atom.clone()).collect::<Vec<_>>())?;
        let (volatile, result, casts) = (self.volatile, self.result.clone(), self.args.clone());
        let resolved = ResolvedCall::strict(result, args, casts, Call { function: self });
        Ok(ResolvedCall { nullable: true, volatile, ..resolved.raising(true).costing(COST) })
    }
}

fn refused(atom: &Atom) -> Error {
    Error::unsupported(format!(
        "functions in LLVM IR do not support type {atom}; expected a boolean, integer, float, decimal, date or timestamp"
    ))
}

/// Whether a value of type `given` can be passed for a declared type `own`: without loss, or as an
/// integer that is checked for range.
fn takes(given: &Atom, own: &Atom) -> bool {
    match (given, own) {
        (given, own) if given.is_integer() && own.is_integer() => true,
        (Atom::Null, _) => true,
        (given, Atom::Decimal(_, scale)) => {
            decimal_of(given).is_some_and(|(_, given)| given <= *scale)
        }
        (given, Atom::Float32) => given.is_numeric(),
        (given, own) => common_type(given, own).as_ref() == Some(own),
    }
}

#[derive(Debug)]
struct Call {
    function: Arc<UserFunction>,
}

impl Kernel for Call {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let args = args.iter().map(|arg| arg.full(rows)).collect::<Result<Vec<_>>>()?;
        let starts = (0..rows.max(1)).step_by(CHUNK_ROWS);
        let parts = starts.map(|start| self.of_rows(&args, start..rows.min(start + CHUNK_ROWS)));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        match &parts[..] {
            [part] => Ok(part.clone()),
            parts => Ok(concat(&parts.iter().map(|part| &**part).collect::<Vec<_>>())?),
        }
    }

    fn code(&self, args: Vec<ValueCode>, _: &Atom) -> Option<Op> {
        Some(Op::Function(self.function.code.clone(), args))
    }
}

impl Call {
    fn of_rows(&self, args: &[ArrayRef], range: Range<usize>) -> Result<ArrayRef> {
        check_here()?;
        let args: Vec<ArrayRef> =
            args.iter().map(|arg| arg.slice(range.start, range.len())).collect();
        let (rows, inputs) = (range.len(), args.iter().map(raw).collect::<Vec<RawInput>>());
        let mut values = MutableBuffer::from_len_zeroed(rows * self.function.code.result.bytes());
        let mut statuses = vec![Status::Null as u32; rows];
        // SAFETY: the binder cast the arrays to the function's types, and each has `rows` values;
        // `raw` provides a validity bit for each, because `rows` is at most the size of a chunk.
        // `values` and `statuses` have `rows` slots; Arrow's buffers are aligned to 64 bytes.
        unsafe {
            self.function.compiled.run(
                &inputs,
                rows,
                values.as_mut_ptr(),
                statuses.as_mut_ptr(),
            )?;
        }
        let wrong = statuses.iter().position(|status| *status > Status::Null as u32);
        if let Some(row) = wrong {
            return Err(self.error(&args, row, statuses[row]));
        }
        let valid: NullBuffer =
            statuses.iter().map(|status| *status == Status::Value as u32).collect();
        self.array(values.into(), rows, valid)
    }

    fn array(&self, values: Buffer, rows: usize, valid: NullBuffer) -> Result<ArrayRef> {
        if self.function.result == Atom::Boolean {
            let values = values.as_slice().iter().map(|byte| *byte & 1 == 1).collect();
            return Ok(Arc::new(BooleanArray::new(values, Some(valid))));
        }
        let data = ArrayData::builder(self.function.result.arrow()).len(rows).add_buffer(values);
        Ok(make_array(data.nulls(Some(valid)).build()?))
    }

    /// The error of a failed call, with its arguments.
    fn error(&self, args: &[ArrayRef], row: usize, status: u32) -> Error {
        let shown = |arg: &ArrayRef| array_value_to_string(arg, row).unwrap_or_default();
        let call = format!(
            "{}({})",
            self.function.name(),
            args.iter().map(shown).collect::<Vec<_>>().join(", ")
        );
        const OVERFLOW: u32 = Status::Overflow as u32;
        const DIVISION_BY_ZERO: u32 = Status::DivisionByZero as u32;
        match status {
            OVERFLOW => {
                let result = &self.function.result;
                Error::new(Code::Overflow, format!("{call} is out of range for type {result}"))
            }
            DIVISION_BY_ZERO => Error::new(Code::DivisionByZero, format!("{call} divides by zero")),
            status => Error::data(format!("{call} failed with status {status}")),
        }
    }
}
