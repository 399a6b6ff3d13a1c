//! Tests of sessions from outside.

mod analyze;
mod cancel;
mod cancelling;
mod concurrent;
mod conformance;
mod early_groups;
mod estimates;
mod extension;
mod files;
mod functions;
mod key_filters;
mod long_statements;
mod memory_tables;
mod mutations;
mod objects;
mod one_evaluator;
mod panics;
mod parameters;
mod plan_cache;
mod plans;
mod queries;
mod rewrites;
mod select;
#[path = "../../storage/objects/tests/server/mod.rs"]
mod server;
mod sql;
mod streams;
mod texts;
mod thresholds;
#[cfg(feature = "llvm")]
mod tiers;
mod timeouts;
mod timetz;
mod toy_platform;
mod user_functions;
mod uuids;
mod window_plans;
