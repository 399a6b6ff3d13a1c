//! Plans: DAGs of sub-operators, and what can be said of them without running anything.
//!
//! A [`Plan`] is a list of [`Node`]s in topological order. A node is a *name*, inputs, parameters
//! and nested plans; this room lists no sub-operators. What a name means for typing, traits,
//! blocking and order is told by the [`Descriptor`] registered under it in a [`Catalogue`], which
//! each room above fills. [`verify()`] uses it to give every edge a tuple type and four traits, or
//! to say what is wrong where.
//!
//! Parts: [`Expr`] the expression language, [`Value`] parameters, [`Builder`] to make plans in
//! Rust, [`text`] the text form (also the wire form), [`pipeline`] the cut into pipelines,
//! [`rewrite`] what passes are made of, [`mod@rule`] the list of all rewrites.

pub mod catalogue;
pub mod edge;
pub mod expr;
pub mod graph;
pub mod pipeline;
pub mod rewrite;
pub mod rule;
pub mod scalar;
pub mod text;
pub mod traits_catalogue;
pub mod typing;
pub mod value;
pub mod verify;

pub use catalogue::{Catalogue, Descriptor, Functions, Inputs, Role};
pub use edge::{Device, Edge, Granularity, Locality, Order, Parallelism, SortKey, Traits};
pub use expr::Expr;
pub use graph::{Builder, Node, NodeId, Plan};
pub use rule::{Rule, Rules};
pub use scalar::Scalar;
pub use typing::{Scope, type_of};
pub use value::{Params, Value};
pub use verify::{Verified, verify, verify_in};

/// The deepest nesting of plans that is accepted.
pub const PLAN_DEPTH_MAX: usize = 64;
