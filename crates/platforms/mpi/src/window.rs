//! `mpi_window`: room for exactly what other ranks will send.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use tessera_encodings::{Chunk, Column, Handle};
use tessera_ops::rows::{RowLayout, range_of};
use tessera_ops::{
    Collected, Finish, Lowering, Operator, Reservation, Run, Sink, SinkRun, SinkWorker, SubOperator, describe,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role, Value};
use tessera_types::{Error, Field, Result, Tuple};

use crate::answer::{Held, answer, in_order};
use crate::histogram::FIELDS;
use crate::link::{Link, Outcome, Work};
use crate::region::Place;
use crate::roles::Roles;

/// The format of the collection that a window is to the plan.
pub(crate) const WINDOW: &str = "mpi_window";

/// Allocates, on all ranks together, the memory that tuples of type `columns` will be put into: of each partition, its rows and
/// then the long strings of all, on the rank that owns it (`partition * ranks / partitions`); each rank's share is its own, so that
/// nobody has to ask before writing (Barthels et al., 2015, §4; Modularis §2.4.1.2).
///
/// Input: the output of an `mpi_histogram`; output one tuple `<window: mpi_window<columns>>`. With `columns` a list of types, the
/// histogram has as many parts of equal length, and the output a window for each, `<window_1: …, window_2: …>`, made in one
/// step. Blocks. Memory: the windows.
#[derive(Debug, Clone)]
pub struct Window {
    link: Option<Arc<Link>>,
}

impl Window {
    pub(crate) fn new(link: Option<Arc<Link>>) -> Self {
        Window { link }
    }
}

/// What a plan of this platform needs and this build has not.
pub(crate) fn missing() -> Error {
    Error::unsupported(
        "this program has no MPI: start the query with --platform mpi, or tessera-mpi under mpiexec; EXPLAIN (PLATFORM mpi) \
         works everywhere",
    )
}

impl Descriptor for Window {
    tessera_ops::describe!("mpi_window", "Makes room for what other ranks will put.", ["columns"], 1, 1);

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        for name in FIELDS {
            describe::field(&edge.tuple, name, "field")?;
        }
        let window = |(name, columns): (String, &Tuple)| Field::collection(name, WINDOW, columns.clone());
        let windows: Vec<Field> = relations(node)?.into_iter().map(window).collect();
        Ok(Edge { tuple: Tuple::new(windows), traits: edge.traits, order: Order::Source })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }

    fn of_platform(&self) -> bool {
        true
    }
}

impl SubOperator for Window {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let link = self.link.clone().ok_or_else(missing)?;
        let relations = relations(node)?.into_iter().map(|(_, columns)| columns.clone()).collect();
        let tuple = &lowering.inputs[0].tuple;
        let fields = FIELDS.map(|name| tuple.index_of(name).unwrap_or(usize::MAX));
        Ok(Operator::Sink(Arc::new(Lowered { link, relations, fields, step: lowering.position })))
    }
}

/// The relations that windows are wanted for: the name of the window, and what it holds.
fn relations(node: &Node) -> Result<Vec<(String, &Tuple)>> {
    let Some(Value::List(several)) = node.params.get("columns") else {
        return Ok(vec![("window".to_string(), node.params.tuple("columns")?)]);
    };
    let several = several.iter().enumerate().map(|(number, value)| match value {
        Value::Tuple(columns) => Ok((format!("window_{}", number + 1), columns)),
        _ => Err(Error::semantic("parameter columns must be a tuple type, or several in brackets")),
    });
    several.collect()
}

#[derive(Debug, Clone)]
struct Lowered {
    link: Arc<Link>,
    relations: Arc<[Tuple]>,
    fields: [usize; 7],
    step: usize,
}

#[derive(Debug)]
struct WindowRun {
    lowered: Lowered,
    run: Run,
}

impl Sink for Lowered {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        Ok(Arc::new(WindowRun { lowered: self.clone(), run: run.clone() }))
    }
}

