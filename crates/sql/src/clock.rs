//! The functions that tell the time: constants, the same everywhere in a statement.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::datatypes::{DataType, TimeUnit};
use datafusion_common::{Result as PlannerResult, internal_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use tessera_plan::{Expr, Scalar};
use tessera_types::Atom;

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
        let atom = Atom::from_arrow(&data_type(tells)).ok()?;
        Some(Expr::Constant(Scalar::Integer(value.into()), atom))
    }
}

fn named(function: &str) -> Option<Tells> {
    FUNCTIONS.into_iter().find(|(name, _)| *name == function).map(|(_, tells)| tells)
}

fn data_type(tells: Tells) -> DataType {
    match tells {
        Tells::Moment => DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into())),
        Tells::LocalMoment => DataType::Timestamp(TimeUnit::Microsecond, None),
        Tells::Day => DataType::Date32,
        Tells::LocalTime => DataType::Time64(TimeUnit::Microsecond),
    }
}

/// The functions as the planner sees them.
pub(crate) fn functions() -> impl Iterator<Item = Arc<ScalarUDF>> {
    FUNCTIONS.into_iter().map(|(name, tells)| {
        let signature = Signature::nullary(Volatility::Stable);
        Arc::new(ScalarUDF::from(Clock { name, tells, signature }))
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Clock {
    name: &'static str,
    tells: Tells,
    signature: Signature,
}

impl ScalarUDFImpl for Clock {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> PlannerResult<DataType> {
        Ok(data_type(self.tells))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> PlannerResult<ColumnarValue> {
        internal_err!("{} is a constant of the statement", self.name)
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
