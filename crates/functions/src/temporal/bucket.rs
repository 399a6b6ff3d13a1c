//! DuckDB's `time_bucket(width, timestamp [, origin or offset])`.

use tessera_text::calendar::{DAY_MICROSECONDS, day_number};
use tessera_types::{Atom, Code, Error, Result, SqlState, TimeUnit};

use crate::datetime::shift;
use crate::temporal::fields::Calendar;
use tessera_values::rowwise::{MICROSECONDS, OutputValue, fault, strict, takes};
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

/// The origin of buckets in months is 2000-01-01; of other buckets, the following Monday.
const ORIGIN_OF_MONTHS: i64 = 10_957 * DAY_MICROSECONDS;
const ORIGIN: i64 = 10_959 * DAY_MICROSECONDS;

pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let wrong =
        || wrong_arguments(name, args, "it takes an interval, a timestamp and an optional origin");
    let (width, moment, origin) = match args {
        [width, moment] => (width, moment, None),
        [width, moment, origin] => (width, moment, Some(origin)),
        _ => return Err(wrong()),
    };
    let is_date = *moment.atom == Atom::Date;
    let zoned = matches!(moment.atom, Atom::Timestamp(_, Some(_)));
    let atom = if zoned { tessera_values::rowwise::zoned() } else { MICROSECONDS };
    let is_offset =
        origin.is_some_and(|origin| matches!(origin.atom, Atom::Interval | Atom::Duration(_)));
    let fits = takes(width, &Atom::Interval)
        && *moment.atom != Atom::String
        && takes(moment, &atom)
        && origin.is_none_or(|origin| is_offset || takes(origin, &atom));
    if !fits {
        return Err(wrong());
    }
    let mut casts = vec![Atom::Interval, atom.clone()];
    casts.extend(origin.map(|_| if is_offset { Atom::Interval } else { atom.clone() }));
    let result = if is_date { Atom::Date } else { atom };
    Ok(strict(result, args, casts, move |arguments| {
        let (width, moment) = (arguments[0].interval(), arguments[1].whole());
        let origin = arguments.get(2).filter(|_| !is_offset).map(|origin| origin.whole());
        // An offset moves the moment back and its bucket forth.
        let offset = arguments.get(2).filter(|_| is_offset).map(|offset| offset.interval());
        let refused =
            |why: &str| fault(format!("time_bucket: {why}"), SqlState::INVALID_PARAMETER_VALUE);
        let overflow = || {
            Error::new(Code::Overflow, "the result of time_bucket is out of range")
                .with_state(SqlState::DATETIME_FIELD_OVERFLOW)
        };
        let moved = |moment: i64, sign: i64| match offset {
            Some(by) => shift(moment, by, sign, TimeUnit::Microsecond, None).ok_or_else(overflow),
            None => Ok(moment),
        };
        let moment = moved(moment, -1)?;
        if width.months != 0 && (width.days != 0 || width.nanoseconds != 0) {
            return Err(refused("the width must have either months, or days and a time"));
        }
        let begin = if width.months != 0 {
            if width.months < 0 {
                return Err(refused("the width must be greater than zero"));
            }
            let index = |moment: i64| {
                let date = Calendar::of(moment.div_euclid(DAY_MICROSECONDS));
                date.year * 12 + date.month - 1
            };
            let from = index(origin.unwrap_or(ORIGIN_OF_MONTHS));
            let months = from
                + (index(moment) - from).div_euclid(width.months.into()) * i64::from(width.months);
            let day = day_number(months.div_euclid(12), months.rem_euclid(12) + 1, 1);
            day.checked_mul(DAY_MICROSECONDS).ok_or_else(overflow)?
        } else {
            let days = i64::from(width.days).checked_mul(DAY_MICROSECONDS).ok_or_else(overflow)?;
            let step = days.checked_add(width.nanoseconds / 1_000).ok_or_else(overflow)?;
            if step <= 0 {
                return Err(refused("the width must be greater than zero"));
            }
            let from = origin.unwrap_or(ORIGIN);
            let apart = moment.checked_sub(from).ok_or_else(overflow)?;
            from + (apart - apart.rem_euclid(step))
        };
        let begin = moved(begin, 1)?;
        Ok(OutputValue::Whole(if is_date { begin.div_euclid(DAY_MICROSECONDS) } else { begin }))
    }))
}
