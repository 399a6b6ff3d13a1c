//! Common code of scans of files: parameters, typing, hive partitions, conversion to the declared
//! types.

mod conjuncts;
mod pruning;
mod types;
pub(crate) mod uuids;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, new_null_array};
use arrow::datatypes::{DataType, FieldRef, Schema};
use bytes::Bytes;

use tessera_context::{Compression, Context, RangeReader, Read, ReadBuffer};
use tessera_operator::describe;
use tessera_operator::format::{COMPRESSION, compression_of};
use tessera_plan::{Edge, Expr, Inputs, Node, Order, Scalar, Value};
use tessera_types::{
    Atom, Error, Field, Item, Result, Slot, TimeUnit, Tuple, quote_name, unique_names,
};
use tessera_values::scalar::scalar_to_array;

pub use conjuncts::{
    Conjunct, RunConjunct, conjuncts, filter_and_project, joined_conjuncts, start_conjuncts,
};
pub use pruning::FilePredicate;
pub use types::merge_tuples;
pub(crate) use types::{check_type, convert};

/// The parameter that says that columns of files become their common type.
pub(crate) const UNION: &str = "union_by_name";
/// The parameter of all columns of a table whose values are checked, whatever a statement reads.
pub(crate) const CHECKED: &str = "checked";

/// The checked parameters of a scan of files.
#[derive(Debug, Clone)]
pub struct FileScan {
    /// The files.
    pub paths: Vec<Arc<str>>,
    /// The columns that the filter reads.
    pub columns: Tuple,
    /// The positions of the output columns.
    pub fields: Vec<usize>,
    /// The predicate.
    pub filter: Option<Expr>,
    /// For each path, the columns that are constant there.
    pub partitions: Vec<Vec<(Arc<str>, Scalar, Atom)>>,
    /// Whether columns of the files become their common type.
    pub is_union: bool,
    /// The compression of the files, if their names do not say it.
    pub compression: Option<Option<Compression>>,
}

impl FileScan {
    /// Reads and checks the parameters of a node.
    ///
    /// # Errors
    /// A parameter is missing or malformed.
    pub fn new(node: &Node) -> Result<FileScan> {
        FileScan::of(node, node.params.strings("paths")?)
    }

    /// Like [`FileScan::new`], for the given paths.
    ///
    /// # Errors
    /// A parameter is missing or malformed.
    pub(crate) fn of(node: &Node, paths: Vec<Arc<str>>) -> Result<FileScan> {
        let read = node.params.tuple("columns")?;
        // A record is skipped for any of its values.
        let columns = match node.params.get(CHECKED) {
            Some(_) => node.params.tuple(CHECKED)?.clone(),
            None => read.clone(),
        };
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
            None if node.params.get(CHECKED).is_none() => (0..columns.len()).collect(),
            None => {
                let names: Vec<_> = read.fields().iter().map(|field| field.name.clone()).collect();
                describe::keys(&columns, &names, "column")?
            }
            Some(_) => describe::keys(&columns, &node.params.names("fields")?, "field")?,
        };
        let partitions = partitions(node, paths.len(), &columns)?;
        let filter = node.params.expr_opt("filter")?.cloned();
        let is_union = crate::csv::flag(&node.params, UNION)? == Some(true);
        let compression = match node.params.get(COMPRESSION.name) {
            Some(Value::String(name)) if !name.eq_ignore_ascii_case("auto") => {
                Some(compression_of(&node.params, "")?)
            }
            _ => None,
        };
        Ok(FileScan { paths, columns, fields, filter, partitions, is_union, compression })
    }

    /// The output type of the scan.
    pub(crate) fn output(&self) -> Tuple {
        Tuple::new(
            self.fields.iter().map(|&i| self.columns.fields()[i].clone()).collect::<Vec<_>>(),
        )
    }

    /// Returns the constants of the file at `position`: for each column, an array of one value if
    /// the column is constant.
    pub fn constants(&self, position: usize) -> Result<Vec<Option<ArrayRef>>> {
        let constants = self.partitions.get(position).map_or(&[][..], Vec::as_slice);
        self.columns
            .fields()
            .iter()
            .map(|field| match constants.iter().find(|(name, ..)| *name == field.name) {
                Some((_, scalar, atom)) => scalar_to_array(scalar, atom).map(Some),
                None => Ok(None),
            })
            .collect()
    }
}

/// Derives the output edge of a scan of files.
///
/// # Errors
/// A parameter is missing or malformed, or the filter is not a predicate over the columns.
pub fn derive(node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
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

/// The columns of a file. Duplicate names get numbers; a column of an unsupported type reads as
/// NULLs, so that the others can be read.
pub(crate) fn readable_tuple(schema: &Schema) -> Tuple {
    let names = unique_names(schema.fields().iter().map(|field| field.name().as_str()));
    let fields =
        schema.fields().iter().zip(names).map(|(field, name)| match Atom::of_field(field) {
            Ok(atom) => Field::nullable(name, atom).with_nullable(field.is_nullable()),
            Err(_) => Field::nullable(name, Atom::Null),
        });
    Tuple::new(fields.collect::<Vec<_>>())
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

/// Returns a NULL constant, for a column that a file lacks.
pub(crate) fn null_constant(atom: &Atom) -> ArrayRef {
    new_null_array(&atom.arrow(), 1)
}

/// Rejects NULLs in a column that is declared NOT NULL.
///
/// # Errors
/// The column holds a NULL.
pub fn check_nulls(array: &dyn Array, nullable: bool, path: &str, name: &str) -> Result<()> {
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
pub fn read_now(
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
