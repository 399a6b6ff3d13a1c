//! `group_by`: collects the tuples of each key (Modularis §2.3.4).

use std::sync::{Arc, Mutex};

use tessera_context::{Reservation, Run};
use tessera_operator::stream_util::{ChunksReader, chunks_source};
use tessera_operator::{
    Finish, Lowering, Operator, Reader, Sink, SinkRun, SinkWorker, SourceRun, SubOperator,
    describe, downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::{Collected, ResolvedColumns, RowLayout, RowsBuilder};
use tessera_state::group_table::{KeyLayout, Packed, Table};
use tessera_types::{Error, Field, Result, Tuple, quote_name};
use tessera_vector::{Chunk, Column, Handle};

/// Yields one tuple per distinct key: the keys, and the other fields of its tuples as `rows`.
///
/// * **Input** any tuple T; **output** the key fields, then `into: rows<T without keys>`, the
///   tuples of each key in source order. Empty for an empty input.
/// * **Parameters** `keys` = `[names]`; `into` = name.
/// * All NULL keys are one key, as are `-0.0` and `0.0`, and all NaNs.
/// * **Memory** the whole input. **Blocks** until the input is complete. **Order** not promised.
///
/// | in: k, x | `keys = [k], into = xs` |
/// |---|---|
/// | (a, 1), (b, 2), (a, 3), (NULL, 4), (NULL, 5) | (a, ⟨1, 3⟩), (b, ⟨2⟩), (NULL, ⟨4, 5⟩) |
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <k: string, v: int64>, rows = [['a', 1], ['a', 3]]}
///      %groups = group_by(%t) {keys = [k], into = group}
///      %result = rows_scan(%groups) {field = group}",
/// );
/// assert_eq!(rows, ["1", "3"]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct GroupBy;

impl Descriptor for GroupBy {
    tessera_operator::describe!(
        "group_by",
        "Collects the tuples of each key.",
        ["keys", "into"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        describe::require_all(edge, 0)?;
        let keys = describe::keys(&edge.tuple, &node.params.names("keys")?, "key")?;
        let (_, rest) = rest(&edge.tuple, &keys);
        let into = match node.param("into") {
            Some(tessera_plan::Value::Name(name) | tessera_plan::Value::String(name)) => {
                name.clone()
            }
            Some(tessera_plan::Value::Expr(tessera_plan::Expr::Field(name))) => name.clone(),
            Some(_) => return Err(Error::semantic("parameter into must be a name")),
            None => {
                return Err(Error::semantic(
                    "parameter into is missing: the name of the collection's field",
                ));
            }
        };
        let mut fields: Vec<Field> =
            keys.iter().map(|&key| edge.tuple.fields()[key].clone()).collect();
        if fields.iter().any(|field| field.name == into) {
            return Err(Error::semantic(format!(
                "parameter into: {} is a key already; choose another name",
                quote_name(&into)
            )));
        }
        fields.push(Field::collection(into, "rows", rest));
        Ok(describe::passes(edge, Tuple::new(fields), Order::None))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

/// Returns the positions and the tuple type of the fields that are not keys.
fn rest(tuple: &Tuple, keys: &[usize]) -> (Vec<usize>, Tuple) {
    let positions: Vec<usize> =
        (0..tuple.len()).filter(|position| !keys.contains(position)).collect();
    let fields: Vec<Field> =
        positions.iter().map(|&position| tuple.fields()[position].clone()).collect();
    (positions, Tuple::new(fields))
}

impl SubOperator for GroupBy {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let tuple = &lowering.inputs[0].tuple;
        let keys = describe::keys(tuple, &node.params.names("keys")?, "key")?;
        let (rest, inner) = rest(tuple, &keys);
        let types = keys
            .iter()
            .map(|&key| {
                let atom = tuple.fields()[key].atom();
                Ok(atom.ok_or_else(|| Error::internal("a key that holds a collection"))?.arrow())
            })
            .collect::<Result<Vec<_>>>()?;
        let layout = Arc::new(KeyLayout::new(&types, u64::MAX)?);
        let rows = RowLayout::new(&inner)?;
        Ok(Operator::Sink(Arc::new(GroupByOperator {
            spec: Arc::new(Spec { keys, rest, layout, rows }),
        })))
    }
}

#[derive(Debug)]
struct Spec {
    keys: Vec<usize>,
    rest: Vec<usize>,
    layout: Arc<KeyLayout>,
    rows: Arc<RowLayout>,
}

#[derive(Debug)]
struct GroupByOperator {
    spec: Arc<Spec>,
}

#[derive(Debug)]
struct GroupByRun {
    spec: Arc<Spec>,
    run: Run,
}

/// A chunk without its keys, and the group number of each tuple.
#[derive(Debug)]
struct Part {
    position: (u64, u64),
    chunk: Chunk,
    groups: Vec<u32>,
}

#[derive(Debug)]
struct GroupByWorker {
    spec: Arc<Spec>,
    table: Table,
    packed: Packed,
    parts: Vec<Part>,
    part_bytes: usize,
    position: (u64, u64),
    reservation: Reservation,
}

impl Sink for GroupByOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        Ok(Arc::new(GroupByRun { spec: self.spec.clone(), run: run.clone() }))
    }
}

