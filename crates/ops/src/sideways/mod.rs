//! What sub-operators tell others further up their stream, beside the edges of the plan.
//!
//! An edge cannot carry it, since it goes against the stream while that flows. So the plan names it on both ends, and a run of a
//! plan keeps it by these names. It may always be missing or late: it only spares work, and never decides an answer.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod bloom;
mod exact;
mod key_filter;
mod threshold;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::lock;

pub(crate) use bloom::Bloom;
pub(crate) use exact::Exact;
pub(crate) use key_filter::{Extremes, FilterOf, Heard, KeyFilter, filter_keys, filter_tuple};
pub(crate) use threshold::{Threshold, ThresholdOf, wanted, within};

/// What the nodes of a plan tell each other in one run, by name.
#[derive(Debug, Default)]
pub struct Sideways {
    thresholds: Mutex<HashMap<Arc<str>, Arc<Threshold>>>,
    filters: Mutex<HashMap<Arc<str>, Arc<KeyFilter>>>,
}

impl Sideways {
    /// The threshold of a name; whoever comes first makes it.
    pub(crate) fn threshold(&self, name: &Arc<str>) -> Arc<Threshold> {
        let mut named = lock(&self.thresholds);
        named.entry(name.clone()).or_default().clone()
    }

    /// Tells the filter of a name.
    pub(crate) fn tell_filter(&self, name: &Arc<str>, filter: &Arc<KeyFilter>) {
        let mut named = lock(&self.filters);
        named.insert(name.clone(), filter.clone());
    }

    /// The filter of a name, where it has been told.
    pub(crate) fn filter(&self, name: &str) -> Option<Arc<KeyFilter>> {
        lock(&self.filters).get(name).cloned()
    }
}

/// The positions at which `passes` is true, of so many at most. Without a branch on what passes, which the processor could not foresee.
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
