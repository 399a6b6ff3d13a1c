//! A session: one user's tables, settings and statements, running on the engine.
//!
//! [`Session`] owns the registry of sub-operators, a platform, the engine's workers and a catalog
//! of files. It parses and binds a statement (`sql`), rewrites the plan for the platform, compiles
//! and runs it (`engine`), and returns a [`StatementResult`], or a [`ResultStream`] to read while
//! the query runs. A session runs one statement at a time. [`Cancel`] cancels it from any thread.
//! Sessions opened with [`Session::beside`] share workers and memory.
//!
//! ```
//! use tessera_session::{Config, Session, StatementResult};
//! let mut session = Session::new(Config { threads: 1, ..Config::default() })?;
//! let results = session.execute("SELECT 1 + 1 AS two")?;
//! let StatementResult::Rows(rows) = &results[0] else { panic!("a query returns rows") };
//! assert_eq!((rows.names(), rows.row_count()), (&["two".to_string()][..], 1));
//! # Ok::<(), tessera_types::Error>(())
//! ```
//!
//! Modules: `session` runs statements; `cancel` cancels them and reports progress; `catalog`
//! resolves table names; `source` reads columns and statistics from files; `storage` opens local
//! files and objects; `analyze`, `copy`, `explain` and `settings` implement the statements of these
//! names; `definitions` those that define macros, variables and prepared statements; `run` runs
//! plans on the platform; `result` holds complete results, `stream` running ones.
//!
//! Non-goals: concurrent statements in one session, tables that outlive the session, a network
//! protocol.

#![forbid(unsafe_code)]

mod analyze;
mod cancel;
mod catalog;
mod config;
pub mod conformance;
mod copy;
mod definitions;
mod devices;
mod explain;
mod extensions;
mod file_facts;
mod functions;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod memory_table;
mod plan_cache;
mod planning;
mod planning_catalog;
mod rejects;
mod result;
mod run;
mod session;
mod settings;
mod source;
mod stack;
mod statements;
mod storage;
mod stream;

pub use cancel::{Cancel, Progress, StopReport};
pub use config::{Config, MEMORY_BYTES_MIN, parse_size};
pub use extensions::Standard;
pub use result::{QueryResult, StatementResult};
pub use session::Session;
pub use stack::with_big_stack;
pub use stream::{ResultStream, StatementOutput};
