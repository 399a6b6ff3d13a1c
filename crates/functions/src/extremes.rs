//! `greatest` and `least` of lists, structs, maps and enums, in comparison order; NULLs are
//! ignored.

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::compute::kernels::zip::zip;

use tessera_codegen::Comparison;
use tessera_types::{Atom, Result};

use super::compare::Compare;
use tessera_values::kernel::{Argument, Kernel, as_boolean};
use tessera_values::types::{Arg, ResolvedCall, common_type, wrong_arguments};

/// Resolves a call; all arguments are cast to their common type.
///
/// # Errors
/// The arguments have no common type.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let common = args.iter().try_fold(Atom::Null, |common, arg| common_type(&common, arg.atom));
    let atom = common.ok_or_else(|| wrong_arguments(name, args, "give all of them one type"))?;
    let comparison = if name == "greatest" { Comparison::Gt } else { Comparison::Lt };
    let casts = vec![atom.clone(); args.len()];
    let kernel = Extreme(Compare { comparison, atom: atom.clone() });
    let mut resolved = ResolvedCall::strict(atom, args, casts, kernel).costing(20);
    resolved.nullable = args.iter().all(|arg| arg.nullable);
    Ok(resolved)
}

#[derive(Debug)]
struct Extreme(Compare);

impl Kernel for Extreme {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let mut best: Option<ArrayRef> = None;
        for argument in args {
            let next = argument.full(rows)?;
            best = Some(match best {
                None => next,
                Some(best) => self.better(&best, next, rows)?,
            });
        }
        Ok(best.unwrap_or_else(|| tessera_values::kernel::nulls(&self.0.atom, rows)))
    }
}

impl Extreme {
    fn better(&self, best: &ArrayRef, next: ArrayRef, rows: usize) -> Result<ArrayRef> {
        let sides = [&next, best].map(|array| Argument { array: array.clone(), constant: false });
        let compared = self.0.call(&sides, rows)?;
        let is_better = as_boolean(&compared)?;
        let mask: BooleanArray = (0..rows)
            .map(|row| Some(next.is_valid(row) && (best.is_null(row) || is_better.value(row))))
            .collect();
        Ok(zip(&mask, &next, best)?)
    }
}
