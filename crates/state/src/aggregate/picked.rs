//! The values that a percentile, a mode or a deviation needs of a group, and what it makes of them.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, IntervalMonthDayNanoArray, UInt32Array,
};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use tessera_context::interrupt::Every;
use tessera_functions::interval_between;
use tessera_types::{Code, Error, Result, SqlState};
use tessera_vector::physical::{interval_length, interval_values};

use super::quantile::Quantile;

/// Sorts intervals by their length.
pub(super) fn by_length(values: &ArrayRef, descending: bool) -> Result<ArrayRef> {
    let lengths: Vec<i128> =
        interval_values(values)?.iter().map(|value| interval_length(*value)).collect();
    let mut order: Vec<u32> = (0..lengths.len() as u32).collect();
    let every = Every::default();
    order.sort_by(|a, b| {
        every.pass();
        let order = lengths[*a as usize].cmp(&lengths[*b as usize]);
        if descending { order.reverse() } else { order }
    });
    Ok(take(values, &UInt32Array::from(order), None)?)
}

/// The median of the distances of sorted doubles from their median.
pub(super) fn deviation(sorted: &ArrayRef) -> Result<ArrayRef> {
    let doubles = sorted.as_primitive_opt::<Float64Type>();
    let doubles =
        doubles.ok_or_else(|| Error::internal("distances of values that are not doubles"))?;
    let values = doubles.values();
    let middle = between(values.len(), 0.5, |place| values[place]);
    let mut distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let every = Every::default();
    distances.sort_unstable_by(|a, b| {
        every.pass();
        a.total_cmp(b)
    });
    let median = between(distances.len(), 0.5, |place| distances[place]);
    Ok(Arc::new(Float64Array::from_value(median, 1)))
}

/// Interpolates the value at a fraction of this many sorted numbers.
pub(super) fn between(count: usize, fraction: f64, at: impl Fn(usize) -> f64) -> f64 {
    let place = fraction * (count - 1) as f64;
    let (low, high) = (at(place.floor() as usize), at(place.ceil() as usize));
    if place.floor() == place.ceil() { low } else { low + (place - place.floor()) * (high - low) }
}

/// Some of the sorted values of a group.
pub(super) struct PickedValues {
    /// The number of values in the group.
    pub(super) count: usize,
    /// The indexes of the values, ascending.
    pub(super) places: Vec<usize>,
    pub(super) values: ArrayRef,
}

impl PickedValues {
    fn index(&self, place: usize) -> Result<usize> {
        self.places
            .binary_search(&place)
            .map_err(|_| Error::internal("a value that was not picked"))
    }

    /// Returns the value at a fraction.
    pub(super) fn value(&self, kind: Quantile, fraction: f64) -> Result<ArrayRef> {
        if kind == Quantile::Discrete {
            return Ok(self.values.slice(self.index(reached(fraction, self.count))?, 1));
        }
        let data_type = self.values.data_type();
        if matches!(data_type, DataType::Timestamp(..) | DataType::Time64(_)) {
            return self.moment(fraction);
        }
        if matches!(data_type, DataType::Interval(_)) {
            return self.interval(fraction);
        }
        let doubles = self.values.as_primitive_opt::<Float64Type>();
        let doubles = doubles.ok_or_else(|| {
            Error::internal("a continuous percentile of values that are not doubles")
        })?;
        let at = |place: usize| self.index(place).map_or(f64::NAN, |index| doubles.value(index));
        Ok(Arc::new(Float64Array::from_value(between(self.count, fraction, at), 1)))
    }
}

impl PickedValues {
    /// The positions of the values next to a fraction, and where between them it is.
    fn neighbors(&self, fraction: f64) -> Result<(usize, usize, f64)> {
        let place = fraction * (self.count - 1) as f64;
        let (low, high) = (place.floor(), place.ceil());
        Ok((self.index(low as usize)?, self.index(high as usize)?, place - low))
    }

    /// The moment at a fraction, rounded to a microsecond.
    fn moment(&self, fraction: f64) -> Result<ArrayRef> {
        let (low, high, part) = self.neighbors(fraction)?;
        let moments = cast(&self.values, &DataType::Int64)?;
        let moments = moments.as_primitive::<Int64Type>();
        let (low, high) = (moments.value(low), moments.value(high));
        let apart = (i128::from(high) - i128::from(low)) as f64;
        let moment = match low == high {
            true => low,
            false => (i128::from(low) + (apart * part).round() as i128) as i64,
        };
        Ok(cast(&Int64Array::from_value(moment, 1), self.values.data_type())?)
    }

    /// The interval at a fraction: as in PostgreSQL, a part of the difference is added.
    fn interval(&self, fraction: f64) -> Result<ArrayRef> {
        let (low, high, part) = self.neighbors(fraction)?;
        let values = interval_values(&self.values)?;
        let value = interval_between(values[low], values[high], part).ok_or_else(|| {
            Error::new(Code::Overflow, "a percentile leaves the range of intervals")
                .with_state(SqlState::DATETIME_FIELD_OVERFLOW)
        })?;
        Ok(Arc::new(IntervalMonthDayNanoArray::from_value(value, 1)))
    }
}

/// Returns the index of the first value at or after a fraction.
pub(super) fn reached(fraction: f64, values: usize) -> usize {
    ((fraction * values as f64).ceil() as usize).clamp(1, values) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_reach_values() {
        assert_eq!(
            [0.0, 0.25, 0.26, 0.5, 1.0].map(|fraction| reached(fraction, 4)),
            [0, 0, 1, 1, 3]
        );
        let values = [0.0, 1e9];
        assert_eq!(between(2, 0.123456789, |place| values[place]), 123456789.0);
        assert_eq!(between(3, 0.5, |place| [1.0, 2.0, 4.0][place]), 2.0);
    }

    #[test]
    fn a_deviation_is_the_median_of_distances() {
        let of = |values: &[f64]| {
            let sorted: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
            deviation(&sorted).unwrap().as_primitive::<Float64Type>().value(0)
        };
        assert_eq!(of(&[1.0, 2.0]), 0.5);
        assert_eq!(of(&[1.0, 1.0, 2.0, 4.0, 100.0]), 1.0);
        assert_eq!(of(&[7.0]), 0.0);
    }
}
