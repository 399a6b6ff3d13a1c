//! The search for the cheapest join tree.
//!
//! A region is a hypergraph: units are nodes, equalities are edges, and predicates over several
//! units and dependent units that require several others are hyperedges. Its connected subgraphs
//! are enumerated with their connected complements, so that only joins with a condition are
//! considered (DPhyp: Moerkotte and Neumann, Dynamic Programming Strikes Back, SIGMOD 2008). If
//! there are more than [`PAIRS_MAX`] pairs, the two sets with the smallest join are joined
//! repeatedly (greedy operator ordering: Fegaras, A New Heuristic for Optimizing Large Queries,
//! 1998), and then the best tree over intervals of that tree's leaves is found (linearized dynamic
//! programming: Neumann and Radke, Adaptive Optimization of Very Large Join Queries, SIGMOD 2018).
//! Cross products are used only between unconnected sets. Counts, not a clock, limit the work, so
//! that the plan does not depend on the machine.

use std::collections::HashMap;
use std::rc::Rc;

use tessera_context::interrupt;

use super::{Candidate, Region, Unit, UnitSet};
use crate::logical::estimate::Profile;

/// The maximum number of pairs before the search becomes greedy: enough for a chain of 39 units or
/// a star of 11. A pair takes about a microsecond; the first pair of a set, which estimates its
/// rows, takes up to a hundred.
const PAIRS_MAX: usize = 10_000;

/// The maximum number of sets that the enumeration tries to extend. A unit of one tuple is adjacent
/// to all others, and most of the sets around it have no tree.
const TRIES_MAX: usize = 20 * PAIRS_MAX;

/// The best tree of each set.
pub(super) type BestTrees = HashMap<UnitSet, Candidate>;

/// The enumeration of connected subgraphs and their complements.
struct PairEnumeration<'r, 'a> {
    region: &'r Region<'a>,
    /// The units adjacent to each unit by edges.
    adjacent: Vec<UnitSet>,
    /// Edges between sets, at least one of them with several units.
    hyperedges: Vec<(UnitSet, UnitSet)>,
    best: BestTrees,
    pairs: usize,
    tries: usize,
}

