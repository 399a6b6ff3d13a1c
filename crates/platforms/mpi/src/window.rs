//! `mpi_window`: allocates memory for exactly the tuples that ranks will send.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use tessera_context::{Reservation, Run};
use tessera_operator::platform::{HeavyMode, heavy_partitions};
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, describe,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role, Value};
use tessera_rows::{Collected, RowLayout, range_of};
use tessera_types::{Error, Field, Result, Tuple};
use tessera_vector::{Chunk, Column, Handle};

use crate::collective::{ChunkBuffer, chunks_in_order, reply_source};
use crate::histogram::FIELDS;
use crate::link::{Link, Outcome, Work};
use crate::roles::Roles;
use crate::window_memory::{Owner, Placement};

/// The format of the collection that represents a window in a plan.
pub(crate) const WINDOW: &str = "mpi_window";

/// Allocates, on all ranks together, the memory that tuples of type `columns` will be put into.
/// Each partition has its rows and then its long strings, on the rank that owns it, `partition *
/// ranks / partitions`. Each sender has its own range, so that ranks write without coordination
/// (Barthels et al., 2015, §4; Modularis §2.4.1.2).
///
/// Input: the output of an `mpi_histogram`. Output: one tuple `<window: mpi_window<columns>>`. If
/// `columns` is a list of types, the histogram has as many parts of equal length, and the output
/// has a window for each, `<window_1: …, window_2: …>`, allocated in one step. Blocks. Memory: the
/// windows.
///
/// `heavy` is for the two windows of a join and says for each side whether its partitions may be
/// `split`, `copied` or `either`. If one partition (a frequent key) has more than half of what a
/// rank would hold of one side, its tuples stay on the ranks that read them and every rank gets a
/// copy of the other side's partition, if that is smaller.
#[derive(Debug, Clone)]
pub struct Window {
    link: Option<Arc<Link>>,
}

impl Window {
    pub(crate) fn new(link: Option<Arc<Link>>) -> Self {
        Window { link }
    }
}

/// Returns the error of a build without MPI for a plan that needs it.
pub(crate) fn missing_mpi() -> Error {
    Error::unsupported(
        "this program was built without MPI; run the query with --platform mpi, or with tessera-mpi under mpiexec; EXPLAIN (PLATFORM mpi) \
         works everywhere",
    )
}

impl Descriptor for Window {
    tessera_operator::describe!(
        "mpi_window",
        "Makes room for what other ranks will put.",
        ["columns", "heavy"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        for name in FIELDS {
            describe::field(&edge.tuple, name, "field")?;
        }
        let window =
            |(name, columns): (String, &Tuple)| Field::collection(name, WINDOW, columns.clone());
        let windows: Vec<Field> = relations(node)?.into_iter().map(window).collect();
        if may_split(node)?.is_some() && windows.len() != 2 {
            return Err(Error::semantic(
                "parameter heavy needs exactly two windows, those of a join",
            ));
        }
        Ok(Edge { tuple: Tuple::new(windows), traits: edge.traits, order: Order::Source })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }

    fn is_platform_specific(&self) -> bool {
        true
    }
}

impl SubOperator for Window {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let link = self.link.clone().ok_or_else(missing_mpi)?;
        let relations = relations(node)?.into_iter().map(|(_, columns)| columns.clone()).collect();
        let tuple = &lowering.inputs[0].tuple;
        let fields = FIELDS.map(|name| tuple.index_of(name).unwrap_or(usize::MAX));
        let may_split = may_split(node)?;
        Ok(Operator::Sink(Arc::new(WindowOperator {
            link,
            relations,
            may_split,
            fields,
            step: lowering.position,
        })))
    }
}

/// Returns for each side whether its heavy partitions may be split while the other side's are
/// copied.
fn may_split(node: &Node) -> Result<Option<[bool; 2]>> {
    let Some(heavy) = node.params.get("heavy") else { return Ok(None) };
    let wrong = || Error::semantic("parameter heavy must be two of :split, :copied and :either");
    let Value::List(sides) = heavy else { return Err(wrong()) };
    let [Some(one), Some(other)] = sides.iter().map(HeavyMode::named).collect::<Vec<_>>()[..]
    else {
        return Err(wrong());
    };
    let may_split = HeavyMode::may_split([one, other]);
    if may_split.contains(&true) { Ok(Some(may_split)) } else { Err(wrong()) }
}

