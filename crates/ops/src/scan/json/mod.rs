//! `json_scan`: the tuples of newline-delimited JSON: one object a line.
//!
//! A key that a record lacks is NULL. With `keys` (all keys that inference found), a record with another key is an error
//! that names it, so that nothing is lost silently; without, other keys are ignored. Columns of type string take any
//! value: strings as they are, others as JSON text. Lists, structs and maps are decoded by Arrow's reader.
//!
//! Memory: one block per worker. Order: the source's.

mod infer;
mod tokenizer;
mod write;

use std::sync::Arc;

use arrow::array::ArrayRef;

use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_types::{Atom, Result, Tuple};

use crate::operator::{Lowering, Operator, SubOperator};
use crate::scan::file::{self, FileScan, joined_conjuncts};
use crate::scan::text::cells::{Cells, shown};
use crate::scan::text::{BadRecord, Head, Layout, TextFormat, TextScan};

pub use infer::infer;
pub(crate) use write::json_texts;
pub use write::{JsonMaterialize, write_batch};

pub(crate) use tokenizer::{Kind, members, record_end, unescape};

/// The sub-operator.
#[derive(Debug)]
pub struct JsonScan;

impl Descriptor for JsonScan {
    crate::describe!(
        "json_scan",
        "Reads the tuples of newline-delimited JSON files.",
        ["paths", "columns", "fields", "filter", "partitions", "keys", "sample"],
        0,
        0
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        file::derive(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

impl SubOperator for JsonScan {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let scan = FileScan::new(node)?;
        let conjuncts = joined_conjuncts(scan.filter.as_ref(), &scan.columns, lowering)?.into();
        let keys = match node.params.get("keys") {
            None => None,
            Some(_) => Some(node.params.strings("keys")?),
        };
        let types =
            scan.columns.fields().iter().map(|field| field.atom().cloned().unwrap_or(Atom::Null)).collect();
        let format = Arc::new(JsonFormat { keys, types });
        Ok(Operator::Source(Arc::new(TextScan { scan, conjuncts, format })))
    }
}

/// Newline-delimited JSON.
#[derive(Debug)]
struct JsonFormat {
    keys: Option<Vec<Arc<str>>>,
    /// The type of each column of the scan.
    types: Vec<Atom>,
}

impl TextFormat for JsonFormat {
    fn quote(&self) -> Option<u8> {
        // Strings hold no raw line ends.
        None
    }

    fn may_split(&self) -> bool {
        true
    }

    fn record_end(&self, bytes: &[u8], start: usize, at_end: bool) -> Option<(usize, usize)> {
        record_end(bytes, start, at_end)
    }

    fn layout(&self, head: &mut Head<'_>, columns: &Tuple, constants: &[Option<ArrayRef>]) -> Result<Layout> {
        let read: Vec<usize> = (0..columns.len()).filter(|&column| constants[column].is_none()).collect();
        let names = read.iter().map(|&column| columns.fields()[column].name.clone()).collect();
        Ok(Layout { header_bytes: head.mark_bytes()? as u64, targets: Vec::new(), read, names })
    }

    fn cells(&self, layout: &Layout, record: &[u8], cells: &mut [Cells]) -> Result<(), BadRecord> {
        if record.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let before = cells.first().map_or(0, Cells::len);
        let mut expected = 0;
        members(record, &mut |key, kind, value| {
            // Records mostly have the same keys in the same order.
            let column = match layout.names.get(expected) {
                Some(name) if name.as_bytes() == key => Some(expected),
                _ => layout.names.iter().position(|name| name.as_bytes() == key),
            };
            let Some(column) = column else { return self.unknown(key) };
            expected = column + 1;
            let atom = layout.read.get(column).and_then(|&column| self.types.get(column));
            let (Some(cells), Some(atom)) = (cells.get_mut(column), atom) else { return Ok(()) };
            if cells.len() > before {
                return Err(format!("the key {} stands twice", shown(&String::from_utf8_lossy(key))));
            }
            push(cells, atom, key, kind, value)
        })
        .map_err(BadRecord)?;
        cells.iter_mut().filter(|cells| cells.len() == before).for_each(Cells::push_null);
        Ok(())
    }

    fn hint(&self) -> &'static str {
        "declare the column as string, or, where its type was inferred from the first rows, set the option sample to all"
    }
}

impl JsonFormat {
    fn unknown(&self, key: &[u8]) -> Result<(), String> {
        match &self.keys {
            Some(keys) if !keys.iter().any(|known| known.as_bytes() == key) => Err(format!(
                "the key {} was not in the rows that the columns were inferred from; set the option sample to all, or declare \
                 the columns that are wanted",
                shown(&String::from_utf8_lossy(key))
            )),
            _ => Ok(()),
        }
    }
}

/// Adds a value to a column, where it is of a kind the column takes.
fn push(cells: &mut Cells, atom: &Atom, key: &[u8], kind: Kind, value: &[u8]) -> Result<(), String> {
    let nested = matches!(atom, Atom::List(_) | Atom::Struct(_) | Atom::Map(..));
    let number = atom.is_numeric();
    match kind {
        Kind::Null => cells.push_null(),
        Kind::String if !nested && !number && *atom != Atom::Boolean => {
            let mut result = Ok(());
            cells.push_with(|out| result = unescape(value, out));
            result?;
        }
        Kind::Object | Kind::List if nested || *atom == Atom::String => cells.push(value),
        Kind::Number if number || *atom == Atom::String => cells.push(value),
        Kind::Boolean if matches!(atom, Atom::Boolean | Atom::String) => cells.push(value),
        _ => {
            return Err(format!(
                "column {}: {} is not a value of type {atom}; declare the column as string, or, where its type was inferred \
                 from the first rows, set the option sample to all",
                shown(&String::from_utf8_lossy(key)),
                shown(&String::from_utf8_lossy(value))
            ));
        }
    }
    Ok(())
}
