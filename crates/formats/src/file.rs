//! What scans of files have in common: parameters, typing, hive partitions, conversion to the
//! declared types.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, Int64Array, StringViewArray, new_null_array};
use arrow::datatypes::{DataType, FieldRef, Schema};
use bytes::Bytes;

use tessera_context::{Context, RangeReader, Read, ReadBuffer, Run};
use tessera_functions::plain::{UUID_BYTES, to_plain};
use tessera_functions::{Bound, Predicate};
use tessera_operator::{Lowering, describe};
use tessera_plan::{Edge, Expr, Inputs, Node, Order, Scalar, Value};
use tessera_types::{
    Atom, Error, Field, Item, Result, Slot, TimeUnit, Tuple, quote_name, unique_names,
};
use tessera_vector::{Chunk, Column};

/// The parameters of a scan of files, checked.
#[derive(Debug, Clone)]
pub(crate) struct FileScan {
    /// The files.
    pub(crate) paths: Vec<Arc<str>>,
    /// The columns that the filter sees.
    pub(crate) columns: Tuple,
    /// Positions of the columns that are yielded.
    pub(crate) fields: Vec<usize>,
    /// The predicate.
    pub(crate) filter: Option<Expr>,
    /// For each path, the columns that are constants there.
    pub(crate) partitions: Vec<Vec<(Arc<str>, Scalar, Atom)>>,
}

impl FileScan {
    /// Reads and checks the parameters of a node.
    ///
    /// # Errors
    /// One is missing or ill-formed.
    pub(crate) fn new(node: &Node) -> Result<FileScan> {
        FileScan::of(node, node.params.strings("paths")?)
    }

    /// As [`FileScan::new`], of these files.
    ///
    /// # Errors
    /// A parameter is missing or ill-formed.
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

    /// The type of what is yielded.
    pub(crate) fn output(&self) -> Tuple {
        Tuple::new(
            self.fields.iter().map(|&i| self.columns.fields()[i].clone()).collect::<Vec<_>>(),
        )
    }

    /// The constants of the file at `position`: for each column, an array of one value where it is
    /// a constant.
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

/// The edge out of a scan of files.
///
/// # Errors
/// A parameter is missing or ill-formed, or the filter is no predicate over the columns.
pub(crate) fn derive(node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
    derive_scan(&FileScan::new(node)?, inputs)
}

/// As [`derive`], of parameters that have been read.
///
/// # Errors
/// The filter is no predicate over the columns.
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
                    "partition column {} is NULL for a path but declared not to be",
                    quote_name(name)
                )));
            }
            constants.push((name.clone(), scalar.clone(), atom.clone()));
        }
        Ok(constants)
    };
    list.iter().map(constants).collect()
}

