//! `arrow_to_collection`: converts Arrow tables to engine collections.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};

use tessera_context::Run;
use tessera_operator::describe::{collection, edge, field_name, passes};
use tessera_operator::stream_util::{Transform, transform_run};
use tessera_operator::{Lowering, Operator, Stream, StreamRun, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::Collected;
use tessera_types::{Error, Field, Item, Result, Tuple};
use tessera_values::plain::to_plain;
use tessera_vector::{Chunk, Column, Handle};

use super::arrow_table::ArrowTable;
use crate::Batch;
use crate::file::check_nulls;

/// Converts the tables in field `field`: each becomes a `batch` collection in plain forms
/// (Modularis §2.4.5).
///
/// `<table: arrow<a>>` = `table of 1 and 2, table of 3` with `field = table` gives `<data:
/// batch<a>>` = `batch of 1 and 2, batch of 3`. Copies only what is not in its plain form, buffers
/// nothing, never blocks, keeps the order. Errors: a NULL in a NOT NULL column, a value outside its
/// type's range.
#[derive(Debug)]
pub struct ArrowToCollection;

impl Descriptor for ArrowToCollection {
    tessera_operator::describe!(
        "arrow_to_collection",
        "Takes Arrow tables over as collections of batches.",
        ["field"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        let (_, table) = collection(&edge.tuple, &field_name(node, "field")?, "arrow")?;
        let data = Field::collection("data", "batch", table.tuple.clone());
        let order = if edge.order == Order::None { Order::None } else { Order::Source };
        Ok(passes(edge, Tuple::new(vec![data]), order))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }
}

impl SubOperator for ArrowToCollection {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let input = &lowering.inputs[0].tuple;
        let (field, table) = collection(input, &field_name(node, "field")?, "arrow")?;
        Ok(Operator::Stream(Arc::new(ArrowToCollectionOperator {
            field,
            tuple: table.tuple.clone(),
        })))
    }
}

#[derive(Debug, Clone)]
struct ArrowToCollectionOperator {
    field: usize,
    tuple: Tuple,
}

impl Stream for ArrowToCollectionOperator {
    fn start(&self, _run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        Ok(transform_run(self.clone()))
    }
}

impl Transform for ArrowToCollectionOperator {
    fn apply(&self, chunk: Chunk) -> Result<Chunk> {
        let column = chunk.column(self.field)?;
        let taken = column.handles()?.iter().map(|handle| {
            let table = handle.get::<ArrowTable>()?;
            let batch = self.plain(table.batch())?;
            Ok(Handle::new(Batch::new(vec![batch], table.take_memory().into_iter().collect())))
        });
        let taken = taken.collect::<Result<Vec<_>>>()?;
        let rows = taken.len();
        Ok(Chunk::new(vec![Column::Handles(taken.into())], rows))
    }
}

impl ArrowToCollectionOperator {
    /// Converts a batch to plain forms and checks it against the type of the tuples.
    fn plain(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        if batch.num_columns() != self.tuple.len() {
            return Err(Error::internal(
                "the columns of an Arrow table differ from its declared type",
            ));
        }
        let mut arrays = Vec::with_capacity(batch.num_columns());
        for (field, array) in self.tuple.fields().iter().zip(batch.columns()) {
            let Item::Atom(atom) = &field.item else {
                return Err(Error::internal("an Arrow table declares a collection column"));
            };
            let array = to_plain(array.clone(), atom)?;
            check_nulls(&array, field.nullable, "an Arrow table", &field.name)?;
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let schema = Arc::new(self.tuple.arrow_schema()?);
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
    use tessera_types::Atom;

    use super::*;

    fn lowered(nullable: bool) -> ArrowToCollectionOperator {
        let fields = vec![
            Field::new("n", Atom::Int64),
            Field::new("t", Atom::String).with_nullable(nullable),
        ];
        ArrowToCollectionOperator { field: 0, tuple: Tuple::new(fields) }
    }

    fn table() -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
        RecordBatch::try_from_iter([("n", numbers), ("t", texts)]).unwrap()
    }

    #[test]
    fn columns_take_their_plain_form() {
        let batch = lowered(true).plain(&table()).unwrap();
        assert_eq!(batch.column(1).as_string_view().value(0), "a");
        assert_eq!(batch.num_rows(), 2);
    }

    #[test]
    fn a_null_is_not_let_through() {
        let error = lowered(false).plain(&table()).unwrap_err();
        assert!(error.message().contains("holds NULL"), "{error}");
    }
}
