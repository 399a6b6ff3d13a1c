//! The placement of a stream's tuples on workers.

use std::collections::BTreeSet;
use std::sync::Arc;

/// A set of fields that are equal in every tuple.
pub(super) type Class = BTreeSet<Arc<str>>;

/// The placement of a stream's tuples on workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Placement {
    /// Each tuple is at one worker, chosen arbitrarily.
    Split,
    /// Each tuple is at the worker given by the hash of one field per class; the fields of a class
    /// are interchangeable.
    Partitioned(Vec<Class>),
    /// Every worker has all tuples.
    Replicated,
    /// The first worker has all tuples; those of other workers are ignored.
    First,
}

impl Placement {
    /// Returns the placement after renaming fields (old, new) and dropping all others.
    pub(super) fn renamed(self, renames: &[(Arc<str>, Arc<str>)]) -> Placement {
        let Placement::Partitioned(classes) = self else { return self };
        let renamed = |class: &Class| -> Class {
            renames
                .iter()
                .filter(|(before, _)| class.contains(before))
                .map(|(_, after)| after.clone())
                .collect()
        };
        let classes: Vec<Class> = classes.iter().map(renamed).collect();
        if classes.iter().any(Class::is_empty) {
            Placement::Split
        } else {
            Placement::Partitioned(classes)
        }
    }

    /// Returns the positions of the hashed fields in `keys`, in hash order; `None` if the stream is
    /// not partitioned by them.
    pub(super) fn positions(&self, keys: &[Arc<str>]) -> Option<Vec<usize>> {
        let Placement::Partitioned(classes) = self else { return None };
        classes.iter().map(|class| keys.iter().position(|key| class.contains(key))).collect()
    }
}

/// Whether tuples with equal keys are at the same worker.
pub(super) fn contains(classes: &[Class], keys: &[Arc<str>]) -> bool {
    classes.iter().all(|class| keys.iter().any(|key| class.contains(key)))
}
