//! Tests of the search for join trees.

use tessera_plan::{Expr, Rules};
use tessera_types::{Atom, Field, Tuple};

use super::*;
use crate::logical::estimate::Estimates;
use crate::logical::order::counts::Counts;
use crate::logical::relation::{Kind, Name, Relation};
use crate::logical::types::Types;

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

/// Calls `check` with a region of `count` units that these predicates connect.
fn with_region(
    count: usize,
    edges: &[&[usize]],
    dependent: &[(usize, usize)],
    check: &dyn Fn(&mut Region<'_>),
) {
    let registry = tessera_testing::standard_registry();
    let atoms = HashMap::new();
    let types = Types { library: registry.library(), atoms: &atoms, rules: Rules::ALL };
    let counts = Counts::default();
    let estimates = Estimates::default();
    let mut units = Vec::new();
    for number in 0..count {
        units.push(match dependent.iter().find(|(own, _)| *own == number) {
            None => Unit::Base(unit(number)),
            Some((_, on)) => Unit::Dependent {
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
        dependent: dependent.iter().map(|(own, _)| 1 << own).sum(),
        bases: (0..count)
            .filter(|n| !dependent.iter().any(|(own, _)| own == n))
            .map(|n| 1 << n)
            .sum(),
        deferred: Vec::new(),
        classes: Vec::new(),
        members: Vec::new(),
        types,
        counts: &counts,
        estimates: &estimates,
    };
    check(&mut region);
}

/// Returns the number of enumerated pairs, and the sets with a tree.
fn walked(region: &Region<'_>) -> (usize, Vec<UnitSet>) {
    let single = |unit: usize| {
        (1 << unit, Candidate { cost: 0.0, profile: region.profiles[unit].clone(), split: None })
    };
    let best: BestTrees = (0..region.units.len()).map(single).collect();
    let mut walk = PairEnumeration::new(region, best);
    assert!(walk.run().is_some());
    let mut sets: Vec<UnitSet> = walk.best.keys().copied().collect();
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
        // Unit 2 may be joined to 1 or to both, but never to 0 alone.
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
fn the_tree_of_a_large_region_costs_no_more_than_the_greedy_one() {
    let count = 24;
    let edges: Vec<[usize; 2]> =
        (1..count).map(|i| [i - 1, i]).chain((2..count).map(|i| [i / 2, i])).collect();
    let edges: Vec<&[usize]> = edges.iter().map(|edge| &edge[..]).collect();
    with_region(count, &edges, &[], &|region| {
        // Row counts differ widely, so that orders differ in cost.
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
        let mut greedy: BestTrees = (0..count).map(single).collect();
        region.greedy(&mut greedy, (0..count).map(|unit| 1 << unit).collect());
        let (best, greedy) = (&region.best()[&full], &greedy[&full]);
        assert!(best.cost < greedy.cost, "{} {}", best.cost, greedy.cost);
    });
}

#[test]
fn a_unit_of_one_tuple_beside_many_ends_the_walk() {
    // A chain in which one unit may be joined to any other: 2^40 sets around it have no tree.
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
                region.profiles.iter_mut().for_each(|profile| Rc::make_mut(profile).rows = rows);
                assert!(region.best().contains_key(&((1 << count) - 1)), "{rows}, {count}");
            });
        }
    }
}
