//! `unnest`: yields a tuple for each element of a list.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt32Array};
use arrow::compute;

use tessera_context::{Context, Run};
use tessera_operator::describe::{edge, passes, renamed_order};
use tessera_operator::{
    Lowering, Operator, Step, Stream, StreamRun, StreamWorker, SubOperator, describe,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_rows::Collected;
use tessera_types::{Atom, Error, Field, Item, Result, Tuple, quote_name};
use tessera_vector::{Chunk, Column};

/// Replaces the lists named by `fields` by their elements: one tuple per position, the other fields
/// repeated.
///
/// `<k, l: list<int64>>` = `(a, [1, 2]), (b, [])` with `fields = [l]` gives `(a, 1), (a, 2)`.
/// Several lists are unnested in parallel, shorter ones padded with NULL. A tuple whose lists are
/// all empty or NULL is dropped, unless `outer` is true: then it yields one tuple with NULLs. Holds
/// a chunk, never blocks, keeps the order.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <k: string, words: string>, rows = [['a', 'x y'], ['b', 'z']]}
///      %lists = map(%t) {exprs = {k = k, word = string_split(words, ' ')}}
///      %result = unnest(%lists) {fields = [word]}",
/// );
/// assert_eq!(rows, ["a x", "a y", "b z"]);
/// ```
#[derive(Debug)]
pub struct Unnest;

impl Descriptor for Unnest {
    tessera_operator::describe!(
        "unnest",
        "Yields a tuple for each element of its lists.",
        ["fields", "outer"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        let names = node.params.names("fields")?;
        if names.is_empty() {
            return Err(Error::semantic("parameter fields must name at least one list"));
        }
        let padded = names.len() > 1 || node.params.flag("outer")?;
        let mut fields = edge.tuple.fields().to_vec();
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                return Err(Error::semantic(format!(
                    "field {} is named twice in parameter fields of unnest",
                    quote_name(name)
                )));
            }
            let (position, field) = describe::field(&edge.tuple, name, "field")?;
            let Item::Atom(Atom::List(slot)) = &field.item else {
                let found = &field.item;
                return Err(Error::semantic(format!(
                    "field {} is {found}; unnest expects a list",
                    quote_name(name)
                )));
            };
            fields[position] = Field {
                name: name.clone(),
                item: Item::Atom(slot.atom.clone()),
                nullable: slot.nullable || padded,
            };
        }
        let order = renamed_order(&edge.order, |field| {
            (!names.iter().any(|name| &**name == field)).then(|| Arc::from(field))
        });
        Ok(passes(edge, Tuple::new(fields), order))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }
}

impl SubOperator for Unnest {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let tuple = &lowering.inputs[0].tuple;
        let names = node.params.names("fields")?;
        let lists = names
            .iter()
            .map(|name| Ok(describe::field(tuple, name, "field")?.0))
            .collect::<Result<Arc<[usize]>>>()?;
        Ok(Operator::Stream(Arc::new(UnnestOperator { lists, outer: node.params.flag("outer")? })))
    }
}

#[derive(Debug, Clone)]
struct UnnestOperator {
    lists: Arc<[usize]>,
    outer: bool,
}

impl Stream for UnnestOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        Ok(Arc::new(UnnestRun { operator: self.clone(), context: run.context.clone() }))
    }
}

#[derive(Debug)]
struct UnnestRun {
    operator: UnnestOperator,
    context: Arc<dyn Context>,
}

impl StreamRun for UnnestRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        let (operator, context) = (self.operator.clone(), self.context.clone());
        Ok(Box::new(UnnestWorker { operator, context, current: None }))
    }
}

struct UnnestWorker {
    operator: UnnestOperator,
    context: Arc<dyn Context>,
    current: Option<CurrentChunk>,
}

/// A chunk being unnested, the next tuple, and the next position in its lists.
struct CurrentChunk {
    chunk: Chunk,
    lists: Vec<ListArray>,
    row: usize,
    element: usize,
}

impl CurrentChunk {
    /// Returns how many output tuples a tuple yields.
    fn count(&self, row: usize, outer: bool) -> usize {
        let length =
            |list: &ListArray| if list.is_valid(row) { list.value_length(row) as usize } else { 0 };
        self.lists.iter().map(length).max().unwrap_or(0).max(usize::from(outer))
    }

    /// Returns up to `most` tuples: the input tuple of each, and its position in each list's
    /// values.
    fn next(&mut self, most: usize, outer: bool) -> (Vec<u32>, Vec<Vec<Option<u32>>>) {
        let mut parents = Vec::new();
        let mut elements = vec![Vec::new(); self.lists.len()];
        while self.row < self.chunk.rows() && parents.len() < most {
            let count = self.count(self.row, outer);
            let upto = count.min(self.element + most - parents.len());
            parents.resize(parents.len() + upto - self.element, self.row as u32);
            for (list, elements) in self.lists.iter().zip(&mut elements) {
                let start = list.value_offsets()[self.row] as usize;
                let len =
                    if list.is_valid(self.row) { list.value_length(self.row) as usize } else { 0 };
                elements
                    .extend((self.element..upto).map(|e| (e < len).then_some((start + e) as u32)));
            }
            self.element = upto;
            if upto == count {
                (self.row, self.element) = (self.row + 1, 0);
            }
        }
        (parents, elements)
    }
}

