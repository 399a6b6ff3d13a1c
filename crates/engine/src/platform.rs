//! The interface of a platform.

use tessera_operator::Registry;
use tessera_plan::{OperatorCatalog, Plan, Rules};
use tessera_types::Result;

/// A plan that the driver of a platform has sent to this process, with its settings.
#[derive(Debug, Clone)]
pub struct DriverPlan {
    /// The plan: an executor.
    pub plan: Plan,
    /// The maximum number of tuples in a chunk.
    pub chunk_rows: usize,
    /// The memory budget of this process.
    pub memory_bytes: usize,
}

/// The interface of a platform: a name, its sub-operators, and its pass.
pub trait Platform: Send + Sync + std::fmt::Debug {
    /// The name, as in `EXPLAIN (PLATFORM name)`.
    fn name(&self) -> &'static str;

    /// Registers its executor, its exchange and its other sub-operators.
    fn register(&self, registry: &mut Registry);

    /// Runs the plans that the driver sends, if this process is not the driver. Returns whether it
    /// was so, after the driver has ended.
    ///
    /// # Errors
    /// The connection to the driver is lost.
    fn serve(&self, _run: &mut dyn FnMut(&DriverPlan) -> Result<()>) -> Result<bool> {
        Ok(false)
    }

    /// Whether several sessions of one process can run statements at once.
    fn concurrent_statements(&self) -> bool {
        false
    }

    /// Whether statements run entirely in this process. Only then can they use this process's
    /// streams, tables in memory and functions that a user has defined.
    fn accepts_local_paths(&self) -> bool {
        false
    }

    /// Turns a platform-independent plan into a plan of this platform. `rules` are the rewrites
    /// that are on.
    fn pass(&self, plan: &Plan, catalog: &OperatorCatalog, rules: Rules) -> Result<Plan>;

    /// Returns a plan that needs less memory and more time, for use after the plan of
    /// [`Platform::pass`] has run out of memory; `None` if there is no such plan.
    ///
    /// # Errors
    /// As [`Platform::pass`].
    fn frugal_pass(
        &self,
        _plan: &Plan,
        _catalog: &OperatorCatalog,
        _rules: Rules,
    ) -> Result<Option<Plan>> {
        Ok(None)
    }
}
