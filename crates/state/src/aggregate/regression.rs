//! `corr`, `covar_*` and `regr_*`: computed from six sums over pairs of doubles, updated by the
//! method of Youngs and Cramer as in PostgreSQL.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Float64Type};
use tessera_types::{Code, Error, Result};
use tessera_values::plain::to_form;
use tessera_vector::Column;

use super::area::{Area, Pod};
use super::groups::{Fold, Groups, Pairs, fold, merge};
use super::ranges::{Ranges, merge_ranges};
use super::{Aggregate, Output, OutputKind, counts, plain};

/// The function computed from the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regression {
    Correlation,
    CovariancePop,
    CovarianceSamp,
    AverageX,
    AverageY,
    Count,
    Intercept,
    R2,
    Slope,
    Sxx,
    Sxy,
    Syy,
}

impl Regression {
    /// Returns the function of this name.
    pub fn named(name: &str) -> Option<Regression> {
        Some(match name {
            "corr" => Regression::Correlation,
            "covar_pop" => Regression::CovariancePop,
            "covar_samp" | "covar" => Regression::CovarianceSamp,
            "regr_avgx" => Regression::AverageX,
            "regr_avgy" => Regression::AverageY,
            "regr_count" => Regression::Count,
            "regr_intercept" => Regression::Intercept,
            "regr_r2" => Regression::R2,
            "regr_slope" => Regression::Slope,
            "regr_sxx" => Regression::Sxx,
            "regr_sxy" => Regression::Sxy,
            "regr_syy" => Regression::Syy,
            _ => return None,
        })
    }

    /// Returns the result; `None` if there are too few pairs, or a variable is constant.
    fn result(self, sums: &RegressionState) -> Option<f64> {
        let RegressionState { count, x, xx, y, yy, xy } = *sums;
        let fewest = if self == Regression::CovarianceSamp { 2.0 } else { 1.0 };
        if count < fewest {
            return None;
        }
        Some(match self {
            Regression::Correlation if xx == 0.0 || yy == 0.0 => return None,
            Regression::R2 | Regression::Slope | Regression::Intercept if xx == 0.0 => return None,
            Regression::Correlation => xy / (xx * yy).sqrt(),
            Regression::R2 if yy == 0.0 => 1.0,
            Regression::R2 => (xy * xy) / (xx * yy),
            Regression::Slope => xy / xx,
            Regression::Intercept => (y - x * xy / xx) / count,
            Regression::CovariancePop => xy / count,
            Regression::CovarianceSamp => xy / (count - 1.0),
            Regression::AverageX => x / count,
            Regression::AverageY => y / count,
            Regression::Count => count,
            Regression::Sxx => xx,
            Regression::Sxy => xy,
            Regression::Syy => yy,
        })
    }
}

#[cold]
fn overflow() -> Error {
    Error::new(Code::Overflow, "a sum of products leaves the range of double precision")
}

/// Words of a [`RegressionState`].
pub(super) const WORDS: usize = size_of::<RegressionState>() / 8;

/// The number of pairs, the sums of both variables, and the sums of squares and products of
/// deviations from the means (6 words).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct RegressionState {
    count: f64,
    x: f64,
    xx: f64,
    y: f64,
    yy: f64,
    xy: f64,
}

// SAFETY: six words, no padding, every pattern is a value.
unsafe impl Pod for RegressionState {}

struct AddPair;

impl Fold for AddPair {
    type State = RegressionState;
    /// The dependent value, then the independent one.
    type Value = (f64, f64);

    fn fold(&self, state: &mut RegressionState, (y, x): (f64, f64)) -> Result<()> {
        let before = *state;
        state.count += 1.0;
        state.x += x;
        state.y += y;
        if before.count == 0.0 {
            // Deviations from a non-finite mean are NaN.
            for (sum, is_finite) in [
                (&mut state.xx, x.is_finite()),
                (&mut state.yy, y.is_finite()),
                (&mut state.xy, x.is_finite() && y.is_finite()),
            ] {
                *sum = if is_finite { 0.0 } else { f64::NAN };
            }
            return Ok(());
        }
        let (dx, dy) = (x * state.count - state.x, y * state.count - state.y);
        let scale = 1.0 / (state.count * before.count);
        state.xx += dx * dx * scale;
        state.yy += dy * dy * scale;
        state.xy += dx * dy * scale;
        let (was_x, was_y) = (
            !before.x.is_infinite() && !x.is_infinite(),
            !before.y.is_infinite() && !y.is_infinite(),
        );
        if ((state.x.is_infinite() || state.xx.is_infinite()) && was_x)
            || ((state.y.is_infinite() || state.yy.is_infinite()) && was_y)
            || (state.xy.is_infinite() && was_x && was_y)
        {
            return Err(overflow());
        }
        for sum in [&mut state.xx, &mut state.yy, &mut state.xy] {
            if sum.is_infinite() {
                *sum = f64::NAN;
            }
        }
        Ok(())
    }
}