impl StreamWorker for UnnestWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let chunk = chunk.compact()?;
        let list = |&field: &usize| -> Result<ListArray> {
            let array: ArrayRef = chunk.stored()[field].plain()?;
            let list = array.as_list_opt::<i32>();
            list.cloned().ok_or_else(|| Error::internal("a list that is not in its plain form"))
        };
        let lists = self.operator.lists.iter().map(list).collect::<Result<Vec<_>>>()?;
        self.current = Some(CurrentChunk { chunk, lists, row: 0, element: 0 });
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        let Some(current) = &mut self.current else { return Ok(Step::NeedInput) };
        self.context.check()?;
        let (parents, elements) = current.next(self.context.chunk_rows(), self.operator.outer);
        if parents.is_empty() {
            self.current = None;
            return Ok(Step::NeedInput);
        }
        let rows = parents.len();
        let parents = UInt32Array::from(parents);
        let columns = current.chunk.stored().iter().enumerate().map(|(field, column)| {
            match self.operator.lists.iter().position(|list| *list == field) {
                None => column.take(&parents),
                Some(list) => {
                    let positions = UInt32Array::from(elements[list].clone());
                    Ok(Column::Plain(compute::take(
                        current.lists[list].values(),
                        &positions,
                        None,
                    )?))
                }
            }
        });
        Ok(Step::HasOutput(Chunk::new(columns.collect::<Result<_>>()?, rows)))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, ListBuilder, RecordBatch, StringViewBuilder};
    use arrow::datatypes::{Field as ArrowField, Int64Type, Schema};

    use tessera_context::testing::same;
    use tessera_operator::testing::{SETTINGS, names};
    use tessera_plan::Params;

    use super::*;
    use crate::testing::test_plan;

    fn table() -> RecordBatch {
        let keys = Int64Array::from(vec![1, 2, 3, 4]);
        let numbers = ListArray::from_iter_primitive::<Int64Type, _, _>(vec![
            Some(vec![Some(10), None, Some(12)]),
            None,
            Some(vec![]),
            Some(vec![Some(40)]),
        ]);
        let mut texts = ListBuilder::new(StringViewBuilder::new());
        texts.append_value([Some("a")]);
        texts.append_value([Some("b"), Some("a text longer than twelve bytes")]);
        texts.append_null();
        texts.append_value([Some("d")]);
        let texts = texts.finish();
        let schema = Schema::new(vec![
            ArrowField::new("k", keys.data_type().clone(), false),
            ArrowField::new("n", numbers.data_type().clone(), true),
            ArrowField::new("t", texts.data_type().clone(), true),
        ]);
        RecordBatch::try_new(
            schema.into(),
            vec![Arc::new(keys), Arc::new(numbers), Arc::new(texts)],
        )
        .unwrap()
    }

    fn unnested(fields: &[&str], outer: bool, keep: &[&str], tuple: &str, expected: &str) {
        let mut plan = test_plan();
        let table = plan.table(table());
        let params = Params::new().with("fields", names(fields)).with("outer", outer);
        let root = plan.add("unnest", &[table], params);
        let root = plan.add("projection", &[root], Params::new().with("fields", names(keep)));
        for (chunk, workers) in SETTINGS {
            same(&plan.run(root, chunk, workers).unwrap(), tuple, expected);
        }
    }

    #[test]
    fn one_list() {
        unnested(&["n"], false, &["k", "n"], "<k: int64, n: int64?>", "1 10|1 NULL|1 12|4 40");
        unnested(
            &["n"],
            true,
            &["k", "n"],
            "<k: int64, n: int64?>",
            "1 10|1 NULL|1 12|2 NULL|3 NULL|4 40",
        );
    }

    #[test]
    fn lists_side_by_side_are_padded() {
        let long = "a_text_longer_than_twelve_bytes".replace('_', "\u{a0}");
        let expected = format!("1 10 a|1 NULL NULL|1 12 NULL|2 NULL b|2 NULL {long}|4 40 d");
        let expected = expected.replace('\u{a0}', "_");
        let mut plan = test_plan();
        let table = plan.table(table());
        let root = plan.add("unnest", &[table], Params::new().with("fields", names(&["n", "t"])));
        for (chunk, workers) in SETTINGS {
            let rows: Vec<String> =
                tessera_context::testing::rows(&plan.run(root, chunk, workers).unwrap());
            assert_eq!(
                rows.join("|")
                    .replace("a text longer than twelve bytes", &long.replace('\u{a0}', "_")),
                expected
            );
        }
    }

    #[test]
    fn only_lists_can_be_unnested() {
        let mut plan = test_plan();
        let table = plan.table(table());
        let root = plan.add("unnest", &[table], Params::new().with("fields", names(&["k"])));
        let message = plan.verify(root).unwrap_err().to_string();
        assert!(message.contains("field k is int64; unnest expects a list"), "{message}");
    }
}
