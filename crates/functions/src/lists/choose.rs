//! DuckDB's `list_where` and `list_select`, which choose items, and `list_grade_up`, which gives
//! their positions in order.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, UInt32Array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{SortOptions, sort_to_indices, take};
use arrow::datatypes::{DataType, Int64Type};
use tessera_context::interrupt::Every;
use tessera_types::{Atom, Result, Slot, SqlState};

use super::list_type;
use tessera_values::kernel::{Argument, Kernel, argument, unexpected};
use tessera_values::rowwise::{fault, takes};
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

fn list_of(atom: Atom) -> Atom {
    Atom::List(Box::new(Slot { atom, nullable: true }))
}

/// `list_where(list, booleans)` and `list_select(list, positions)`.
pub(super) fn chosen(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let by_position = name.ends_with("_select");
    let list = list_type(name, args)?;
    let fits = |slot: &Slot| match by_position {
        true => slot.atom.is_integer() || slot.atom == Atom::Null,
        false => matches!(slot.atom, Atom::Boolean | Atom::Null),
    };
    let choice = match args.get(1).map(|arg| arg.atom) {
        Some(Atom::List(slot)) if fits(slot) && args.len() == 2 => {
            list_of(if by_position { Atom::Int64 } else { Atom::Boolean })
        }
        Some(Atom::Null) if args.len() == 2 => {
            list_of(if by_position { Atom::Int64 } else { Atom::Boolean })
        }
        _ if by_position => {
            return Err(wrong_arguments(name, args, "it takes a list and a list of positions"));
        }
        _ => return Err(wrong_arguments(name, args, "it takes a list and a list of booleans")),
    };
    let kernel = Choose { by_position };
    let mut resolved = ResolvedCall::strict(list.clone(), args, vec![list, choice], kernel)
        .raising(true)
        .costing(40);
    resolved.nullable = true;
    Ok(resolved)
}

#[derive(Debug)]
struct Choose {
    by_position: bool,
}

impl Kernel for Choose {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let array = argument(args, 0)?.full(rows)?;
        let choices = argument(args, 1)?.full(rows)?;
        let Some(lists) = array.as_list_opt::<i32>() else { return Ok(array) };
        let choices = choices.as_list_opt::<i32>().ok_or_else(|| unexpected(&choices))?;
        let DataType::List(item) = lists.data_type() else { return Err(unexpected(&array)) };
        let (mut kept, mut sizes, mut valid) =
            (Vec::<Option<u32>>::new(), Vec::with_capacity(rows), Vec::with_capacity(rows));
        let every = Every::default();
        for row in 0..rows {
            let before = kept.len();
            let is_valid = lists.is_valid(row) && choices.is_valid(row);
            if is_valid {
                let (start, length) = (lists.offsets()[row] as u32, lists.value_length(row));
                let choice = choices.value(row);
                if choice.logical_null_count() > 0 {
                    return Err(fault(
                        "the second list has a NULL; remove it",
                        SqlState::NULL_VALUE_NOT_ALLOWED,
                    ));
                }
                for at in 0..choice.len() {
                    every.pass();
                    match self.by_position {
                        true => {
                            let place = choice.as_primitive::<Int64Type>().value(at);
                            let is_there = (1..=i64::from(length)).contains(&place);
                            kept.push(is_there.then(|| start + (place - 1) as u32));
                        }
                        false if choice.as_boolean().value(at) => {
                            let is_there = at < length as usize;
                            kept.push(is_there.then_some(start + at as u32));
                        }
                        false => {}
                    }
                }
            }
            sizes.push(kept.len() - before);
            valid.push(is_valid);
        }
        let values = take(lists.values(), &UInt32Array::from(kept), None)?;
        let offsets = OffsetBuffer::from_lengths(sizes);
        Ok(Arc::new(ListArray::try_new(item.clone(), offsets, values, Some(valid.into()))?))
    }
}

/// `list_grade_up(list [, order [, nulls]])`.
pub(super) fn graded(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let list = list_type(name, args)?;
    if args.len() > 3 || !args[1..].iter().all(|arg| takes(arg, &Atom::String)) {
        return Err(wrong_arguments(
            name,
            args,
            "it takes a list, 'ASC' or 'DESC', and 'NULLS FIRST' or 'NULLS LAST'",
        ));
    }
    let mut casts = vec![Atom::String; args.len()];
    casts[0] = list;
    let mut resolved =
        ResolvedCall::strict(list_of(Atom::Int64), args, casts, Grade).raising(true).costing(100);
    resolved.nullable = true;
    Ok(resolved)
}

#[derive(Debug)]
struct Grade;

/// Whether a word asks for the second of two orders.
fn asks(word: Option<&str>, [first, second]: [&str; 2]) -> Result<bool> {
    match word.map(str::to_ascii_uppercase).as_deref() {
        None => Ok(false),
        Some(word) if word == first => Ok(false),
        Some(word) if word == second => Ok(true),
        Some(word) => Err(fault(
            format!("unknown order '{word}'; expected {first} or {second}"),
            SqlState::INVALID_PARAMETER_VALUE,
        )),
    }
}

impl Kernel for Grade {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let array = argument(args, 0)?.full(rows)?;
        let DataType::List(item) = list_of(Atom::Int64).arrow() else {
            return Err(unexpected(&array));
        };
        let Some(lists) = array.as_list_opt::<i32>() else {
            return Ok(arrow::array::new_null_array(&DataType::List(item), rows));
        };
        let word = |index: usize, row: usize| -> Result<Option<String>> {
            let Some(arg) = args.get(index) else { return Ok(None) };
            let texts = arg.array.as_string_view_opt().ok_or_else(|| unexpected(&arg.array))?;
            let at = arg.at(row);
            Ok(texts.is_valid(at).then(|| texts.value(at).to_string()))
        };
        let (mut places, mut sizes) = (Vec::new(), Vec::with_capacity(rows));
        let every = Every::default();
        for row in 0..rows {
            every.pass();
            let before = places.len();
            if lists.is_valid(row) {
                let descending = asks(word(1, row)?.as_deref(), ["ASC", "DESC"])?;
                let nulls_first = asks(word(2, row)?.as_deref(), ["NULLS LAST", "NULLS FIRST"])?;
                let options = SortOptions { descending, nulls_first };
                let order = sort_to_indices(&lists.value(row), Some(options), None)?;
                places.extend(order.values().iter().map(|at| i64::from(*at) + 1));
            }
            sizes.push(places.len() - before);
        }
        let (offsets, nulls) = (OffsetBuffer::from_lengths(sizes), lists.nulls().cloned());
        Ok(Arc::new(ListArray::try_new(item, offsets, Arc::new(Int64Array::from(places)), nulls)?))
    }
}
