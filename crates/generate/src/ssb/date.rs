//! `date`: one row per day, without random values.

use std::sync::Arc;

use arrow::array::{BooleanArray, Int32Array, StringArray};
use arrow::datatypes::DataType::{Boolean, Int32, Utf8};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;

use super::schema;
use crate::table::Table;

/// The specification has 2,556 days, so the last day of 1998 is omitted: the seven years have
/// 2,557.
const DAYS: u64 = 2_556;

const YEAR_FIRST: i32 = 1992;

/// 1992-01-01 was a Wednesday, the fourth day of a week that begins on Sunday.
const WEEKDAY_FIRST: u64 = 3;

const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Month and day of the holidays of every year.
const HOLIDAYS: [(usize, i32); 10] =
    [(12, 24), (1, 1), (2, 20), (4, 20), (5, 20), (7, 20), (8, 20), (9, 20), (10, 20), (11, 20)];

/// A day of the calendar.
#[derive(Debug, PartialEq, Eq)]
struct Day {
    year: i32,
    /// 1 to 12.
    month: usize,
    /// 1 to 31.
    day: i32,
    /// 1 to 366.
    day_of_year: i32,
    /// 0 is Sunday.
    weekday: usize,
}

fn month_days(year: i32, month: usize) -> i32 {
    match month {
        // Between 1901 and 2099, every fourth year is a leap year.
        2 if year % 4 == 0 => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Day {
    /// Returns the day `offset` days after 1992-01-01.
    fn after(offset: u64) -> Self {
        let mut left = offset as i32;
        let mut year = YEAR_FIRST;
        let year_days = |year| if year % 4 == 0 { 366 } else { 365 };
        while left >= year_days(year) {
            left -= year_days(year);
            year += 1;
        }
        let day_of_year = left + 1;
        let mut month = 1;
        while left >= month_days(year, month) {
            left -= month_days(year, month);
            month += 1;
        }
        let weekday = ((offset + WEEKDAY_FIRST) % 7) as usize;
        Day { year, month, day: left + 1, day_of_year, weekday }
    }

    fn month_name(&self) -> &'static str {
        MONTHS[self.month - 1]
    }

    fn season(&self) -> &'static str {
        match self.month {
            1..=3 => "Winter",
            4 => "Spring",
            5..=8 => "Summer",
            9 | 10 => "Fall",
            _ => "Christmas",
        }
    }
}

/// Returns the key `yyyymmdd` of the day `offset` days after 1992-01-01.
pub(super) fn key(offset: u64) -> i32 {
    let day = Day::after(offset);
    day.year * 10_000 + day.month as i32 * 100 + day.day
}

pub(super) fn table() -> Table {
    let schema = schema([
        ("d_datekey", Int32),
        ("d_date", Utf8),
        ("d_dayofweek", Utf8),
        ("d_month", Utf8),
        ("d_year", Int32),
        ("d_yearmonthnum", Int32),
        ("d_yearmonth", Utf8),
        ("d_daynuminweek", Int32),
        ("d_daynuminmonth", Int32),
        ("d_daynuminyear", Int32),
        ("d_monthnuminyear", Int32),
        ("d_weeknuminyear", Int32),
        ("d_sellingseason", Utf8),
        ("d_lastdayinweekfl", Boolean),
        ("d_lastdayinmonthfl", Boolean),
        ("d_holidayfl", Boolean),
        ("d_weekdayfl", Boolean),
    ]);
    let columns = SchemaRef::clone(&schema);
    super::table("date", schema, DAYS, 1, move |numbers| {
        let days: Vec<Day> = numbers.clone().map(|number| Day::after(number - 1)).collect();
        let int =
            |value: fn(&Day) -> i32| Arc::new(Int32Array::from_iter_values(days.iter().map(value)));
        let text = |value: fn(&Day) -> &'static str| {
            Arc::new(StringArray::from_iter_values(days.iter().map(value)))
        };
        let string = |value: fn(&Day) -> String| {
            Arc::new(StringArray::from_iter_values(days.iter().map(value)))
        };
        let flag = |value: fn(&Day) -> bool| -> Arc<BooleanArray> {
            Arc::new(days.iter().map(value).collect::<Vec<_>>().into())
        };
        RecordBatch::try_new(
            SchemaRef::clone(&columns),
            vec![
                Arc::new(Int32Array::from_iter_values(numbers.map(|number| key(number - 1)))),
                string(|day| format!("{} {}, {}", day.month_name(), day.day, day.year)),
                text(|day| WEEKDAYS[day.weekday]),
                text(Day::month_name),
                int(|day| day.year),
                int(|day| day.year * 100 + day.month as i32),
                string(|day| format!("{:.3}{}", day.month_name(), day.year)),
                int(|day| day.weekday as i32 + 1),
                int(|day| day.day),
                int(|day| day.day_of_year),
                int(|day| day.month as i32),
                // As in the published generator, the first week of a year has six days.
                int(|day| day.day_of_year / 7 + 1),
                text(Day::season),
                flag(|day| day.weekday == 6),
                flag(|day| day.day == month_days(day.year, day.month)),
                flag(|day| HOLIDAYS.contains(&(day.month, day.day))),
                flag(|day| (1..=5).contains(&day.weekday)),
            ],
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar_knows_leap_years_and_weekdays() {
        assert_eq!(
            [0, 59, 60, 366, 2405, 2555].map(key),
            [19920101, 19920229, 19920301, 19930101, 19980802, 19981230]
        );
        let day = Day::after(2555);
        assert_eq!((day.weekday, day.day_of_year), (3, 364));
    }
}
