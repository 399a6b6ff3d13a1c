//! `parameter_lookup`: the parameter tuple of a plan.

use std::sync::Arc;

use tessera_context::Run;
use tessera_operator::describe::{edge, passes};
use tessera_operator::stream_util::chunks_source;
use tessera_operator::{Lowering, Operator, Source, SourceRun, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::Collected;
use tessera_types::Result;

/// Yields the parameter tuple of its plan, once (Modularis §2.3.2).
///
/// In a nested plan that runs for `(1, rows)` it yields `(1, rows)`. In a top-level plan it yields
/// the tuple without fields. Holds nothing, never blocks.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <x: int64?>, rows = [[1], [2], [NULL::int64], [3]]}
///      %result = nested_map(%t) plan <x: int64?> {
///        %outer = parameter_lookup()
///        return %outer
///      }",
/// );
/// assert_eq!(rows, ["1", "2", "NULL", "3"]);
/// ```
#[derive(Debug)]
pub struct ParameterLookup;

impl Descriptor for ParameterLookup {
    tessera_operator::describe!(
        "parameter_lookup",
        "Yields the parameter tuple of its plan.",
        [],
        0,
        0
    );

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        Ok(passes(edge(inputs)?, inputs.parameters.clone(), Order::Source))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

impl SubOperator for ParameterLookup {
    fn lower(&self, _node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        Ok(Operator::Source(Arc::new(ParameterLookupOperator)))
    }
}

#[derive(Debug)]
struct ParameterLookupOperator;

impl Source for ParameterLookupOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        Ok(chunks_source(vec![run.parameters.clone()], run.context.chunk_rows()))
    }
}