impl SinkRun for GroupByRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(GroupByWorker {
            spec: self.spec.clone(),
            table: Table::of_keys(self.spec.layout.clone())?,
            packed: Packed::default(),
            parts: Vec::new(),
            part_bytes: 0,
            position: (0, 0),
            reservation: Reservation::new(self.run.context.clone()),
        }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let chunk_rows = self.run.context.chunk_rows();
        let mut workers = downcast_workers::<GroupByWorker>(workers)?.into_iter();
        let Some(mut all) = workers.next() else {
            return Ok(Finish { tasks: Vec::new(), output: chunks_source(Vec::new(), chunk_rows) });
        };
        let mut reservations = Vec::new();
        for mut worker in workers {
            let mut renumbered = Vec::new();
            let groups = worker.table.store.groups();
            all.table.assign(&worker.table.store, 0, groups, &mut renumbered)?;
            for part in &mut worker.parts {
                part.groups.iter_mut().for_each(|group| *group = renumbered[*group as usize]);
            }
            all.parts.append(&mut worker.parts);
            reservations.push(worker.reservation);
        }
        reservations.push(all.reservation);
        let mut parts = all.parts;
        parts.sort_by_key(|part| part.position);

        // Counting sort: lists the positions of the tuples of each group, in source order.
        let groups = all.table.store.groups();
        let mut starts = vec![0usize; groups + 1];
        let each = || parts.iter().flat_map(|part| &part.groups);
        each().for_each(|&group| starts[group as usize + 1] += 1);
        (1..starts.len()).for_each(|i| starts[i] += starts[i - 1]);
        let mut next = starts.clone();
        let mut tuples = vec![(0u32, 0u32); starts.last().copied().unwrap_or(0)];
        for (number, part) in parts.iter().enumerate() {
            for (row, &group) in part.groups.iter().enumerate() {
                let place = &mut next[group as usize];
                tuples[*place] = (number as u32, row as u32);
                *place += 1;
            }
        }
        let incoming = parts
            .iter()
            .map(|part| ResolvedColumns::of_chunk(&part.chunk))
            .collect::<Result<Vec<_>>>()?;
        let mut reservation = Reservation::new(self.run.context.clone());
        reservation.resize(tuples.len() * 8 + starts.len() * 8)?;
        reservations.push(reservation);
        let keys = all.table.store.finish()?;
        let output = Groups {
            spec: self.spec.clone(),
            run: self.run.clone(),
            keys,
            starts,
            tuples,
            incoming,
            _reservations: Mutex::new(reservations),
        };
        Ok(Finish { tasks: Vec::new(), output: Arc::new(output) })
    }
}

impl SinkWorker for GroupByWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.position = (position, 0);
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let rows = chunk.rows();
        let keys =
            self.spec.keys.iter().map(|&key| chunk.column(key)).collect::<Result<Vec<_>>>()?;
        self.spec.layout.pack(&keys, rows, &mut self.packed)?;
        let mut groups = Vec::with_capacity(rows);
        self.table.assign(&self.packed, 0, rows, &mut groups)?;
        let columns =
            self.spec.rest.iter().map(|&field| chunk.column(field)).collect::<Result<Vec<_>>>()?;
        self.part_bytes += columns.iter().map(Column::value_bytes).sum::<usize>() + rows * 4;
        self.parts.push(Part { position: self.position, chunk: Chunk::new(columns, rows), groups });
        self.position.1 += 1;
        self.reservation.resize(self.table.memory() + self.packed.memory() + self.part_bytes)
    }
}

/// The output: one morsel per chunk of groups, whose collections are built when it is opened.
#[derive(Debug)]
struct Groups {
    spec: Arc<Spec>,
    run: Run,
    keys: Chunk,
    starts: Vec<usize>,
    tuples: Vec<(u32, u32)>,
    incoming: Vec<ResolvedColumns>,
    _reservations: Mutex<Vec<Reservation>>,
}

