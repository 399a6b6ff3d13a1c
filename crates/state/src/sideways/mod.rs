//! What sub-operators publish for others further up their stream, on the run's board.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod bloom;
mod exact;
mod key_filter;
mod threshold;

pub use bloom::Bloom;
pub use exact::Exact;
pub use key_filter::{Extremes, FilterOf, Heard, KeyFilter, filter_keys, filter_tuple};
pub use threshold::{Threshold, ThresholdOf, wanted, within};

/// The positions at which `passes` is true, of so many at most. Without a branch on what passes,
/// which the processor could not foresee.
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
