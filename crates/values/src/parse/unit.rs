//! The units of intervals.

/// A unit of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// 1e-9 seconds.
    Nanosecond,
    /// 1e-6 seconds.
    Microsecond,
    /// 1e-3 seconds.
    Millisecond,
    /// A second.
    Second,
    /// 60 seconds.
    Minute,
    /// 60 minutes.
    Hour,
    /// A calendar day.
    Day,
    /// 7 days.
    Week,
    /// A calendar month.
    Month,
    /// 3 months.
    Quarter,
    /// 12 months.
    Year,
    /// 10 years.
    Decade,
    /// 100 years.
    Century,
    /// 1,000 years.
    Millennium,
}

impl Unit {
    /// Parses the name of a unit. As in PostgreSQL, only the first ten characters count.
    pub fn named(name: &str) -> Option<Unit> {
        let lower = name.to_ascii_lowercase();
        let short = lower.get(..10).unwrap_or(&lower);
        Some(match short {
            "ns" | "nanosecond" | "nsec" | "nsecs" => Unit::Nanosecond,
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" => Unit::Microsecond,
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" => Unit::Millisecond,
            "s" | "sec" | "secs" | "second" | "seconds" => Unit::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Hour,
            "d" | "day" | "days" => Unit::Day,
            "w" | "week" | "weeks" => Unit::Week,
            "mon" | "mons" | "month" | "months" => Unit::Month,
            "qtr" | "quarter" | "quarters" => Unit::Quarter,
            "y" | "yr" | "yrs" | "year" | "years" => Unit::Year,
            "dec" | "decs" | "decade" | "decades" => Unit::Decade,
            "c" | "cent" | "century" | "centuries" => Unit::Century,
            "mil" | "mils" | "millennium" | "millennia" => Unit::Millennium,
            _ => return None,
        })
    }

    /// The name of the unit.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Nanosecond => "nanosecond",
            Unit::Microsecond => "microsecond",
            Unit::Millisecond => "millisecond",
            Unit::Second => "second",
            Unit::Minute => "minute",
            Unit::Hour => "hour",
            Unit::Day => "day",
            Unit::Week => "week",
            Unit::Month => "month",
            Unit::Quarter => "quarter",
            Unit::Year => "year",
            Unit::Decade => "decade",
            Unit::Century => "century",
            Unit::Millennium => "millennium",
        }
    }

    pub(super) fn nanoseconds(self) -> i128 {
        match self {
            Unit::Nanosecond => 1,
            Unit::Microsecond => 1_000,
            Unit::Millisecond => 1_000_000,
            Unit::Second => 1_000_000_000,
            Unit::Minute => 60_000_000_000,
            Unit::Hour => 3_600_000_000_000,
            _ => 0,
        }
    }

    pub(super) fn months(self) -> i64 {
        match self {
            Unit::Quarter => 3,
            Unit::Year => 12,
            Unit::Decade => 120,
            Unit::Century => 1_200,
            Unit::Millennium => 12_000,
            _ => 1,
        }
    }
}
