//! Execution: compiled plans, pipelines, morsels, workers, memory, profile.
//!
//! A verified plan is *lowered* once to a [`CompiledPlan`]: operators bound, pipelines cut. It is
//! immutable; a [`RunRecord`] holds the figures of its runs. The [`Engine`] owns one worker thread
//! per core. A worker repeatedly takes a job of some run: start a pipeline, process a morsel, or
//! run a finishing task of a sink. Workers take morsels from their own range of a source and steal
//! from each other when it is empty. The run that has used the least time is served first. No job
//! blocks: a chain of sub-operators that must wait is parked with its token, and the worker that
//! finds the token ready resumes it.
//!
//! The files use each other in one direction, each those above it; the first line use no other:
//!
//! ```text
//! admission, collect, device, platform, profile, query_share, ranges, results, work_signal
//! query (admission) │ setup (platform) │ launch (setup) │ lane (profile)
//! compiled_plan      what never changes
//! last_job, pipeline jobs, and the state of one pipeline in one run
//! record             what the runs of a compiled plan have done
//! execution          one run: which pipelines are ready, which jobs there are
//! scheduler, workers  the runs in progress, and the threads that work on them
//! query_run, nested  runs that are read while they go on, runs of nested plans
//! engine
//! conformance         what every device keeps to, for tests
//! ```
//!
//! This room knows no SQL, no file format and no platform: an [`Extension`] adds those to a
//! [`Setup`].
//!
//! ```
//! use std::sync::Arc;
//! use tessera_engine::{CompiledPlan, Engine, Governor, Query, Settings};
//! use tessera_plan::{Builder, Expr, Params, Value};
//! use tessera_types::{Atom, Field, Tuple};
//!
//! let registry = tessera_testing::standard_registry();
//! let mut plan = Builder::new(Tuple::empty());
//! let columns = Tuple::new(vec![Field::new("x", Atom::Int64)]);
//! let rows = (0..5).map(|x| Value::List(vec![Value::Expr(Expr::int64(x))])).collect::<Vec<_>>();
//! let values = plan.add("values", &[], Params::new().with("columns", columns).with("rows", rows));
//! let rest = Expr::call("mod", vec![Expr::field("x"), Expr::int64(2)]);
//! let odd = Expr::call("eq", vec![rest, Expr::int64(1)]);
//! let root = plan.add("filter", &[values], Params::new().with("predicate", odd));
//!
//! let plan = CompiledPlan::lower(&plan.finish(root), &registry).unwrap();
//! let engine = Engine::new(2).unwrap();
//! let query = Query::new(Settings::default(), &Governor::unlimited());
//! assert_eq!(engine.run(&plan, query).unwrap().rows(), 2);
//! ```

#![forbid(unsafe_code)]

mod admission;
mod collect;
mod compiled_plan;
pub mod conformance;
mod device;
mod engine;
mod execution;
mod lane;
mod last_job;
mod launch;
mod nested;
mod pipeline;
mod platform;
mod query;
mod query_run;
mod query_share;
mod ranges;
mod record;
mod results;
mod scheduler;
mod setup;
mod work_signal;
mod workers;

pub mod profile;

pub use admission::{Admission, LEAST_BYTES, Memory, RetainedMemory};
pub use compiled_plan::CompiledPlan;
pub use device::{CompilerOptions, Device, MakeCompiler};
pub use engine::Engine;
pub use launch::{
    Launch, LaunchOption, LaunchOutcome, LaunchRole, LaunchValues, Launcher, Report, check_number,
    check_timeout,
};
pub use platform::{DriverPlan, Platform};
pub use query::{FileCreator, FileOpener, FolderCreator, Governor, Query, ScratchMaker, Settings};
pub use query_run::QueryRun;
pub use query_share::QueryShare;
pub use record::RunRecord;
pub use setup::{Extension, Pass, Phase, Setting, SettingEntry, Setup};
