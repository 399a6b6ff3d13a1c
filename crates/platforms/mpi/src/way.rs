//! How tuples cross between ranks.

use std::fmt;
use std::str::FromStr;

use tessera_context::Share;
use tessera_types::Error;

use crate::roles::Roles;

/// How tuples that go to where their keys say cross between ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Way {
    /// One-sided where every rank has a core for itself and the windows fit into the budget, else
    /// in rounds.
    ///
    /// MPI makes and frees windows in calls in which a rank waits for all others without giving its
    /// core to them: `sched_yield` does not where each rank is a scheduling group of its own, as
    /// MPICH's launcher has it (Linux's autogroups).
    #[default]
    Auto,
    /// Put into windows of the receivers, which histograms have sized.
    OneSided,
    /// As one-sided, with integers, decimals, dates and times in as few bits as their ranges take.
    Packed,
    /// Sent as messages.
    TwoSided,
    /// Sent as messages, by the first half of the ranks to the rest.
    Split,
    /// Sent as messages that are passed on as they come, of which only so many lie at a rank: for
    /// what is larger than the budget.
    Rounds,
}

impl Way {
    /// All, the default first.
    pub const ALL: [Way; 6] =
        [Way::Auto, Way::OneSided, Way::Packed, Way::TwoSided, Way::Split, Way::Rounds];

    /// The name in commands and settings.
    pub fn name(self) -> &'static str {
        match self {
            Way::Auto => "auto",
            Way::OneSided => "one-sided",
            Way::Packed => "packed",
            Way::TwoSided => "two-sided",
            Way::Split => "split",
            Way::Rounds => "rounds",
        }
    }

    /// The part of the leaves that a rank reads.
    pub fn share(self, rank: usize, ranks: usize) -> Share {
        let roles = if self == Way::Split { Roles::split(ranks) } else { Roles::all(ranks) };
        roles.share(rank)
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Way {
    type Err = Error;

    fn from_str(name: &str) -> Result<Way, Error> {
        let found = Way::ALL.into_iter().find(|way| way.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            Error::semantic(format!(
                "tuples cross between ranks auto, one-sided, packed, two-sided, split or rounds, not '{name}'"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_named() {
        for way in Way::ALL {
            assert_eq!(way.name().to_uppercase().parse::<Way>().unwrap(), way);
        }
        assert!("sideways".parse::<Way>().is_err());
    }
}
