//! Joins of a table with a dimension of which its keys cover only a range, as sales of five years
//! cover few days of a calendar.

use super::component::Component;
use super::{Column, Profile};
use crate::logical::relation::Name;

impl Component {
    /// Estimates the fraction of pairs of this component's rows and of another relation's tuples
    /// that have equal keys. `name` is the key here, and `other` the key of the other relation,
    /// whose values are assumed to be spread over all values of this table in its range. `None` if
    /// this sample is not complete, or the range is not known.
    fn share_in_range(&self, name: &Name, other: &Column) -> Option<f64> {
        let (min, max) = (other.min?, other.max?);
        if !self.whole || self.rows == 0 {
            return None;
        }
        let (part, column) = self.part(name)?;
        let values = part.sample.values(column)?;
        let numbers = values.whole_numbers()?;
        let in_range = |number: i64| (min..=max).contains(&(number as f64));
        let here = part.rows.iter().filter_map(|row| *numbers.by_row.get(*row as usize)?);
        let here = here.filter(|number| in_range(*number)).count() as f64;
        let all = numbers.distinct_between(min, max).max(1) as f64;
        Some(here / self.rows as f64 / all)
    }
}

/// Estimates the fraction of all pairs that match by the range that the keys of one relation cover
/// in the other one, of which `left` and `right` are samples.
pub(super) fn share_in_range(
    (left, right): (&Profile, &Profile),
    samples: (&Component, &Component),
    keys: &[(Name, Name)],
) -> Option<f64> {
    let [(on_left, on_right)] = keys else { return None };
    let range_of = |side: &Profile, name: &Name| side.columns.get(name).cloned();
    match (samples.0.whole, samples.1.whole) {
        (true, false) => samples.0.share_in_range(on_left, &range_of(right, on_right)?),
        (false, true) => samples.1.share_in_range(on_right, &range_of(left, on_left)?),
        _ => None,
    }
}
