//! Searches lists for items equal to a value (NULL equals NULL): their positions, and lists with
//! them removed or replaced.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int32Builder, ListArray, ListBuilder, UInt32Array,
    new_null_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{interleave, take};
use arrow::datatypes::{DataType, Field, Int64Type};

use tessera_codegen::Comparison;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Result, Slot, SqlState};

use super::list_type;
use crate::compare::Compare;
use tessera_values::kernel::{Argument, Kernel, argument, unexpected};
use tessera_values::rowwise::{fault, takes};
use tessera_values::types::{Arg, ResolvedCall, common_type, wrong_arguments};

/// The common type of a list's items and the values compared with them.
fn item_type(name: &str, args: &[Arg<'_>], values: usize) -> Result<Atom> {
    let mut item = match list_type(name, args)? {
        Atom::List(slot) => slot.atom,
        _ => Atom::Null,
    };
    let wrong = || wrong_arguments(name, args, "cast the values to the type of the list's items");
    for arg in args.get(1..=values).ok_or_else(wrong)? {
        let is_literal = matches!(arg.expr, Expr::Constant(Scalar::String(_), _));
        if *arg.atom == Atom::String && is_literal && item != Atom::Null {
            continue;
        }
        item = common_type(&item, arg.atom).ok_or_else(wrong)?;
    }
    Ok(if item == Atom::Null { Atom::Int32 } else { item })
}

fn list_of(item: &Atom) -> Atom {
    Atom::List(Box::new(Slot { atom: item.clone(), nullable: true }))
}

fn resolved(
    args: &[Arg<'_>],
    atom: Atom,
    item: &Atom,
    values: usize,
    kernel: impl Kernel + 'static,
) -> ResolvedCall {
    let mut casts = vec![list_of(item)];
    casts.extend(std::iter::repeat_n(item.clone(), values));
    casts.extend((args.len() > values + 1).then_some(Atom::Int64));
    let mut resolved = ResolvedCall::strict(atom, args, casts, kernel).raising(true).costing(40);
    resolved.nullable = true;
    resolved
}

/// `array_position(list, value [, start])`.
pub(super) fn position(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    if !matches!(args.len(), 2 | 3) || !args.get(2).is_none_or(|start| takes(start, &Atom::Int64)) {
        return Err(wrong_arguments(name, args, "it takes a list, a value and an optional start"));
    }
    let item = item_type(name, args, 1)?;
    Ok(resolved(args, Atom::Int32, &item, 1, Position(item.clone())))
}

/// `array_positions(list, value)`.
pub(super) fn positions(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let item = item_type(name, args, 1)?;
    if args.len() != 2 {
        return Err(wrong_arguments(name, args, "it takes a list and a value"));
    }
    Ok(resolved(args, list_of(&Atom::Int32), &item, 1, Positions(item.clone())))
}

/// `array_remove(list, value)`.
pub(super) fn remove(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let item = item_type(name, args, 1)?;
    if args.len() != 2 {
        return Err(wrong_arguments(name, args, "it takes a list and a value"));
    }
    Ok(resolved(args, list_of(&item), &item, 1, Remove(item.clone())))
}

/// `array_replace(list, value, other)`.
pub(super) fn replace(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let item = item_type(name, args, 2)?;
    if args.len() != 3 {
        return Err(wrong_arguments(name, args, "it takes a list, a value and a replacement"));
    }
    Ok(resolved(args, list_of(&item), &item, 2, Replace(item.clone())))
}

/// The lists of a call, and a flag per item: whether it equals the value of its row.
struct ItemMatches {
    array: ArrayRef,
    equal: BooleanArray,
}

impl ItemMatches {
    fn new(args: &[Argument], rows: usize, item: &Atom) -> Result<ItemMatches> {
        let array = argument(args, 0)?.full(rows)?;
        let lists = array.as_list_opt::<i32>().ok_or_else(|| unexpected(&array))?;
        let needle = argument(args, 1)?;
        let owners = owners(lists, needle)?;
        let values = Argument { array: lists.values().clone(), constant: false };
        let beside = Argument { array: take(&needle.array, &owners, None)?, constant: false };
        let compare = Compare { comparison: Comparison::NotDistinct, atom: item.clone() };
        let equal = compare.call(&[values, beside], lists.values().len())?;
        let equal = equal.as_boolean_opt().ok_or_else(|| unexpected(&equal))?.clone();
        Ok(ItemMatches { array, equal })
    }

    fn lists(&self) -> &ListArray {
        self.array.as_list()
    }

    /// The positions of a row's items.
    fn range(&self, row: usize) -> std::ops::Range<usize> {
        let offsets = self.lists().offsets();
        offsets[row] as usize..offsets[row + 1] as usize
    }

    fn is_equal(&self, at: usize) -> bool {
        self.equal.is_valid(at) && self.equal.value(at)
    }
}

/// For each item, the row that holds the value to compare with; arbitrary for items outside all
/// lists.
fn owners(lists: &ListArray, needle: &Argument) -> Result<UInt32Array> {
    let mut owners = vec![0; lists.values().len()];
    for row in 0..lists.len() {
        let range = lists.offsets()[row] as usize..lists.offsets()[row + 1] as usize;
        owners[range].fill(needle.at(row) as u32);
    }
    Ok(owners.into())
}

#[derive(Debug)]
struct Position(Atom);

impl Kernel for Position {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let found = ItemMatches::new(args, rows, &self.0)?;
        let starts = args
            .get(2)
            .map(|start| Ok::<_, tessera_types::Error>((start, start.primitive::<Int64Type>()?)));
        let starts = starts.transpose()?;
        let mut places = Int32Builder::with_capacity(rows);
        for row in 0..rows {
            if found.lists().is_null(row) {
                places.append_null();
                continue;
            }
            let mut skipped = 0;
            if let Some((start, numbers)) = starts {
                if numbers.is_null(start.at(row)) {
                    return Err(fault(
                        "the initial position must not be NULL",
                        SqlState::NULL_VALUE_NOT_ALLOWED,
                    ));
                }
                skipped = usize::try_from(numbers.value(start.at(row)) - 1).unwrap_or(0);
            }
            let range = found.range(row);
            let place = range.clone().skip(skipped).find(|at| found.is_equal(*at));
            places.append_option(place.map(|at| (at - range.start) as i32 + 1));
        }
        Ok(Arc::new(places.finish()))
    }
}

#[derive(Debug)]
struct Positions(Atom);

impl Kernel for Positions {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let found = ItemMatches::new(args, rows, &self.0)?;
        let DataType::List(field) = list_of(&Atom::Int32).arrow() else {
            return Err(unexpected(&found.array));
        };
        let mut places = ListBuilder::new(Int32Builder::new()).with_field(field);
        for row in 0..rows {
            let range = found.range(row);
            for at in range.clone().filter(|at| found.is_equal(*at)) {
                places.values().append_value((at - range.start) as i32 + 1);
            }
            places.append(found.lists().is_valid(row));
        }
        Ok(Arc::new(places.finish()))
    }
}