/// Merges the sums of other pairs.
fn add(state: &mut RegressionState, other: RegressionState) -> Result<()> {
    if other.count == 0.0 {
        return Ok(());
    }
    if state.count == 0.0 {
        *state = other;
        return Ok(());
    }
    let count = state.count + other.count;
    let factor = state.count * other.count / count;
    let (dx, dy) = (
        state.x / state.count - other.x / other.count,
        state.y / state.count - other.y / other.count,
    );
    let sum = |ours: f64, theirs: f64, more: f64| {
        let sum = ours + theirs + more;
        let is_new = sum.is_infinite() && !ours.is_infinite() && !theirs.is_infinite();
        if is_new { Err(overflow()) } else { Ok(sum) }
    };
    *state = RegressionState {
        count,
        x: sum(state.x, other.x, 0.0)?,
        xx: sum(state.xx, other.xx, factor * dx * dx)?,
        y: sum(state.y, other.y, 0.0)?,
        yy: sum(state.yy, other.yy, factor * dy * dy)?,
        xy: sum(state.xy, other.xy, factor * dx * dy)?,
    };
    Ok(())
}

/// All functions of pairs; the output selects one.
#[derive(Debug)]
pub(super) struct Regressions {
    /// The offset of the state.
    pub offset: usize,
}

impl Aggregate for Regressions {
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let [y, x] = [plain(args, 0)?, plain(args, 1)?];
        let nulls = NullBuffer::union(y.logical_nulls().as_ref(), x.logical_nulls().as_ref());
        let [y, x] = [to_form(y, &DataType::Float64)?, to_form(x, &DataType::Float64)?];
        let (y, x) =
            (y.as_primitive::<Float64Type>().values(), x.as_primitive::<Float64Type>().values());
        fold(&AddPair, area, self.offset, groups, nulls.as_ref(), |row| (y[row], x[row]))
    }

    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, _: &mut dyn Any) -> Result<()> {
        merge(area, self.offset, pairs, add)
    }

    fn merge_ranges(&mut self, from: &Area, ranges: &Ranges<'_>, into: &mut Area) -> Result<bool> {
        merge_ranges(from, self.offset, ranges, into, add).map(|()| true)
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let OutputKind::Regression(kind) = output.kind else {
            return Err(Error::internal("sums of pairs without a function"));
        };
        let states = area.states::<RegressionState>(self.offset);
        if kind == Regression::Count {
            return counts(states.map(|state| state.count as u64), output);
        }
        let results = states.map(|state| kind.result(&state)).collect::<Float64Array>();
        to_form(Arc::new(results), &output.data_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(pairs: &[(f64, f64)]) -> RegressionState {
        let mut state = RegressionState { count: 0.0, x: 0.0, xx: 0.0, y: 0.0, yy: 0.0, xy: 0.0 };
        pairs.iter().for_each(|pair| AddPair.fold(&mut state, *pair).unwrap());
        state
    }

    #[test]
    fn sums_of_parts_are_those_of_all() {
        let pairs = [(1.0, 2.0), (3.0, 5.0), (-4.0, 0.5), (0.0, 0.0), (7.5, 9.0)];
        let whole = sums(&pairs);
        for cut in 0..=pairs.len() {
            let mut state = sums(&pairs[..cut]);
            add(&mut state, sums(&pairs[cut..])).unwrap();
            for kind in [
                Regression::Correlation,
                Regression::CovarianceSamp,
                Regression::Intercept,
                Regression::R2,
            ] {
                let (ours, theirs) = (kind.result(&state).unwrap(), kind.result(&whole).unwrap());
                assert!((ours - theirs).abs() < 1e-12, "{kind:?}: {ours} {theirs}");
            }
        }
        assert_eq!(Regression::Correlation.result(&sums(&[(1.0, 2.0), (1.0, 3.0)])), None);
        assert_eq!(Regression::R2.result(&sums(&[(1.0, 2.0), (1.0, 3.0)])), Some(1.0));
    }

    #[test]
    fn sums_beyond_doubles_are_errors() {
        let mut state = sums(&[(1e308, 1.0)]);
        assert!(AddPair.fold(&mut state, (-1e308, 2.0)).is_err());
        let state = sums(&[(f64::INFINITY, 1.0), (0.0, 2.0)]);
        assert!(Regression::Syy.result(&state).unwrap().is_nan());
        assert_eq!(Regression::AverageY.result(&state), Some(f64::INFINITY));
    }
}
