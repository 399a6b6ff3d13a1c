//! `lab_tuples`: relations that lie in memory before the clock starts.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use tessera_encodings::{CHUNK_ROWS_MAX, Chunk};
use tessera_ops::stream_util::ChunksReader;
use tessera_ops::{Collected, Lowering, Operator, Reader, Run, Source, SourceRun, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_types::{Atom, Error, Field, Result, Tuple};

/// Tuples of a morsel.
const MORSEL_ROWS: u64 = 1 << 16;

/// Two relations of `<key: int64, payload: int64>` whose keys are the numbers below `tuples`, each once, in an order that spreads
/// every rank's over all; this rank's share is in memory.
#[derive(Debug, Clone)]
pub(crate) struct Tuples {
    tuples: u64,
    rank: usize,
    ranks: usize,
    relations: [Arc<Vec<Chunk>>; 2],
}

/// A hash of 64 bits (the finaliser of SplitMix64).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The payload of a key on a side.
fn payload(side: usize, key: u64) -> u64 {
    mix(key ^ (side as u64) << 40) >> 32
}

impl Tuples {
    /// The share of a rank; `tuples` is a power of two.
    pub(crate) fn new(tuples: u64, rank: usize, ranks: usize) -> Tuples {
        let relation = |side: usize| {
            let morsels = tuples.div_ceil(MORSEL_ROWS);
            let own = (rank as u64..morsels).step_by(ranks);
            let chunk = |first: u64, count: u64| {
                // Odd factors permute the numbers below a power of two.
                let key = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15 + 2 * side as u64)) & (tuples - 1);
                let keys: ArrayRef =
                    Arc::new(Int64Array::from_iter_values((first..first + count).map(|i| key(i) as i64)));
                let payloads = (first..first + count).map(|i| payload(side, key(i)) as i64);
                Chunk::from_arrays(vec![keys, Arc::new(Int64Array::from_iter_values(payloads))])
            };
            Arc::new(own.map(|m| chunk(m * MORSEL_ROWS, MORSEL_ROWS.min(tuples - m * MORSEL_ROWS))).collect())
        };
        Tuples { tuples, rank, ranks, relations: [relation(0), relation(1)] }
    }

    /// How many tuples the join has, and the sum of their payloads.
    pub(crate) fn answer(&self) -> (u64, i128) {
        let sum = |key: u64| i128::from(payload(0, key)) + i128::from(payload(1, key));
        (self.tuples, (0..self.tuples).map(sum).sum())
    }
}

impl Descriptor for Tuples {
    tessera_ops::describe!("lab_tuples", "Gives the tuples of a relation in memory.", ["side"], 0, 0);

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let names =
            if node.params.choice("side", &["left", "right"])? == "left" { ["k", "p"] } else { ["k2", "p2"] };
        let tuple = Tuple::new(names.map(|name| Field::new(name, Atom::Int64)).to_vec());
        let traits = inputs.edges.first().ok_or_else(|| Error::internal("a leaf without an edge"))?.traits;
        Ok(Edge { tuple, traits, order: Order::Source })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

impl SubOperator for Tuples {
    fn lower(&self, node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        let side = usize::from(node.params.choice("side", &["left", "right"])? == "right");
        Ok(Operator::Source(Arc::new(Relation { tuples: self.clone(), side })))
    }
}

#[derive(Debug, Clone)]
struct Relation {
    tuples: Tuples,
    side: usize,
}

impl Source for Relation {
    fn start(&self, _run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        Ok(Arc::new(self.clone()))
    }
}

impl SourceRun for Relation {
    /// Those of all ranks: the engine opens this rank's.
    fn morsels(&self) -> usize {
        self.tuples.tuples.div_ceil(MORSEL_ROWS) as usize
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let own = morsel.checked_sub(self.tuples.rank).map(|m| m / self.tuples.ranks);
        let chunk = own.and_then(|own| self.tuples.relations[self.side].get(own));
        let chunk = chunk.ok_or_else(|| Error::internal("a morsel of another rank"))?.clone();
        Ok(Box::new(ChunksReader::new(vec![chunk], CHUNK_ROWS_MAX)))
    }
}
