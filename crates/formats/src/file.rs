//! Common code of scans of files: parameters, typing, hive partitions, conversion to the declared
//! types.

mod conjuncts;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, Int64Array, StringViewArray, new_null_array};
use arrow::datatypes::{DataType, FieldRef, Schema};
use bytes::Bytes;

use tessera_context::{Context, RangeReader, Read, ReadBuffer};
use tessera_functions::plain::{UUID_BYTES, to_plain};
use tessera_operator::describe;
use tessera_plan::{Edge, Expr, Inputs, Node, Order, Scalar, Value};
use tessera_types::{
    Atom, Error, Field, Item, Result, Slot, TimeUnit, Tuple, quote_name, unique_names,
};

pub(crate) use conjuncts::{
    Conjunct, RunConjunct, conjuncts, filter_and_project, joined_conjuncts, start_conjuncts,
};

/// The checked parameters of a scan of files.
#[derive(Debug, Clone)]
pub(crate) struct FileScan {
    /// The files.
    pub(crate) paths: Vec<Arc<str>>,
    /// The columns that the filter reads.
    pub(crate) columns: Tuple,
    /// The positions of the output columns.
    pub(crate) fields: Vec<usize>,
    /// The predicate.
    pub(crate) filter: Option<Expr>,
    /// For each path, the columns that are constant there.
    pub(crate) partitions: Vec<Vec<(Arc<str>, Scalar, Atom)>>,
}

impl FileScan {
    /// Reads and checks the parameters of a node.
    ///
    /// # Errors
    /// A parameter is missing or malformed.
    pub(crate) fn new(node: &Node) -> Result<FileScan> {
        FileScan::of(node, node.params.strings("paths")?)
    }

    /// Like [`FileScan::new`], for the given paths.
    ///
    /// # Errors
    /// A parameter is missing or malformed.
    pub(crate) fn of(node: &Node, paths: Vec<Arc<str>>) -> Result<FileScan> {
        let columns = node.params.tuple("columns")?.clone();
        for field in columns.fields() {
            if let Item::Collection(collection) = &field.item {
                return Err(Error::semantic(format!(
                    "column {} cannot be a collection ({}) in a file",
                    quote_name(&field.name),
                    collection.format
                )));
            }
        }
        let fields = match node.params.get("fields") {
            None => (0..columns.len()).collect(),
            Some(_) => describe::keys(&columns, &node.params.names("fields")?, "field")?,
        };
        let partitions = partitions(node, paths.len(), &columns)?;
        let filter = node.params.expr_opt("filter")?.cloned();
        Ok(FileScan { paths, columns, fields, filter, partitions })
    }

    /// The output type of the scan.
    pub(crate) fn output(&self) -> Tuple {
        Tuple::new(
            self.fields.iter().map(|&i| self.columns.fields()[i].clone()).collect::<Vec<_>>(),
        )
    }

    /// Returns the constants of the file at `position`: for each column, an array of one value if
    /// the column is constant.
    pub(crate) fn constants(&self, position: usize) -> Result<Vec<Option<ArrayRef>>> {
        let constants = self.partitions.get(position).map_or(&[][..], Vec::as_slice);
        self.columns
            .fields()
            .iter()
            .map(|field| match constants.iter().find(|(name, ..)| *name == field.name) {
                Some((_, scalar, atom)) => scalar_array(scalar, atom).map(Some),
                None => Ok(None),
            })
            .collect()
    }
}

/// Derives the output edge of a scan of files.
///
/// # Errors
/// A parameter is missing or malformed, or the filter is not a predicate over the columns.
pub(crate) fn derive(node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
    derive_scan(&FileScan::new(node)?, inputs)
}

/// Like [`derive`], for parameters that were already read.
///
/// # Errors
/// The filter is not a predicate over the columns.
pub(crate) fn derive_scan(scan: &FileScan, inputs: &Inputs<'_>) -> Result<Edge> {
    scan.columns.check()?;
    if let Some(filter) = &scan.filter {
        describe::predicate(filter, &scan.columns, inputs)?;
    }
    Ok(describe::passes(describe::edge(inputs)?, scan.output(), Order::Source))
}

