//! DuckDB's `map_from_entries` and `map_concat`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, MapArray, StructArray, new_null_array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::interleave;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use tessera_context::interrupt::Every;
use tessera_types::{Atom, Result, Slot, SqlState};

use tessera_values::canonical::canonical_floats;
use tessera_values::kernel::{Argument, Kernel, argument, unexpected};
use tessera_values::plain::to_form;
use tessera_values::rowwise::fault;
use tessera_values::types::{Arg, ResolvedCall, common_type, wrong_arguments};

fn map_of(key: &Atom, value: &Atom) -> Atom {
    let slot = |atom: &Atom, nullable| Box::new(Slot { atom: atom.clone(), nullable });
    Atom::Map(slot(key, false), slot(value, true))
}

/// `map_from_entries(list of structs with two fields)`.
pub(super) fn from_entries(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let wrong = || wrong_arguments(name, args, "it takes a list of structs with two fields");
    let [list] = args else { return Err(wrong()) };
    let Atom::List(slot) = list.atom else { return Err(wrong()) };
    let Atom::Struct(fields) = &slot.atom else { return Err(wrong()) };
    let [(_, key), (_, value)] = &fields[..] else { return Err(wrong()) };
    let map = map_of(&key.atom, &value.atom);
    let casts = vec![list.atom.clone()];
    let mut resolved =
        ResolvedCall::strict(map.clone(), args, casts, FromEntries(map)).raising(true).costing(60);
    resolved.nullable = true;
    Ok(resolved)
}

/// Bytes that are equal for equal keys.
fn key_rows(keys: &ArrayRef) -> Result<arrow::row::Rows> {
    let keys = canonical_floats(keys)?;
    let converter = RowConverter::new(vec![SortField::new(keys.data_type().clone())])?;
    Ok(converter.convert_columns(&[keys])?)
}

/// Builds maps from keys and values.
fn built(
    map: &Atom,
    offsets: OffsetBuffer<i32>,
    keys: ArrayRef,
    values: ArrayRef,
    nulls: Option<arrow::buffer::NullBuffer>,
) -> Result<ArrayRef> {
    let data_type = map.arrow();
    let DataType::Map(entries, sorted) = &data_type else { return Err(unexpected(&keys)) };
    let DataType::Struct(fields) = entries.data_type() else { return Err(unexpected(&keys)) };
    let keys = to_form(keys, fields[0].data_type())?;
    let values = to_form(values, fields[1].data_type())?;
    let items = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
    Ok(Arc::new(MapArray::try_new(entries.clone(), offsets, items, nulls, *sorted)?))
}

#[derive(Debug)]
struct FromEntries(Atom);

impl Kernel for FromEntries {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let array = argument(args, 0)?.full(rows)?;
        let lists = array.as_list_opt::<i32>().ok_or_else(|| unexpected(&array))?;
        let entries = lists.values().as_struct_opt().ok_or_else(|| unexpected(&array))?;
        let (keys, values) = (entries.column(0), entries.column(1));
        let (null_keys, null_entries) = (keys.logical_nulls(), entries.logical_nulls());
        let key_bytes = key_rows(keys)?;
        let (mut kept, mut sizes, every) = (Vec::new(), Vec::with_capacity(rows), Every::default());
        for row in 0..rows {
            let before = kept.len();
            let mut seen = HashSet::new();
            let range = match lists.is_valid(row) {
                true => lists.offsets()[row] as usize..lists.offsets()[row + 1] as usize,
                false => 0..0,
            };
            for at in range {
                every.pass();
                let is_null = |nulls: &Option<arrow::buffer::NullBuffer>| {
                    nulls.as_ref().is_some_and(|nulls| nulls.is_null(at))
                };
                if is_null(&null_keys) || is_null(&null_entries) {
                    return Err(fault(
                        "a key of a map must not be NULL",
                        SqlState::NULL_VALUE_NOT_ALLOWED,
                    ));
                }
                if !seen.insert(key_bytes.row(at)) {
                    return Err(fault(
                        "a map has two equal keys; they must differ",
                        SqlState::INVALID_PARAMETER_VALUE,
                    ));
                }
                kept.push((0, at));
            }
            sizes.push(kept.len() - before);
        }
        let keys = interleave(&[keys.as_ref()], &kept)?;
        let values = interleave(&[values.as_ref()], &kept)?;
        let nulls = lists.nulls().cloned();
        built(&self.0, OffsetBuffer::from_lengths(sizes), keys, values, nulls)
    }
}

/// `map_concat(map, …)`: of equal keys, the last value counts.
pub(super) fn concatenated(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let wrong = || wrong_arguments(name, args, "it takes maps with keys and values of one type");
    let mut found: Option<(Atom, Atom)> = None;
    for arg in args {
        match arg.atom {
            Atom::Null => {}
            Atom::Map(key, value) => {
                found = Some(match found {
                    None => (key.atom.clone(), value.atom.clone()),
                    Some((k, v)) => (
                        common_type(&k, &key.atom).ok_or_else(wrong)?,
                        common_type(&v, &value.atom).ok_or_else(wrong)?,
                    ),
                });
            }
            _ => return Err(wrong()),
        }
    }
    let Some((key, value)) = found else { return Err(wrong()) };
    let map = map_of(&key, &value);
    let casts = vec![map.clone(); args.len()];
    let mut resolved = ResolvedCall::strict(map.clone(), args, casts, Concatenate(map)).costing(80);
    resolved.nullable = true;
    Ok(resolved)
}

#[derive(Debug)]
struct Concatenate(Atom);

impl Kernel for Concatenate {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let arrays = args.iter().map(|arg| arg.full(rows)).collect::<Result<Vec<_>>>()?;
        let maps = arrays
            .iter()
            .map(|array| array.as_map_opt().ok_or_else(|| unexpected(array)))
            .collect::<Result<Vec<_>>>()?;
        let key_bytes = maps.iter().map(|map| key_rows(map.keys())).collect::<Result<Vec<_>>>()?;
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        let (mut sizes, mut valid) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        let every = Every::default();
        for row in 0..rows {
            let before = keys.len();
            let mut places = HashMap::new();
            let mut is_valid = false;
            for (number, map) in maps.iter().enumerate().filter(|(_, map)| map.is_valid(row)) {
                is_valid = true;
                for at in map.offsets()[row] as usize..map.offsets()[row + 1] as usize {
                    every.pass();
                    let next = keys.len();
                    let place = *places.entry(key_bytes[number].row(at)).or_insert(next);
                    if place == next {
                        keys.push((number, at));
                        values.push((number, at));
                    } else {
                        values[place] = (number, at);
                    }
                }
            }
            sizes.push(keys.len() - before);
            valid.push(is_valid);
        }
        let of = |parts: Vec<&dyn Array>, chosen: &[(usize, usize)]| interleave(&parts, chosen);
        let all_keys = of(maps.iter().map(|map| map.keys().as_ref()).collect(), &keys)?;
        let all_values = of(maps.iter().map(|map| map.values().as_ref()).collect(), &values)?;
        if rows == 0 {
            return Ok(new_null_array(&self.0.arrow(), 0));
        }
        let offsets = OffsetBuffer::from_lengths(sizes);
        built(&self.0, offsets, all_keys, all_values, Some(valid.into()))
    }
}
