//! Query plans: DAGs of sub-operators, and all that can be checked without running them.
//!
//! A [`Plan`] is a list of [`Node`]s in topological order. A node has a *name*, inputs, parameters
//! and nested plans; this crate defines no sub-operators. The [`Descriptor`] registered under a
//! name in the [`OperatorCatalog`] defines typing, traits, blocking and order; the crates above
//! fill the catalog. [`verify()`] derives the tuple type and the four traits of every edge, or
//! reports what is wrong and where.
//!
//! Parts: [`Expr`], the expression language; [`Value`], parameters; [`Builder`], which creates
//! plans in Rust; [`text`], the text form (also the wire form); [`pipeline`], the division into
//! pipelines; [`rewrite`], tools for passes; [`mod@rule`], the list of all rewrites.

#![forbid(unsafe_code)]

pub mod edge;
pub mod expr;
mod file_facts;
pub mod graph;
mod lambda;
pub mod operator_catalog;
pub mod pipeline;
pub mod rewrite;
pub mod rule;
pub mod scalar;
mod statistics;
pub mod text;
pub mod traits_catalog;
pub mod typing;
pub mod value;
pub mod verify;

pub use edge::{Device, Edge, Granularity, Locality, Order, Parallelism, SortKey, Traits};
pub use expr::Expr;
pub use file_facts::FileFacts;
pub use graph::{Builder, Node, NodeId, Plan};
pub use lambda::Lambda;
pub use operator_catalog::{
    ColumnPush, Descriptor, Functions, Inputs, OperatorCatalog, Pushes, Role,
};
pub use rule::{Rule, Rules};
pub use scalar::Scalar;
pub use statistics::{ColumnStatistics, Statistics};
pub use typing::{Scope, type_of};
pub use value::{Params, Value};
pub use verify::{VerifiedPlan, verify, verify_in};

/// The maximum nesting depth of plans.
pub const PLAN_DEPTH_MAX: usize = 64;
