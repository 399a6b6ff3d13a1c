//! `generate_series` and `range` over dates and timestamps, as lists.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, ListArray, PrimitiveArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{
    DataType, IntervalMonthDayNano, IntervalMonthDayNanoType, TimestampMicrosecondType,
};

use tessera_context::interrupt::Every;
use tessera_types::{Atom, Code, Error, Result, Slot, SqlState, TimeUnit};

use crate::compare::interval_length;
use crate::datetime::shift;
use crate::growth::reserve_for_result;
use tessera_values::kernel::{Argument, Kernel, argument};
use tessera_values::rowwise::{MICROSECONDS, fault, signature, zoned};
use tessera_values::types::{Arg, ResolvedCall};

/// Resolves a call over dates or timestamps. As in PostgreSQL, `generate_series` converts dates to
/// timestamps with time zone.
pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<ResolvedCall>> {
    let is_timestamp = |arg: &Arg<'_>| matches!(arg.atom, Atom::Date | Atom::Timestamp(..));
    if !args.iter().take(2).any(is_timestamp) {
        return None;
    }
    let inclusive = name == "generate_series";
    let has_zone = |arg: &Arg<'_>| match arg.atom {
        Atom::Timestamp(_, zone) => zone.is_some(),
        Atom::Date => inclusive,
        _ => false,
    };
    let plain = args.iter().take(2).any(|arg| matches!(arg.atom, Atom::Timestamp(_, None)));
    let zoned_one = args.iter().take(2).any(|arg| matches!(arg.atom, Atom::Timestamp(_, Some(_))));
    let with_zone = zoned_one || (!plain && args.iter().take(2).any(has_zone));
    let own = args.iter().take(2).find_map(|arg| match arg.atom {
        Atom::Timestamp(_, Some(zone)) => Some(zone.clone()),
        _ => None,
    });
    let zone = own.as_deref().and_then(|zone| Tz::from_str(zone).ok());
    let moment = match own {
        Some(zone) => Atom::Timestamp(TimeUnit::Microsecond, Some(zone)),
        None if with_zone => zoned(),
        None => MICROSECONDS,
    };
    let atom = Atom::List(Box::new(Slot { atom: moment.clone(), nullable: true }));
    let casts = match signature(name, args, &[moment.clone(), moment, Atom::Interval]) {
        Ok(casts) => casts,
        Err(error) => return Some(Err(error)),
    };
    let name = if inclusive { "generate_series" } else { "range" };
    let kernel = Series { name, inclusive, atom: atom.clone(), zone };
    let mut resolved = ResolvedCall::strict(atom, args, casts, kernel).raising(true).costing(100);
    resolved.nullable = true;
    Some(Ok(resolved))
}

#[derive(Debug)]
struct Series {
    name: &'static str,
    inclusive: bool,
    atom: Atom,
    /// The zone in which days and months are added.
    zone: Option<Tz>,
}

impl Kernel for Series {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let _reservation = reserve_for_result(self.name, args, rows)?;
        let (start, stop, step) = (argument(args, 0)?, argument(args, 1)?, argument(args, 2)?);
        let starts = start.primitive::<TimestampMicrosecondType>()?;
        let stops = stop.primitive::<TimestampMicrosecondType>()?;
        let steps = step.primitive::<IntervalMonthDayNanoType>()?;
        let (mut values, mut lengths, mut valid) =
            (Vec::new(), Vec::with_capacity(rows), Vec::with_capacity(rows));
        for row in 0..rows {
            let (a, b, c) = (start.at(row), stop.at(row), step.at(row));
            let known = starts.is_valid(a) && stops.is_valid(b) && steps.is_valid(c);
            let before = values.len();
            if known {
                self.append(starts.value(a), stops.value(b), steps.value(c), &mut values)?;
            }
            lengths.push(values.len() - before);
            valid.push(known);
        }
        let DataType::List(field) = self.atom.arrow() else {
            return Err(Error::internal("the result of generate_series is not planned as a list"));
        };
        let values = PrimitiveArray::<TimestampMicrosecondType>::from_iter_values(values);
        let values = Arc::new(values.with_data_type(field.data_type().clone()));
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(Arc::new(ListArray::try_new(field, offsets, values, Some(NullBuffer::from(valid)))?))
    }
}

impl Series {
    fn append(
        &self,
        start: i64,
        stop: i64,
        step: IntervalMonthDayNano,
        out: &mut Vec<i64>,
    ) -> Result<()> {
        let every = Every::default();
        for moment in TimestampSeries::new(start, stop, step, self.inclusive)?.in_zone(self.zone) {
            every.pass();
            out.push(moment?);
        }
        Ok(())
    }
}

/// Timestamps from start to stop, one interval apart.
#[derive(Debug)]
pub struct TimestampSeries {
    /// The next timestamp; `None` if it is out of range.
    next: Option<i64>,
    stop: i64,
    step: IntervalMonthDayNano,
    ahead: bool,
    inclusive: bool,
    /// The zone in which days and months are added.
    zone: Option<Tz>,
}

impl TimestampSeries {
    /// Creates a series from `start` to `stop`.
    ///
    /// # Errors
    /// The step has length zero.
    pub fn new(start: i64, stop: i64, step: IntervalMonthDayNano, inclusive: bool) -> Result<Self> {
        let length = interval_length(step);
        if length == 0 {
            return Err(fault("step size cannot equal zero", SqlState::INVALID_PARAMETER_VALUE));
        }
        Ok(TimestampSeries {
            next: Some(start),
            stop,
            step,
            ahead: length > 0,
            inclusive,
            zone: None,
        })
    }

    /// Adds days and months in the local time of a zone.
    pub fn in_zone(self, zone: Option<Tz>) -> Self {
        TimestampSeries { zone, ..self }
    }
}

impl Iterator for TimestampSeries {
    type Item = Result<i64>;

    fn next(&mut self) -> Option<Result<i64>> {
        let out_of_range = || {
            Error::new(Code::Overflow, "timestamp out of range")
                .with_state(SqlState::DATETIME_FIELD_OVERFLOW)
        };
        let Some(moment) = self.next else { return Some(Err(out_of_range())) };
        let within = if self.ahead { moment < self.stop } else { moment > self.stop };
        if !(within || self.inclusive && moment == self.stop) {
            return None;
        }
        self.next = shift(moment, self.step, 1, TimeUnit::Microsecond, self.zone.as_ref());
        Some(Ok(moment))
    }
}
