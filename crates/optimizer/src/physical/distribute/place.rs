//! Where the tuples of a stream are.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Fields that are equal in every tuple.
pub(super) type Class = BTreeSet<Arc<str>>;

/// Where the tuples of a stream are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// Each at one worker, any.
    Split,
    /// Each at the worker that the hash of some fields names; of each class any field stands for
    /// all.
    Keyed(Vec<Class>),
    /// All at every worker.
    Copied,
    /// All at the first worker; what the others have does not count.
    First,
}

impl Place {
    /// After fields have been renamed (before, after) and all others dropped.
    pub(super) fn renamed(self, renames: &[(Arc<str>, Arc<str>)]) -> Place {
        let Place::Keyed(classes) = self else { return self };
        let renamed = |class: &Class| -> Class {
            renames
                .iter()
                .filter(|(before, _)| class.contains(before))
                .map(|(_, after)| after.clone())
                .collect()
        };
        let classes: Vec<Class> = classes.iter().map(renamed).collect();
        if classes.iter().any(Class::is_empty) { Place::Split } else { Place::Keyed(classes) }
    }

    /// Where it is keyed: which of `keys` the hash is of, in the order of the hash.
    pub(super) fn positions(&self, keys: &[Arc<str>]) -> Option<Vec<usize>> {
        let Place::Keyed(classes) = self else { return None };
        classes.iter().map(|class| keys.iter().position(|key| class.contains(key))).collect()
    }
}

/// Whether tuples of equal keys are at one worker.
pub(super) fn contains(classes: &[Class], keys: &[Arc<str>]) -> bool {
    classes.iter().all(|class| keys.iter().any(|key| class.contains(key)))
}
