//! `json_materialize`: writes tuples as newline-delimited JSON. NULL is `null`, dates are ISO
//! strings.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema};
use arrow::json::writer::LineDelimited;

use tessera_context::Run;
use tessera_operator::{Lowering, Operator, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_types::{Error, Result};

use crate::output::{self, Encoder, FileSink, FileWriter, Part, TextFile, TrackedOutput};

/// The sub-operator `json_materialize`.
#[derive(Debug)]
pub struct JsonMaterialize;

impl Descriptor for JsonMaterialize {
    tessera_operator::describe!(
        "json_materialize",
        "Writes tuples to a file of newline-delimited JSON.",
        ["path"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        output::derive(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for JsonMaterialize {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let (path, tuple) = (node.params.string("path")?.clone(), lowering.inputs[0].tuple.clone());
        Ok(Operator::Sink(Arc::new(FileSink { path, tuple, encoder: Arc::new(JsonEncoder) })))
    }
}

#[derive(Debug)]
struct JsonEncoder;

impl Encoder for JsonEncoder {
    fn part(&self, batch: RecordBatch) -> Result<Part> {
        let mut text = Vec::new();
        write_batch(&batch, &mut text)?;
        Ok(Part::Text(text))
    }

    fn begin(&self, out: TrackedOutput, _run: &Run) -> Result<Box<dyn FileWriter>> {
        TextFile::begin(out, &[])
    }
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
