//! Types with a precision, and words that stand for moments.
//!
//! The planner drops the length of `varchar(n)` and takes `timestamp(p)` for other types. Here such casts become calls of
//! functions of ours on casts to the bare types. `'today'::date` and its like become what tells the statement's moment.

use sqlparser::ast::{
    BinaryOperator, CastKind, CharacterLength, DataType, DateTimeField, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Ident, Interval, IntervalFields, ObjectName, TimezoneInfo, Value,
};

/// A cast, a typed literal or a call in the form that the planner takes, where it is one of those.
pub(crate) fn planned(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Cast { kind, expr: inner, data_type, array: false, format: None } => {
            let moment = literal(inner).and_then(|text| spoken(text, data_type));
            moment.or_else(|| with_precision(kind, inner, data_type))
        }
        Expr::TypedString(typed) => {
            let inner = Expr::Value(typed.value.clone());
            let moment = literal(&inner).and_then(|text| spoken(text, &typed.data_type));
            moment.or_else(|| with_precision(&CastKind::Cast, &inner, &typed.data_type))
        }
        Expr::BinaryOp { left, op: BinaryOperator::Overlaps, right } => overlaps(left, right),
        Expr::Function(function) => named_arguments(function),
        _ => None,
    }
}

fn with_precision(kind: &CastKind, inner: &Expr, data_type: &DataType) -> Option<Expr> {
    let bare = |data_type: DataType| cast(kind, inner.clone(), data_type);
    Some(match data_type {
        DataType::Varchar(Some(length))
        | DataType::Nvarchar(Some(length))
        | DataType::CharacterVarying(Some(length))
        | DataType::CharVarying(Some(length)) => {
            call("cut_text", vec![bare(DataType::Text), number(characters(length)?)])
        }
        DataType::Char(length) | DataType::Character(length) => {
            let length = length.as_ref().map_or(Some(1), characters)?;
            call("cut_character", vec![bare(DataType::Text), number(length)])
        }
        DataType::Timestamp(Some(digits @ 0..=6), zone) => {
            call("round_moment", vec![bare(DataType::Timestamp(None, *zone)), number(*digits)])
        }
        DataType::Time(Some(digits @ 0..=6), zone @ (TimezoneInfo::None | TimezoneInfo::WithoutTimeZone)) => {
            call("round_time", vec![bare(DataType::Time(None, *zone)), number(*digits)])
        }
        DataType::Interval { fields, precision } if fields.is_some() || precision.is_some() => {
            let (largest, smallest) = fields.as_ref().map_or(("", ""), units);
            let digits = precision.map_or_else(|| signed(-1), number);
            let value = match literal(inner) {
                Some(_) => return Some(in_units("interval_in", inner.clone(), largest, smallest, digits)),
                None => bare(DataType::Interval { fields: None, precision: None }),
            };
            in_units("interval_to", value, largest, smallest, digits)
        }
        _ => return None,
    })
}

fn in_units(function: &str, value: Expr, largest: &str, smallest: &str, digits: Expr) -> Expr {
    call(function, vec![value, text(largest), text(smallest), digits])
}

fn units(fields: &IntervalFields) -> (&'static str, &'static str) {
    match fields {
        IntervalFields::Year => ("year", "year"),
        IntervalFields::Month => ("month", "month"),
        IntervalFields::Day => ("day", "day"),
        IntervalFields::Hour => ("hour", "hour"),
        IntervalFields::Minute => ("minute", "minute"),
        IntervalFields::Second => ("second", "second"),
        IntervalFields::YearToMonth => ("year", "month"),
        IntervalFields::DayToHour => ("day", "hour"),
        IntervalFields::DayToMinute => ("day", "minute"),
        IntervalFields::DayToSecond => ("day", "second"),
        IntervalFields::HourToMinute => ("hour", "minute"),
        IntervalFields::HourToSecond => ("hour", "second"),
        IntervalFields::MinuteToSecond => ("minute", "second"),
    }
}

/// `INTERVAL 'text' unit [TO unit]` with a precision: none where a unit is not PostgreSQL's.
pub(crate) fn interval(interval: &Interval) -> Option<Expr> {
    literal(&interval.value)?;
    let unit = |field: &DateTimeField| match field {
        DateTimeField::Year => Some("year"),
        DateTimeField::Month => Some("month"),
        DateTimeField::Day => Some("day"),
        DateTimeField::Hour => Some("hour"),
        DateTimeField::Minute => Some("minute"),
        DateTimeField::Second => Some("second"),
        _ => None,
    };
    let largest = unit(interval.leading_field.as_ref()?)?;
    let smallest = interval.last_field.as_ref().map_or(Some(largest), unit)?;
    let digits = match (largest, smallest) {
        ("second", "second") => interval.fractional_seconds_precision.or(interval.leading_precision),
        _ if interval.leading_precision.is_some() => return None,
        _ => interval.fractional_seconds_precision,
    };
    let digits = digits.map_or_else(|| signed(-1), number);
    Some(in_units("interval_in", (*interval.value).clone(), largest, smallest, digits))
}

