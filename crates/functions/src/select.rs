//! A bound predicate as a filter: the selection of a chunk, narrowed conjunct by conjunct.

use std::sync::Arc;

use arrow::array::UInt32Array;
use arrow::buffer::BooleanBuffer;
use tessera_types::Result;
use tessera_vector::Chunk;

use super::bind::Node;
use super::evaluate::{View, evaluate};
use super::kernel::true_bits;
use super::logic::{CHEAP, Truth};

/// While at least this share of the stored tuples counts, a cheap conjunct looks at all of them
/// instead of gathering.
const DENSE_SHARE: usize = 4;

/// The order in which conjuncts are evaluated: as written, but within each run of conjuncts that
/// cannot fail the cheap ones first.
pub(crate) fn order(conjuncts: &mut [Node]) {
    for run in conjuncts.chunk_by_mut(|a, b| !a.raises && !b.raises) {
        run.sort_by_key(|node| node.cost);
    }
}

/// Which stored tuples count so far.
enum Counting {
    All,
    Bits(BooleanBuffer),
    Positions(UInt32Array),
}

/// The tuples of `chunk` for which every conjunct is true.
pub(crate) fn select(conjuncts: &[Node], chunk: Chunk, parameters: &Chunk) -> Result<Chunk> {
    let stored = chunk.rows_stored();
    let mut counting = match chunk.selection() {
        None => Counting::All,
        Some(selection) => Counting::Positions(selection.as_ref().clone()),
    };
    for conjunct in conjuncts {
        let rows = match &counting {
            Counting::All => stored,
            Counting::Bits(bits) => bits.count_set_bits(),
            Counting::Positions(positions) => positions.len(),
        };
        if rows == 0 {
            break;
        }
        let dense = !conjunct.raises && conjunct.cost <= CHEAP && rows * DENSE_SHARE >= stored;
        if dense || matches!(counting, Counting::All) {
            let view = View::all(chunk.stored(), stored, parameters);
            match Truth::of(&evaluate(conjunct, &view)?)? {
                Truth::Constant(Some(true)) => {}
                Truth::Constant(_) => {
                    counting = Counting::Positions(UInt32Array::from(Vec::<u32>::new()))
                }
                Truth::Each(array) => counting = both(counting, true_bits(&array)),
            }
            continue;
        }
        let positions = match counting {
            Counting::Positions(positions) => positions,
            Counting::Bits(bits) => bits.set_indices_u32().collect::<Vec<_>>().into(),
            Counting::All => (0..stored as u32).collect::<Vec<_>>().into(),
        };
        let view = View::at(chunk.stored(), positions.clone(), parameters);
        counting = Counting::Positions(match Truth::of(&evaluate(conjunct, &view)?)? {
            Truth::Constant(Some(true)) => positions,
            Truth::Constant(_) => UInt32Array::from(Vec::<u32>::new()),
            Truth::Each(array) => {
                let kept = true_bits(&array);
                kept.set_indices().map(|i| positions.value(i)).collect::<Vec<_>>().into()
            }
        });
    }
    Ok(match counting {
        Counting::All => chunk,
        Counting::Bits(bits) if bits.count_set_bits() == stored => chunk,
        Counting::Bits(bits) => {
            chunk.select(Arc::new(bits.set_indices_u32().collect::<Vec<_>>().into()))
        }
        Counting::Positions(positions) if positions.len() == chunk.rows() => chunk,
        Counting::Positions(positions) => chunk.select(Arc::new(positions)),
    })
}

/// What counted and has its bit set, of all stored tuples.
fn both(counting: Counting, bits: BooleanBuffer) -> Counting {
    match counting {
        Counting::All => Counting::Bits(bits),
        Counting::Bits(old) => Counting::Bits(&old & &bits),
        Counting::Positions(old) => {
            let kept =
                old.values().iter().copied().filter(|&position| bits.value(position as usize));
            Counting::Positions(kept.collect::<Vec<_>>().into())
        }
    }
}
