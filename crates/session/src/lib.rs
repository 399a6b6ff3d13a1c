//! A session: one user's tables, settings and statements, and everything below put together.
//!
//! [`Session`] holds the registry of sub-operators, a platform, the engine's workers and a catalog
//! of files. A statement goes from text to plan (`sql`), through the platform's pass, to a program
//! (`engine`), and comes back as a [`StatementResult`], or as a [`ResultStream`] that is read while
//! the query runs. A session runs one statement at a time; [`Cancel`] ends it from any thread;
//! sessions [`beside`](Session::beside) each other share workers and memory.
//!
//! ```
//! use tessera_session::{Config, Session, StatementResult};
//! let mut session = Session::new(Config { threads: 1, ..Config::default() })?;
//! let results = session.execute("SELECT 1 + 1 AS two")?;
//! let StatementResult::Rows(rows) = &results[0] else { panic!("a query gives rows") };
//! assert_eq!((rows.names(), rows.row_count()), (&["two".to_string()][..], 1));
//! # Ok::<(), tessera_types::Error>(())
//! ```
//!
//! Parts: `session` a statement's life; `cancel` its end from outside, and how far it is; `catalog`
//! names to tables; `source` what files say of themselves (columns, statistics); `storage` local
//! files and objects of stores; `analyze`, `copy`, `explain`, `settings` the statements of these
//! names; `run` plans on the platform; `result` what comes back, and `stream` rows as they come.
//!
//! Non-goals: several statements of one session at once, tables that outlive the session, a network
//! protocol.

mod analyze;
mod cancel;
mod catalog;
mod config;
mod copy;
mod explain;
mod extensions;
mod functions;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod memory_table;
mod planning;
mod result;
mod run;
mod session;
mod settings;
mod source;
mod stack;
mod storage;
mod stream;

pub use cancel::{Cancel, Progress, Stopped};
pub use config::{Config, MEMORY_BYTES_MIN, parse_size};
pub use extensions::Standard;
pub use result::{QueryResult, StatementResult};
pub use session::Session;
pub use stack::with_big_stack;
pub use stream::{ResultStream, StatementOutput};
