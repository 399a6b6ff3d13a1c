//! `projection`: keeps some fields.

use std::sync::Arc;

use tessera_context::Run;
use tessera_operator::describe::{edge, passes, renamed_order};
use tessera_operator::stream_util::{Transform, transform_run};
use tessera_operator::{Lowering, Operator, Stream, StreamRun, SubOperator, describe};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_rows::Collected;
use tessera_types::{Result, Tuple};
use tessera_vector::Chunk;

/// Keeps the fields named by `fields`, in that order (Modularis §2.3.2).
///
/// `<a, b, c>` with `fields = [c, a]` gives `<c, a>`: `(1, 2, 3), (4, 5, 6)` becomes `(3, 1), (6,
/// 4)`. Columns are shared, not copied; selections and encodings are preserved. Holds no memory,
/// never blocks, keeps the order.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <k: string, v: int64>, rows = [['a', 1], ['b', 2], ['a', 3], ['c',
///        4]]}
///      %result = projection(%t) {fields = [v]}",
/// );
/// assert_eq!(rows, ["1", "2", "3", "4"]);
/// ```
#[derive(Debug)]
pub struct Projection;

impl Descriptor for Projection {
    tessera_operator::describe!("projection", "Keeps some of the fields.", ["fields"], 1, 1);

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        let names = node.params.names("fields")?;
        let fields = names
            .iter()
            .map(|name| Ok(describe::field(&edge.tuple, name, "field")?.1.clone()))
            .collect::<Result<Vec<_>>>()?;
        let order =
            renamed_order(&edge.order, |name| names.iter().find(|kept| &***kept == name).cloned());
        Ok(passes(edge, Tuple::new(fields), order))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }
}

impl SubOperator for Projection {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let tuple = &lowering.inputs[0].tuple;
        let names = node.params.names("fields")?;
        let fields = names
            .iter()
            .map(|name| Ok(describe::field(tuple, name, "field")?.0))
            .collect::<Result<Arc<[usize]>>>()?;
        Ok(Operator::Stream(Arc::new(ProjectionOperator { fields })))
    }
}

#[derive(Debug, Clone)]
struct ProjectionOperator {
    fields: Arc<[usize]>,
}

impl Stream for ProjectionOperator {
    fn start(&self, _run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        Ok(transform_run(self.clone()))
    }
}

impl Transform for ProjectionOperator {
    fn apply(&self, chunk: Chunk) -> Result<Chunk> {
        Ok(chunk.project(&self.fields))
    }

    fn passes_lazy(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{batch, same};
    use tessera_operator::testing::{SETTINGS, names};
    use tessera_plan::Params;

    use crate::testing::test_plan;

    #[test]
    fn fields_are_kept_in_the_order_asked_for() {
        let mut plan = test_plan();
        let table = plan.table(batch("<a: int64, b: string?>", "1 x|2 NULL|3 z"));
        let root =
            plan.add("projection", &[table], Params::new().with("fields", names(&["b", "a"])));
        for (chunk, workers) in SETTINGS {
            same(
                &plan.run(root, chunk, workers).unwrap(),
                "<b: string?, a: int64>",
                "x 1|NULL 2|z 3",
            );
        }
    }

    #[test]
    fn a_missing_field_is_named() {
        let mut plan = test_plan();
        let table = plan.table(batch("<a: int64>", ""));
        let root = plan.add("projection", &[table], Params::new().with("fields", names(&["c"])));
        let message = plan.verify(root).unwrap_err().to_string();
        assert!(message.contains("field c is not a field of <a: int64>"), "{message}");
        let mut plan = test_plan();
        let table = plan.table(batch("<a: int64>", ""));
        let root =
            plan.add("projection", &[table], Params::new().with("fields", names(&["a", "a"])));
        assert!(plan.verify(root).unwrap_err().to_string().contains("duplicate field"));
    }
}
