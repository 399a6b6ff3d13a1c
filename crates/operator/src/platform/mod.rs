//! Sub-operators with one meaning on every platform and an implementation per platform:
//! [`Executor`] and [`Exchange`]. A platform registers a [`PlatformOperator`] in place of each.

mod exchange;
mod executor;
mod heavy;
mod platform_operator;

pub use exchange::Exchange;
pub use executor::{Executor, plan_to_send};
pub use heavy::{HeavyMode, heavy_partitions};
pub use platform_operator::{PlatformOperator, Runtime};
