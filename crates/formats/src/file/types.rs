//! The types of columns that differ between the files of a table.

use arrow::array::ArrayRef;

use tessera_types::{Atom, Error, Field, Item, Result, Slot, Tuple, quote_name};
use tessera_values::cast::{cast, check_cast};
use tessera_values::plain::to_plain;

/// Whether every value of `from` is a value of `to`, so that a file may hold `from` where `to` is
/// declared.
fn is_lossless(from: &Atom, to: &Atom) -> bool {
    let digits = |atom: &Atom| match atom {
        Atom::Int8 | Atom::UInt8 => Some(3),
        Atom::Int16 | Atom::UInt16 => Some(5),
        Atom::Int32 | Atom::UInt32 => Some(10),
        Atom::Int64 => Some(19),
        Atom::UInt64 => Some(20),
        _ => None,
    };
    let width = |atom: &Atom| atom.width_bytes().unwrap_or(usize::MAX);
    match (from, to) {
        _ if from == to => true,
        (Atom::Null, _) => true,
        _ if from.is_signed_integer() && to.is_signed_integer() => width(from) <= width(to),
        _ if from.is_unsigned_integer() && to.is_integer() => {
            width(from) < width(to) || (to.is_unsigned_integer() && width(from) == width(to))
        }
        _ if from.is_integer() && *to == Atom::Float64 => width(from) <= 4,
        (Atom::Float32, Atom::Float64) | (Atom::Uuid, Atom::String) => true,
        (Atom::Decimal(p, s), Atom::Decimal(q, t)) => t >= s && q - *t as u8 >= p - *s as u8,
        (_, Atom::Decimal(q, t)) => digits(from).is_some_and(|digits| digits <= q - *t as u8),
        (Atom::Timestamp(a, x), Atom::Timestamp(b, y)) => (x == y) && a <= b,
        (Atom::Time(a), Atom::Time(b)) => a <= b,
        (Atom::List(a), Atom::List(b)) => {
            is_lossless(&a.atom, &b.atom) && (b.nullable || !a.nullable)
        }
        (Atom::Struct(a), Atom::Struct(b)) => {
            a.len() == b.len()
                && a.iter().zip(b.iter()).all(|((n, a), (m, b))| {
                    n == m && is_lossless(&a.atom, &b.atom) && (b.nullable || !a.nullable)
                })
        }
        (Atom::Map(a, b), Atom::Map(x, y)) => {
            is_lossless(&a.atom, &x.atom) && is_lossless(&b.atom, &y.atom)
        }
        _ => false,
    }
}

/// Returns the smallest type that holds all values of both types, for columns that differ between
/// files.
fn widest(left: &Atom, right: &Atom) -> Option<Atom> {
    if is_lossless(left, right) {
        return Some(right.clone());
    }
    if is_lossless(right, left) {
        return Some(left.clone());
    }
    match (left, right) {
        (Atom::Decimal(p, s), Atom::Decimal(q, t)) => {
            let scale = *s.max(t);
            let whole = (p - *s as u8).max(q - *t as u8);
            (whole + scale as u8 <= tessera_types::DECIMAL_PRECISION_MAX)
                .then(|| Atom::Decimal(whole + scale as u8, scale))
        }
        _ if left.is_integer() && right.is_integer() => [Atom::Int16, Atom::Int32, Atom::Int64]
            .into_iter()
            .find(|to| is_lossless(left, to) && is_lossless(right, to)),
        _ => None,
    }
}

/// Returns the type that UNION would give to columns of two files. Some values of the other types
/// may be changed: rounded to a double, or written as text.
fn common(left: &Atom, right: &Atom) -> Option<Atom> {
    let widest = widest(left, right);
    widest.or_else(|| match (left, right) {
        (Atom::Boolean, whole) | (whole, Atom::Boolean) if whole.is_integer() => {
            Some(whole.clone())
        }
        _ if left.is_numeric() && right.is_numeric() => Some(Atom::Float64),
        (Atom::Date, Atom::Timestamp(..)) => Some(right.clone()),
        (Atom::Timestamp(..), Atom::Date) => Some(left.clone()),
        (Atom::String, other) | (other, Atom::String) => {
            check_cast(other, &Atom::String).is_ok().then_some(Atom::String)
        }
        (Atom::List(a), Atom::List(b)) => {
            Some(Atom::List(Box::new(Slot::nullable(common(&a.atom, &b.atom)?))))
        }
        _ => None,
    })
}