/// Returns the name and tuple type of each window.
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
struct WindowOperator {
    link: Arc<Link>,
    relations: Arc<[Tuple]>,
    may_split: Option<[bool; 2]>,
    fields: [usize; 7],
    step: usize,
}

#[derive(Debug)]
struct WindowRun {
    operator: WindowOperator,
    run: Run,
}

impl Sink for WindowOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        Ok(Arc::new(WindowRun { operator: self.clone(), run: run.clone() }))
    }
}

impl SinkRun for WindowRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(ChunkBuffer::default()))
    }

    fn in_order(&self) -> bool {
        true
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let WindowOperator { link, relations, may_split, fields, step } = &self.operator;
        let mut columns: [Vec<i64>; 7] = Default::default();
        for chunk in chunks_in_order(workers)? {
            for (column, field) in columns.iter_mut().zip(fields) {
                column.extend(chunk.column(*field)?.plain()?.as_primitive::<Int64Type>().values());
            }
        }
        let [partition, count, bytes, before, before_bytes, total, total_bytes] = columns;
        // The first row of each relation.
        let firsts: Vec<usize> = (0..count.len()).filter(|row| partition[*row] == 0).collect();
        if firsts.len() != relations.len() {
            return Err(Error::data(format!(
                "mpi_window has {} column types but {} histograms; give one column type for each histogram",
                relations.len(),
                firsts.len()
            )));
        }
        let (rank, roles) = (link.rank(), Roles::all(link.ranks()));
        let is_range = |row: &usize| partition[*row] < 0;
        let ends = firsts.iter().copied().skip(1).chain([count.len()]);
        let of_relations: Vec<(Range<usize>, usize)> = firsts
            .iter()
            .zip(ends)
            .map(|(first, end)| (*first..(*first..end).find(is_range).unwrap_or(end), end))
            .collect();
        let heavy = match (may_split, &of_relations[..]) {
            (Some(may_split), [(one, _), (other, _)]) if one.len() == other.len() => {
                let sides = [&total[one.clone()], &total[other.clone()]];
                heavy_partitions(sides, *may_split, roles.ranks())
            }
            _ => Vec::new(),
        };
        // All ranks compute the same list, so one rank counts it.
        if rank == 0 && may_split.is_some() {
            self.run.counters.add("heavy_partitions", heavy.iter().flatten().count() as u64);
        }
        let (mut maps, mut sizes) = (Vec::new(), Vec::new());
        for (number, (columns, (own, end))) in relations.iter().zip(of_relations).enumerate() {
            let layout = layout(
                columns,
                (own.end..end).map(|row| (partition[row], total[row], total_bytes[row])),
            )?;
            let partitions = own.len();
            let owner = |partition: usize| match heavy.get(partition) {
                Some(Some(split)) if *split == number => Owner::Sender,
                Some(Some(_)) => Owner::All,
                _ => Owner::Rank(roles.owner(partition, partitions)),
            };
            let of_all = (&total[own.clone()], &total_bytes[own.clone()]);
            let of_rank = (&count[own.clone()], &bytes[own.clone()]);
            let (places, words) =
                places(layout.stride_bytes() / 8, (rank, roles.ranks()), owner, of_all, of_rank)?;
            let mut memory = Reservation::new(self.run.context.clone());
            memory.grow(words[rank] * 8)?;
            let share = |(p, place): (usize, &Placement)| {
                let from = match place.owner {
                    Owner::Sender => (0, 0),
                    Owner::Rank(_) | Owner::All => (before[p] as u64, before_bytes[p] as u64),
                };
                (from, (from.0 + count[p] as u64, from.1 + bytes[p] as u64))
            };
            let shares: Vec<_> = own.zip(&places).map(share).collect();
            maps.push((layout.clone(), places, shares, memory));
            sizes.push(words[rank] * 8);
        }
        let reply = link.step(*step, Work::Open(sizes));
        let make = move |outcome| {
            let Outcome::Windows(windows) = outcome else {
                return Err(Error::internal("mpi_window without windows"));
            };
            let mut columns = Vec::with_capacity(windows.len());
            for (window, (layout, places, shares, memory)) in windows.into_iter().zip(maps) {
                window.set_map(layout, places, rank, shares.into_iter(), memory)?;
                columns.push(Column::Handles(vec![Handle::new(window)].into()));
            }
            Ok(vec![Chunk::new(columns, 1)])
        };
        let output = reply_source(reply, &self.run, make);
        Ok(Finish { tasks: Vec::new(), output })
    }
}

