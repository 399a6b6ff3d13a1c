//! The search for the cheapest tree of joins.
//!
//! A region is a hypergraph: units are nodes, equalities edges, and a predicate over several units or a unit that hangs on several
//! others a hyperedge. Its connected subgraphs are enumerated with their connected complements, so that only joins with a
//! condition are looked at (DPhyp: Moerkotte and Neumann, Dynamic Programming Strikes Back, SIGMOD 2008). Where
//! there are more than [`PAIRS_MAX`] of them, the two sets whose join is smallest are joined, again and again (greedy operator ordering:
//! Fegaras, A New Heuristic for Optimizing Large Queries, 1998). Cross products come in only between what nothing connects.

use std::collections::HashMap;
use std::rc::Rc;

use super::{Candidate, Region, Unit};
use crate::estimate::Profile;

/// The most pairs of sets that are looked at before the search becomes greedy: a chain of 40 units or a star of 12. Looking at a
/// pair takes about a microsecond; the first one of a set, whose rows are estimated, up to a hundred.
const PAIRS_MAX: usize = 12_000;

/// The best tree of each set.
pub(super) type Best = HashMap<usize, Candidate>;

/// A walk over connected subgraphs.
struct Walk<'r, 'a> {
    region: &'r Region<'a>,
    edges: Vec<(usize, usize)>,
    best: Best,
    pairs: usize,
}

