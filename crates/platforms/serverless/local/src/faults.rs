//! Injected faults of requests, for tests.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Mutex;
use std::time::Duration;

/// A fault of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The answer has this status.
    Status(u16),
    /// The connection is closed before the answer.
    Reset,
    /// The connection is closed in the middle of the body.
    Cut,
    /// The answer is delayed by this time.
    Late(Duration),
}

/// The shares of requests with faults, each from 0 to 1:
/// `503=0.1,reset=0.05,cut=0.05,late=0.2,late_ms=30`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Faults {
    shares: Vec<(FaultKind, f64)>,
    late: Duration,
    seed: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum FaultKind {
    Status(u16),
    Reset,
    Cut,
    Late,
}

impl Faults {
    /// Parses shares by name; `seed` makes the sequence of faults repeatable.
    ///
    /// # Errors
    /// The text of an invalid entry.
    pub fn parse(text: &str) -> Result<Faults, String> {
        let mut faults = Faults { late: Duration::from_millis(20), ..Faults::default() };
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let bad = || {
                format!(
                    "invalid fault '{entry}'; expected 503=0.1, reset=0.1, cut=0.1, late=0.1, late_ms=20 or seed=1"
                )
            };
            let (name, value) = entry.split_once('=').ok_or_else(bad)?;
            let share = || {
                value
                    .parse::<f64>()
                    .ok()
                    .filter(|share| (0.0..=1.0).contains(share))
                    .ok_or_else(bad)
            };
            let number = || value.parse::<u64>().map_err(|_| bad());
            let kind = match name {
                "reset" => FaultKind::Reset,
                "cut" => FaultKind::Cut,
                "late" => FaultKind::Late,
                "late_ms" => {
                    faults.late = Duration::from_millis(number()?);
                    continue;
                }
                "seed" => {
                    faults.seed = Some(number()?);
                    continue;
                }
                status => FaultKind::Status(status.parse().map_err(|_| bad())?),
            };
            faults.shares.push((kind, share()?));
        }
        Ok(faults)
    }
}

/// Chooses the faults of requests at random.
#[derive(Debug)]
pub(crate) struct FaultInjector {
    faults: Faults,
    state: Mutex<u64>,
}

/// Returns a number that differs between processes.
pub(crate) fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl FaultInjector {
    pub(crate) fn new(faults: Faults) -> FaultInjector {
        let state = Mutex::new(faults.seed.unwrap_or_else(seed) | 1);
        FaultInjector { faults, state }
    }

    pub(crate) fn choose(&self) -> Option<Fault> {
        if self.faults.shares.is_empty() {
            return None;
        }
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Marsaglia's xorshift.
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        let mut drawn = (*state >> 11) as f64 / (1u64 << 53) as f64;
        for (kind, share) in &self.faults.shares {
            if drawn < *share {
                return Some(match kind {
                    FaultKind::Status(status) => Fault::Status(*status),
                    FaultKind::Reset => Fault::Reset,
                    FaultKind::Cut => Fault::Cut,
                    FaultKind::Late => Fault::Late(self.faults.late),
                });
            }
            drawn -= share;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_kept() {
        let chooser = FaultInjector::new(Faults::parse("503=0.25, reset=0.25,seed=5").unwrap());
        let drawn: Vec<_> = (0..4_000).map(|_| chooser.choose()).collect();
        let count = |wanted: Option<Fault>| drawn.iter().filter(|fault| **fault == wanted).count();
        for fault in [Some(Fault::Status(503)), Some(Fault::Reset)] {
            assert!((800..1_200).contains(&count(fault)), "{fault:?}: {}", count(fault));
        }
        assert_eq!(FaultInjector::new(Faults::default()).choose(), None);
        for wrong in ["503", "503=2", "fire=0.1", "late_ms=x"] {
            assert!(Faults::parse(wrong).is_err(), "{wrong}");
        }
    }
}
