//! `lab_column`: integers that are in memory before the clock starts.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array};
use tessera_context::Run;
use tessera_operator::stream_util::{ChunksReader, long_chunk_rows};
use tessera_operator::{Lowering, Operator, Reader, Source, SourceRun, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::Collected;
use tessera_types::{Atom, Error, Field, Result, Tuple};
use tessera_vector::Chunk;

/// Tuples in a morsel.
const MORSEL_ROWS: usize = 1 << 18;

/// Tuples `<k, a>` of two 32-bit integers, or `<a>` of one 64-bit integer.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    morsels: Arc<[Morsel]>,
}

#[derive(Debug, Clone)]
enum Morsel {
    Narrow(Int32Array, Int32Array),
    Wide(Int64Array),
}

/// Returns a pseudo-random number below a million (the finalizer of SplitMix64).
fn number(at: usize) -> i32 {
    let x = (at as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) % 1_000_000) as i32
}

impl Columns {
    /// Generates tuples.
    pub(crate) fn new(tuples: usize, wide: bool) -> Columns {
        let morsel = |first: usize| {
            let range = first..tuples.min(first + MORSEL_ROWS);
            let narrow = |of: fn(usize) -> i32| Int32Array::from_iter_values(range.clone().map(of));
            match wide {
                true => {
                    Morsel::Wide(Int64Array::from_iter_values(range.map(|at| number(at).into())))
                }
                false => Morsel::Narrow(narrow(|at| at as i32), narrow(number)),
            }
        };
        Columns { morsels: (0..tuples).step_by(MORSEL_ROWS).map(morsel).collect() }
    }

    /// Returns the tuples of each morsel.
    pub(crate) fn narrow(&self) -> impl Iterator<Item = (&[i32], &[i32])> {
        self.morsels.iter().filter_map(|morsel| match morsel {
            Morsel::Narrow(keys, numbers) => Some((&keys.values()[..], &numbers.values()[..])),
            Morsel::Wide(_) => None,
        })
    }

    /// Returns the 64-bit numbers of each morsel.
    pub(crate) fn wide(&self) -> impl Iterator<Item = &[i64]> {
        self.morsels.iter().filter_map(|morsel| match morsel {
            Morsel::Narrow(..) => None,
            Morsel::Wide(numbers) => Some(&numbers.values()[..]),
        })
    }
}

impl Descriptor for Columns {
    tessera_operator::describe!("lab_column", "Returns integers in memory.", [], 0, 0);

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let fields = match self.morsels.first() {
            Some(Morsel::Wide(_)) => vec![Field::new("a", Atom::Int64)],
            _ => vec![Field::new("k", Atom::Int32), Field::new("a", Atom::Int32)],
        };
        let traits =
            inputs.edges.first().ok_or_else(|| Error::internal("a leaf without an edge"))?.traits;
        Ok(Edge { tuple: Tuple::new(fields), traits, order: Order::Source })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

impl SubOperator for Columns {
    fn lower(&self, _node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        Ok(Operator::Source(Arc::new(self.clone())))
    }
}

impl Source for Columns {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        Ok(Arc::new(ColumnsRun {
            morsels: self.morsels.clone(),
            chunk_rows: run.context.chunk_rows(),
        }))
    }
}

#[derive(Debug)]
struct ColumnsRun {
    morsels: Arc<[Morsel]>,
    chunk_rows: usize,
}

impl SourceRun for ColumnsRun {
    fn morsels(&self) -> usize {
        self.morsels.len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        Ok(Box::new(self.reader(morsel, self.chunk_rows)))
    }

    fn open_long(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        Ok(Box::new(self.reader(morsel, long_chunk_rows(self.chunk_rows))))
    }
}

impl ColumnsRun {
    fn reader(&self, morsel: usize, chunk_rows: usize) -> ChunksReader {
        let columns: Vec<ArrayRef> = match &self.morsels[morsel] {
            Morsel::Narrow(keys, numbers) => {
                vec![Arc::new(keys.clone()), Arc::new(numbers.clone())]
            }
            Morsel::Wide(numbers) => vec![Arc::new(numbers.clone())],
        };
        ChunksReader::new(vec![Chunk::from_arrays(columns)], chunk_rows)
    }
}
