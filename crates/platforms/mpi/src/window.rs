//! `mpi_window`: room for exactly what other ranks will send.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use tessera_encodings::{Chunk, Column, Handle};
use tessera_ops::operator::downcast_workers;
use tessera_ops::rows::RowLayout;
use tessera_ops::stream_util::{Gathering, Later};
use tessera_ops::{
    Collected, Finish, Lowering, Operator, Reservation, Run, Sink, SinkRun, SinkWorker, SourceRun,
    SubOperator, describe,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_types::{Error, Field, Result, Tuple};

use crate::histogram::FIELDS;
use crate::link::{Link, Outcome, Reply, Work};
use crate::region::Place;

/// The format of the collection that a window is to the plan.
pub(crate) const WINDOW: &str = "mpi_window";

/// Allocates, on all ranks together, the memory that tuples of type `columns` will be put into: of each partition, its rows and
/// then the long strings of all, on the rank that owns it (`partition * ranks / partitions`); each rank's share is its own, so that
/// nobody has to ask before writing (Barthels et al., 2015, §4; Modularis §2.4.1.2).
///
/// Input: the output of an `mpi_histogram`; output one tuple `<window: mpi_window<columns>>`. Blocks. Memory: the window.
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
        let window = Field::collection("window", WINDOW, node.params.tuple("columns")?.clone());
        Ok(Edge { tuple: Tuple::new(vec![window]), traits: edge.traits, order: Order::Source })
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
        let layout = RowLayout::bare(node.params.tuple("columns")?)?;
        let tuple = &lowering.inputs[0].tuple;
        let fields = FIELDS.map(|name| tuple.index_of(name).unwrap_or(usize::MAX));
        Ok(Operator::Sink(Arc::new(Lowered { link, layout, fields, step: lowering.position })))
    }
}

#[derive(Debug, Clone)]
struct Lowered {
    link: Arc<Link>,
    layout: Arc<RowLayout>,
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
        Ok(Box::new(Gathering::default()))
    }

    fn in_order(&self) -> bool {
        true
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let Lowered { link, layout, fields, step } = &self.lowered;
        let mut columns: [Vec<i64>; 7] = Default::default();
        for worker in downcast_workers::<Gathering>(workers)? {
            for chunk in &worker.chunks {
                for (column, field) in columns.iter_mut().zip(fields) {
                    column.extend(chunk.column(*field)?.plain()?.as_primitive::<Int64Type>().values());
                }
            }
        }
        let [_, count, bytes, before, before_bytes, total, total_bytes] = columns;
        let (places, words) = places(layout.stride_bytes() / 8, link.ranks(), &total, &total_bytes)?;
        let mut memory = Reservation::new(self.run.context.clone());
        memory.grow(words[link.rank()] * 8)?;
        let share = |p: usize| {
            let from = (before[p] as u64, before_bytes[p] as u64);
            (from, (from.0 + count[p] as u64, from.1 + bytes[p] as u64))
        };
        let shares: Vec<_> = (0..count.len()).map(share).collect();
        let reply = link.step(*step, Work::Open(words[link.rank()] * 8));
        let (rank, layout) = (link.rank(), layout.clone());
        let make = move |outcome| {
            let Outcome::Window(window) = outcome else {
                return Err(Error::internal("a window that is none"));
            };
            window.set_map(layout, places, rank, shares.into_iter(), memory)?;
            let handle = Column::Handles(vec![Handle::new(window)].into());
            Ok(vec![Chunk::new(vec![handle], 1)])
        };
        let output = answer(reply, self.run.context.chunk_rows(), make);
        Ok(Finish { tasks: Vec::new(), output })
    }
}

/// What lies where, and how many words each rank's window has.
fn places(stride: usize, ranks: usize, rows: &[i64], bytes: &[i64]) -> Result<(Vec<Place>, Vec<usize>)> {
    let size =
        |number: i64| usize::try_from(number).map_err(|_| Error::internal("a histogram of negative counts"));
    let mut words = vec![0; ranks];
    let mut places = Vec::with_capacity(rows.len());
    for (partition, (rows_here, bytes_here)) in rows.iter().zip(bytes).enumerate() {
        let (rank, rows_here) = (partition * ranks / rows.len(), size(*rows_here)?);
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

/// The output of a collective step: ready when the communication worker has answered.
pub(crate) fn answer(
    reply: Arc<Reply>,
    chunk_rows: usize,
    make: impl FnOnce(Outcome) -> Result<Vec<Chunk>> + Send + 'static,
) -> Arc<dyn SourceRun> {
    Later::source(reply.token(), chunk_rows, move || make(reply.take()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_filled_exactly() {
        let (rows, bytes) = ([3, 0, 5, 1, 2, 0, 0, 4], [9, 0, 0, 16, 1, 0, 0, 7]);
        for ranks in [1, 2, 3, 8, 11] {
            let (places, words) = places(4, ranks, &rows, &bytes).unwrap();
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