impl SourceRun for Groups {
    fn morsels(&self) -> usize {
        self.keys.rows().div_ceil(self.run.context.chunk_rows())
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        self.run.context.check()?;
        let chunk_rows = self.run.context.chunk_rows();
        let first = morsel * chunk_rows;
        let count = chunk_rows.min(self.keys.rows().saturating_sub(first));
        let mut handles = Vec::with_capacity(count);
        let mut positions = Vec::new();
        for group in first..first + count {
            let reservation = Reservation::new(self.run.context.clone());
            let mut builder = RowsBuilder::new(self.spec.rows.clone(), reservation);
            let tuples = &self.tuples[self.starts[group]..self.starts[group + 1]];
            for run in tuples.chunk_by(|a, b| a.0 == b.0) {
                positions.clear();
                positions.extend(run.iter().map(|(_, row)| *row));
                builder.append(&self.incoming[run[0].0 as usize], None, Some(&positions))?;
            }
            handles.push(Handle::new(builder.seal()));
        }
        let keys = self.keys.slice(first, count);
        let mut columns = keys.stored().to_vec();
        columns.push(Column::Handles(handles.into()));
        Ok(Box::new(ChunksReader::new(vec![Chunk::new(columns, count)], chunk_rows)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringViewArray};
    use arrow::datatypes::Int64Type;

    use tessera_context::testing::TestContext;
    use tessera_operator::testing::SETTINGS;
    use tessera_plan::{Params, Value};
    use tessera_rows::Rows;

    use super::*;
    use crate::testing::test_plan;

    #[test]
    fn tuples_of_each_key_in_source_order() {
        for rows in [0i64, 1, 500] {
            let key = |n: i64| if n % 7 == 0 { None } else { Some(n * n % 11) };
            let text = |n: i64| format!("tuple number {n} of them all");
            let batch = RecordBatch::try_from_iter([
                ("t", Arc::new(StringViewArray::from_iter_values((0..rows).map(text))) as ArrayRef),
                ("k", Arc::new((0..rows).map(key).collect::<Int64Array>())),
                ("n", Arc::new(Int64Array::from_iter_values(0..rows))),
            ])
            .unwrap();
            let mut wanted: BTreeMap<Option<i64>, Vec<i64>> = BTreeMap::new();
            (0..rows).for_each(|n| wanted.entry(key(n)).or_default().push(n));
            let mut plan = test_plan();
            let given = plan.table(batch);
            let params =
                Params::new().with("keys", Value::names(["k"])).with("into", Value::name("data"));
            let root = plan.add("group_by", &[given], params);
            let edge = plan.verify(root).unwrap();
            assert!(edge.tuple.to_string().ends_with("data: rows<t: string, n: int64>>"));
            for (chunk_rows, workers) in SETTINGS {
                let context = TestContext::new(chunk_rows, workers);
                let mut found = BTreeMap::new();
                for chunk in
                    plan.collect(root, context.clone()).unwrap().chunks().map(Result::unwrap)
                {
                    let keys = chunk.column(0).unwrap().plain().unwrap();
                    let keys: Vec<Option<i64>> = keys.as_primitive::<Int64Type>().iter().collect();
                    for (key, handle) in
                        keys.into_iter().zip(chunk.column(1).unwrap().handles().unwrap())
                    {
                        let rows = handle.get::<Rows>().unwrap();
                        let all = rows.chunk(0..rows.len() as u64).unwrap();
                        let texts = all.column(0).unwrap().plain().unwrap();
                        let numbers = all.column(1).unwrap().plain().unwrap();
                        let numbers = numbers.as_primitive::<Int64Type>().values().to_vec();
                        let texts = texts.as_string_view();
                        assert!(
                            numbers.iter().zip(texts.iter()).all(|(n, t)| t == Some(&text(*n)))
                        );
                        assert!(found.insert(key, numbers).is_none());
                    }
                }
                assert_eq!(found, wanted);
                assert_eq!(context.used(), 0);
            }
        }
    }

    #[test]
    fn the_collection_needs_a_name_of_its_own() {
        let batch =
            RecordBatch::try_from_iter([("k", Arc::new(Int64Array::from(vec![1])) as ArrayRef)])
                .unwrap();
        for (into, part) in [(None, "into is missing"), (Some("k"), "is a key already")] {
            let mut plan = test_plan();
            let given = plan.table(batch.clone());
            let mut params = Params::new().with("keys", Value::names(["k"]));
            if let Some(into) = into {
                params.set("into", Value::name(into));
            }
            let root = plan.add("group_by", &[given], params);
            let message = plan.verify(root).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
