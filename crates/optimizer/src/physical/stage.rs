//! A plan between two passes, with the types of its edges while they are known.

use tessera_plan::{Catalogue, Plan, Traits, Verified, verify_in};
use tessera_types::Result;

/// A plan on its way through passes. Only the verifier knows the types of edges, and its answer
/// holds for as long as no pass changes the plan.
pub(super) struct Stage<'a> {
    plan: Plan,
    verified: Option<Verified>,
    catalogue: &'a Catalogue,
}

impl<'a> Stage<'a> {
    pub(super) fn new(plan: Plan, catalogue: &'a Catalogue) -> Self {
        Stage { plan, verified: None, catalogue }
    }

    pub(super) fn into_plan(self) -> Plan {
        self.plan
    }

    /// Runs a pass that asks for no types.
    pub(super) fn pass(
        &mut self,
        name: &str,
        pass: impl FnOnce(&Plan) -> Result<Plan>,
    ) -> Result<()> {
        let plan = pass(&self.plan)?;
        self.set(name, plan)
    }

    /// Runs a pass that asks for types, where the plan has a sub-operator of this name.
    pub(super) fn typed_pass(
        &mut self,
        name: &str,
        operator: Option<&str>,
        pass: impl FnOnce(&Plan, &Verified) -> Result<Plan>,
    ) -> Result<()> {
        if operator.is_some_and(|operator| !has(&self.plan, operator)) {
            return Ok(());
        }
        let verified = match self.verified.take() {
            Some(verified) => verified,
            None => verify_in(&self.plan, self.catalogue, Traits::DRIVER)?,
        };
        let plan = pass(&self.plan, &verified)?;
        self.verified = Some(verified);
        self.set(name, plan)
    }

    fn set(&mut self, name: &str, plan: Plan) -> Result<()> {
        if plan == self.plan {
            return Ok(());
        }
        self.verified = check_after(name, &plan, self.catalogue, Traits::DRIVER)?;
        self.plan = plan;
        Ok(())
    }
}

/// Verifies what a pass has made of a plan, in tests and debug builds only.
///
/// # Errors
/// The pass has made a plan that does not verify.
pub fn check_after(
    pass: &str,
    plan: &Plan,
    catalogue: &Catalogue,
    start: Traits,
) -> Result<Option<Verified>> {
    if !cfg!(debug_assertions) {
        return Ok(None);
    }
    let verified = verify_in(plan, catalogue, start);
    verified.map(Some).map_err(|error| error.context(format!("after the pass {pass}")))
}

/// Whether a plan, or one nested in it, has a sub-operator of this name.
fn has(plan: &Plan, operator: &str) -> bool {
    plan.nodes.iter().any(|node| {
        &*node.operator == operator || node.nested.iter().any(|nested| has(nested, operator))
    })
}