fn partitions(
    node: &Node,
    paths: usize,
    columns: &Tuple,
) -> Result<Vec<Vec<(Arc<str>, Scalar, Atom)>>> {
    let wrong = || {
        Error::semantic(
            "parameter partitions must be [{column = constant, …}, …], one for each path",
        )
    };
    let list = match node.params.get("partitions") {
        None => return Ok(vec![Vec::new(); paths]),
        Some(Value::List(list)) if list.len() == paths => list,
        Some(_) => return Err(wrong()),
    };
    let constants = |value: &Value| -> Result<Vec<(Arc<str>, Scalar, Atom)>> {
        let Value::Record(entries) = value else { return Err(wrong()) };
        let mut constants = Vec::new();
        for (name, value) in entries {
            let Value::Expr(Expr::Constant(scalar, atom)) = value else { return Err(wrong()) };
            let Some(field) = columns.field(name) else { continue };
            if field.atom() != Some(atom) {
                return Err(Error::semantic(format!(
                    "partition column {} is declared {} but its constant is {atom}",
                    quote_name(name),
                    field.item
                )));
            }
            if scalar.is_null() && !field.nullable {
                return Err(Error::semantic(format!(
                    "partition column {} is NULL for a path but declared NOT NULL",
                    quote_name(name)
                )));
            }
            constants.push((name.clone(), scalar.clone(), atom.clone()));
        }
        Ok(constants)
    };
    list.iter().map(constants).collect()
}

/// Creates an array that holds the constant of a partition column.
fn scalar_array(scalar: &Scalar, atom: &Atom) -> Result<ArrayRef> {
    Ok(match (scalar, atom) {
        (Scalar::Null, _) => null_constant(atom),
        (Scalar::Integer(value), _) if atom.is_integer() || *atom == Atom::Date => {
            let value = i64::try_from(*value).map_err(|_| {
                Error::semantic(format!(
                    "{value} is out of range for a partition column of type {atom}"
                ))
            })?;
            let array: ArrayRef = Arc::new(Int64Array::from(vec![value]));
            match atom {
                Atom::Date => to_plain(to_plain(array, &Atom::Int32)?, atom)?,
                _ => to_plain(array, atom)?,
            }
        }
        (Scalar::String(value), Atom::String) => Arc::new(StringViewArray::from(vec![&**value])),
        _ => {
            return Err(Error::unsupported(format!(
                "unsupported type {atom} of a partition column; read it as string"
            )));
        }
    })
}

