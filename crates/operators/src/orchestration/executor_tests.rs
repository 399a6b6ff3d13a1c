//! Tests that the verifier checks nested plans on platforms.

use tessera_context::testing::batch;
use tessera_operator::testing::{TestPlan, names};
use tessera_plan::{Builder, Edge, Params, Plan, Traits, Value};
use tessera_types::{Result, Tuple};

use crate::testing::test_plan;

/// Verifies a nested plan on platform `shared`, whose workers share memory, or on another one.
fn on(plan: &mut TestPlan, platform: &str, nested: Plan) -> Result<Edge> {
    plan.registry.share_memory("shared");
    let params = Params::new().with("platform", Value::name(platform));
    let root = plan.add_nested("executor", &[], params, nested);
    plan.verify(root)
}

fn nested(plan: &TestPlan, operators: &[(&str, Params)]) -> Plan {
    let mut builder = Builder::new(Tuple::empty());
    let mut root = builder.add("given", &[], plan.given(batch("<a: int64>", "1|2")));
    for (operator, params) in operators {
        root = builder.add(operator, &[root], params.clone());
    }
    builder.finish(root)
}

#[test]
fn the_result_of_many_workers_is_merged() {
    let mut plan = test_plan();
    let inner = nested(&plan, &[]);
    let message = on(&mut plan, "shared", inner).unwrap_err().to_string();
    assert!(message.contains("insert a merge"), "{message}");
    let mut plan = test_plan();
    let inner = nested(&plan, &[("merge", Params::new())]);
    assert_eq!(on(&mut plan, "shared", inner).unwrap().traits, Traits::DRIVER);
}

#[test]
fn workers_that_share_nothing_need_an_exchange() {
    let limit = ("limit", Params::new().with("limit", 1));
    let exchange = ("exchange", Params::new().with("keys", names(&["a"])));
    let mut plan = test_plan();
    let inner = nested(&plan, std::slice::from_ref(&limit));
    assert!(on(&mut plan, "shared", inner).is_ok());
    let mut plan = test_plan();
    let inner = nested(&plan, std::slice::from_ref(&limit));
    let message = on(&mut plan, "apart", inner).unwrap_err().to_string();
    assert!(message.contains("insert an exchange"), "{message}");
    let mut plan = test_plan();
    let inner = nested(&plan, &[exchange, limit]);
    assert!(on(&mut plan, "apart", inner).is_ok());
}
