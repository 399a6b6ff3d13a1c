//! Aggregates of parts of a group, and the aggregates that merge them.

use tessera_plan::Functions;
use tessera_types::Atom;

use crate::logical::fields::Fields;
use crate::logical::relation::{Call, Name};
use crate::merging::{Merging, merging_call};

/// Calls over the tuples of parts, and the calls that merge them.
pub(super) struct Parts {
    /// The calls of each part; calls that need the same part share it.
    pub parts: Vec<(Name, Call)>,
    /// The merging calls by the names of the whole ones, with the type of their last part.
    pub merging: Vec<(Name, Call, Atom)>,
}

impl Fields<'_> {
    /// Splits calls into those of parts and those that merge the parts.
    pub(super) fn split_calls(&mut self, calls: Vec<(Name, Merging, Call)>) -> Parts {
        let mut parts: Vec<(Name, Call)> = Vec::with_capacity(calls.len());
        let mut merges = Vec::with_capacity(calls.len());
        for (name, merging, call) in calls {
            let mut names = Vec::with_capacity(merging.parts.len());
            let mut atom = Atom::Int64;
            for part in merging.part_calls(&call) {
                atom = self.call_atom(&part).unwrap_or(atom);
                let known = parts.iter().find(|(_, known)| *known == part);
                names.push(match known {
                    Some((name, _)) => name.clone(),
                    None => {
                        let name = self.fresh("part", atom.clone());
                        parts.push((name.clone(), part));
                        name
                    }
                });
            }
            merges.push((name, merging_call(merging.merge, &names), atom));
        }
        Parts { parts, merging: merges }
    }

    /// Returns the type of a call's result; `None` if it cannot be derived.
    pub(super) fn call_atom(&self, call: &Call) -> Option<Atom> {
        let args = call.args.iter().map(|arg| Some((self.atom_of(arg).ok()?, true)));
        let args: Vec<(Atom, bool)> = args.collect::<Option<_>>()?;
        Some(self.library.aggregate(&call.function, &args, call.distinct).ok()?.0)
    }
}
