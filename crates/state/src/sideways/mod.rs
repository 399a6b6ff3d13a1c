//! Runtime filters that sub-operators publish on the run's board for scans further up their stream.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod bloom;
mod exact;
mod key_filter;
mod threshold;

pub use bloom::Bloom;
pub use exact::Exact;
pub use key_filter::{
    Extremes, FilterSubscription, KeyFilter, ReceivedFilter, filter_keys, filter_tuple,
};
pub use threshold::{Threshold, ThresholdSubscription, wanted, within};

/// Returns the positions, of at most this many, for which `passes` is true. Branch-free: the
/// processor could not predict which pass.
#[inline(always)]
fn passing(rows: usize, passes: impl Iterator<Item = bool>) -> Vec<u32> {
    let mut positions = vec![0; rows];
    let mut passed = 0;
    for (position, passes) in passes.take(rows).enumerate() {
        positions[passed] = position as u32;
        passed += usize::from(passes);
    }
    positions.truncate(passed);
    positions
}
