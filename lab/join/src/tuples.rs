//! `lab_tuples`: relations that are in memory before the clock starts.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use tessera_context::{Run, Share};
use tessera_operator::stream_util::ChunksReader;
use tessera_operator::{Lowering, Operator, Reader, Source, SourceRun, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::Collected;
use tessera_types::{Atom, Error, Field, Result, Tuple};
use tessera_vector::{CHUNK_ROWS, Chunk};

/// Tuples in a morsel.
const MORSEL_ROWS: u64 = 1 << 16;

/// Relations of `<key: int64, payload: int64>`. Keys are dense, each occurs as often as the
/// relation has copies, and their order spreads them evenly over all ranks. Holds this rank's
/// share.
#[derive(Debug, Clone)]
pub(crate) struct Tuples {
    tuples: u64,
    share: Share,
    /// Copies of each key in each relation; powers of two.
    copies: Arc<[u64]>,
    relations: Arc<[Vec<Chunk>]>,
}

/// A 64-bit hash (the finalizer of SplitMix64).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns the payload of a key in a relation.
fn payload(relation: usize, key: u64) -> u64 {
    mix(key ^ (relation as u64) << 40) >> 32
}

impl Tuples {
    /// Generates a share of the relations; `tuples` and `copies` are powers of two.
    pub(crate) fn new(tuples: u64, copies: &[u64], share: Share) -> Tuples {
        let chunk = |relation: usize, numbers: std::ops::Range<u64>| {
            // Odd factors permute the numbers below a power of two.
            let factor = 0x9e37_79b9_7f4a_7c15 + 2 * relation as u64;
            let key = |i: u64| (i.wrapping_mul(factor) & (tuples - 1)) / copies[relation];
            let keys = numbers.clone().map(|i| key(i) as i64);
            let payloads = numbers.clone().map(|i| payload(relation, key(i)) as i64);
            let columns: [ArrayRef; 2] = [
                Arc::new(Int64Array::from_iter_values(keys)),
                Arc::new(Int64Array::from_iter_values(payloads)),
            ];
            Chunk::from_arrays(columns.to_vec())
        };
        let relation = |relation: usize| -> Vec<Chunk> {
            let morsels = if share.index < share.count { tuples.div_ceil(MORSEL_ROWS) } else { 0 };
            let own = (share.index as u64..morsels).step_by(share.count);
            own.map(|m| chunk(relation, m * MORSEL_ROWS..tuples.min((m + 1) * MORSEL_ROWS)))
                .collect()
        };
        let relations = (0..copies.len()).map(relation).collect();
        Tuples { tuples, share, copies: copies.into(), relations }
    }

    /// Returns the number of tuples in the join of all relations, and the sum of their payloads.
    pub(crate) fn join(&self) -> (u64, i128) {
        let product: u64 = self.copies.iter().product();
        let keys = self.copies.iter().map(|copies| self.tuples / copies).min().unwrap_or(0);
        let sum = |key: u64| -> i128 {
            (0..self.copies.len()).map(|relation| i128::from(payload(relation, key))).sum()
        };
        (keys * product, (0..keys).map(sum).sum::<i128>() * i128::from(product))
    }

    /// Returns the number of keys in the first relation, and the sum of its payloads.
    pub(crate) fn groups(&self) -> (u64, i128) {
        let (copies, sum) = (self.copies[0], |key: u64| i128::from(payload(0, key)));
        let keys = self.tuples / copies;
        (keys, (0..keys).map(sum).sum::<i128>() * i128::from(copies))
    }

    fn relation(&self, node: &Node) -> Result<usize> {
        let relation = match node.params.integer_opt("relation")? {
            Some(number) => usize::try_from(number).unwrap_or(usize::MAX),
            None => usize::from(node.params.choice("side", &["left", "right"])? == "right"),
        };
        let missing =
            || Error::semantic("unknown relation; give --copies one number for each relation");
        if relation < self.copies.len() { Ok(relation) } else { Err(missing()) }
    }
}

impl Descriptor for Tuples {
    tessera_operator::describe!(
        "lab_tuples",
        "Returns the tuples of a relation in memory.",
        ["side", "relation"],
        0,
        0
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let names = match self.relation(node)? {
            0 => ["k".to_string(), "p".to_string()],
            relation => ["k", "p"].map(|name| format!("{name}{}", relation + 1)),
        };
        let tuple = Tuple::new(names.map(|name| Field::new(name, Atom::Int64)).to_vec());
        let traits =
            inputs.edges.first().ok_or_else(|| Error::internal("a leaf without an edge"))?.traits;
        Ok(Edge { tuple, traits, order: Order::Source })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

impl SubOperator for Tuples {
    fn lower(&self, node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        let number = self.relation(node)?;
        Ok(Operator::Source(Arc::new(Relation { tuples: self.clone(), number })))
    }
}

#[derive(Debug, Clone)]
struct Relation {
    tuples: Tuples,
    number: usize,
}

impl Source for Relation {
    fn start(&self, _run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        Ok(Arc::new(self.clone()))
    }
}

impl SourceRun for Relation {
    /// The number of morsels of all ranks; the engine opens those of this rank.
    fn morsels(&self) -> usize {
        self.tuples.tuples.div_ceil(MORSEL_ROWS) as usize
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let Share { index, count } = self.tuples.share;
        let own = morsel.checked_sub(index).map(|m| m / count);
        let chunk = own.and_then(|own| self.tuples.relations[self.number].get(own));
        let chunk = chunk.ok_or_else(|| Error::internal("a morsel of another rank"))?.clone();
        Ok(Box::new(ChunksReader::new(vec![chunk], CHUNK_ROWS)))
    }
}
