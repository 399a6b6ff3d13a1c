//! Estimates of groupings: the number of groups, and the distribution of their aggregates.

use std::collections::HashMap;

use super::component::{Component, Moments};
use super::{Column, Profile};
use crate::logical::relation::{Aggregate, Call, Name};

/// The tail probability beyond which a normal distribution is not trusted, since sums of few values
/// deviate from it.
const TAIL: f64 = 1e-5;

/// An assumed normal distribution of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NormalDistribution {
    mean: f64,
    deviation: f64,
}

impl NormalDistribution {
    /// Returns the fraction of values below this one.
    pub(super) fn below(self, value: f64) -> f64 {
        let away = (value - self.mean) / self.deviation.max(f64::MIN_POSITIVE);
        (1.0 - erfc(away / std::f64::consts::SQRT_2) / 2.0).clamp(TAIL, 1.0 - TAIL)
    }
}

/// The complementary error function, with a relative error of about 1e-7 (Press et al., Numerical
/// Recipes in C, 1992, §6.2).
fn erfc(x: f64) -> f64 {
    const TERMS: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let t = 1.0 / (1.0 + x.abs() / 2.0);
    let found = t * (TERMS.iter().rev().fold(0.0, |sum, term| sum * t + term) - x * x).exp();
    if x < 0.0 { 2.0 - found } else { found }
}

/// Mean and variance of the group sizes.
#[derive(Debug, Clone, Copy)]
struct GroupSizes {
    mean: f64,
    variance: f64,
}

impl GroupSizes {
    /// Estimates the sizes of `groups` groups of `rows` tuples. Without a sample, tuples are
    /// assumed to be distributed over groups at random.
    fn of(rows: f64, groups: f64, sample: Option<&Component>, keys: &[Name]) -> GroupSizes {
        let mean = rows / groups.max(1.0);
        let chance = GroupSizes { mean, variance: mean };
        let Some(sample) =
            sample.filter(|sample| (sample.whole || sample.uniform) && sample.rows > 0)
        else {
            return chance;
        };
        let Some(pairs) = sample.pairs(keys) else { return chance };
        // A pair of tuples of one group is sampled if both tuples are.
        let share = (sample.rows as f64 / rows).min(1.0);
        let variance = pairs / (share * share) / groups.max(1.0) + mean - mean * mean;
        GroupSizes {
            mean,
            variance: if sample.whole { variance.max(0.0) } else { variance.max(mean) },
        }
    }

    /// Returns the distribution of an aggregate over these groups.
    fn spread(self, call: &Call, input: &Profile) -> Option<NormalDistribution> {
        if call.distinct || call.filter.is_some() {
            return None;
        }
        let moments = || {
            let arg = call.args.first()?;
            input.components.iter().find_map(|component| component.moments(arg))
        };
        let (mean, variance) = match &*call.function {
            "count" => (self.mean, self.variance),
            "sum" => {
                let Moments { mean, variance } = moments()?;
                (self.mean * mean, self.mean * variance + self.variance * mean * mean)
            }
            "avg" => {
                let Moments { mean, variance } = moments()?;
                (mean, variance / self.mean.max(1.0))
            }
            _ => return None,
        };
        Some(NormalDistribution { mean, deviation: variance.max(0.0).sqrt() })
    }
}

/// Estimates the profile of a grouping.
pub(super) fn group_profile(input: &Profile, aggregate: &Aggregate) -> Profile {
    let keys: Vec<Column> = aggregate.keys.iter().map(|(_, expr)| input.column_of(expr)).collect();
    let mut rows = match keys.len() {
        0 => 1.0,
        _ => keys.iter().map(|key| key.distinct).product::<f64>().min(input.rows.max(1.0)),
    };
    let fields = aggregate.keys.iter().map(|(name, expr)| match expr {
        tessera_plan::Expr::Field(field) => Some((name.clone(), field.clone())),
        _ => None,
    });
    let fields: Vec<(Name, Name)> = fields.collect::<Option<_>>().unwrap_or_default();
    let names: Vec<Name> = fields.iter().map(|(_, field)| field.clone()).collect();
    let sample = names.first().and_then(|first| input.components.get(input.component_of(first)?));
    if let Some(sample) = sample
        && let Some(groups) = sample.distinct(&names, input.rows)
    {
        rows = if sample.whole { groups } else { groups.min(rows) };
    }
    let sizes = GroupSizes::of(input.rows, rows, sample.map(|sample| &**sample), &names);
    let spread =
        |call: &Call| aggregate.sets.is_none().then(|| sizes.spread(call, input)).flatten();
    let spreads: Vec<Option<NormalDistribution>> =
        aggregate.calls.iter().map(|(_, call)| spread(call)).collect();
    let kept =
        sample.filter(|_| aggregate.sets.is_none()).and_then(|sample| sample.groups(&fields));
    if let Some(sets) = &aggregate.sets {
        rows = (rows * sets.len() as f64).min(input.rows.max(1.0) * sets.len() as f64);
    }
    let mut columns: HashMap<Name, Column> =
        aggregate.keys.iter().map(|(name, _)| name.clone()).zip(keys).collect();
    for ((name, call), spread) in aggregate.calls.iter().zip(spreads) {
        let extreme = !aggregate.keys.is_empty() && matches!(&*call.function, "min" | "max");
        let group_rows = extreme.then_some(sizes.mean);
        columns.insert(name.clone(), Column { spread, group_rows, ..Column::unknown(rows) });
    }
    let mut profile = Profile { rows, columns, components: kept.into_iter().collect() };
    profile.cap();
    profile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_normal_distribution() {
        let spread = NormalDistribution { mean: 100.0, deviation: 10.0 };
        for (value, share) in
            [(100.0, 0.5), (110.0, 0.841_345), (80.0, 0.022_750), (130.0, 0.998_650)]
        {
            assert!((spread.below(value) - share).abs() < 1e-5, "{value}: {}", spread.below(value));
        }
        assert_eq!((spread.below(-1e9), spread.below(1e9)), (TAIL, 1.0 - TAIL));
        assert_eq!(NormalDistribution { mean: 1.0, deviation: 0.0 }.below(2.0), 1.0 - TAIL);
    }
}
