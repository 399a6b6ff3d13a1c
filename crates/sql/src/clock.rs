//! The functions that tell the time: constants, the same everywhere in a statement.

use std::time::{SystemTime, UNIX_EPOCH};

use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, TimeUnit};

const DAY_MICROSECONDS: i64 = 86_400_000_000;
const ZONE: &str = "UTC";

/// What a function tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Tells {
    Moment,
    LocalMoment,
    Day,
    LocalTime,
}

/// Functions by name.
const FUNCTIONS: [(&str, Tells); 11] = [
    ("now", Tells::Moment),
    ("current_timestamp", Tells::Moment),
    ("transaction_timestamp", Tells::Moment),
    ("statement_timestamp", Tells::Moment),
    ("get_current_timestamp", Tells::Moment),
    ("localtimestamp", Tells::LocalMoment),
    ("current_date", Tells::Day),
    ("today", Tells::Day),
    ("current_time", Tells::LocalTime),
    ("localtime", Tells::LocalTime),
    ("get_current_time", Tells::LocalTime),
];

/// When a statement began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Since 1970, in UTC.
    microseconds: i64,
}

impl Moment {
    /// The moment of the call.
    pub(crate) fn now() -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment { microseconds: i64::try_from(since.as_micros()).unwrap_or(i64::MAX) }
    }

    /// The value of a function that tells the time; none for other functions.
    pub(crate) fn told(self, function: &str) -> Option<Expr> {
        let tells = named(function)?;
        let value = match tells {
            Tells::Moment | Tells::LocalMoment => self.microseconds,
            Tells::Day => self.microseconds.div_euclid(DAY_MICROSECONDS),
            Tells::LocalTime => self.microseconds.rem_euclid(DAY_MICROSECONDS),
        };
        Some(Expr::Constant(Scalar::Integer(value.into()), atom(tells)))
    }
}

fn named(function: &str) -> Option<Tells> {
    FUNCTIONS.into_iter().find(|(name, _)| *name == function).map(|(_, tells)| tells)
}

fn atom(tells: Tells) -> Atom {
    match tells {
        Tells::Moment => Atom::Timestamp(TimeUnit::Microsecond, Some(ZONE.into())),
        Tells::LocalMoment => Atom::Timestamp(TimeUnit::Microsecond, None),
        Tells::Day => Atom::Date,
        Tells::LocalTime => Atom::Time(TimeUnit::Microsecond),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tell_the_same_moment() {
        let moment = Moment { microseconds: 2 * DAY_MICROSECONDS + 5 };
        let value = |function: &str| match moment.told(function) {
            Some(Expr::Constant(Scalar::Integer(value), atom)) => format!("{value} {atom}"),
            other => format!("{other:?}"),
        };
        assert_eq!(value("now"), "172800000005 timestamp(us, UTC)");
        assert_eq!(value("current_date"), "2 date");
        assert_eq!(value("current_time"), "5 time(us)");
        assert_eq!(value("localtimestamp"), "172800000005 timestamp(us)");
        assert_eq!(value("lower"), "None");
    }
}
