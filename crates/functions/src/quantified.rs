//! Quantified comparisons such as `value = ANY (list)`: a value is compared with each item of a
//! list, and the results are combined with OR (`any_eq`) or AND (`all_eq`).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanBuilder, UInt32Array};
use arrow::compute::take;

use tessera_codegen::Comparison;
use tessera_types::{Atom, Result, Slot};

use super::compare::Compare;
use super::in_set::{InSet, in_items};
use tessera_values::kernel::{Argument, Kernel, argument, as_boolean, unexpected};
use tessera_values::types::{Arg, ResolvedCall, common_type, expect_arguments, wrong_arguments};

/// The names of the functions.
pub(crate) const NAMES: [&str; 12] = [
    "any_eq",
    "any_not_eq",
    "any_lt",
    "any_lt_eq",
    "any_gt",
    "any_gt_eq",
    "all_eq",
    "all_not_eq",
    "all_lt",
    "all_lt_eq",
    "all_gt",
    "all_gt_eq",
];

/// Resolves a call; `None` for other names.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<ResolvedCall>> {
    let (comparison, all) = match (name.strip_prefix("any_"), name.strip_prefix("all_")) {
        (Some(comparison), _) => (comparison, false),
        (_, Some(comparison)) => (comparison, true),
        _ => return None,
    };
    let comparison =
        Comparison::from_name(comparison).filter(|comparison| !comparison.is_total())?;
    Some(typed(name, comparison, all, args))
}

fn typed(name: &str, comparison: Comparison, all: bool, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    expect_arguments(name, args, 2)?;
    let wrong = || wrong_arguments(name, args, "it compares a value with the items of a list");
    let value = args[0].atom;
    let atom = match args[1].atom {
        Atom::List(slot) => match (value, &slot.atom) {
            // A string compared with items of another type is a literal of that type.
            (Atom::String, item) if *item != Atom::String => item.clone(),
            (value, item) => common_type(value, item).ok_or_else(wrong)?,
        },
        Atom::String | Atom::Null => value.clone(),
        _ => return Err(wrong()),
    };
    let list = Atom::List(Box::new(Slot { atom: atom.clone(), nullable: true }));
    let casts = vec![atom.clone(), list];
    if let (Comparison::Eq, false, Some(set)) = (comparison, all, constant_items(&args[1], &atom)) {
        let mut resolved = ResolvedCall::strict(Atom::Boolean, args, casts, set);
        resolved.nullable = true;
        return Ok(resolved.costing(5));
    }
    let mut resolved = ResolvedCall::strict(
        Atom::Boolean,
        args,
        casts,
        QuantifiedComparison { comparison, all, atom },
    );
    resolved.nullable = true;
    Ok(resolved.costing(50))
}

/// The items of a constant list as a set. Not for an empty list: comparing NULL with it is not
/// NULL.
fn constant_items(list: &Arg<'_>, atom: &Atom) -> Option<InSet> {
    let array = list.value.as_ref()?.as_list_opt::<i32>()?.clone();
    let is_of_atom = matches!(list.atom, Atom::List(slot) if slot.atom == *atom);
    if !is_of_atom || array.len() != 1 || array.is_null(0) || array.value_length(0) == 0 {
        return None;
    }
    in_items(atom, &array.value(0))
}

#[derive(Debug)]
struct QuantifiedComparison {
    comparison: Comparison,
    all: bool,
    atom: Atom,
}

impl Kernel for QuantifiedComparison {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let (value, list) = (argument(args, 0)?, argument(args, 1)?);
        let lists = list.array.as_list_opt::<i32>().ok_or_else(|| unexpected(&list.array))?;
        let range = |row: usize| {
            let at = list.at(row);
            lists.is_valid(at).then(|| lists.offsets()[at] as u32..lists.offsets()[at + 1] as u32)
        };
        let (mut values, mut items) = (Vec::new(), Vec::new());
        for row in 0..rows {
            for item in range(row).into_iter().flatten() {
                values.push(value.at(row) as u32);
                items.push(item);
            }
        }
        let found = match items.is_empty() {
            true => arrow::array::new_empty_array(&Atom::Boolean.arrow()),
            false => {
                let full = |array: &ArrayRef, at: Vec<u32>| -> Result<Argument> {
                    Ok(Argument {
                        array: take(array, &UInt32Array::from(at), None)?,
                        constant: false,
                    })
                };
                let count = items.len();
                let sides = [full(&value.array, values)?, full(lists.values(), items)?];
                Compare { comparison: self.comparison, atom: self.atom.clone() }
                    .call(&sides, count)?
            }
        };
        let found = as_boolean(&found)?;
        let (mut results, mut next) = (BooleanBuilder::with_capacity(rows), 0);
        for row in 0..rows {
            let Some(range) = range(row) else {
                results.append_null();
                continue;
            };
            let (mut decided, mut unknown) = (false, false);
            for at in next..next + range.len() {
                unknown |= found.is_null(at);
                decided |= found.is_valid(at) && found.value(at) != self.all;
            }
            next += range.len();
            match (decided, unknown) {
                (true, _) => results.append_value(!self.all),
                (false, true) => results.append_null(),
                (false, false) => results.append_value(self.all),
            }
        }
        Ok(Arc::new(results.finish()))
    }
}