/// Merges the tuple types of several files: columns match by name and are widened where they
/// differ, with `is_union` to a common type. A column that a file lacks becomes nullable.
///
/// # Errors
/// Two files have different types for a column and no type holds both; names the column, both files
/// and both types.
pub fn merge_tuples(files: &[(String, Tuple)], is_union: bool) -> Result<Tuple> {
    let merge = if is_union { common } else { widest };
    let mut merged: Vec<(Field, &str)> = Vec::new();
    for (position, (path, tuple)) in files.iter().enumerate() {
        for field in tuple.fields() {
            let Some((known, from)) = merged.iter_mut().find(|(known, _)| known.name == field.name)
            else {
                merged.push((field.with_nullable(field.nullable || position > 0), path));
                continue;
            };
            let (Some(a), Some(b)) = (known.atom(), field.atom()) else { continue };
            let Some(atom) = merge(a, b) else {
                return Err(Error::data(format!(
                    "column {} is {a} in '{from}' but {b} in '{path}', and no type holds both",
                    quote_name(&field.name)
                )));
            };
            known.item = Item::Atom(atom);
            known.nullable |= field.nullable;
        }
        for (known, _) in &mut merged {
            known.nullable |= tuple.field(&known.name).is_none();
        }
    }
    Ok(Tuple::new(merged.into_iter().map(|(field, _)| field).collect::<Vec<_>>()))
}

/// Checks that a file's column can be read as the declared type.
///
/// # Errors
/// The conversion would lose values; names the file, column and both types.
pub(crate) fn check_type(
    path: &str,
    name: &str,
    found: &Atom,
    declared: &Atom,
    is_union: bool,
) -> Result<()> {
    if is_lossless(found, declared)
        || is_union && common(found, declared).as_ref() == Some(declared)
    {
        return Ok(());
    }
    Err(Error::data(format!(
        "column {} of '{path}' is {found}, which does not fit the declared {declared} without loss; declare it as \
         {found} and cast it in the query",
        quote_name(name)
    )))
}

/// Converts a column from the type in the file to the declared one.
///
/// # Errors
/// A value is out of range.
pub(crate) fn convert(array: ArrayRef, found: &Atom, declared: &Atom) -> Result<ArrayRef> {
    let array = to_plain(array, found)?;
    match is_lossless(found, declared) {
        true => to_plain(array, declared),
        false => cast(&array, found, declared, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_types() {
        let date = Atom::Date;
        let moment = Atom::Timestamp(tessera_types::TimeUnit::Microsecond, None);
        for (left, right, expected) in [
            (Atom::Int32, Atom::Int64, Some(Atom::Int64)),
            (Atom::Int64, Atom::Float64, Some(Atom::Float64)),
            (Atom::Decimal(4, 1), Atom::Float32, Some(Atom::Float64)),
            (Atom::Boolean, Atom::Int16, Some(Atom::Int16)),
            (Atom::String, Atom::Boolean, Some(Atom::String)),
            (date.clone(), moment.clone(), Some(moment.clone())),
            (date.clone(), Atom::Int64, None),
            (Atom::Boolean, Atom::Float64, None),
        ] {
            assert_eq!(common(&left, &right), expected, "{left} {right}");
            assert_eq!(common(&right, &left), expected, "{right} {left}");
        }
        let of = |name: &str, atom| (name.to_string(), Tuple::new(vec![Field::new("a", atom)]));
        let files = [of("x", Atom::Int64), of("y", Atom::String)];
        assert!(merge_tuples(&files, false).is_err());
        assert_eq!(merge_tuples(&files, true).unwrap().fields()[0].atom(), Some(&Atom::String));
    }
}
