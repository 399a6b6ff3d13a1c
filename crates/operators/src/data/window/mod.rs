//! Window functions: `window_bounds`, `window_scan` and `window_frame`.
//!
//! All three are streams over the output of a `sort` with the parameter `partition`, whose morsels
//! hold whole partitions. `window_bounds` marks where partitions and groups of peers begin.
//! `window_scan` computes the functions that look at no later tuple but peers, and holds nothing
//! but their states and the current peers. `window_frame` computes all others over batches of whole
//! partitions.
//!
//! Sources: Leis et al., *Efficient processing of window functions in analytical SQL queries*,
//! 2015; Kohn et al., *Building advanced SQL analytics from low-level plan operators*, 2021.

mod aggregates;
mod batch;
mod bounds;
mod call;
mod exclude;
mod frame;
mod frame_operator;
mod limits;
mod navigate;
mod peers;
mod ranks;
mod scan;
#[cfg(test)]
mod tests;
mod waiting;

pub use bounds::WindowBounds;
pub use frame_operator::WindowFrame;
pub use scan::WindowScan;

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray};
use tessera_operator::describe::{edge, field_name, passes};
use tessera_plan::{Edge, Inputs, Node};
use tessera_types::{Atom, Error, Item, Result, Tuple, quote_name};
use tessera_vector::Chunk;

/// The sub-operators that `window_scan` and `window_frame` can read.
const PRODUCERS: [&str; 3] = ["window_bounds", "window_scan", "window_frame"];

/// The fields that mark the first tuple of each partition, and of each group of peers.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlagFields {
    pub(super) partition: usize,
    pub(super) peer: usize,
}

impl FlagFields {
    pub(super) fn new(node: &Node, tuple: &Tuple) -> Result<FlagFields> {
        let field = |parameter: &str| -> Result<usize> {
            let name = field_name(node, parameter)?;
            let (position, field) = tessera_operator::describe::field(tuple, &name, "field")?;
            match &field.item {
                Item::Atom(Atom::Boolean) => Ok(position),
                other => Err(Error::semantic(format!(
                    "field {} of parameter {parameter} is {other}; expected a boolean of window_bounds",
                    quote_name(&name)
                ))),
            }
        };
        Ok(FlagFields { partition: field("partition_start")?, peer: field("peer_start")? })
    }
}

/// Returns a boolean column of a chunk without NULLs.
pub(super) fn flags(chunk: &Chunk, field: usize) -> Result<BooleanArray> {
    let array = chunk.column(field)?.plain()?;
    let flags = array.as_boolean_opt().filter(|flags| flags.null_count() == 0);
    flags.cloned().ok_or_else(|| Error::internal("a window flag that is not a boolean"))
}

/// Derives the output of `window_scan` and `window_frame`: a field for each call follows the input.
fn derive_calls(node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
    let edge = edge(inputs)?;
    FlagFields::new(node, &edge.tuple)?;
    let calls = call::calls(node)?;
    let mut fields = edge.tuple.fields().to_vec();
    for call in &calls {
        fields.push(call.output(&edge.tuple, inputs).map_err(|error| {
            error.context(format!("window function {}", quote_name(&call.name)))
        })?);
    }
    Ok(passes(edge, Tuple::new(fields), edge.order.clone()))
}

/// Checks that the tuples come from one of these sub-operators, with nothing in between that could
/// change where morsels end.
pub(super) fn check_producer(producers: &[&Node], allowed: &[&str]) -> Result<()> {
    match producers.first() {
        Some(node) if allowed.contains(&&*node.operator) => Ok(()),
        Some(node) => Err(Error::semantic(format!(
            "the input is {}; expected {}, whose output has whole partitions",
            node.operator,
            allowed.join(", ")
        ))),
        None => Err(Error::internal("a window function without an input")),
    }
}

/// Names that are in `all` and in `names`, for the fields that an operator reads.
fn read_fields(tuple: &Tuple, names: impl IntoIterator<Item = Arc<str>>) -> Vec<usize> {
    let mut positions: Vec<usize> =
        names.into_iter().filter_map(|name| tuple.index_of(&name)).collect();
    positions.sort_unstable();
    positions.dedup();
    positions
}
