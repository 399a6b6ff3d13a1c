//! Fields of dates, times and intervals, with PostgreSQL's names.

use tessera_text::calendar::{DAY_MICROSECONDS, civil, day_number};

/// A field in `extract`, `date_part` or `date_trunc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    IsoYear,
    /// The ISO year and the week as one number.
    YearWeek,
    /// 1, or 0 before the year 1.
    Era,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    Julian,
    Epoch,
    Zone,
    ZoneHour,
    ZoneMinute,
}

impl Field {
    /// Parses the name of a field. As in PostgreSQL, only the first ten characters count.
    pub(crate) fn named(name: &str) -> Option<Field> {
        let lower = name.trim_matches(['\'', '"']).to_lowercase();
        let short: String = lower.chars().take(10).collect();
        Some(match short.as_str() {
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" => Field::Microseconds,
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" => Field::Milliseconds,
            "s" | "sec" | "secs" | "second" | "seconds" => Field::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Field::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Field::Hour,
            "d" | "day" | "days" | "dayofmonth" => Field::Day,
            "w" | "week" | "weeks" | "weekofyear" => Field::Week,
            "mon" | "mons" | "month" | "months" => Field::Month,
            "qtr" | "quarter" | "quarters" => Field::Quarter,
            "y" | "yr" | "yrs" | "year" | "years" => Field::Year,
            "dec" | "decs" | "decade" | "decades" => Field::Decade,
            "c" | "cent" | "century" | "centuries" => Field::Century,
            "mil" | "mils" | "millennium" | "millennia" => Field::Millennium,
            "isoyear" => Field::IsoYear,
            "yearweek" => Field::YearWeek,
            "era" => Field::Era,
            "dow" | "dayofweek" | "weekday" => Field::DayOfWeek,
            "isodow" => Field::IsoDayOfWeek,
            "doy" | "dayofyear" => Field::DayOfYear,
            "j" | "jd" | "julian" => Field::Julian,
            "epoch" => Field::Epoch,
            "timezone" => Field::Zone,
            "timezone_h" => Field::ZoneHour,
            "timezone_m" => Field::ZoneMinute,
            _ => return None,
        })
    }
}

/// A date and its calendar fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calendar {
    pub(crate) day: i64,
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) date: i64,
}

impl Calendar {
    /// Creates a date from days since 1970-01-01.
    #[inline]
    pub(crate) fn of(day: i64) -> Calendar {
        let (year, month, date) = civil(day);
        Calendar { day, year, month, date }
    }

    /// The year in common notation: the year before 1 is -1.
    pub(crate) fn shown_year(&self) -> i64 {
        if self.year > 0 { self.year } else { self.year - 1 }
    }

    pub(crate) fn quarter(&self) -> i64 {
        (self.month + 2) / 3
    }

    pub(crate) fn decade(&self) -> i64 {
        if self.year >= 0 { self.year / 10 } else { -((8 - (self.year - 1)) / 10) }
    }

    pub(crate) fn century(&self) -> i64 {
        if self.year > 0 { (self.year + 99) / 100 } else { -((99 - (self.year - 1)) / 100) }
    }

    pub(crate) fn millennium(&self) -> i64 {
        if self.year > 0 { (self.year + 999) / 1_000 } else { -((999 - (self.year - 1)) / 1_000) }
    }

    /// The day of the week; 0 is Sunday.
    pub(crate) fn day_of_week(&self) -> i64 {
        (self.day + 4).rem_euclid(7)
    }

    /// The ISO day of the week; 7 is Sunday.
    pub(crate) fn iso_day_of_week(&self) -> i64 {
        (self.day + 3).rem_euclid(7) + 1
    }

    pub(crate) fn day_of_year(&self) -> i64 {
        self.day - day_number(self.year, 1, 1) + 1
    }

    /// The ISO year: the year of the week's Thursday.
    fn iso_year(&self) -> i64 {
        civil(self.day - self.iso_day_of_week() + 4).0
    }

