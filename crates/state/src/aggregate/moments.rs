//! `skewness`, `kurtosis` and `kurtosis_pop`: sums of powers of the distances from the mean, as in
//! Pébay, *Formulas for robust, one-pass parallel computation of covariances and arbitrary-order
//! statistical moments* (2008).

use std::any::Any;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::datatypes::Float64Type;
use tessera_types::{Code, Error, Result};
use tessera_values::plain::to_form;
use tessera_vector::Column;

use super::area::{Area, Pod};
use super::groups::{Fold, Groups, Pairs, fold_array, merge};
use super::ranges::{Ranges, merge_ranges};
use super::{Aggregate, Output, OutputKind, plain};

/// The function computed from the moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The skewness of a sample.
    Skewness,
    /// The excess kurtosis of a sample.
    Kurtosis,
    /// The excess kurtosis of a population.
    KurtosisPop,
}

impl Moment {
    /// Returns the function of this name.
    pub fn named(name: &str) -> Option<Moment> {
        Some(match name {
            "skewness" => Moment::Skewness,
            "kurtosis" => Moment::Kurtosis,
            "kurtosis_pop" => Moment::KurtosisPop,
            _ => return None,
        })
    }

    /// Returns the result; `None` for too few values, or if all are equal.
    fn result(self, state: &MomentState) -> Result<Option<f64>> {
        let MomentState { count: n, mean, m2, m3, m4 } = *state;
        let fewest = match self {
            Moment::Skewness => 3.0,
            Moment::Kurtosis => 4.0,
            Moment::KurtosisPop => 2.0,
        };
        if n < fewest || m2 == 0.0 {
            return Ok(None);
        }
        let value = match self {
            Moment::Skewness => {
                (n * (n - 1.0)).sqrt() / (n - 2.0) * (m3 / n) / (m2 / n).powi(3).sqrt()
            }
            Moment::Kurtosis => {
                let ratio = n * m4 / (m2 * m2);
                (n - 1.0) / ((n - 2.0) * (n - 3.0)) * ((n + 1.0) * ratio - 3.0 * (n - 1.0))
            }
            Moment::KurtosisPop => n * m4 / (m2 * m2) - 3.0,
        };
        // An infinite value or NaN among the arguments gives NaN, not an error.
        match value.is_finite() || mean.is_nan() {
            true => Ok(Some(value)),
            false => Err(Error::new(
                Code::Overflow,
                "a skewness or kurtosis leaves the range of double precision",
            )),
        }
    }
}

/// Words of a [`MomentState`].
pub(super) const WORDS: usize = size_of::<MomentState>() / 8;

/// The count, the mean, and the sums of the second to fourth powers of distances from it (5 words).
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct MomentState {
    count: f64,
    mean: f64,
    m2: f64,
    m3: f64,
    m4: f64,
}

// SAFETY: five words, no padding, every pattern is a value.
unsafe impl Pod for MomentState {}

struct AddValue;

impl Fold for AddValue {
    type State = MomentState;
    type Value = f64;

    #[inline(always)]
    fn fold(&self, state: &mut MomentState, value: f64) -> Result<()> {
        let before = state.count;
        let n = before + 1.0;
        let distance = if value.is_finite() { value - state.mean } else { f64::NAN };
        let step = distance / n;
        let square = distance * step * before;
        state.count = n;
        state.mean += step;
        state.m4 += square * step * step * (n * n - 3.0 * n + 3.0) + 6.0 * step * step * state.m2
            - 4.0 * step * state.m3;
        state.m3 += square * step * (n - 2.0) - 3.0 * step * state.m2;
        state.m2 += square;
        Ok(())
    }
}

impl MomentState {
    #[inline(always)]
    fn merge(&mut self, other: MomentState) -> Result<()> {
        if other.count == 0.0 {
            return Ok(());
        }
        if self.count == 0.0 {
            *self = other;
            return Ok(());
        }
        let (a, b) = (*self, other);
        let n = a.count + b.count;
        let distance = b.mean - a.mean;
        let step = distance / n;
        let both = a.count * b.count;
        self.count = n;
        self.mean += step * b.count;
        self.m2 += b.m2 + distance * step * both;
        self.m3 += b.m3
            + distance * step * step * both * (a.count - b.count)
            + 3.0 * step * (a.count * b.m2 - b.count * a.m2);
        self.m4 += b.m4
            + distance * step * step * step * both * (a.count * a.count - both + b.count * b.count)
            + 6.0 * step * step * (a.count * a.count * b.m2 + b.count * b.count * a.m2)
            + 4.0 * step * (a.count * b.m3 - b.count * a.m3);
        Ok(())
    }
}

/// All functions of moments; the output selects one.
#[derive(Debug)]
pub(super) struct Moments {
    /// The offset of the state.
    pub offset: usize,
}

impl Aggregate for Moments {
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let values = plain(args, 0)?;
        fold_array(&AddValue, area, self.offset, groups, values.as_primitive::<Float64Type>())
    }

    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, _: &mut dyn Any) -> Result<()> {
        merge(area, self.offset, pairs, MomentState::merge)
    }

    fn merge_ranges(&mut self, from: &Area, ranges: &Ranges<'_>, into: &mut Area) -> Result<bool> {
        merge_ranges(from, self.offset, ranges, into, MomentState::merge).map(|()| true)
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let OutputKind::Moment(kind) = output.kind else {
            return Err(Error::internal("moments without a function"));
        };
        let results = area.states::<MomentState>(self.offset).map(|state| kind.result(&state));
        to_form(Arc::new(results.collect::<Result<Float64Array>>()?), &output.data_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(values: &[f64]) -> MomentState {
        let mut state = MomentState::default();
        values.iter().for_each(|value| AddValue.fold(&mut state, *value).unwrap());
        state
    }

    #[test]
    fn moments_of_parts_are_those_of_all() {
        let values = [1.0, -4.0, 2.5, 9.0, 9.0, 100.0, 0.125];
        let whole = state(&values);
        for cut in 0..=values.len() {
            let mut parts = state(&values[..cut]);
            parts.merge(state(&values[cut..])).unwrap();
            for kind in [Moment::Skewness, Moment::Kurtosis, Moment::KurtosisPop] {
                let (ours, theirs) = (kind.result(&parts).unwrap(), kind.result(&whole).unwrap());
                let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
                assert!((ours / theirs - 1.0).abs() < 1e-12, "{kind:?} {cut}: {ours} {theirs}");
            }
        }
    }

    #[test]
    fn few_or_equal_values_have_no_moments() {
        for values in [&[][..], &[1.0], &[0.1, 0.1, 0.1, 0.1, 0.1]] {
            for kind in [Moment::Skewness, Moment::Kurtosis, Moment::KurtosisPop] {
                assert_eq!(kind.result(&state(values)).unwrap(), None);
            }
        }
        let infinite = state(&[1.0, f64::INFINITY, 3.0, 4.0, 5.0]);
        assert!(Moment::Skewness.result(&infinite).unwrap().unwrap().is_nan());
        let far = state(&[1e200, -1e200, 3.0, 4.0]);
        assert!(Moment::Kurtosis.result(&far).is_err());
    }
}
