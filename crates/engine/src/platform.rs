//! The interface by which a platform plugs in.

use tessera_operator::Registry;
use tessera_plan::{Catalogue, Plan, Rules};
use tessera_types::Result;

/// A plan that a platform's driver has sent to this process, and how it is to run.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The plan: an executor.
    pub plan: Plan,
    /// The most tuples in a chunk.
    pub chunk_rows: usize,
    /// The memory budget of this process.
    pub memory_bytes: usize,
}

/// The interface by which a platform plugs in: a name, its sub-operators, and its pass.
pub trait Platform: Send + Sync + std::fmt::Debug {
    /// The name, as in `EXPLAIN (PLATFORM name)`.
    fn name(&self) -> &'static str;

    /// Registers its executor, its exchange and what else it brings.
    fn register(&self, registry: &mut Registry);

    /// Takes part in the plans of the platform's driver for as long as that wants, where this
    /// process is not the driver itself: `run` runs a plan that was sent. Whether it has.
    ///
    /// # Errors
    /// The driver cannot be heard any more.
    fn serve(&self, _run: &mut dyn FnMut(&Sent) -> Result<()>) -> Result<bool> {
        Ok(false)
    }

    /// Whether several sessions of a process run statements at once.
    fn concurrent_statements(&self) -> bool {
        false
    }

    /// Whether all that runs a statement is in this process: it reads and writes this process's
    /// streams and the tables that a session keeps in memory, and calls functions that a user has
    /// defined.
    fn accepts_local_paths(&self) -> bool {
        false
    }

    /// Turns a platform-independent plan into one that runs here, with these rewrites.
    fn pass(&self, plan: &Plan, catalogue: &Catalogue, rules: Rules) -> Result<Plan>;

    /// The same where the plan that [`Platform::pass`] gives has run out of memory: one that needs
    /// less, and more time; none where there is no such plan.
    ///
    /// # Errors
    /// As [`Platform::pass`].
    fn frugal_pass(
        &self,
        _plan: &Plan,
        _catalogue: &Catalogue,
        _rules: Rules,
    ) -> Result<Option<Plan>> {
        Ok(None)
    }
}