    pub(crate) fn shown_iso_year(&self) -> i64 {
        let year = self.iso_year();
        if year > 0 { year } else { year - 1 }
    }

    pub(crate) fn week(&self) -> i64 {
        let thursday = self.day - self.iso_day_of_week() + 4;
        (thursday - day_number(civil(thursday).0, 1, 1)) / 7 + 1
    }

    /// A field that is an integer for every date; `None` for other fields.
    pub(crate) fn whole(&self, field: Field) -> Option<i64> {
        Some(match field {
            Field::Day => self.date,
            Field::Week => self.week(),
            Field::Month => self.month,
            Field::Quarter => self.quarter(),
            Field::Year => self.shown_year(),
            Field::Decade => self.decade(),
            Field::Century => self.century(),
            Field::Millennium => self.millennium(),
            Field::IsoYear => self.shown_iso_year(),
            Field::YearWeek => self.shown_iso_year() * 100 + self.week(),
            Field::Era => i64::from(self.year > 0),
            Field::DayOfWeek => self.day_of_week(),
            Field::IsoDayOfWeek => self.iso_day_of_week(),
            Field::DayOfYear => self.day_of_year(),
            _ => return None,
        })
    }
}

/// The first day of the unit that contains a day; `None` if the unit does not consist of days.
pub(crate) fn first_day(day: i64, unit: Field) -> Option<i64> {
    let date = Calendar::of(day);
    let first = |year| day_number(year, 1, 1);
    Some(match unit {
        Field::Day => day,
        Field::Week => day - date.iso_day_of_week() + 1,
        Field::Month => day_number(date.year, date.month, 1),
        Field::Quarter => day_number(date.year, (date.quarter() - 1) * 3 + 1, 1),
        Field::Year => first(date.year),
        // With a year 0, decades begin in years divisible by ten; centuries begin one year later.
        Field::Decade => first(date.year.div_euclid(10) * 10),
        Field::Century => first((date.year - 1).div_euclid(100) * 100 + 1),
        Field::Millennium => first((date.year - 1).div_euclid(1_000) * 1_000 + 1),
        _ => return None,
    })
}

/// The length of a unit in microseconds; `None` for units without a fixed length.
pub(crate) fn microseconds_of(unit: Field) -> Option<i64> {
    Some(match unit {
        Field::Microseconds => 1,
        Field::Milliseconds => 1_000,
        Field::Second => 1_000_000,
        Field::Minute => 60_000_000,
        Field::Hour => 3_600_000_000,
        Field::Day => DAY_MICROSECONDS,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_postgresqls() {
        let of = |year, month, date| Calendar::of(day_number(year, month, date));
        let bc = of(0, 12, 31);
        assert_eq!((bc.shown_year(), bc.decade(), bc.century(), bc.millennium()), (-1, 0, -1, -1));
        let far = of(-4712, 1, 1);
        assert_eq!((far.shown_year(), far.century(), far.millennium()), (-4713, -48, -5));
        let late = of(2000, 12, 31);
        assert_eq!((late.century(), late.millennium(), late.decade()), (20, 2, 200));
        let new = of(2021, 1, 3);
        assert_eq!(
            (new.week(), new.shown_iso_year(), new.iso_day_of_week(), new.day_of_week()),
            (53, 2020, 7, 0)
        );
        assert_eq!(of(2024, 12, 31).day_of_year(), 366);
        assert_eq!(of(2024, 12, 30).week(), 1);
    }

    #[test]
    fn units_begin_where_they_should() {
        let day = day_number(2024, 8, 15);
        let first = |unit| first_day(day, unit).map(civil);
        assert_eq!(first(Field::Week), Some((2024, 8, 12)));
        assert_eq!(first(Field::Quarter), Some((2024, 7, 1)));
        assert_eq!(first(Field::Century), Some((2001, 1, 1)));
        assert_eq!(first(Field::Decade), Some((2020, 1, 1)));
        assert_eq!(first(Field::Hour), None);
    }
}