#[derive(Debug)]
struct Remove(Atom);

impl Kernel for Remove {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let found = ItemMatches::new(args, rows, &self.0)?;
        let (mut kept, mut sizes) = (Vec::new(), Vec::with_capacity(rows));
        for row in 0..rows {
            let before = kept.len();
            if found.lists().is_valid(row) {
                kept.extend(found.range(row).filter(|at| !found.is_equal(*at)).map(|at| at as u32));
            }
            sizes.push(kept.len() - before);
        }
        let lists = found.lists();
        let values = take(lists.values(), &UInt32Array::from(kept), None)?;
        let DataType::List(item) = lists.data_type() else { return Err(unexpected(&found.array)) };
        let offsets = OffsetBuffer::from_lengths(sizes);
        Ok(Arc::new(ListArray::try_new(item.clone(), offsets, values, lists.nulls().cloned())?))
    }
}

#[derive(Debug)]
struct Replace(Atom);

impl Kernel for Replace {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let found = ItemMatches::new(args, rows, &self.0)?;
        let other = argument(args, 2)?;
        let lists = found.lists();
        let mut chosen: Vec<(usize, usize)> = (0..lists.values().len()).map(|at| (0, at)).collect();
        for row in 0..rows {
            for at in found.range(row).filter(|at| found.is_equal(*at)) {
                chosen[at] = (1, other.at(row));
            }
        }
        // Without rows, `other` may be empty.
        let others = match other.array.is_empty() {
            true => new_null_array(lists.values().data_type(), 1),
            false => other.array.clone(),
        };
        let values = interleave(&[lists.values().as_ref(), others.as_ref()], &chosen)?;
        let DataType::List(item) = lists.data_type() else { return Err(unexpected(&found.array)) };
        let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
        Ok(Arc::new(ListArray::try_new(item.clone(), offsets, values, nulls)?))
    }
}

