//! `mpi_histogram`: sums the partition sizes of all ranks, and of the ranks before this one.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::Int64Type;
use tessera_context::Run;
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, describe,
};
use tessera_plan::{Descriptor, Edge, Inputs, Locality, Node, Order, Role, Traits};
use tessera_rows::Collected;
use tessera_types::{Atom, Error, Field, Result, Tuple};
use tessera_vector::Chunk;

use crate::collective::{ChunkBuffer, chunks_in_order, reply_source};
use crate::link::{Link, Outcome, Work};
use crate::window::missing_mpi;

/// The fields of the output, all `int64`: for each partition, the tuples and the bytes of long
/// strings on this rank (`count`, `bytes`), on the ranks before it, and on all ranks.
pub(crate) const FIELDS: [&str; 7] =
    ["partition", "count", "bytes", "before", "before_bytes", "total", "total_bytes"];

/// Sums the histograms of all ranks: an all-reduce for the sizes of partitions and an exclusive
/// scan for where this rank's tuples begin in them, started together (Modularis §2.4.1.2, which has
/// only the sum).
///
/// The rows in which `local_histogram` gives value ranges get the minimum of all ranks as `total`
/// and the maximum as `total_bytes`.
///
/// Input: the output of one `local_histogram`, or of several concatenated, which share one
/// collective step. Output: one tuple per input tuple, with the fields of `FIELDS`. Blocks.
#[derive(Debug, Clone)]
pub struct Histogram {
    link: Option<Arc<Link>>,
}

impl Histogram {
    pub(crate) fn new(link: Option<Arc<Link>>) -> Self {
        Histogram { link }
    }
}

impl Descriptor for Histogram {
    tessera_operator::describe!("mpi_histogram", "Adds up the histograms of all ranks.", [], 1, 1);

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        for name in ["partition", "count"] {
            describe::field(&edge.tuple, name, "field")?;
        }
        let traits = Traits { locality: Locality::All, ..edge.traits };
        let fields: Vec<Field> =
            FIELDS.into_iter().map(|name| Field::new(name, Atom::Int64)).collect();
        Ok(Edge { tuple: Tuple::new(fields), traits, order: Order::Source })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }

    fn is_platform_specific(&self) -> bool {
        true
    }
}

impl SubOperator for Histogram {
    fn lower(&self, _node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let link = self.link.clone().ok_or_else(missing_mpi)?;
        let tuple = &lowering.inputs[0].tuple;
        let (partition, _) = describe::field(tuple, "partition", "field")?;
        let (count, _) = describe::field(tuple, "count", "field")?;
        let bytes = tuple.index_of("bytes");
        Ok(Operator::Sink(Arc::new(HistogramOperator {
            link,
            step: lowering.position,
            partition,
            count,
            bytes,
        })))
    }
}

#[derive(Debug, Clone)]
struct HistogramOperator {
    link: Arc<Link>,
    step: usize,
    partition: usize,
    count: usize,
    bytes: Option<usize>,
}

#[derive(Debug)]
struct HistogramRun {
    operator: HistogramOperator,
    run: Run,
}

impl Sink for HistogramOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        Ok(Arc::new(HistogramRun { operator: self.clone(), run: run.clone() }))
    }
}

impl SinkRun for HistogramRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Ok(Box::new(ChunkBuffer::default()))
    }

    fn in_order(&self) -> bool {
        true
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let chunks = chunks_in_order(workers)?;
        let column = |index: Option<usize>| -> Result<Vec<i64>> {
            let mut all = Vec::new();
            for chunk in &chunks {
                match index {
                    Some(index) => {
                        all.extend(
                            chunk.column(index)?.plain()?.as_primitive::<Int64Type>().values(),
                        );
                    }
                    None => all.extend(std::iter::repeat_n(0, chunk.rows())),
                }
            }
            Ok(all)
        };
        let partitions = column(Some(self.operator.partition))?;
        let (counts, bytes) = (column(Some(self.operator.count))?, column(self.operator.bytes)?);
        let ranges =
            Ranges::new(&partitions, (self.operator.link.rank(), self.operator.link.ranks()));
        let own = ranges.contribution(&counts, &bytes);
        let reply = self.operator.link.step(self.operator.step, Work::Sum(own));
        let make = move |outcome| {
            let Outcome::Sums(before, total) = outcome else {
                return Err(Error::internal("mpi_histogram without sums"));
            };
            let n = counts.len();
            let (mut totals, mut total_bytes) = (total[..n].to_vec(), total[n..2 * n].to_vec());
            ranges.merge(&total[2 * n..], &mut totals, &mut total_bytes);
            let columns = [
                partitions,
                counts,
                bytes,
                before[..n].to_vec(),
                before[n..2 * n].to_vec(),
                totals,
                total_bytes,
            ];
            let columns =
                columns.map(|column: Vec<i64>| Arc::new(Int64Array::from(column)) as ArrayRef);
            Ok(vec![Chunk::from_arrays(columns.to_vec())])
        };
        let output = reply_source(reply, &self.run, make);
        Ok(Finish { tasks: Vec::new(), output })
    }
}

/// The rows of a histogram that hold a minimum and a maximum. A sum over all ranks gathers these
/// too: each rank has its own slots, which are zero on the other ranks.
struct Ranges {
    rows: Vec<usize>,
    rank: usize,
    ranks: usize,
}

impl Ranges {
    fn new(partitions: &[i64], (rank, ranks): (usize, usize)) -> Ranges {
        let rows = (0..partitions.len()).filter(|row| partitions[*row] < 0).collect();
        Ranges { rows, rank, ranks }
    }

    /// Returns the numbers that this rank contributes: counts, bytes, and for each range the slots
    /// of all ranks.
    fn contribution(&self, counts: &[i64], bytes: &[i64]) -> Vec<i64> {
        let mut own: Vec<i64> = counts.iter().chain(bytes).copied().collect();
        for row in &self.rows {
            (own[*row], own[counts.len() + row]) = (0, 0);
            for rank in 0..self.ranks {
                let here = rank == self.rank;
                own.extend(if here { [counts[*row], bytes[*row]] } else { [0, 0] });
            }
        }
        own
    }

    /// Writes the minimum and maximum over all ranks into the rows of ranges.
    fn merge(&self, gathered: &[i64], least: &mut [i64], greatest: &mut [i64]) {
        for (row, places) in self.rows.iter().zip(gathered.chunks_exact(self.ranks * 2)) {
            least[*row] = places.iter().step_by(2).copied().min().unwrap_or(i64::MAX);
            greatest[*row] = places.iter().skip(1).step_by(2).copied().max().unwrap_or(i64::MIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_all_ranks() {
        let partitions = [0, 1, -2, -1];
        let ranks = [([5, 0, -7, i64::MAX], [0, 3, 9, i64::MIN]), ([1, 2, 4, 8], [0, 0, 4, 8])];
        let mut sum = [0; 4 * 2 + 2 * 2 * 2];
        for (rank, (counts, bytes)) in ranks.iter().enumerate() {
            let own = Ranges::new(&partitions, (rank, 2)).contribution(counts, bytes);
            sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        let (mut least, mut greatest) = (sum[..4].to_vec(), sum[4..8].to_vec());
        Ranges::new(&partitions, (0, 2)).merge(&sum[8..], &mut least, &mut greatest);
        assert_eq!((least, greatest), (vec![6, 2, -7, 8], vec![0, 3, 9, 8]));
    }
}
