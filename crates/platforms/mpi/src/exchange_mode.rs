//! The exchange modes: how keyed exchanges move tuples between ranks.

use std::fmt;
use std::str::FromStr;

use tessera_context::Share;
use tessera_types::{Error, suggest};

use crate::roles::Roles;

/// How an exchange by keys moves tuples between ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExchangeMode {
    /// `OneSided` if every rank has its own core and the windows fit the memory budget, else
    /// `Rounds`.
    ///
    /// MPI allocates and frees windows in calls that busy-wait for all ranks. `sched_yield` does
    /// not help if each rank is its own scheduling group, as under MPICH's launcher (Linux
    /// autogroups).
    #[default]
    Auto,
    /// Tuples are put into windows of the receivers, which histograms have sized.
    OneSided,
    /// Like `OneSided`, with integers, decimals, dates and times in as few bits as their ranges
    /// need.
    Packed,
    /// Tuples are sent as messages.
    TwoSided,
    /// Tuples are sent as messages, from the first half of the ranks to the other ranks.
    Split,
    /// Tuples are sent as messages and consumed as they arrive; a rank buffers a bounded number of
    /// them. For inputs larger than the budget.
    Rounds,
}

impl ExchangeMode {
    /// All modes, the default first.
    pub const ALL: [ExchangeMode; 6] = [
        ExchangeMode::Auto,
        ExchangeMode::OneSided,
        ExchangeMode::Packed,
        ExchangeMode::TwoSided,
        ExchangeMode::Split,
        ExchangeMode::Rounds,
    ];

    /// The name in commands and settings.
    pub fn name(self) -> &'static str {
        match self {
            ExchangeMode::Auto => "auto",
            ExchangeMode::OneSided => "one-sided",
            ExchangeMode::Packed => "packed",
            ExchangeMode::TwoSided => "two-sided",
            ExchangeMode::Split => "split",
            ExchangeMode::Rounds => "rounds",
        }
    }

    /// The share of the plan's leaves that a rank reads.
    pub fn share(self, rank: usize, ranks: usize) -> Share {
        let roles =
            if self == ExchangeMode::Split { Roles::split(ranks) } else { Roles::all(ranks) };
        roles.share(rank)
    }
}

impl fmt::Display for ExchangeMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ExchangeMode {
    type Err = Error;

    fn from_str(name: &str) -> Result<ExchangeMode, Error> {
        let found =
            ExchangeMode::ALL.into_iter().find(|mode| mode.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let hint = suggest(name, "expected", &ExchangeMode::ALL.map(ExchangeMode::name));
            Error::semantic(format!("unknown exchange mode '{name}'{hint}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_named() {
        for mode in ExchangeMode::ALL {
            assert_eq!(mode.name().to_uppercase().parse::<ExchangeMode>().unwrap(), mode);
        }
        assert!("sideways".parse::<ExchangeMode>().is_err());
    }
}
