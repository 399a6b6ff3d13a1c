//! Conversions between structs and between maps.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StructArray, new_null_array};
use arrow::datatypes::DataType;
use tessera_types::{Atom, Error, Result, Slot};

use crate::cast::{cast, check_cast};
use crate::kernel::unexpected;
use crate::parse::nested::map_of;

type Slots = [(Arc<str>, Slot)];

/// The field of `from` with the name of a field of `to`.
fn named(from: &Slots, name: &str) -> Option<usize> {
    from.iter().position(|(other, _)| other.eq_ignore_ascii_case(name))
}

/// Whether fields are converted by name, as in DuckDB: if the structs have a name in common. Rows,
/// whose fields have no names, are converted by position, as in PostgreSQL.
fn is_by_name(from: &Slots, to: &Slots) -> bool {
    to.iter().any(|(name, _)| named(from, name).is_some())
}

/// Whether one struct type converts to another.
pub(super) fn applies(from: &Slots, to: &Slots) -> bool {
    from.len() == to.len() || is_by_name(from, to)
}

/// The position in `from` of each field of `to`; `None` for a field that `from` lacks.
fn sources(from: &Slots, to: &Slots) -> Vec<Option<usize>> {
    let by_name = is_by_name(from, to);
    let source = |(at, (name, _)): (usize, &(Arc<str>, Slot))| match by_name {
        true => named(from, name),
        false => Some(at),
    };
    to.iter().enumerate().map(source).collect()
}

/// Checks that the fields convert.
///
/// # Errors
/// A field does not convert.
pub(super) fn check(from: &Slots, to: &Slots) -> Result<()> {
    sources(from, to).into_iter().zip(to).try_for_each(|(source, (_, to))| match source {
        Some(source) => check_cast(&from[source].1.atom, &to.atom),
        None => Ok(()),
    })
}

/// Converts structs field by field; a field that `from` lacks is NULL.
pub(super) fn cast_structs(
    array: &ArrayRef,
    from: &Slots,
    slots: &Slots,
    to: &Atom,
    safe: bool,
) -> Result<ArrayRef> {
    let input = array.as_struct_opt().ok_or_else(|| unexpected(array))?;
    let DataType::Struct(fields) = to.arrow() else {
        return Err(Error::internal(format!("{to} is not a struct")));
    };
    let columns =
        sources(from, slots).into_iter().zip(slots).map(|(source, (_, to))| match source {
            Some(source) => cast(input.column(source), &from[source].1.atom, &to.atom, safe),
            None => Ok(new_null_array(&to.atom.arrow(), input.len())),
        });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let nulls = input.nulls().cloned();
    Ok(Arc::new(StructArray::try_new_with_length(fields, columns, nulls, input.len())?))
}

/// Converts the keys and values of maps.
pub(super) fn cast_maps(array: &ArrayRef, from: &Atom, to: &Atom, safe: bool) -> Result<ArrayRef> {
    let (Atom::Map(old_key, old_value), Atom::Map(key, value)) = (from, to) else {
        return Err(Error::internal(format!("{from} and {to} are not maps")));
    };
    let input = array.as_map_opt().ok_or_else(|| unexpected(array))?;
    // A key is never NULL, so that a key that does not convert is an error.
    let keys = cast(input.keys(), &old_key.atom, &key.atom, false)?;
    let values = cast(input.values(), &old_value.atom, &value.atom, safe)?;
    map_of(to, key, (keys, values), input.offsets().clone(), input.nulls().cloned())
}