impl Region<'_> {
    /// The best trees of the sets on the way to that of all units.
    pub(super) fn best(&self) -> Best {
        let unit = |(unit, profile): (usize, &Rc<Profile>)| {
            (1 << unit, Candidate { cost: 0.0, profile: profile.clone(), split: None })
        };
        let single: Best = self.profiles.iter().enumerate().map(unit).collect();
        let full = (1_usize << self.units.len()) - 1;
        let mut walk = Walk { region: self, edges: self.edges(), best: single.clone(), pairs: 0 };
        let within = walk.run();
        if within.is_some() && walk.best.contains_key(&full) {
            return walk.best;
        }
        // What the walk has joined of a region that nothing connects stays joined; one that is too large starts afresh.
        let mut best = if within.is_some() { walk.best } else { single };
        let sets = self.largest(&best);
        self.greedy(&mut best, sets);
        best
    }

    /// Disjoint sets that have a tree, the largest ones first taken.
    fn largest(&self, best: &Best) -> Vec<usize> {
        let mut all: Vec<usize> = best.keys().copied().collect();
        all.sort_by_key(|set| (std::cmp::Reverse(set.count_ones()), *set));
        let mut taken = 0;
        all.retain(|set| {
            let free = taken & set == 0;
            taken |= if free { *set } else { 0 };
            free
        });
        all
    }

    fn edges(&self) -> Vec<(usize, usize)> {
        let mut edges = Vec::new();
        let of = |name| self.owner.get(name).map(|unit| 1_usize << unit);
        for class in &self.classes {
            let mut units: Vec<usize> = class.iter().filter_map(of).collect();
            units.sort_unstable();
            units.dedup();
            for (position, a) in units.iter().enumerate() {
                edges.extend(units[position + 1..].iter().map(|b| (*a, *b)));
            }
        }
        for (_, mask) in &self.predicates {
            edges.extend(bits(*mask).map(|unit| (unit, mask & !unit)).filter(|(_, others)| *others != 0));
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
    fn greedy(&self, best: &mut Best, mut sets: Vec<usize>) {
        let mut profiles: HashMap<usize, Rc<Profile>> = HashMap::new();
        while sets.len() > 1 {
            let mut found: Option<(usize, usize, Candidate)> = None;
            for cross in [false, true] {
                for &left in &sets {
                    for &right in sets.iter().filter(|right| **right != left) {
                        let (Some(a), Some(b)) = (best.get(&left), best.get(&right)) else { continue };
                        let known = profiles.get(&(left | right));
                        let Some(candidate) = self.combine((left, a), (right, b), cross, known, None) else {
                            continue;
                        };
                        profiles.insert(left | right, candidate.profile.clone());
                        let better = found
                            .as_ref()
                            .is_none_or(|(_, _, known)| candidate.profile.rows < known.profile.rows);
                        if better {
                            found = Some((left, right, candidate));
                        }
                    }
                }
                if found.is_some() {
                    break;
                }
            }
            let Some((left, right, candidate)) = found else { break };
            sets.retain(|set| *set != left && *set != right);
            sets.push(left | right);
            best.insert(left | right, candidate);
        }
    }
}

/// The units of a set, each as a set.
fn bits(set: usize) -> impl DoubleEndedIterator<Item = usize> {
    (0..usize::BITS).map(|bit| 1_usize << bit).filter(move |unit| set & unit != 0)
}

/// The nonempty subsets of a set, smaller numbers first.
fn subsets(set: usize) -> impl Iterator<Item = usize> {
    let mut subset = 0_usize;
    std::iter::from_fn(move || {
        subset = subset.wrapping_sub(set) & set;
        (subset != 0).then_some(subset)
    })
}

/// The functions of DPhyp, by their names there; `None` ends the walk when there were too many pairs.
impl Walk<'_, '_> {
    fn run(&mut self) -> Option<()> {
        for position in (0..self.region.units.len()).rev() {
            let unit = 1_usize << position;
            self.emit_csg(unit)?;
            self.enumerate_csg_rec(unit, unit | (unit - 1))?;
        }
        Some(())
    }

    fn enumerate_csg_rec(&mut self, set: usize, excluded: usize) -> Option<()> {
        let neighbours = self.neighbours(set, excluded);
        for more in subsets(neighbours) {
            if self.best.contains_key(&(set | more)) {
                self.emit_csg(set | more)?;
            }
        }
        for more in subsets(neighbours) {
            self.enumerate_csg_rec(set | more, excluded | neighbours)?;
        }
        Some(())
    }

    fn emit_csg(&mut self, set: usize) -> Option<()> {
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

    fn enumerate_cmp_rec(&mut self, set: usize, complement: usize, excluded: usize) -> Option<()> {
        let neighbours = self.neighbours(complement, excluded);
        for more in subsets(neighbours) {
            let larger = complement | more;
            if self.best.contains_key(&larger) && self.connected(set, larger) {
                self.emit_pair(set, larger)?;
            }
        }
        for more in subsets(neighbours) {
            self.enumerate_cmp_rec(set, complement | more, excluded | neighbours)?;
        }
        Some(())
    }

    /// The units next to a set, but for the excluded ones; of a hyperedge's far end, the first one stands for all.
    fn neighbours(&self, set: usize, excluded: usize) -> usize {
        let mut found = 0;
        for (a, b) in &self.edges {
            for (near, far) in [(a, b), (b, a)] {
                if near & !set == 0 && far & (set | excluded) == 0 {
                    found |= far & far.wrapping_neg();
                }
            }
        }
        found
    }

    fn connected(&self, left: usize, right: usize) -> bool {
        let joins = |a: usize, b: usize| a & !left == 0 && b & !right == 0;
        self.edges.iter().any(|(a, b)| joins(*a, *b) || joins(*b, *a))
    }

    fn emit_pair(&mut self, left: usize, right: usize) -> Option<()> {
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
    use super::*;
    use crate::estimate::Estimates;
    use crate::raise::Types;
    use crate::relation::{Kind, Name, Relation};
    use tessera_plan::{Expr, Rules};
    use tessera_types::{Atom, Field, Tuple};

    fn unit(number: usize) -> Relation {
        let rows = vec![vec![Expr::int64(1)]; number + 2];
        Relation::Values { tuple: Tuple::new(vec![Field::new(format!("x{number}"), Atom::Int64)]), rows }
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
        let registry = tessera_ops::standard_registry();
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
            late: Vec::new(),
            classes: Vec::new(),
            types,
            estimates: &estimates,
        };
        check(&mut region);
    }

    /// How many pairs the walk looks at, and the sets it has found trees of.
    fn walked(region: &Region<'_>) -> (usize, Vec<usize>) {
        let single = |unit: usize| {
            (1 << unit, Candidate { cost: 0.0, profile: region.profiles[unit].clone(), split: None })
        };
        let best: Best = (0..region.units.len()).map(single).collect();
        let mut walk = Walk { region, edges: region.edges(), best, pairs: 0 };
        assert!(walk.run().is_some());
        let mut sets: Vec<usize> = walk.best.keys().copied().collect();
        sets.sort_unstable();
        (walk.pairs, sets)
    }

    #[test]
    fn every_connected_pair_is_looked_at_once() {
        let n = 7_usize;
        let chain: Vec<[usize; 2]> = (1..n).map(|i| [i - 1, i]).collect();
        let star: Vec<[usize; 2]> = (1..n).map(|i| [0, i]).collect();
        let clique: Vec<[usize; 2]> = (0..n).flat_map(|i| (0..i).map(move |j| [j, i])).collect();
        // The closed forms of Ono and Lohman, Measuring the Complexity of Join Enumeration, VLDB 1990.
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
        with_region(20, &edges, &[], &|region| assert!(region.best().contains_key(&((1 << 20) - 1))));
    }

    #[test]
    fn what_no_cost_can_be_computed_of_is_joined_all_the_same() {
        for rows in [f64::NAN, f64::INFINITY] {
            for count in [3, 20] {
                let edges: Vec<[usize; 2]> = (1..count).map(|i| [0, i]).collect();
                let edges: Vec<&[usize]> = edges.iter().map(|edge| &edge[..]).collect();
                with_region(count, &edges, &[], &|region| {
                    region.profiles.iter_mut().for_each(|profile| Rc::make_mut(profile).rows = rows);
                    assert!(region.best().contains_key(&((1 << count) - 1)), "{rows}, {count}");
                });
            }
        }
    }
}