impl SinkRun for WindowRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(Held::default()))
    }

    fn in_order(&self) -> bool {
        true
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let Lowered { link, relations, fields, step } = &self.lowered;
        let mut columns: [Vec<i64>; 7] = Default::default();
        for chunk in in_order(workers)? {
            for (column, field) in columns.iter_mut().zip(fields) {
                column.extend(chunk.column(*field)?.plain()?.as_primitive::<Int64Type>().values());
            }
        }
        let [partition, count, bytes, before, before_bytes, total, total_bytes] = columns;
        // Where each relation's partitions begin.
        let firsts: Vec<usize> = (0..count.len()).filter(|row| partition[*row] == 0).collect();
        if firsts.len() != relations.len() {
            return Err(Error::data(format!(
                "{} windows are wanted of {} histograms; give one for each",
                relations.len(),
                firsts.len()
            )));
        }
        let (rank, roles) = (link.rank(), Roles::all(link.ranks()));
        let (mut maps, mut sizes) = (Vec::new(), Vec::new());
        let ends = firsts.iter().copied().skip(1).chain([count.len()]);
        for (columns, (first, end)) in relations.iter().zip(firsts.iter().zip(ends)) {
            let is_range = |row: &usize| partition[*row] < 0;
            let layout = layout(
                columns,
                (*first..end).filter(is_range).map(|row| (partition[row], total[row], total_bytes[row])),
            )?;
            let own = *first..(*first..end).find(is_range).unwrap_or(end);
            let (total, total_bytes) = (&total[own.clone()], &total_bytes[own.clone()]);
            let (places, words) = places(layout.stride_bytes() / 8, roles, total, total_bytes)?;
            let mut memory = Reservation::new(self.run.context.clone());
            memory.grow(words[rank] * 8)?;
            let share = |p: usize| {
                let from = (before[p] as u64, before_bytes[p] as u64);
                (from, (from.0 + count[p] as u64, from.1 + bytes[p] as u64))
            };
            maps.push((layout.clone(), places, own.map(share).collect::<Vec<_>>(), memory));
            sizes.push(words[rank] * 8);
        }
        let reply = link.step(*step, Work::Open(sizes));
        let make = move |outcome| {
            let Outcome::Windows(windows) = outcome else {
                return Err(Error::internal("a window that is none"));
            };
            let mut columns = Vec::with_capacity(windows.len());
            for (window, (layout, places, shares, memory)) in windows.into_iter().zip(maps) {
                window.set_map(layout, places, rank, shares.into_iter(), memory)?;
                columns.push(Column::Handles(vec![Handle::new(window)].into()));
            }
            Ok(vec![Chunk::new(columns, 1)])
        };
        let output = answer(reply, &self.run, make);
        Ok(Finish { tasks: Vec::new(), output })
    }
}

/// The layout of rows on their way: packed as far as there are ranges, of fields -1 less the first number.
fn layout(columns: &Tuple, ranges: impl Iterator<Item = (i64, i64, i64)>) -> Result<Arc<RowLayout>> {
    let mut of_fields = vec![None; columns.len()];
    for (number, least, greatest) in ranges {
        if let Some(range) = usize::try_from(-1 - number).ok().and_then(|field| of_fields.get_mut(field)) {
            *range = range_of(least, greatest);
        }
    }
    RowLayout::packed(columns, &of_fields)
}

/// What lies where, and how many words each rank's window has.
fn places(stride: usize, roles: Roles, rows: &[i64], bytes: &[i64]) -> Result<(Vec<Place>, Vec<usize>)> {
    let size =
        |number: i64| usize::try_from(number).map_err(|_| Error::internal("a histogram of negative counts"));
    let mut words = vec![0; roles.ranks()];
    let mut places = Vec::with_capacity(rows.len());
    for (partition, (rows_here, bytes_here)) in rows.iter().zip(bytes).enumerate() {
        let (rank, rows_here) = (roles.owner(partition, rows.len()), size(*rows_here)?);
        places.push(Place {
            rank,
            rows_at: words[rank],
            heap_at: 0,
            rows: rows_here,
            heap_bytes: size(*bytes_here)?,
        });
        words[rank] += rows_here * stride;
    }
    for place in &mut places {
        place.heap_at = words[place.rank] * 8;
        words[place.rank] += place.heap_bytes.div_ceil(8);
    }
    Ok((places, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_filled_exactly() {
        let (rows, bytes) = ([3, 0, 5, 1, 2, 0, 0, 4], [9, 0, 0, 16, 1, 0, 0, 7]);
        for ranks in [1, 2, 3, 8, 11] {
            let (places, words) = places(4, Roles::all(ranks), &rows, &bytes).unwrap();
            let mut used: Vec<Vec<(usize, usize)>> = vec![Vec::new(); ranks];
            for place in &places {
                used[place.rank].push((place.rows_at * 8, place.rows * 32));
                used[place.rank].push((place.heap_at, place.heap_bytes.next_multiple_of(8)));
            }
            for (rank, used) in used.iter_mut().enumerate() {
                used.sort_unstable();
                let mut end = 0;
                for (start, length) in used.iter().filter(|(_, length)| *length > 0) {
                    assert_eq!(*start, end, "{ranks} ranks, rank {rank}");
                    end = start + length;
                }
                assert_eq!(end, words[rank] * 8);
            }
        }
    }
}