impl Region<'_> {
    /// Returns the best tree of all units, and of the sets below it.
    pub(super) fn best(&self) -> BestTrees {
        let unit = |(unit, profile): (usize, &Rc<Profile>)| {
            (1 << unit, Candidate { cost: 0.0, profile: profile.clone(), split: None })
        };
        let single: BestTrees = self.profiles.iter().enumerate().map(unit).collect();
        let full = self.all();
        let mut walk = PairEnumeration::new(self, single.clone());
        let within = walk.run();
        if within.is_some() && walk.best.contains_key(&full) {
            return walk.best;
        }
        // Trees of an unconnected region are kept; for a region that is too large, the search
        // starts over from single units.
        let found = std::mem::take(&mut walk.best);
        let mut best = if within.is_some() { found } else { single };
        let sets = self.largest(&best);
        self.greedy(&mut best, sets);
        if best.contains_key(&full) {
            walk.best = best;
            walk.pairs = 0;
            // The trees found before the limit are valid too.
            let _ = walk.search_intervals(full);
            best = walk.best;
        }
        best
    }

    /// Returns disjoint sets with a tree, largest first.
    fn largest(&self, best: &BestTrees) -> Vec<UnitSet> {
        let mut all: Vec<UnitSet> = best.keys().copied().collect();
        all.sort_by_key(|set| (std::cmp::Reverse(set.count_ones()), *set));
        let mut taken = 0;
        all.retain(|set| {
            let free = taken & set == 0;
            taken |= if free { *set } else { 0 };
            free
        });
        all
    }

    fn edges(&self) -> Vec<(UnitSet, UnitSet)> {
        let mut edges = Vec::new();
        for class in &self.members {
            for a in bits(class.units) {
                edges.extend(bits(class.units & !(a | (a - 1))).map(|b| (a, b)));
            }
        }
        for (_, mask) in &self.predicates {
            edges.extend(
                bits(*mask).map(|unit| (unit, mask & !unit)).filter(|(_, others)| *others != 0),
            );
        }
        for (position, unit) in self.units.iter().enumerate() {
            match unit {
                Unit::Dependent { required, .. } => edges.push((1 << position, *required)),
                // A cross product with a single tuple is free, so it may be joined to any unit.
                Unit::Base(_) if self.profiles[position].rows <= 1.0 => {
                    let others = (0..self.units.len()).filter(|other| *other != position);
                    edges.extend(others.map(|other| (1 << position, 1 << other)));
                }
                Unit::Base(_) => {}
            }
        }
        edges
    }

    /// Repeatedly joins the two sets with the smallest join.
    fn greedy(&self, best: &mut BestTrees, mut sets: Vec<UnitSet>) {
        // The join of two sets, left one first; estimated once.
        let mut joins: HashMap<(UnitSet, UnitSet, bool), Option<Candidate>> = HashMap::new();
        let mut profiles: HashMap<UnitSet, Rc<Profile>> = HashMap::new();
        while sets.len() > 1 {
            interrupt::point();
            let mut found: Option<(UnitSet, UnitSet, f64)> = None;
            let mut crossed = false;
            for cross in [false, true] {
                crossed = cross;
                for &left in &sets {
                    for &right in sets.iter().filter(|right| **right != left) {
                        let (Some(a), Some(b)) = (best.get(&left), best.get(&right)) else {
                            continue;
                        };
                        let candidate = joins.entry((left, right, cross)).or_insert_with(|| {
                            let known = profiles.get(&(left | right)).cloned();
                            let made =
                                self.combine((left, a), (right, b), cross, known.as_ref(), None)?;
                            profiles.insert(left | right, made.profile.clone());
                            Some(made)
                        });
                        let Some(rows) = candidate.as_ref().map(|candidate| candidate.profile.rows)
                        else {
                            continue;
                        };
                        if found.is_none_or(|(_, _, known)| rows < known) {
                            found = Some((left, right, rows));
                        }
                    }
                }
                if found.is_some() {
                    break;
                }
            }
            let Some((left, right, _)) = found else { break };
            let Some(candidate) = joins.remove(&(left, right, crossed)).flatten() else { break };
            sets.retain(|set| *set != left && *set != right);
            sets.push(left | right);
            best.insert(left | right, candidate);
        }
    }

    /// Returns the units of a tree from left to right.
    fn leaves(&self, set: UnitSet, best: &BestTrees) -> Vec<UnitSet> {
        let (mut pending, mut leaves) = (vec![set], Vec::new());
        while let Some(set) = pending.pop() {
            match best.get(&set).and_then(|candidate| candidate.split) {
                Some((left, right)) => pending.extend([right, left]),
                None => leaves.push(set),
            }
        }
        leaves
    }
}

/// Returns the units of a set, each as a set.
fn bits(set: UnitSet) -> impl DoubleEndedIterator<Item = UnitSet> {
    (0..UnitSet::BITS - set.leading_zeros()).map(|bit| 1 << bit).filter(move |unit| set & unit != 0)
}

/// Returns the nonempty subsets of a set in ascending order.
fn subsets(set: UnitSet) -> impl Iterator<Item = UnitSet> {
    let mut subset: UnitSet = 0;
    std::iter::from_fn(move || {
        subset = subset.wrapping_sub(set) & set;
        (subset != 0).then_some(subset)
    })
}

/// The functions of DPhyp with their original names; `None` ends the enumeration after too many
/// pairs.
impl<'r, 'a> PairEnumeration<'r, 'a> {
    fn new(region: &'r Region<'a>, best: BestTrees) -> Self {
        let mut adjacent = vec![0; region.units.len()];
        let mut hyperedges = Vec::new();
        for (a, b) in region.edges() {
            if a.is_power_of_two() && b.is_power_of_two() {
                adjacent[a.trailing_zeros() as usize] |= b;
                adjacent[b.trailing_zeros() as usize] |= a;
            } else {
                hyperedges.push((a, b));
            }
        }
        PairEnumeration { region, adjacent, hyperedges, best, pairs: 0, tries: 0 }
    }
}

impl PairEnumeration<'_, '_> {
    fn run(&mut self) -> Option<()> {
        for position in (0..self.region.units.len()).rev() {
            let unit: UnitSet = 1 << position;
            self.emit_csg(unit)?;
            self.enumerate_csg_rec(unit, unit | (unit - 1))?;
        }
        Some(())
    }

    fn enumerate_csg_rec(&mut self, set: UnitSet, excluded: UnitSet) -> Option<()> {
        let neighbors = self.neighbors(set, excluded);
        for more in subsets(neighbors) {
            self.count_try()?;
            if self.best.contains_key(&(set | more)) {
                self.emit_csg(set | more)?;
            }
        }
        for more in subsets(neighbors) {
            self.count_try()?;
            self.enumerate_csg_rec(set | more, excluded | neighbors)?;
        }
        Some(())
    }

