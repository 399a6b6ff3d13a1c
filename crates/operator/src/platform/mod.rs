//! Sub-operators that mean the same on every platform, and that each platform runs in its own way:
//! [`Executor`] and
//! [`Exchange`]. A platform registers [`OnPlatform`] in the place of the abstract ones.

mod exchange;
mod executor;
mod heavy;
mod on_platform;

pub use exchange::Exchange;
pub use executor::{Executor, to_send};
pub use heavy::{Heavy, heavy_partitions};
pub use on_platform::{OnPlatform, Runtime};
