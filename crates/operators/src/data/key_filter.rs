//! `key_filter`: a Bloom filter and the key bounds of a hash table.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryViewArray, new_null_array};

use tessera_context::{Reservation, Run};
use tessera_operator::describe::edge;
use tessera_operator::stream_util::{Transform, transform_run};
use tessera_operator::{Lowering, Operator, Stream, StreamRun, SubOperator, describe};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::Collected;
use tessera_state::join::JoinTable;
use tessera_state::sideways::{Bloom, Exact, Extremes, filter_tuple};
use tessera_types::{Error, Field, Result, Tuple};
use tessera_vector::{Chunk, Column};

use super::build::{HASH_TABLE, TABLE_FIELD};

/// Rows whose keys are hashed together.
const ROWS_AT_ONCE: usize = 2_048;

/// `key_filter`: summarizes the keys of a `build` over `R`, for a `semi_join_filter` to test.
///
/// * Input `<table: hash_table<R>>`; output one tuple `<filter: bytes?, least_k: K?, greatest_k:
///   K?, …>`, with a pair of bounds for each of `keys`. `filter` is a Bloom filter over all keys
///   together, or, for a single integer key with a dense range, a bitmap from the least to the
///   greatest key. A bound is NULL when unknown: a key is NULL, or its type has no order in
///   statistics. Spilled build tuples are read to compute it.
/// * `keys`: fields of `R`, those of the build, in their order.
/// * Five rows with the keys `3, 9, 4, 3, 7` give `<filter, 3, 9>`. Other keys are dropped, except
///   for false positives of the filter.
/// * Memory: 8 to 16 bits per key; if the budget lacks them, the filter is NULL. Never blocks; the
///   output tuple can be sent to other processes.
/// * Source: Lang, Neumann, Kemper, Boncz, VLDB 2019, see `sideways/bloom.rs`.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%r = values() {columns = <j: int64, b: string>, rows = [[1, 'one'], [2, 'two'], [2,
///        'due']]}
///      %table = build(%r) {keys = [j]}
///      %found = key_filter(%table) {keys = [j]}
///      %result = projection(%found) {fields = [least_j, greatest_j]}",
/// );
/// assert_eq!(rows, ["1 2"]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct KeyFilter;

impl Descriptor for KeyFilter {
    tessera_operator::describe!(
        "key_filter",
        "Makes a filter of the keys of a hash table.",
        ["keys"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        let (_, table) = describe::collection(&edge.tuple, TABLE_FIELD, HASH_TABLE)?;
        let keys = keys(node, &table.tuple)?;
        let tuple = filter_tuple(keys.iter().map(|key| &table.tuple.fields()[*key]));
        Ok(describe::passes(edge, tuple, Order::None))
    }

    fn check_producers(&self, node: &Node, producers: &[&Node], _edges: &[&Edge]) -> Result<()> {
        match producers {
            [build]
                if &*build.operator == "build"
                    && build.params.names("keys")? != node.params.names("keys")? =>
            {
                Err(other_keys())
            }
            _ => Ok(()),
        }
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }
}

impl SubOperator for KeyFilter {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let (_, table) = describe::collection(&lowering.inputs[0].tuple, TABLE_FIELD, HASH_TABLE)?;
        let keys = keys(node, &table.tuple)?;
        Ok(Operator::Stream(Arc::new(KeyFilterOperator { keys, build: table.tuple.clone() })))
    }
}

fn keys(node: &Node, tuple: &Tuple) -> Result<Vec<usize>> {
    let names = node.params.names("keys")?;
    if names.is_empty() {
        return Err(Error::semantic("parameter keys must name the keys of the build"));
    }
    describe::keys(tuple, &names, "key")
}

fn other_keys() -> Error {
    Error::semantic("parameter keys must name the keys of the build, in their order")
}

#[derive(Debug)]
struct KeyFilterOperator {
    keys: Vec<usize>,
    build: Tuple,
}

#[derive(Debug)]
struct KeyFilterRun {
    keys: Vec<Field>,
    positions: Vec<usize>,
    run: Run,
}

impl Stream for KeyFilterOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        let keys = self.keys.iter().map(|key| self.build.fields()[*key].clone()).collect();
        Ok(transform_run(KeyFilterRun { keys, positions: self.keys.clone(), run: run.clone() }))
    }
}