    fn emit_csg(&mut self, set: UnitSet) -> Option<()> {
        let first = set & set.wrapping_neg();
        let excluded = set | (first - 1) | first;
        let neighbors = self.neighbors(set, excluded);
        for unit in bits(neighbors).rev() {
            if self.connected(set, unit) {
                self.emit_pair(set, unit)?;
            }
            // Neighbors before this one start complements of their own.
            self.enumerate_cmp_rec(set, unit, excluded | (neighbors & (unit | (unit - 1))))?;
        }
        Some(())
    }

    fn enumerate_cmp_rec(
        &mut self,
        set: UnitSet,
        complement: UnitSet,
        excluded: UnitSet,
    ) -> Option<()> {
        let neighbors = self.neighbors(complement, excluded);
        for more in subsets(neighbors) {
            self.count_try()?;
            let larger = complement | more;
            if self.best.contains_key(&larger) && self.connected(set, larger) {
                self.emit_pair(set, larger)?;
            }
        }
        for more in subsets(neighbors) {
            self.count_try()?;
            self.enumerate_cmp_rec(set, complement | more, excluded | neighbors)?;
        }
        Some(())
    }

    /// Returns the units adjacent to a set, except the excluded ones. The first unit of a
    /// hyperedge's far end represents all of them.
    fn neighbors(&self, set: UnitSet, excluded: UnitSet) -> UnitSet {
        let mut found = self.adjacent_to(set) & !(set | excluded);
        for (a, b) in &self.hyperedges {
            for (near, far) in [(a, b), (b, a)] {
                if near & !set == 0 && far & (set | excluded) == 0 {
                    found |= far & far.wrapping_neg();
                }
            }
        }
        found
    }

    fn connected(&self, left: UnitSet, right: UnitSet) -> bool {
        let joins = |a: UnitSet, b: UnitSet| a & !left == 0 && b & !right == 0;
        self.adjacent_to(left) & right != 0
            || self.hyperedges.iter().any(|(a, b)| joins(*a, *b) || joins(*b, *a))
    }

    /// Returns the units that an edge connects with a set.
    fn adjacent_to(&self, mut set: UnitSet) -> UnitSet {
        let mut found = 0;
        while set != 0 {
            found |= self.adjacent[set.trailing_zeros() as usize];
            set &= set - 1;
        }
        found
    }

    /// Counts one more set; `None` if there are too many.
    fn count_try(&mut self) -> Option<()> {
        self.tries += 1;
        if self.tries.is_multiple_of(1 << 10) {
            interrupt::point();
        }
        (self.tries <= TRIES_MAX).then_some(())
    }

    /// Finds the best tree over intervals of the known tree's leaves, shorter intervals first.
    fn search_intervals(&mut self, full: UnitSet) -> Option<()> {
        let leaves = self.region.leaves(full, &self.best);
        // For each leaf, the units of all leaves before it.
        let mut before: Vec<UnitSet> = vec![0];
        for leaf in &leaves {
            before.push(before.last().map_or(0, |set| set | leaf));
        }
        for length in 2..=leaves.len() {
            for (start, end) in (0..).zip(length..=leaves.len()) {
                for middle in start + 1..end {
                    let (left, right) =
                        (before[middle] & !before[start], before[end] & !before[middle]);
                    let known = self.best.contains_key(&left) && self.best.contains_key(&right);
                    if known && self.connected(left, right) {
                        self.emit_pair(left, right)?;
                    }
                }
            }
        }
        Some(())
    }

    fn emit_pair(&mut self, left: UnitSet, right: UnitSet) -> Option<()> {
        self.pairs += 1;
        if self.pairs > PAIRS_MAX {
            return None;
        }
        let both = left | right;
        for (one, other) in [(left, right), (right, left)] {
            let (Some(a), Some(b)) = (self.best.get(&one), self.best.get(&other)) else { continue };
            let known = self.best.get(&both);
            let bound = known.map(|known| known.cost);
            let profile = known.map(|known| &known.profile);
            if let Some(found) = self.region.combine((one, a), (other, b), false, profile, bound)
                && bound.is_none_or(|bound| found.cost < bound)
            {
                self.best.insert(both, found);
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
