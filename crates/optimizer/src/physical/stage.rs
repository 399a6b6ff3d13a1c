//! The state of a plan between passes: the plan, and its edges while they are known.

use tessera_plan::{OperatorCatalog, Plan, Traits, VerifiedPlan, verify_in};
use tessera_types::Result;

/// A plan that passes rewrite. Verification derives the edges, which stay valid until a pass
/// changes the plan.
pub(super) struct Stage<'a> {
    plan: Plan,
    verified: Option<VerifiedPlan>,
    catalog: &'a OperatorCatalog,
}

impl<'a> Stage<'a> {
    pub(super) fn new(plan: Plan, catalog: &'a OperatorCatalog) -> Self {
        Stage { plan, verified: None, catalog }
    }

    pub(super) fn into_plan(self) -> Plan {
        self.plan
    }

    /// Runs a pass that needs no edges.
    pub(super) fn pass(
        &mut self,
        name: &str,
        pass: impl FnOnce(&Plan) -> Result<Plan>,
    ) -> Result<()> {
        let plan = pass(&self.plan)?;
        self.set(name, plan)
    }

    /// Runs a pass that needs edges, if the plan has the sub-operator `operator`.
    pub(super) fn typed_pass(
        &mut self,
        name: &str,
        operator: Option<&str>,
        pass: impl FnOnce(&Plan, &VerifiedPlan) -> Result<Plan>,
    ) -> Result<()> {
        if operator.is_some_and(|operator| !has(&self.plan, operator)) {
            return Ok(());
        }
        let verified = match self.verified.take() {
            Some(verified) => verified,
            None => verify_in(&self.plan, self.catalog, Traits::DRIVER)?,
        };
        let plan = pass(&self.plan, &verified)?;
        self.verified = Some(verified);
        self.set(name, plan)
    }

    fn set(&mut self, name: &str, plan: Plan) -> Result<()> {
        if plan == self.plan {
            return Ok(());
        }
        self.verified = check_after(name, &plan, self.catalog, Traits::DRIVER)?;
        self.plan = plan;
        Ok(())
    }
}

/// Verifies the plan that a pass returned, in tests and debug builds only.
///
/// # Errors
/// The pass returned an invalid plan.
pub fn check_after(
    pass: &str,
    plan: &Plan,
    catalog: &OperatorCatalog,
    start: Traits,
) -> Result<Option<VerifiedPlan>> {
    if !cfg!(debug_assertions) {
        return Ok(None);
    }
    let verified = verify_in(plan, catalog, start);
    verified.map(Some).map_err(|error| error.context(format!("after the pass {pass}")))
}

/// Whether a plan or one of its nested plans has a sub-operator of this name.
fn has(plan: &Plan, operator: &str) -> bool {
    plan.nodes.iter().any(|node| {
        &*node.operator == operator || node.nested.iter().any(|nested| has(nested, operator))
    })
}