/// `'today'::date` and its like.
fn spoken(word: &str, data_type: &DataType) -> Option<Expr> {
    let word = word.trim().to_ascii_lowercase();
    let days = match word.as_str() {
        "now" => None,
        "today" => Some(0),
        "yesterday" => Some(-1),
        "tomorrow" => Some(1),
        _ => return None,
    };
    let today = || call("current_date", Vec::new());
    let day = |days: i64| match days {
        0 => today(),
        days => binary(today(), BinaryOperator::Plus, signed(days)),
    };
    Some(match (data_type, days) {
        (DataType::Date, days) => nested(day(days.unwrap_or(0))),
        (DataType::Timestamp(None, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone), None) => {
            call("localtimestamp", Vec::new())
        }
        (DataType::Timestamp(None, _), None) => call("now", Vec::new()),
        (DataType::Timestamp(None, _), Some(days)) => {
            cast(&CastKind::Cast, nested(day(days)), data_type.clone())
        }
        (DataType::Time(None, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone), None) => {
            call("localtime", Vec::new())
        }
        _ => return None,
    })
}

fn overlaps(left: &Expr, right: &Expr) -> Option<Expr> {
    let (Expr::Tuple(left), Expr::Tuple(right)) = (left, right) else { return None };
    if left.len() != 2 || right.len() != 2 {
        return None;
    }
    Some(call("overlaps", left.iter().chain(right).cloned().collect()))
}

/// The names of `make_interval`'s arguments, in order.
const OF_INTERVAL: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];

/// `make_interval(days => 3)` by position, `age(x)` from today.
fn named_arguments(function: &Function) -> Option<Expr> {
    let [part] = function.name.0.as_slice() else { return None };
    let name = crate::check::normalised(part.as_ident()?);
    let FunctionArguments::List(list) = &function.args else { return None };
    match (name.as_str(), &list.args[..]) {
        ("age", [FunctionArg::Unnamed(FunctionArgExpr::Expr(earlier))]) => {
            let timestamp = DataType::Timestamp(None, TimezoneInfo::None);
            let today = cast(&CastKind::Cast, call("current_date", Vec::new()), timestamp);
            Some(call("age", vec![today, earlier.clone()]))
        }
        ("make_interval", args) if args.iter().any(|arg| !matches!(arg, FunctionArg::Unnamed(_))) => {
            let mut given: Vec<Expr> = (0..7).map(|_| number(0)).collect();
            for (index, arg) in args.iter().enumerate() {
                let (place, value) = match arg {
                    FunctionArg::Unnamed(value) => (index, value),
                    FunctionArg::Named { name, arg, .. } => {
                        let name = crate::check::normalised(name);
                        (OF_INTERVAL.iter().position(|known| *known == name)?, arg)
                    }
                    FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, .. } => {
                        let name = crate::check::normalised(name);
                        (OF_INTERVAL.iter().position(|known| *known == name)?, arg)
                    }
                    FunctionArg::ExprNamed { .. } => return None,
                };
                let FunctionArgExpr::Expr(value) = value else { return None };
                *given.get_mut(place)? = value.clone();
            }
            Some(call("make_interval", given))
        }
        _ => None,
    }
}

fn characters(length: &CharacterLength) -> Option<u64> {
    match length {
        CharacterLength::IntegerLength { length, .. } => Some(*length),
        CharacterLength::Max => None,
    }
}

fn literal(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// A call of a function on expressions.
pub(crate) fn call(name: &str, args: Vec<Expr>) -> Expr {
    call_of(Ident::new(name), args)
}

/// The same, of a function whose name may have to be quoted.
pub(crate) fn call_of(name: Ident, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    crate::table_functions::call(ObjectName::from(vec![name]), args)
}

fn cast(kind: &CastKind, expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: kind.clone(), expr: Box::new(expr), data_type, array: false, format: None }
}

fn text(text: &str) -> Expr {
    Expr::value(Value::SingleQuotedString(text.to_string()))
}

fn number(number: u64) -> Expr {
    Expr::value(Value::Number(number.to_string(), false))
}

fn signed(number: i64) -> Expr {
    let digits = Expr::value(Value::Number(number.unsigned_abs().to_string(), false));
    match number < 0 {
        true => Expr::UnaryOp { op: sqlparser::ast::UnaryOperator::Minus, expr: Box::new(digits) },
        false => digits,
    }
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn precisions_become_calls() {
        let shown = |text: &str| {
            let parsed = Parser::new(&PostgreSqlDialect {}).try_with_sql(text).unwrap().parse_expr().unwrap();
            planned(&parsed).unwrap_or(parsed).to_string()
        };
        assert_eq!(shown("a::varchar(3)"), "cut_text(a::TEXT, 3)");
        assert_eq!(shown("cast(a as timestamp(0))"), "round_moment(CAST(a AS TIMESTAMP), 0)");
        assert_eq!(shown("'1-2'::interval year to month"), "interval_in('1-2', 'year', 'month', -1)");
        assert_eq!(shown("a::varchar"), "a::VARCHAR");
        assert_eq!(shown("date 'yesterday'"), "(current_date() + -1)");
        assert_eq!(shown("(a, b) overlaps (c, d)"), "overlaps(a, b, c, d)");
        assert_eq!(shown("make_interval(days => 3)"), "make_interval(0, 0, 0, 3, 0, 0, 0)");
    }
}
