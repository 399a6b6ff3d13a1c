//! Filters: narrows the selection of a chunk, conjunct by conjunct.

use std::sync::Arc;

use arrow::array::UInt32Array;
use arrow::buffer::BooleanBuffer;
use tessera_types::Result;
use tessera_vector::Chunk;

use super::bind::Node;
use super::evaluate::{View, evaluate};
use super::logic::{CHEAP, Truth};
use tessera_values::kernel::true_bits;

/// If at least one in this many stored tuples is selected, a cheap conjunct is evaluated for all of
/// them instead of gathering.
const DENSE_SHARE: usize = 4;

/// Orders the conjuncts: as written, but cheap ones first within each run of conjuncts that cannot
/// fail.
pub(crate) fn order(conjuncts: &mut [Node]) {
    for run in conjuncts.chunk_by_mut(|a, b| !a.raises && !b.raises) {
        run.sort_by_key(|node| node.cost);
    }
}

/// The tuples selected so far.
enum SelectionState {
    All,
    Bits(BooleanBuffer),
    Positions(UInt32Array),
}

/// Selects the tuples for which every conjunct is true.
pub(crate) fn select(conjuncts: &[Node], chunk: Chunk, parameters: &Chunk) -> Result<Chunk> {
    let stored = chunk.rows_stored();
    let mut state = match chunk.selection() {
        None => SelectionState::All,
        Some(selection) => SelectionState::Positions(selection.as_ref().clone()),
    };
    for conjunct in conjuncts {
        let rows = match &state {
            SelectionState::All => stored,
            SelectionState::Bits(bits) => bits.count_set_bits(),
            SelectionState::Positions(positions) => positions.len(),
        };
        if rows == 0 {
            break;
        }
        let dense = !conjunct.raises && conjunct.cost <= CHEAP && rows * DENSE_SHARE >= stored;
        if dense || matches!(state, SelectionState::All) {
            let view = View::all(chunk.stored(), stored, parameters);
            match Truth::of(&evaluate(conjunct, &view)?)? {
                Truth::Constant(Some(true)) => {}
                Truth::Constant(_) => {
                    state = SelectionState::Positions(UInt32Array::from(Vec::<u32>::new()))
                }
                Truth::Each(array) => state = intersect(state, true_bits(&array)),
            }
            continue;
        }
        let positions = match state {
            SelectionState::Positions(positions) => positions,
            SelectionState::Bits(bits) => bits.set_indices_u32().collect::<Vec<_>>().into(),
            SelectionState::All => (0..stored as u32).collect::<Vec<_>>().into(),
        };
        let view = View::at(chunk.stored(), positions.clone(), parameters);
        state = SelectionState::Positions(match Truth::of(&evaluate(conjunct, &view)?)? {
            Truth::Constant(Some(true)) => positions,
            Truth::Constant(_) => UInt32Array::from(Vec::<u32>::new()),
            Truth::Each(array) => {
                let kept = true_bits(&array);
                kept.set_indices().map(|i| positions.value(i)).collect::<Vec<_>>().into()
            }
        });
    }
    Ok(match state {
        SelectionState::All => chunk,
        SelectionState::Bits(bits) if bits.count_set_bits() == stored => chunk,
        SelectionState::Bits(bits) => {
            chunk.select(Arc::new(bits.set_indices_u32().collect::<Vec<_>>().into()))
        }
        SelectionState::Positions(positions) if positions.len() == chunk.rows() => chunk,
        SelectionState::Positions(positions) => chunk.select(Arc::new(positions)),
    })
}

/// Intersects the selection with a bitmap over all stored tuples.
fn intersect(state: SelectionState, bits: BooleanBuffer) -> SelectionState {
    match state {
        SelectionState::All => SelectionState::Bits(bits),
        SelectionState::Bits(old) => SelectionState::Bits(&old & &bits),
        SelectionState::Positions(old) => {
            let kept =
                old.values().iter().copied().filter(|&position| bits.value(position as usize));
            SelectionState::Positions(kept.collect::<Vec<_>>().into())
        }
    }
}