/// DuckDB's `map_extract(map, key)`: a list with the value of the key, empty if the key is missing.
pub(super) fn map_extract(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let [map, key] = args else {
        return Err(wrong_arguments(name, args, "it takes a map and a key"));
    };
    let Atom::Map(keys, values) = map.atom else {
        return Err(wrong_arguments(name, args, "it takes a map and a key"));
    };
    let is_literal = matches!(key.expr, Expr::Constant(Scalar::String(_), _));
    if !is_literal && common_type(&keys.atom, key.atom).is_none() {
        return Err(wrong_arguments(name, args, "cast the key to the type of the map's keys"));
    }
    let casts = vec![map.atom.clone(), keys.atom.clone()];
    let kernel = MapExtract { key: keys.atom.clone(), list: list_of(&values.atom) };
    Ok(ResolvedCall::strict(list_of(&values.atom), args, casts, kernel).raising(true).costing(40))
}

#[derive(Debug)]
struct MapExtract {
    key: Atom,
    list: Atom,
}

impl Kernel for MapExtract {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let array = argument(args, 0)?.full(rows)?;
        let maps = array.as_map_opt().ok_or_else(|| unexpected(&array))?;
        let DataType::List(item) = self.list.arrow() else { return Err(unexpected(&array)) };
        // Treat the keys as lists to search them.
        let keys = ListArray::try_new(
            Arc::new(Field::new("item", maps.keys().data_type().clone(), true)),
            maps.offsets().clone(),
            maps.keys().clone(),
            maps.nulls().cloned(),
        )?;
        let keys = Argument { array: Arc::new(keys), constant: false };
        let needle = argument(args, 1)?;
        let found = ItemMatches::new(&[keys, needle.clone()], rows, &self.key)?;
        let (mut kept, mut sizes, mut valid) =
            (Vec::new(), Vec::with_capacity(rows), Vec::with_capacity(rows));
        for row in 0..rows {
            let is_valid = maps.is_valid(row);
            let at = found.range(row).find(|at| is_valid && found.is_equal(*at));
            kept.extend(at.map(|at| at as u32));
            sizes.push(usize::from(at.is_some()));
            valid.push(is_valid && needle.array.is_valid(needle.at(row)));
        }
        let values = take(maps.values(), &UInt32Array::from(kept), None)?;
        let offsets = OffsetBuffer::from_lengths(sizes);
        Ok(Arc::new(ListArray::try_new(item, offsets, values, Some(valid.into()))?))
    }
}

/// Removes NULLs from the result lists of a kernel.
#[derive(Debug)]
pub(super) struct WithoutNulls(pub(super) Arc<dyn Kernel>);

impl Kernel for WithoutNulls {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let array = self.0.call(args, rows)?;
        let Some(lists) = array.as_list_opt::<i32>() else { return Ok(array) };
        let DataType::List(item) = lists.data_type() else { return Err(unexpected(&array)) };
        let (mut kept, mut sizes) = (Vec::new(), Vec::with_capacity(lists.len()));
        let missing = lists.values().logical_nulls();
        let is_valid = |at: &usize| missing.as_ref().is_none_or(|nulls| nulls.is_valid(*at));
        for row in 0..lists.len() {
            let before = kept.len();
            let range = lists.offsets()[row] as usize..lists.offsets()[row + 1] as usize;
            kept.extend(range.filter(is_valid).map(|at| at as u32));
            sizes.push(kept.len() - before);
        }
        let values = take(lists.values(), &UInt32Array::from(kept), None)?;
        let offsets = OffsetBuffer::from_lengths(sizes);
        Ok(Arc::new(ListArray::try_new(item.clone(), offsets, values, lists.nulls().cloned())?))
    }
}
