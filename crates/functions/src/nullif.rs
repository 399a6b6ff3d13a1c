//! `nullif`: the first argument, or NULL if it equals the second.

use arrow::array::ArrayRef;
use arrow::compute;

use tessera_codegen::Comparison;
use tessera_types::{Atom, Result};

use super::compare::{Compare, CompareTimestamps};
use tessera_values::cast::{cast, cast_raises};
use tessera_values::kernel::{Argument, Kernel, argument, as_boolean};
use tessera_values::types::{Arg, ResolvedCall, common_type, expect_arguments, wrong_arguments};

/// Resolves `nullif`: both arguments are compared in their common type; the result has the type of
/// the first.
pub(crate) fn resolve(args: &[Arg<'_>]) -> Result<ResolvedCall> {
    expect_arguments("nullif", args, 2)?;
    let (first, second) = (args[0].atom, args[1].atom);
    let common = common_type(first, second)
        .ok_or_else(|| wrong_arguments("nullif", args, "cast one to the type of the other"))?;
    let atom = if *first == Atom::Null { second.clone() } else { first.clone() };
    let moments = CompareTimestamps::of_units(Comparison::Eq, [&atom, second]);
    let raises = moments.is_none()
        && [&atom, second].iter().any(|from| **from != common && cast_raises(from, &common));
    let casts = vec![atom.clone(), second.clone()];
    let kernel = NullIf { first: atom.clone(), second: second.clone(), common, moments };
    let mut resolved = ResolvedCall::strict(atom, args, casts, kernel).raising(raises).costing(4);
    resolved.nullable = true;
    Ok(resolved)
}

#[derive(Debug)]
struct NullIf {
    first: Atom,
    second: Atom,
    common: Atom,
    /// Compares timestamps of two units without conversion.
    moments: Option<CompareTimestamps>,
}

impl NullIf {
    fn in_common(&self, argument: &Argument, from: &Atom) -> Result<Argument> {
        let array = match *from == self.common {
            true => argument.array.clone(),
            false => cast(&argument.array, from, &self.common, false)?,
        };
        Ok(Argument { array, constant: argument.constant })
    }
}

impl Kernel for NullIf {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let (first, second) = (argument(args, 0)?, argument(args, 1)?);
        if let Some(moments) = &self.moments {
            let equal = moments.call(args, rows)?;
            return Ok(compute::nullif(&first.full(rows)?, as_boolean(&equal)?)?);
        }
        let sides = [self.in_common(first, &self.first)?, self.in_common(second, &self.second)?];
        let compare = Compare { comparison: Comparison::Eq, atom: self.common.clone() };
        let equal = compare.call(&sides, rows)?;
        Ok(compute::nullif(&first.full(rows)?, as_boolean(&equal)?)?)
    }
}
