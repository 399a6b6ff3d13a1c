//! Functions of the current date and time, which are constant during a statement.

use std::time::{SystemTime, UNIX_EPOCH};

use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, TimeUnit};
use tessera_values::temporal::session_zone::local_microseconds;
use tessera_values::temporal::timetz::TimeTz;
use tessera_values::temporal::zones::Zone;

const DAY_MICROSECONDS: i64 = 86_400_000_000;

/// The value that a date or time function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ClockValue {
    Timestamp,
    LocalTimestamp,
    Date,
    LocalTime,
    Time,
}

/// The functions by name.
const FUNCTIONS: [(&str, ClockValue); 13] = [
    ("now", ClockValue::Timestamp),
    ("current_timestamp", ClockValue::Timestamp),
    ("transaction_timestamp", ClockValue::Timestamp),
    ("statement_timestamp", ClockValue::Timestamp),
    ("get_current_timestamp", ClockValue::Timestamp),
    ("localtimestamp", ClockValue::LocalTimestamp),
    ("current_localtimestamp", ClockValue::LocalTimestamp),
    ("current_date", ClockValue::Date),
    ("today", ClockValue::Date),
    ("current_time", ClockValue::Time),
    ("localtime", ClockValue::LocalTime),
    ("get_current_time", ClockValue::LocalTime),
    ("current_localtime", ClockValue::LocalTime),
];

/// The start time of a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StatementTime {
    /// Microseconds since 1970-01-01 in UTC.
    microseconds: i64,
}

impl StatementTime {
    /// Returns the current time.
    pub(crate) fn now() -> StatementTime {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        StatementTime { microseconds: i64::try_from(since.as_micros()).unwrap_or(i64::MAX) }
    }

    /// Returns the value of a date or time function in a time zone; `None` for other functions.
    pub(crate) fn value_of(self, function: &str, zone: &str) -> Option<Expr> {
        let kind = named(function)?;
        let local = local_microseconds(self.microseconds, zone).unwrap_or(self.microseconds);
        let offset = Zone::Fixed((local - self.microseconds) / 1_000_000);
        let value = match kind {
            ClockValue::Timestamp => self.microseconds,
            ClockValue::LocalTimestamp => local,
            ClockValue::Date => local.div_euclid(DAY_MICROSECONDS),
            ClockValue::LocalTime => local.rem_euclid(DAY_MICROSECONDS),
            ClockValue::Time => TimeTz::of_moment(self.microseconds, &offset)?.packed(),
        };
        Some(Expr::Constant(Scalar::Integer(value.into()), atom(kind, zone)))
    }
}

fn named(function: &str) -> Option<ClockValue> {
    FUNCTIONS.into_iter().find(|(name, _)| *name == function).map(|(_, value)| value)
}

fn atom(value: ClockValue, zone: &str) -> Atom {
    match value {
        ClockValue::Timestamp => Atom::Timestamp(TimeUnit::Microsecond, Some(zone.into())),
        ClockValue::LocalTimestamp => Atom::Timestamp(TimeUnit::Microsecond, None),
        ClockValue::Date => Atom::Date,
        ClockValue::LocalTime => Atom::Time(TimeUnit::Microsecond),
        ClockValue::Time => Atom::TimeTz,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tell_the_same_moment() {
        let start_time = StatementTime { microseconds: 2 * DAY_MICROSECONDS + 5 };
        let value_in = |function: &str, zone: &str| match start_time.value_of(function, zone) {
            Some(Expr::Constant(Scalar::Integer(value), atom)) => format!("{value} {atom}"),
            other => format!("{other:?}"),
        };
        let value = |function: &str| value_in(function, "UTC");
        assert_eq!(value_in("now", "-01:00"), "172800000005 timestamp(us, \"-01:00\")");
        assert_eq!(value_in("current_date", "-01:00"), "1 date");
        assert_eq!(value_in("localtime", "-01:00"), "82800000005 time(us)");
        assert_eq!(value("now"), "172800000005 timestamp(us, UTC)");
        assert_eq!(value("current_date"), "2 date");
        assert_eq!(value("current_time"), "1441792 timetz");
        assert_eq!(value("localtimestamp"), "172800000005 timestamp(us)");
        assert_eq!(value("lower"), "None");
    }
}
