//! The search for the cheapest tree of joins.
//!
//! A region is a hypergraph: units are nodes, equalities edges, and a predicate over several units
//! or a unit that hangs on several others a hyperedge. Its connected subgraphs are enumerated with
//! their connected complements, so that only joins with a condition are looked at (DPhyp: Moerkotte
//! and Neumann, Dynamic Programming Strikes Back, SIGMOD 2008). Where there are more than
//! [`PAIRS_MAX`] of them, the two sets whose join is smallest are joined, again and again (greedy
//! operator ordering: Fegaras, A New Heuristic for Optimizing Large Queries, 1998), and then the
//! best tree over intervals of that tree's leaves is found (Neumann and Radke, Adaptive
//! Optimization of Very Large Join Queries, SIGMOD 2018: linearized dynamic programming). Cross
//! products come in only between what nothing connects. Work is bounded by counts, not by a clock:
//! a plan never hangs on the machine.

use std::collections::HashMap;
use std::rc::Rc;

use tessera_context::interrupt;

use super::{Candidate, Region, Set, Unit};
use crate::logical::estimate::Profile;

/// The most pairs of sets that are looked at before the search becomes greedy: a chain of 39 units
/// or a star of 11. Looking at a pair takes about a microsecond; the first one of a set, whose rows
/// are estimated, up to a hundred.
const PAIRS_MAX: usize = 10_000;

/// The most sets that the walk tries to extend. A unit of one tuple is next to all others, and most
/// of the sets around it have no tree.
const TRIES_MAX: usize = 20 * PAIRS_MAX;

/// The best tree of each set.
pub(super) type Best = HashMap<Set, Candidate>;

/// A walk over connected subgraphs.
struct Walk<'r, 'a> {
    region: &'r Region<'a>,
    /// The units that edges join with each unit.
    adjacent: Vec<Set>,
    /// Edges between sets of which one has several units.
    hyperedges: Vec<(Set, Set)>,
    best: Best,
    pairs: usize,
    tries: usize,
}