impl Transform for KeyFilterRun {
    fn apply(&self, chunk: Chunk) -> Result<Chunk> {
        let handles = chunk.column(0)?;
        let filters =
            handles.handles()?.iter().map(|handle| self.filter(&*handle.get::<JoinTable>()?));
        tessera_vector::concat_chunks(&filters.collect::<Result<Vec<_>>>()?)
    }
}

impl KeyFilterRun {
    fn filter(&self, table: &JoinTable) -> Result<Chunk> {
        if table.keys() != self.positions {
            return Err(other_keys());
        }
        let rows = table.len() + table.spilled().map_or(0, |gone| gone.rows() as usize);
        let blocks = Bloom::blocks_for(rows);
        let mut memory = Reservation::new(self.run.context.clone());
        let known = memory.grow(Bloom::bytes_of(blocks)).is_ok();
        let (filter, ends) = if known { self.known(table, blocks)? } else { (None, Vec::new()) };
        let filter: ArrayRef = Arc::new(BinaryViewArray::from_iter([filter]));
        let mut columns = vec![Column::new(filter)];
        if ends.is_empty() {
            let null = |field: &Field| {
                field.atom().map(|atom| Column::new(new_null_array(&atom.arrow(), 1)))
            };
            columns.extend(self.keys.iter().filter_map(null).flat_map(|null| [null.clone(), null]));
        }
        columns.extend(ends.into_iter().map(Column::new));
        Ok(Chunk::new(columns, 1))
    }

    fn known(&self, table: &JoinTable, blocks: usize) -> Result<(Option<Vec<u8>>, Vec<ArrayRef>)> {
        let atoms: Vec<_> = self.keys.iter().filter_map(Field::atom).collect();
        let mut extremes: Vec<_> = atoms.iter().map(|atom| Extremes::new(atom)).collect();
        self.each_part(table, |rows| {
            for (key, extremes) in
                self.positions.iter().zip(&mut extremes).filter(|(_, known)| known.is_known())
            {
                extremes.add(&table.gather(*key, rows)?.plain()?)?;
            }
            Ok(())
        })?;
        if let (None, [key], [_], [atom]) =
            (table.spilled(), &self.positions[..], &extremes[..], &atoms[..])
        {
            let ends = extremes.remove(0).finish(atom)?;
            let exact = Exact::between(&ends[0], &ends[1], Bloom::bytes_of(blocks));
            let mut memory = Reservation::new(self.run.context.clone());
            let exact = exact.filter(|exact| memory.grow(exact.memory_bytes()).is_ok());
            let filter = match exact {
                None => self.bloom(table, blocks)?.to_bytes(),
                Some(mut exact) => {
                    self.each_part(table, |rows| {
                        exact.add(&table.gather(*key, rows)?.plain()?);
                        Ok(())
                    })?;
                    self.run.counters.add("filter_bytes", exact.memory_bytes() as u64);
                    exact.to_bytes()
                }
            };
            return Ok((Some(filter), ends.into()));
        }
        let mut bloom = self.bloom(table, blocks)?;
        if let Some(gone) = table.spilled() {
            gone.see_keys(table.build(), |keys, hashes| {
                hashes.iter().for_each(|hash| bloom.add(*hash));
                for (key, extremes) in
                    keys.iter().zip(&mut extremes).filter(|(_, known)| known.is_known())
                {
                    extremes.add(&key.plain()?)?;
                }
                Ok(())
            })?;
            gone.set_filtered();
        }
        let ends = extremes.into_iter().zip(&atoms).map(|(extremes, atom)| extremes.finish(atom));
        let ends = ends.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        Ok((Some(bloom.to_bytes()), ends))
    }

    /// Calls a function with the rows of a table, some at a time.
    fn each_part(
        &self,
        table: &JoinTable,
        mut see: impl FnMut(&[u64]) -> Result<()>,
    ) -> Result<()> {
        let mut rows = Vec::new();
        for first in (0..table.len() as u64).step_by(ROWS_AT_ONCE) {
            self.run.context.check()?;
            rows.clear();
            rows.extend(table.row_range(first, ROWS_AT_ONCE));
            see(&rows)?;
        }
        Ok(())
    }

    /// Builds a Bloom filter of the keys of the rows in memory.
    fn bloom(&self, table: &JoinTable, blocks: usize) -> Result<Bloom> {
        let mut bloom = Bloom::new(blocks);
        self.each_part(table, |rows| {
            rows.iter().for_each(|row| bloom.add(table.hash_of(*row)));
            Ok(())
        })?;
        self.run.counters.add("filter_bytes", bloom.memory_bytes() as u64);
        Ok(bloom)
    }
}