/// Returns the layout of rows in flight, bit-packed for fields with a known range. A range row's
/// partition number is -1 minus the field's index.
fn layout(
    columns: &Tuple,
    ranges: impl Iterator<Item = (i64, i64, i64)>,
) -> Result<Arc<RowLayout>> {
    let mut of_fields = vec![None; columns.len()];
    for (number, least, greatest) in ranges {
        if let Some(range) =
            usize::try_from(-1 - number).ok().and_then(|field| of_fields.get_mut(field))
        {
            *range = range_of(least, greatest);
        }
    }
    RowLayout::packed(columns, &of_fields)
}

/// Places partitions in windows. Returns each partition's place and the number of words of each
/// rank's window; senders' own partitions count only for this rank.
///
/// Copied partitions come first, at the same position on all ranks. Partitions that stay with their
/// senders come last, since only this rank needs their position.
fn places(
    stride: usize,
    (rank, ranks): (usize, usize),
    owner: impl Fn(usize) -> Owner,
    of_all: (&[i64], &[i64]),
    of_rank: (&[i64], &[i64]),
) -> Result<(Vec<Placement>, Vec<usize>)> {
    let size = |number: i64| {
        usize::try_from(number).map_err(|_| Error::internal("histogram with negative counts"))
    };
    let place = |partition: usize| {
        let owner = owner(partition);
        let (rows, bytes) = if owner == Owner::Sender { of_rank } else { of_all };
        let (rows, heap_bytes) = (size(rows[partition])?, size(bytes[partition])?);
        Ok(Placement { owner, rows_at: 0, heap_at: 0, rows, heap_bytes })
    };
    let mut places = (0..of_all.0.len()).map(place).collect::<Result<Vec<_>>>()?;
    let mut words = vec![0; ranks];
    let mut take = |owner: Owner, length: usize| {
        let here = match owner {
            Owner::Rank(owner) => owner..owner + 1,
            Owner::All => 0..ranks,
            Owner::Sender => rank..rank + 1,
        };
        let at = words[here.start];
        words[here].iter_mut().for_each(|words| *words += length);
        at
    };
    let kinds: [fn(&Owner) -> bool; 3] = [
        |owner| *owner == Owner::All,
        |owner| matches!(owner, Owner::Rank(_)),
        |owner| *owner == Owner::Sender,
    ];
    for is_kind in kinds {
        for place in places.iter_mut().filter(|place| is_kind(&place.owner)) {
            place.rows_at = take(place.owner, place.rows * stride);
        }
        for place in places.iter_mut().filter(|place| is_kind(&place.owner)) {
            place.heap_at = take(place.owner, place.heap_bytes.div_ceil(8)) * 8;
        }
    }
    Ok((places, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_filled_exactly() {
        let of_all = (&[3, 0, 5, 1, 2, 0, 0, 4], &[9, 0, 0, 16, 1, 0, 0, 7]);
        let of_rank = (&[1, 0, 2, 1, 0, 0, 0, 3], &[9, 0, 0, 16, 0, 0, 0, 5]);
        for (ranks, odd) in
            [1, 2, 3, 8, 11].into_iter().flat_map(|ranks| [(ranks, false), (ranks, true)])
        {
            let owner = |partition: usize| match partition {
                2 | 3 if odd => Owner::Sender,
                4 | 7 if odd => Owner::All,
                _ => Owner::Rank(Roles::all(ranks).owner(partition, 8)),
            };
            let rank = ranks - 1;
            let (of_all, of_rank) =
                ((&of_all.0[..], &of_all.1[..]), (&of_rank.0[..], &of_rank.1[..]));
            let (places, words) = places(4, (rank, ranks), owner, of_all, of_rank).unwrap();
            for (here, words) in words.iter().enumerate() {
                let is_here = |place: &&Placement| match place.owner {
                    Owner::Sender => here == rank,
                    owner => owner.has(here),
                };
                let mut used: Vec<(usize, usize)> = Vec::new();
                for place in places.iter().filter(is_here) {
                    used.push((place.rows_at * 8, place.rows * 32));
                    used.push((place.heap_at, place.heap_bytes.next_multiple_of(8)));
                }
                used.sort_unstable();
                let mut end = 0;
                for (start, length) in used.iter().filter(|(_, length)| *length > 0) {
                    assert_eq!(*start, end, "{ranks} ranks, rank {here}");
                    end = start + length;
                }
                assert_eq!(end, words * 8);
            }
        }
    }
}