/// An array that holds one constant of a partition column.
fn scalar_array(scalar: &Scalar, atom: &Atom) -> Result<ArrayRef> {
    Ok(match (scalar, atom) {
        (Scalar::Null, _) => null_constant(atom),
        (Scalar::Integer(value), _) if atom.is_integer() || *atom == Atom::Date => {
            let value = i64::try_from(*value).map_err(|_| {
                Error::semantic(format!(
                    "{value} is out of the range of a partition column of type {atom}"
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
                "a partition column of type {atom}; read it as string"
            )));
        }
    })
}

/// Whether every value of `from` is a value of `to`, so that a file may hold the one where the
/// other is declared.
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

/// The smallest type that holds all values of both, for columns that differ between files.
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

/// The one tuple type of several files: columns by name, widened where they differ; a column that a
/// file lacks may be NULL.
///
/// # Errors
/// Two files disagree on a column and no type holds both: names the column, both files and both
/// types.
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

/// Checks that a file's column can stand where `declared` is declared.
///
/// # Errors
/// It cannot without loss: names file, column and both types.
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

/// The columns of a file: names that stand twice get numbers, and a column of a type that is not
/// supported stands as NULLs, so that the others can be read.
pub(crate) fn readable_tuple(schema: &Schema) -> Tuple {
    let names = unique_names(schema.fields().iter().map(|field| field.name().as_str()));
    let fields = schema.fields().iter().zip(names).map(|(field, name)| match column_atom(field) {
        Ok(atom) => Field::nullable(name, atom).with_nullable(field.is_nullable()),
        Err(_) => Field::nullable(name, Atom::Null),
    });
    Tuple::new(fields.collect::<Vec<_>>())
}

/// The type of a column.
///
/// # Errors
/// It is not supported.
pub(crate) fn column_atom(field: &FieldRef) -> Result<Atom> {
    Atom::from_arrow(with_texts_of_uuids(field).data_type())
}

/// The field with texts where Arrow says that bytes are a UUID.
fn with_texts_of_uuids(field: &FieldRef) -> FieldRef {
    with_types(field, &|field| {
        let is_uuid = *field.data_type() == DataType::FixedSizeBinary(UUID_BYTES)
            && field.extension_type_name() == Some("arrow.uuid");
        is_uuid.then_some(DataType::Utf8)
    })
}

/// The field, or fields within it, with other types where `change` gives one.
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

/// The columns as statements see them: times of day count microseconds at least, as those of SQL
/// do.
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

/// A query reads a column of a type that is not supported.
pub(crate) fn unreadable(path: &str, name: &str, reason: &str) -> Error {
    let name = quote_name(name);
    Error::unsupported(format!(
        "column {name} of '{path}' cannot be read: {reason}; leave it out: SELECT * EXCLUDE ({name})"
    ))
}

/// Converts a column that was read as one type to the declared one.
///
/// # Errors
/// A value does not fit.
pub(crate) fn convert(array: ArrayRef, found: &Atom, declared: &Atom) -> Result<ArrayRef> {
    to_plain(to_plain(array, found)?, declared)
}

/// NULLs of a type, for a column that a file lacks.
pub(crate) fn null_constant(atom: &Atom) -> ArrayRef {
    new_null_array(&atom.arrow(), 1)
}

/// Rejects NULLs in a column that is declared to have none.
///
/// # Errors
/// There is one.
pub(crate) fn check_nulls(array: &dyn Array, nullable: bool, path: &str, name: &str) -> Result<()> {
    if nullable || array.null_count() == 0 {
        return Ok(());
    }
    Err(Error::data(format!(
        "column {} of '{path}' holds NULL but is declared not to",
        quote_name(name)
    )))
}

/// The conjuncts of a predicate, each bound to the columns it reads.
#[derive(Debug)]
pub(crate) struct Conjunct {
    /// Positions (in the scan's columns) of what it reads; the input of `bound`, in this order.
    pub(crate) columns: Vec<usize>,
    /// The predicate over these.
    pub(crate) bound: Bound,
    /// The conjuncts that it is made of.
    pub(crate) parts: Vec<Expr>,
}

/// A conjunct in one run.
#[derive(Debug)]
pub(crate) struct RunConjunct {
    /// As of [`Conjunct`].
    pub(crate) columns: Vec<usize>,
    /// The predicate over these.
    pub(crate) predicate: Predicate,
}

/// Conjuncts as a run has them.
pub(crate) fn start_conjuncts(conjuncts: &[Conjunct], run: &Run) -> Arc<[RunConjunct]> {
    let start = |conjunct: &Conjunct| RunConjunct {
        columns: conjunct.columns.clone(),
        predicate: Predicate::start(&conjunct.bound, run),
    };
    conjuncts.iter().map(start).collect()
}

/// Splits a predicate.
///
/// # Errors
/// As [`Bound::new`].
pub(crate) fn conjuncts(
    filter: Option<&Expr>,
    columns: &Tuple,
    lowering: &Lowering<'_>,
) -> Result<Vec<Conjunct>> {
    let exprs = filter.map(Expr::conjuncts).unwrap_or_default();
    exprs.iter().map(|expr| conjunct(expr, columns, lowering)).collect()
}

/// As [`conjuncts`], but those that code can do are one, and the first: of columns that are read at
/// little cost.
///
/// # Errors
/// As [`Bound::new`].
pub(crate) fn joined_conjuncts(
    filter: Option<&Expr>,
    columns: &Tuple,
    lowering: &Lowering<'_>,
) -> Result<Vec<Conjunct>> {
    let all = conjuncts(filter, columns, lowering)?;
    if all.iter().any(|conjunct| conjunct.bound.can_raise()) {
        return Ok(all);
    }
    let exprs = filter.map(Expr::conjuncts).unwrap_or_default();
    let (with_code, others): (Vec<_>, Vec<_>) =
        exprs.into_iter().zip(all).partition(|(_, conjunct)| conjunct.bound.has_code());
    let others = others.into_iter().map(|(_, conjunct)| conjunct);
    if with_code.is_empty() {
        return Ok(others.collect());
    }
    let joined = Expr::all(with_code.into_iter().map(|(expr, _)| expr).collect());
    Ok(std::iter::once(conjunct(&joined, columns, lowering)?).chain(others).collect())
}

fn conjunct(expr: &Expr, columns: &Tuple, lowering: &Lowering<'_>) -> Result<Conjunct> {
    let positions = describe::keys(columns, &expr.fields(), "field")?;
    let read =
        Tuple::new(positions.iter().map(|&i| columns.fields()[i].clone()).collect::<Vec<_>>());
    let bound = Bound::new(expr, &read, lowering.parameters, lowering.library)?;
    let parts = expr.conjuncts();
    Ok(Conjunct { columns: positions, bound, parts })
}

/// Applies conjuncts to a chunk of all columns, then yields the scan's fields.
pub(crate) fn filter_and_project(
    columns: &[Column],
    rows: usize,
    conjuncts: &[RunConjunct],
    fields: &[usize],
) -> Result<Chunk> {
    let chosen = |fields: &[usize]| fields.iter().map(|&i| columns[i].clone()).collect();
    let mut left = Chunk::new(Vec::new(), rows);
    for conjunct in conjuncts {
        left = conjunct.predicate.select(left.with_stored(chosen(&conjunct.columns)))?;
        if left.is_empty() {
            break;
        }
    }
    Ok(left.with_stored(chosen(fields)))
}

/// Reads a range, waiting for it: only while a plan starts or a file is looked into, never while a
/// worker runs.
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
