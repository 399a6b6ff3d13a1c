//! `json_materialize`: writes tuples as newline-delimited JSON, or with `array` as one list of
//! objects. NULL is `null`, dates are ISO strings.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema};
use arrow::json::writer::LineDelimited;

use tessera_context::{Compression, Run};
use tessera_operator::{Lowering, Operator, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_types::{Error, Result};

use crate::csv::flag;
use crate::output::{self, Encoder, FileWriter, Part, TextFile, TrackedOutput};

/// The option of one list of objects.
pub(super) const ARRAY: &str = "array";

/// The sub-operator `json_materialize`.
#[derive(Debug)]
pub struct JsonMaterialize;

impl Descriptor for JsonMaterialize {
    tessera_operator::describe!(
        "json_materialize",
        "Writes tuples to a file of JSON objects: one per line, or in one list.",
        ["path", "partitions", "array", "compression"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        flag(&node.params, ARRAY)?;
        output::written_compression(node)?;
        output::derive(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for JsonMaterialize {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let is_array = flag(&node.params, ARRAY)? == Some(true);
        let compression = output::written_compression(node)?;
        output::lower(node, lowering, |_| Ok(JsonEncoder { is_array, compression }))
    }
}

#[derive(Debug)]
struct JsonEncoder {
    /// Whether the objects are in one list.
    is_array: bool,
    compression: Option<Compression>,
}

impl Encoder for JsonEncoder {
    fn part(&self, batch: RecordBatch) -> Result<Part> {
        let mut text = Vec::new();
        write_batch(&batch, &mut text)?;
        Ok(Part::Text(if self.is_array { list_items(&text) } else { text }))
    }

    fn begin(&self, out: TrackedOutput, run: &Run) -> Result<Box<dyn FileWriter>> {
        match self.is_array {
            true => TextFile::separated(out, self.compression, run, b"[\n", [b",\n", b"\n]\n"]),
            false => TextFile::begin(out, self.compression, run, &[]),
        }
    }
}

/// Makes items of a list of lines, without the separator at the end.
fn list_items(lines: &[u8]) -> Vec<u8> {
    let lines = lines.strip_suffix(b"\n").unwrap_or(lines);
    let mut items = Vec::with_capacity(lines.len() + 1);
    for (number, line) in lines.split(|byte| *byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        items.extend_from_slice(if number > 0 { b",\n\t" } else { b"\t" });
        items.extend_from_slice(line);
    }
    items
}

/// Appends the rows of a batch as JSON objects, one per line.
///
/// # Errors
/// A value has no JSON form.
pub fn write_batch(batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
    let mut writer =
        arrow::json::WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(out);
    writer.write(batch)?;
    Ok(writer.finish()?)
}

/// Returns the JSON text of each value; `None` for NULL.
pub(crate) fn json_texts(array: &ArrayRef) -> Result<Vec<Option<String>>> {
    let schema = Arc::new(Schema::new(vec![Field::new("v", array.data_type().clone(), true)]));
    let mut text = Vec::new();
    write_batch(&RecordBatch::try_new(schema, vec![array.clone()])?, &mut text)?;
    let text = String::from_utf8(text).map_err(|_| Error::internal("written JSON is not UTF-8"))?;
    let strip = |line: &str| Some(line.strip_prefix("{\"v\":")?.strip_suffix('}')?.to_string());
    Ok(text
        .lines()
        .enumerate()
        .map(|(row, line)| if array.is_null(row) { None } else { strip(line) })
        .collect())
}
