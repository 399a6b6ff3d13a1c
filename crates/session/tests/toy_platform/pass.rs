//! The pass: the shared distribution, with `toy_exchange` in the place of the abstract exchange.

use tessera_optimizer::physical;
use tessera_plan::{OperatorCatalog, Params, Plan, Rules, Value};
use tessera_types::Result;

pub(crate) fn for_workers(
    plan: &Plan,
    catalog: &OperatorCatalog,
    workers: usize,
    rules: Rules,
) -> Result<Plan> {
    physical::run_by_workers(plan, catalog, (super::NAME, workers), rules, &mut |out, node, _| {
        let mut params = Params::new();
        // Without keys and `gather`, tuples go to all workers.
        for name in ["keys", "gather", "first"] {
            if let Some(value) = node.params.get(name) {
                params.set(name, value.clone());
            }
        }
        let sent = out.add("toy_exchange", &node.inputs, params);
        Ok(out.add("rows_scan", &[sent], Params::new().with("field", Value::name("data"))))
    })
}