impl Region<'_> {
    /// The best trees of the sets on the way to that of all units.
    pub(super) fn best(&self) -> Best {
        let unit = |(unit, profile): (usize, &Rc<Profile>)| {
            (1 << unit, Candidate { cost: 0.0, profile: profile.clone(), split: None })
        };
        let single: Best = self.profiles.iter().enumerate().map(unit).collect();
        let full = self.all();
        let mut walk = Walk::new(self, single.clone());
        let within = walk.run();
        if within.is_some() && walk.best.contains_key(&full) {
            return walk.best;
        }
        // What the walk has joined of a region that nothing connects stays joined; one that is too
        // large starts afresh.
        let found = std::mem::take(&mut walk.best);
        let mut best = if within.is_some() { found } else { single };
        let sets = self.largest(&best);
        self.greedy(&mut best, sets);
        if best.contains_key(&full) {
            walk.best = best;
            walk.pairs = 0;
            // What it has found when there were too many pairs is a tree as well.
            let _ = walk.over_intervals(full);
            best = walk.best;
        }
        best
    }

    /// Disjoint sets that have a tree, the largest ones first taken.
    fn largest(&self, best: &Best) -> Vec<Set> {
        let mut all: Vec<Set> = best.keys().copied().collect();
        all.sort_by_key(|set| (std::cmp::Reverse(set.count_ones()), *set));
        let mut taken = 0;
        all.retain(|set| {
            let free = taken & set == 0;
            taken |= if free { *set } else { 0 };
            free
        });
        all
    }

    fn edges(&self) -> Vec<(Set, Set)> {
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
                Unit::Hanging { required, .. } => edges.push((1 << position, *required)),
                // One tuple multiplies nothing: it may be joined to anything.
                Unit::Base(_) if self.profiles[position].rows <= 1.0 => {
                    let others = (0..self.units.len()).filter(|other| *other != position);
                    edges.extend(others.map(|other| (1 << position, 1 << other)));
                }
                Unit::Base(_) => {}
            }
        }
        edges
    }

    /// Joins two of these sets again and again, those whose join is smallest first.
    fn greedy(&self, best: &mut Best, mut sets: Vec<Set>) {
        // What joins two sets, the left one first; estimated once.
        let mut joins: HashMap<(Set, Set, bool), Option<Candidate>> = HashMap::new();
        let mut profiles: HashMap<Set, Rc<Profile>> = HashMap::new();
        while sets.len() > 1 {
            interrupt::point();
            let mut found: Option<(Set, Set, f64)> = None;
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

    /// The units of a tree from left to right.
    fn leaves(&self, set: Set, best: &Best) -> Vec<Set> {
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

/// The units of a set, each as a set.
fn bits(set: Set) -> impl DoubleEndedIterator<Item = Set> {
    (0..Set::BITS - set.leading_zeros()).map(|bit| 1 << bit).filter(move |unit| set & unit != 0)
}

/// The nonempty subsets of a set, smaller numbers first.
fn subsets(set: Set) -> impl Iterator<Item = Set> {
    let mut subset: Set = 0;
    std::iter::from_fn(move || {
        subset = subset.wrapping_sub(set) & set;
        (subset != 0).then_some(subset)
    })
}

/// The functions of DPhyp, by their names there; `None` ends the walk when there were too many
/// pairs.
impl<'r, 'a> Walk<'r, 'a> {
    fn new(region: &'r Region<'a>, best: Best) -> Self {
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
        Walk { region, adjacent, hyperedges, best, pairs: 0, tries: 0 }
    }
}

impl Walk<'_, '_> {
    fn run(&mut self) -> Option<()> {
        for position in (0..self.region.units.len()).rev() {
            let unit: Set = 1 << position;
            self.emit_csg(unit)?;
            self.enumerate_csg_rec(unit, unit | (unit - 1))?;
        }
        Some(())
    }

    fn enumerate_csg_rec(&mut self, set: Set, excluded: Set) -> Option<()> {
        let neighbours = self.neighbours(set, excluded);
        for more in subsets(neighbours) {
            self.tried()?;
            if self.best.contains_key(&(set | more)) {
                self.emit_csg(set | more)?;
            }
        }
        for more in subsets(neighbours) {
            self.tried()?;
            self.enumerate_csg_rec(set | more, excluded | neighbours)?;
        }
        Some(())
    }

    fn emit_csg(&mut self, set: Set) -> Option<()> {
        let first = set & set.wrapping_neg();
        let excluded = set | (first - 1) | first;
        let neighbours = self.neighbours(set, excluded);
        for unit in bits(neighbours).rev() {
            if self.connected(set, unit) {
                self.emit_pair(set, unit)?;
            }
            // Those of the neighbours that come before it begin complements of their own.
            self.enumerate_cmp_rec(set, unit, excluded | (neighbours & (unit | (unit - 1))))?;
        }
        Some(())
    }

    fn enumerate_cmp_rec(&mut self, set: Set, complement: Set, excluded: Set) -> Option<()> {
        let neighbours = self.neighbours(complement, excluded);
        for more in subsets(neighbours) {
            self.tried()?;
            let larger = complement | more;
            if self.best.contains_key(&larger) && self.connected(set, larger) {
                self.emit_pair(set, larger)?;
            }
        }
        for more in subsets(neighbours) {
            self.tried()?;
            self.enumerate_cmp_rec(set, complement | more, excluded | neighbours)?;
        }
        Some(())
    }

    /// The units next to a set, but for the excluded ones; of a hyperedge's far end, the first one
    /// stands for all.
    fn neighbours(&self, set: Set, excluded: Set) -> Set {
        let mut found = self.around(set) & !(set | excluded);
        for (a, b) in &self.hyperedges {
            for (near, far) in [(a, b), (b, a)] {
                if near & !set == 0 && far & (set | excluded) == 0 {
                    found |= far & far.wrapping_neg();
                }
            }
        }
        found
    }

    fn connected(&self, left: Set, right: Set) -> bool {
        let joins = |a: Set, b: Set| a & !left == 0 && b & !right == 0;
        self.around(left) & right != 0
            || self.hyperedges.iter().any(|(a, b)| joins(*a, *b) || joins(*b, *a))
    }

    /// The units that an edge joins with one of a set.
    fn around(&self, mut set: Set) -> Set {
        let mut found = 0;
        while set != 0 {
            found |= self.adjacent[set.trailing_zeros() as usize];
            set &= set - 1;
        }
        found
    }

    /// Counts one more set that is tried.
    fn tried(&mut self) -> Option<()> {
        self.tries += 1;
        if self.tries.is_multiple_of(1 << 10) {
            interrupt::point();
        }
        (self.tries <= TRIES_MAX).then_some(())
    }

    /// The best tree whose sets are intervals of the leaves of the tree that is known, from left to
    /// right: shorter intervals first.
    fn over_intervals(&mut self, full: Set) -> Option<()> {
        let leaves = self.region.leaves(full, &self.best);
        // The units of all leaves before each.
        let mut before: Vec<Set> = vec![0];
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

    fn emit_pair(&mut self, left: Set, right: Set) -> Option<()> {
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
mod tests {
    use tessera_plan::{Expr, Rules};
    use tessera_types::{Atom, Field, Tuple};

    use super::*;
    use crate::logical::estimate::Estimates;
    use crate::logical::raise::Types;
    use crate::logical::relation::{Kind, Name, Relation};

    fn unit(number: usize) -> Relation {
        let rows = vec![vec![Expr::int64(1)]; number + 2];
        Relation::Values {
            tuple: Tuple::new(vec![Field::new(format!("x{number}"), Atom::Int64)]),
            rows,
        }
    }

    fn field(number: usize) -> Expr {
        Expr::field(format!("x{number}"))
    }

    /// Calls `check` with a region of so many units that these predicates connect.
    fn with_region(
        count: usize,
        edges: &[&[usize]],
        hanging: &[(usize, usize)],
        check: &dyn Fn(&mut Region<'_>),
    ) {
        let registry = tessera_testing::standard_registry();
        let atoms = HashMap::new();
        let types = Types { library: registry.library(), atoms: &atoms, rules: Rules::ALL };
        let estimates = Estimates::default();
        let mut units = Vec::new();
        for number in 0..count {
            units.push(match hanging.iter().find(|(own, _)| *own == number) {
                None => Unit::Base(unit(number)),
                Some((_, on)) => Unit::Hanging {
                    kind: Kind::Left,
                    right: unit(number),
                    conditions: vec![Expr::call("eq", vec![field(*on), field(number)])],
                    mark: None,
                    null_aware: false,
                    required: 1 << on,
                },
            });
        }
        let owner = (0..count).map(|number| (Name::from(format!("x{number}")), number)).collect();
        let predicate = |edge: &&[usize]| {
            let fields = edge.iter().map(|number| field(*number)).collect();
            (Expr::call("eq", fields), edge.iter().map(|number| 1 << number).sum())
        };
        let mut region = Region {
            profiles: (0..count).map(|number| Rc::new(estimates.profile(&unit(number)))).collect(),
            units,
            owner,
            predicates: edges.iter().map(predicate).collect(),
            hanging: hanging.iter().map(|(own, _)| 1 << own).sum(),
            bases: (0..count)
                .filter(|n| !hanging.iter().any(|(own, _)| own == n))
                .map(|n| 1 << n)
                .sum(),
            late: Vec::new(),
            classes: Vec::new(),
            members: Vec::new(),
            types,
            estimates: &estimates,
        };
        check(&mut region);
    }

    /// How many pairs the walk looks at, and the sets it has found trees of.
    fn walked(region: &Region<'_>) -> (usize, Vec<Set>) {
        let single = |unit: usize| {
            (
                1 << unit,
                Candidate { cost: 0.0, profile: region.profiles[unit].clone(), split: None },
            )
        };
        let best: Best = (0..region.units.len()).map(single).collect();
        let mut walk = Walk::new(region, best);
        assert!(walk.run().is_some());
        let mut sets: Vec<Set> = walk.best.keys().copied().collect();
        sets.sort_unstable();
        (walk.pairs, sets)
    }

    #[test]
    fn every_connected_pair_is_looked_at_once() {
        let n = 7_usize;
        let chain: Vec<[usize; 2]> = (1..n).map(|i| [i - 1, i]).collect();
        let star: Vec<[usize; 2]> = (1..n).map(|i| [0, i]).collect();
        let clique: Vec<[usize; 2]> = (0..n).flat_map(|i| (0..i).map(move |j| [j, i])).collect();
        // The closed forms of Ono and Lohman, Measuring the Complexity of Join Enumeration, VLDB
        // 1990.
        let expected = [
            (chain, (n * n * n - n) / 6),
            (star, (n - 1) << (n - 2)),
            (clique, (3_usize.pow(7) >> 1) + 1 - (1 << n)),
        ];
        for (edges, pairs) in expected {
            let edges: Vec<&[usize]> = edges.iter().map(|edge| &edge[..]).collect();
            with_region(n, &edges, &[], &|region| assert_eq!(walked(region).0, pairs, "{edges:?}"));
        }
    }

    #[test]
    fn a_predicate_over_three_units_waits_for_the_third() {
        with_region(3, &[&[0, 1], &[0, 1, 2]], &[], &|region| {
            assert_eq!(walked(region).1, [1, 2, 3, 4, 7]);
        });
    }

    #[test]
    fn what_hangs_comes_after_what_it_hangs_on() {
        with_region(3, &[&[0, 1]], &[(2, 1)], &|region| {
            let (_, sets) = walked(region);
            // Unit 2 may be joined to 1 or to both, and never to 0 alone.
            assert_eq!(sets, [1, 2, 3, 4, 6, 7]);
        });
    }

    #[test]
    fn products_only_between_what_nothing_connects() {
        with_region(4, &[&[0, 1], &[2, 3]], &[], &|region| {
            let best = region.best();
            assert_eq!(best[&0b1111].split.map(|(a, b)| a.min(b)), Some(0b0011));
        });
    }

    #[test]
    fn a_large_region_is_joined_greedily_and_whole() {
        let edges: Vec<[usize; 2]> = (1..20).map(|i| [0, i]).collect();
        let edges: Vec<&[usize]> = edges.iter().map(|edge| &edge[..]).collect();
        with_region(20, &edges, &[], &|region| {
            assert!(region.best().contains_key(&((1 << 20) - 1)))
        });
    }

    #[test]
    fn the_tree_of_a_large_region_costs_no_more_than_the_greedy_one() {
        let count = 24;
        let edges: Vec<[usize; 2]> =
            (1..count).map(|i| [i - 1, i]).chain((2..count).map(|i| [i / 2, i])).collect();
        let edges: Vec<&[usize]> = edges.iter().map(|edge| &edge[..]).collect();
        with_region(count, &edges, &[], &|region| {
            // Far from each other, so that orders differ in cost.
            for (number, profile) in region.profiles.iter_mut().enumerate() {
                Rc::make_mut(profile).rows = ((number * 7_919) % 101 + 2) as f64;
            }
            let full = region.all();
            let single = |unit: usize| {
                (
                    1 << unit,
                    Candidate { cost: 0.0, profile: region.profiles[unit].clone(), split: None },
                )
            };
            let mut greedy: Best = (0..count).map(single).collect();
            region.greedy(&mut greedy, (0..count).map(|unit| 1 << unit).collect());
            let (best, greedy) = (&region.best()[&full], &greedy[&full]);
            assert!(best.cost < greedy.cost, "{} {}", best.cost, greedy.cost);
        });
    }

    #[test]
    fn a_unit_of_one_tuple_beside_many_ends_the_walk() {
        // A chain, of which one unit may be joined to any other: 2^40 sets around it have no tree.
        let edges: Vec<[usize; 2]> = (1..60).map(|i| [i - 1, i]).collect();
        let edges: Vec<&[usize]> = edges.iter().map(|edge| &edge[..]).collect();
        with_region(60, &edges, &[], &|region| {
            Rc::make_mut(&mut region.profiles[30]).rows = 1.0;
            assert!(region.best().contains_key(&region.all()));
        });
    }

    #[test]
    fn what_no_cost_can_be_computed_of_is_joined_all_the_same() {
        for rows in [f64::NAN, f64::INFINITY] {
            for count in [3, 20] {
                let edges: Vec<[usize; 2]> = (1..count).map(|i| [0, i]).collect();
                let edges: Vec<&[usize]> = edges.iter().map(|edge| &edge[..]).collect();
                with_region(count, &edges, &[], &|region| {
                    region
                        .profiles
                        .iter_mut()
                        .for_each(|profile| Rc::make_mut(profile).rows = rows);
                    assert!(region.best().contains_key(&((1 << count) - 1)), "{rows}, {count}");
                });
            }
        }
    }
}
