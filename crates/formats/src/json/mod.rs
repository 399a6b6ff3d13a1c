//! `json_scan`: reads JSON files: objects one per line (newline-delimited JSON), in sequence over
//! any lines, or in one list. Only files of the first kind are read by several workers.
//!
//! A missing key is NULL. With `keys` (all keys that inference found), a record with another key is
//! an error that names it, so that no data is dropped silently; without, other keys are ignored.
//! With `ignore_errors`, a line that is no such record is skipped; `checked` are then all columns
//! of the table, since a record is skipped for any of its values, whatever the statement reads.
//! Columns of type string take any value: strings unchanged, others as JSON text. Lists, structs
//! and maps are decoded by Arrow's reader.
//!
//! Memory: one block per worker. Order: the source's.

mod format;
mod infer;
mod keys;
mod layout;
mod tokenizer;
mod write;

use std::sync::Arc;

use arrow::array::ArrayRef;

use tessera_context::RangeReader;
use tessera_operator::{Lowering, Operator, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Pushes, Role};
use tessera_types::{Atom, Result, Tuple};

use crate::csv::flag;
use crate::file::{self, FileScan};
use crate::text::cells::{Cells, shown};
use crate::text::quotes::{STATES, Transition};
use crate::text::{BadRecord, Head, IGNORE_ERRORS, Layout, TextFormat, TextScanOperator};

pub use format::Json;
pub use infer::infer;
use infer::without_columns;
pub(crate) use write::json_texts;
pub use write::{JsonMaterialize, write_batch};

pub(crate) use tokenizer::{Kind, elements, members, record_end, unescape};

use keys::Keys;
use layout::Arrangement;

/// Whether a file has one object per line.
///
/// # Errors
/// The file cannot be read or is not text.
pub fn is_lines(reader: &dyn RangeReader) -> Result<bool> {
    Ok(Arrangement::of(&mut Head::new(reader, None))?.0 == Arrangement::Lines)
}

/// The sub-operator `json_scan`.
#[derive(Debug)]
pub struct JsonScan;

impl Descriptor for JsonScan {
    tessera_operator::describe!(
        "json_scan",
        "Reads the tuples of JSON files: objects in lines, one after the other, or in a list.",
        [
            "paths",
            "columns",
            "fields",
            "filter",
            "partitions",
            "keys",
            "sample",
            "compression",
            "ignore_errors",
            "checked"
        ],
        0,
        0
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        file::derive(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }

    fn pushes(&self) -> Pushes {
        Pushes::SCAN
    }
}

impl SubOperator for JsonScan {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let scan = FileScan::new(node)?;
        let keys = match node.params.get("keys") {
            None => None,
            Some(_) => Some(node.params.strings("keys")?),
        };
        let types = scan
            .columns
            .fields()
            .iter()
            .map(|field| field.atom().cloned().unwrap_or(Atom::Null))
            .collect();
        let columns = scan.columns.fields().iter().map(|field| field.name.clone());
        let known = keys.map(|keys| Keys::new(keys.into_iter().chain(columns)));
        let ignores = flag(&node.params, IGNORE_ERRORS.name)? == Some(true);
        let format = Arc::new(JsonFormat { keys: known, types, ignores });
        TextScanOperator::lowered((scan, node), lowering, format)
    }
}

/// The format of files of JSON objects.
#[derive(Debug)]
struct JsonFormat {
    /// The keys that a record may have; `None` permits any.
    keys: Option<Keys>,
    /// The type of each column of the scan.
    types: Vec<Atom>,
    /// Whether records that cannot be read are skipped.
    ignores: bool,
}

impl TextFormat for JsonFormat {
    fn has_states(&self) -> bool {
        // JSON strings contain no raw line ends.
        false
    }

    fn transition(&self, _bytes: &[u8]) -> Transition {
        [0; STATES]
    }

    fn first_record(&self, bytes: &[u8], _state: u8, at_end: bool) -> Option<usize> {
        match bytes.first()? {
            b'\n' => Some(1),
            _ => record_end(bytes, 1, at_end).map(|(_, next)| next),
        }
    }

    fn record_end(
        &self,
        layout: &Layout,
        bytes: &[u8],
        start: usize,
        at_end: bool,
    ) -> Option<(usize, usize)> {
        arrangement(layout).record_end(bytes, start, at_end)
    }

    fn layout(
        &self,
        head: &mut Head<'_>,
        columns: &Tuple,
        constants: &[Option<ArrayRef>],
    ) -> Result<Layout> {
        let read: Vec<usize> =
            (0..columns.len()).filter(|&column| constants[column].is_none()).collect();
        let names = read.iter().map(|&column| columns.fields()[column].name.clone()).collect();
        let (arrangement, header_bytes) = Arrangement::of(head)?;
        if self.ignores {
            arrangement.check_lines(head.path())?;
        }
        Ok(Layout {
            header_bytes: header_bytes as u64,
            read,
            names,
            is_whole: arrangement != Arrangement::Lines,
            is_list: arrangement == Arrangement::List,
            ..Layout::default()
        })
    }

    fn cells(
        &self,
        layout: &Layout,
        record: &[u8],
        cells: &mut [Cells],
    ) -> Result<bool, BadRecord> {
        let before = cells.first().map_or(0, Cells::len);
        let mut expected = 0;
        let mut seen = self.keys.as_ref().map(Keys::record_keys);
        layout.check_text(record)?;
        let mut member = |key: &[u8], kind, value: &[u8]| {
            if let Some(seen) = &mut seen {
                seen.add(key)?;
            }
            // Records mostly have the same keys in the same order.
            let column = match layout.names.get(expected) {
                Some(name) if name.as_bytes() == key => Some(expected),
                _ => layout.names.iter().position(|name| name.as_bytes() == key),
            };
            let Some(column) = column else { return Ok(()) };
            expected = column + 1;
            let atom = layout.read.get(column).and_then(|&column| self.types.get(column));
            let (Some(cells), Some(atom)) = (cells.get_mut(column), atom) else { return Ok(()) };
            if cells.len() > before {
                return Err(keys::duplicate_key(key));
            }
            push(cells, atom, key, kind, value)
        };
        if !arrangement(layout).members(record, &mut member)? {
            return Ok(false);
        }
        cells.iter_mut().filter(|cells| cells.len() == before).for_each(Cells::push_null);
        Ok(true)
    }

    fn hint(&self) -> &'static str {
        "declare the column as string, or, where its type was inferred from the first rows, set the option sample to all"
    }
}

fn arrangement(layout: &Layout) -> Arrangement {
    match (layout.is_whole, layout.is_list) {
        (false, _) => Arrangement::Lines,
        (true, false) => Arrangement::Objects,
        (true, true) => Arrangement::List,
    }
}

/// Adds a value to a column, if its kind matches the column's type.
fn push(
    cells: &mut Cells,
    atom: &Atom,
    key: &[u8],
    kind: Kind,
    value: &[u8],
) -> Result<(), String> {
    let nested = atom.is_nested();
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
