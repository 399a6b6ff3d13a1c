//! Logical optimization: rewrites of relations.

pub mod as_of;
mod conditions_of_calls;
pub(crate) mod copies;
pub(crate) mod decorrelate;
pub(crate) mod distinct;
pub(crate) mod early_groups;
pub(crate) mod estimate;
pub mod fields;
pub(crate) mod lateral_limit;
pub(crate) mod lateral_unnest;
pub(crate) mod order;
pub(crate) mod partition_aggregates;
mod parts;
pub(crate) mod push;
pub(crate) mod reduce;
pub mod relation;
pub(crate) mod strict;
pub(crate) mod substitute;
pub(crate) mod types;
pub mod window;