/// Whether every value of `from` is a value of `to`, so that a file may hold `from` where `to` is
/// declared.
pub(crate) fn is_lossless(from: &Atom, to: &Atom) -> bool {
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
        (Atom::Float32, Atom::Float64) => true,
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
pub(crate) fn widest(left: &Atom, right: &Atom) -> Option<Atom> {
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

/// Merges the tuple types of several files: columns match by name and are widened where they
/// differ. A column that a file lacks becomes nullable.
///
/// # Errors
/// Two files have different types for a column and no type holds both; names the column, both files
/// and both types.
pub fn merge_tuples(files: &[(String, Tuple)]) -> Result<Tuple> {
    let mut merged: Vec<(tessera_types::Field, &str)> = Vec::new();
    for (position, (path, tuple)) in files.iter().enumerate() {
        for field in tuple.fields() {
            let Some((known, from)) = merged.iter_mut().find(|(known, _)| known.name == field.name)
            else {
                merged.push((field.with_nullable(field.nullable || position > 0), path));
                continue;
            };
            let (Some(a), Some(b)) = (known.atom(), field.atom()) else { continue };
            let Some(atom) = widest(a, b) else {
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
pub(crate) fn check_type(path: &str, name: &str, found: &Atom, declared: &Atom) -> Result<()> {
    if is_lossless(found, declared) {
        return Ok(());
    }
    Err(Error::data(format!(
        "column {} of '{path}' is {found}, which does not fit the declared {declared} without loss; declare it as \
         {found} and cast it in the query",
        quote_name(name)
    )))
}

/// The columns of a file. Duplicate names get numbers; a column of an unsupported type reads as
/// NULLs, so that the others can be read.
pub(crate) fn readable_tuple(schema: &Schema) -> Tuple {
    let names = unique_names(schema.fields().iter().map(|field| field.name().as_str()));
    let fields = schema.fields().iter().zip(names).map(|(field, name)| match column_atom(field) {
        Ok(atom) => Field::nullable(name, atom).with_nullable(field.is_nullable()),
        Err(_) => Field::nullable(name, Atom::Null),
    });
    Tuple::new(fields.collect::<Vec<_>>())
}

/// Returns the type of a column.
///
/// # Errors
/// The type is not supported.
pub(crate) fn column_atom(field: &FieldRef) -> Result<Atom> {
    Atom::from_arrow(uuids_as_text(field).data_type())
}

/// Replaces Arrow's UUID extension type with text.
fn uuids_as_text(field: &FieldRef) -> FieldRef {
    with_types(field, &|field| {
        let is_uuid = *field.data_type() == DataType::FixedSizeBinary(UUID_BYTES)
            && field.extension_type_name() == Some("arrow.uuid");
        is_uuid.then_some(DataType::Utf8)
    })
}

/// Replaces the types of a field and of the fields within it, where `change` returns a type.
pub(crate) fn with_types(
    field: &FieldRef,
    change: &dyn Fn(&FieldRef) -> Option<DataType>,
) -> FieldRef {
    let inner = |field: &FieldRef| with_types(field, change);
    let data_type = match (change(field), field.data_type()) {
        (Some(changed), _) => changed,
        (None, DataType::List(item)) => DataType::List(inner(item)),
        (None, DataType::LargeList(item)) => DataType::LargeList(inner(item)),
        (None, DataType::ListView(item)) => DataType::ListView(inner(item)),
        (None, DataType::LargeListView(item)) => DataType::LargeListView(inner(item)),
        (None, DataType::FixedSizeList(item, size)) => DataType::FixedSizeList(inner(item), *size),
        (None, DataType::Map(entries, ordered)) => DataType::Map(inner(entries), *ordered),
        (None, DataType::Struct(fields)) => DataType::Struct(fields.iter().map(inner).collect()),
        _ => return field.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

/// The columns as SQL sees them: times of day have at least microseconds.
pub(crate) fn statement_tuple(tuple: &Tuple) -> Tuple {
    let seen = |field: &Field| match field.atom() {
        Some(atom) => {
            Field::nullable(field.name.clone(), statement_atom(atom)).with_nullable(field.nullable)
        }
        None => field.clone(),
    };
    Tuple::new(tuple.fields().iter().map(seen).collect::<Vec<_>>())
}

fn statement_atom(atom: &Atom) -> Atom {
    let slot = |slot: &Slot| Slot { atom: statement_atom(&slot.atom), nullable: slot.nullable };
    match atom {
        Atom::Time(unit) => Atom::Time((*unit).max(TimeUnit::Microsecond)),
        Atom::List(item) => Atom::List(Box::new(slot(item))),
        Atom::Struct(slots) => {
            Atom::Struct(slots.iter().map(|(name, s)| (name.clone(), slot(s))).collect())
        }
        Atom::Map(key, value) => Atom::Map(Box::new(slot(key)), Box::new(slot(value))),
        other => other.clone(),
    }
}

/// The error of a query that reads a column of an unsupported type.
pub(crate) fn unreadable(path: &str, name: &str, reason: &str) -> Error {
    let name = quote_name(name);
    Error::unsupported(format!(
        "column {name} of '{path}' cannot be read: {reason}; leave it out: SELECT * EXCLUDE ({name})"
    ))
}

/// Converts a column from the type in the file to the declared one.
///
/// # Errors
/// A value is out of range.
pub(crate) fn convert(array: ArrayRef, found: &Atom, declared: &Atom) -> Result<ArrayRef> {
    to_plain(to_plain(array, found)?, declared)
}

/// Returns a NULL constant, for a column that a file lacks.
pub(crate) fn null_constant(atom: &Atom) -> ArrayRef {
    new_null_array(&atom.arrow(), 1)
}

/// Rejects NULLs in a column that is declared NOT NULL.
///
/// # Errors
/// The column holds a NULL.
pub(crate) fn check_nulls(array: &dyn Array, nullable: bool, path: &str, name: &str) -> Result<()> {
    if nullable || array.null_count() == 0 {
        return Ok(());
    }
    Err(Error::data(format!(
        "column {} of '{path}' is declared NOT NULL but holds NULL",
        quote_name(name)
    )))
}

/// Reads a range and waits for it. Only for planning and for reading file heads, never on a worker.
///
/// # Errors
/// The range cannot be read.
pub(crate) fn read_now(
    reader: &dyn RangeReader,
    range: Range<u64>,
    context: Option<&Arc<dyn Context>>,
) -> Result<Bytes> {
    loop {
        match reader.read_into(range.clone(), ReadBuffer::default())? {
            Read::Ready(buffer) => return Ok(buffer.into_bytes()),
            Read::Blocked(token) => token.wait(Duration::from_millis(100)),
        }
        if let Some(context) = context {
            context.check()?;
        }
    }
}
