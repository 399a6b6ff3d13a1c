//! Execution: programs, pipelines, morsels, workers, memory, profile.
//!
//! A verified plan is *lowered* once to a [`Program`]: operators bound, pipelines cut. The [`Engine`] owns one worker
//! thread per core; each repeatedly takes a job of some running [`Program`]: begin a pipeline, process a morsel, or run a
//! task of a finishing sink. Workers take morsels from their own range of a source and steal from each other's
//! when it is empty. Of several runs, the one that has had the least time is served first. No job waits: a chain of
//! sub-operators that is blocked is parked with its token, and resumed by whoever finds it ready.
//!
//! This room knows no SQL, no file format and no platform: those arrive as sub-operators in the registry.
//!
//! ```
//! use std::sync::Arc;
//! use tessera_engine::{Engine, Governor, Program, Query, Settings};
//! use tessera_plan::{Builder, Expr, Params, Value};
//! use tessera_types::{Atom, Field, Tuple};
//!
//! let registry = tessera_testing::standard_registry();
//! let mut plan = Builder::new(Tuple::empty());
//! let columns = Tuple::new(vec![Field::new("x", Atom::Int64)]);
//! let rows = (0..5).map(|x| Value::List(vec![Value::Expr(Expr::int64(x))])).collect::<Vec<_>>();
//! let values = plan.add("values", &[], Params::new().with("columns", columns).with("rows", rows));
//! let odd = Expr::call("eq", vec![Expr::call("mod", vec![Expr::field("x"), Expr::int64(2)]), Expr::int64(1)]);
//! let root = plan.add("filter", &[values], Params::new().with("predicate", odd));
//!
//! let program = Program::lower(&plan.finish(root), &registry).unwrap();
//! let engine = Engine::new(2).unwrap();
//! let query = Query::new(Settings::default(), &Governor::unlimited());
//! assert_eq!(engine.run(&program, query).unwrap().rows(), 2);
//! ```

mod admission;
mod collect;
mod engine;
mod execution;
mod lane;
mod last;
mod part;
mod pipeline;
mod program;
mod query;
mod query_run;
mod ranges;
mod results;
mod turns;

pub mod profile;

pub use admission::{Admitted, Kept, LEAST_BYTES, Memory};
pub use engine::Engine;
pub use part::InShare;
pub use program::Program;
pub use query::{FileCreator, FileOpener, Governor, Query, ScratchMaker, Settings};
pub use query_run::QueryRun;

/// A plan that a platform's driver has sent to this process, and how it is to run.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The plan: an executor.
    pub plan: tessera_plan::Plan,
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
    fn register(&self, registry: &mut tessera_operator::Registry);

    /// Takes part in the plans of the platform's driver for as long as that wants, where this process is not the driver
    /// itself: `run` runs a plan that was sent. Whether it has.
    ///
    /// # Errors
    /// The driver cannot be heard any more.
    fn serve(&self, _run: &mut dyn FnMut(&Sent) -> tessera_types::Result<()>) -> tessera_types::Result<bool> {
        Ok(false)
    }

    /// Takes a setting of the session, where it is one of the platform's.
    ///
    /// # Errors
    /// The value does not fit it.
    fn set(&self, _name: &str, _value: &str) -> tessera_types::Result<()> {
        Ok(())
    }

    /// Turns a platform-independent plan into one that runs here, with these rewrites.
    fn pass(
        &self,
        plan: &tessera_plan::Plan,
        catalogue: &tessera_plan::Catalogue,
        rules: tessera_plan::Rules,
    ) -> tessera_types::Result<tessera_plan::Plan>;

    /// The same where the plan that [`Platform::pass`] gives has run out of memory: one that needs less, and more time; none where
    /// there is no such plan.
    ///
    /// # Errors
    /// As [`Platform::pass`].
    fn frugal_pass(
        &self,
        _plan: &tessera_plan::Plan,
        _catalogue: &tessera_plan::Catalogue,
        _rules: tessera_plan::Rules,
    ) -> tessera_types::Result<Option<tessera_plan::Plan>> {
        Ok(None)
    }
}
