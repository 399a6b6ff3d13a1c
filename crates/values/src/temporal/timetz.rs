//! Times of day with an offset from UTC, packed in integers that sort as PostgreSQL sorts them:
//! by the moment, then by the offset, from the east to the west.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{
    Int64Type, IntervalMonthDayNano, Time64MicrosecondType, TimestampMicrosecondType,
};
use tessera_text::calendar::{DAY_MICROSECONDS, JULIAN_EPOCH};
use tessera_types::{Atom, Result, TimeUnit};

use crate::cast::cast;
use crate::format::{write_offset, write_time};
use crate::kernel::unexpected;
use crate::parse::Failure;
use crate::parse::timestamp::TIMESTAMP_END;
use crate::temporal::read::{DateTimeValue, read_time};
use crate::temporal::rounded;
use crate::temporal::zones::Zone;

/// The bits of the packed number that hold the offset.
const ZONE_BITS: u32 = 18;
/// What is added to an offset, so that it is not negative.
const ZONE_BIAS: i64 = 1 << (ZONE_BITS - 1);

/// A time of day and the offset of its zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeTz {
    /// Microseconds of the day at the place, up to 24:00.
    pub time: i64,
    /// Seconds west of Greenwich, less than 16 hours.
    pub west: i64,
}

impl TimeTz {
    /// Packs the value. Packed numbers compare as the values do.
    pub fn packed(self) -> i64 {
        ((self.time + self.west * 1_000_000) << ZONE_BITS) | (self.west + ZONE_BIAS)
    }

    /// Unpacks a number.
    pub fn unpacked(packed: i64) -> TimeTz {
        let west = (packed & ((1 << ZONE_BITS) - 1)) - ZONE_BIAS;
        TimeTz { time: (packed >> ZONE_BITS) - west * 1_000_000, west }
    }

    /// The same moment of the day at another offset.
    pub fn at(self, west: i64) -> TimeTz {
        let time = self.time + (self.west - west) * 1_000_000;
        TimeTz { time: time.rem_euclid(DAY_MICROSECONDS), west }
    }

    /// Reads a text. `session` is the zone of a text without one, on the day `today`.
    ///
    /// # Errors
    /// The text is no time, or has a zone whose offset depends on a day that is not there.
    pub fn read(text: &str, session: &Zone, today: i64) -> Result<TimeTz, Failure> {
        let DateTimeValue::Finite { day, time: Some(time), zone } = read_time(text)? else {
            return Err(Failure::Invalid);
        };
        let east = match (zone, day) {
            (Some(Zone::Fixed(east)), _) => east,
            // The offset of a named zone depends on the day.
            (Some(Zone::Named(_)), None) => return Err(Failure::Invalid),
            (Some(zone), Some(day)) => zone.offset_in(seconds(day, time)),
            (None, day) => session.offset_in(seconds(day.unwrap_or(today), time)),
        };
        Ok(TimeTz { time, west: -east })
    }

    /// A time of day in a zone, on the day `today`.
    pub fn of_time(time: i64, zone: &Zone, today: i64) -> TimeTz {
        TimeTz { time, west: -zone.offset_in(seconds(today, time)) }
    }

    /// The time of a moment in microseconds since 1970, in a zone; `None` of infinite ones.
    pub fn of_moment(moment: i64, zone: &Zone) -> Option<TimeTz> {
        if matches!(moment, i64::MAX | i64::MIN) {
            return None;
        }
        let east = zone.offset_at(moment.div_euclid(1_000_000));
        let local = moment.saturating_add(east * 1_000_000);
        Some(TimeTz { time: local.rem_euclid(DAY_MICROSECONDS), west: -east })
    }

    /// The time after an interval, without its months and days. It stays in the day.
    pub fn after(self, interval: IntervalMonthDayNano, sign: i64) -> TimeTz {
        let by = sign * (interval.nanoseconds / 1_000 % DAY_MICROSECONDS);
        TimeTz { time: (self.time + by).rem_euclid(DAY_MICROSECONDS), ..self }
    }

    /// Rounds to this many digits of a second.
    pub fn rounded(self, digits: i64) -> TimeTz {
        // A time of a day does not overflow.
        TimeTz { time: rounded(self.time, digits).unwrap_or(self.time), ..self }
    }

    /// The moment on a day, in microseconds since 1970; `None` if it is out of range. Infinite days
    /// stay infinite.
    pub fn on(self, day: i32) -> Option<i64> {
        match day {
            i32::MAX => Some(i64::MAX),
            i32::MIN => Some(i64::MIN),
            day => {
                let midnight = i64::from(day).checked_mul(DAY_MICROSECONDS)?;
                let moment = midnight.checked_add(self.time + self.west * 1_000_000)?;
                let days = -JULIAN_EPOCH..TIMESTAMP_END;
                days.contains(&moment.div_euclid(DAY_MICROSECONDS)).then_some(moment)
            }
        }
    }

    /// Appends the value in PostgreSQL's format.
    pub(crate) fn write(self, text: &mut String) {
        write_time(text, self.time, TimeUnit::Microsecond);
        write_offset(text, -self.west);
    }
}

/// Whether values convert between times with time zone and another type. A time of day becomes one
/// in UTC here; the binder calls a function where the session has another zone.
pub(crate) fn converts(from: &Atom, to: &Atom) -> bool {
    match (from, to) {
        (Atom::TimeTz, Atom::Time(_)) | (Atom::Time(_), Atom::TimeTz) => true,
        (Atom::Timestamp(_, zone), Atom::TimeTz) => zone.is_some(),
        _ => false,
    }
}

/// Converts times with time zone to times of day.
pub(crate) fn to_times(array: &ArrayRef, to: &Atom) -> Result<ArrayRef> {
    let packed = array.as_primitive_opt::<Int64Type>().ok_or_else(|| unexpected(array))?;
    let time = |packed| TimeTz::unpacked(packed).time;
    let times: ArrayRef = Arc::new(packed.unary::<_, Time64MicrosecondType>(time));
    cast(&times, &Atom::Time(TimeUnit::Microsecond), to, false)
}

/// Converts times of day to times in UTC.
pub(crate) fn from_times(array: &ArrayRef, from: &Atom) -> Result<ArrayRef> {
    let times = cast(array, from, &Atom::Time(TimeUnit::Microsecond), false)?;
    let times =
        times.as_primitive_opt::<Time64MicrosecondType>().ok_or_else(|| unexpected(array))?;
    let packed: Int64Array = times.unary(|time| TimeTz { time, west: 0 }.packed());
    Ok(Arc::new(packed))
}

/// Converts timestamps to times in their zone; NULL of infinite ones.
pub(crate) fn from_moments(array: &ArrayRef, from: &Atom, zone: &str) -> Result<ArrayRef> {
    let zone = Zone::Named(Tz::from_str(zone)?);
    let micros = Atom::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let moments = cast(array, from, &micros, false)?;
    let moments =
        moments.as_primitive_opt::<TimestampMicrosecondType>().ok_or_else(|| unexpected(array))?;
    let packed: Int64Array =
        moments.unary_opt(|moment| Some(TimeTz::of_moment(moment, &zone)?.packed()));
    Ok(Arc::new(packed))
}

/// The local time in seconds since 1970.
fn seconds(day: i64, time: i64) -> i64 {
    day.saturating_mul(86_400).saturating_add(time.div_euclid(1_000_000))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, StringViewArray};

    use super::*;

    fn read(text: &str) -> Result<TimeTz, Failure> {
        TimeTz::read(text, &Zone::Fixed(3_600), 0)
    }

    #[test]
    fn texts_are_read_packed_and_written() {
        for (text, written) in [
            ("04:05:06.789-08", "04:05:06.789-08"),
            ("040506+05:30", "04:05:06+05:30"),
            ("040506.25-08:30", "04:05:06.25-08:30"),
            ("04:05", "04:05:00+01"),
            ("04:05:06 PM Z", "16:05:06+00"),
            ("24:00:00+15:59:59", "24:00:00+15:59:59"),
            ("00:00-15:59:59", "00:00:00-15:59:59"),
            ("2003-07-12 04:05:06 America/New_York", "04:05:06-04"),
        ] {
            let mut found = String::new();
            TimeTz::unpacked(read(text).unwrap().packed()).write(&mut found);
            assert_eq!(found, written, "{text}");
        }
        assert_eq!(read("04:05 America/New_York"), Err(Failure::Invalid));
        assert_eq!(read("25:00+00"), Err(Failure::Range));
        assert_eq!(read("04:05+16"), Err(Failure::Zone));
    }

    #[test]
    fn packed_numbers_sort_by_the_moment_then_by_the_offset() {
        let texts = ["00:00+15", "00:00+01", "12:00+02", "10:00+00", "08:00-02", "24:00-15"];
        let packed: Vec<i64> = texts.iter().map(|text| read(text).unwrap().packed()).collect();
        assert!(packed.is_sorted_by(|a, b| a < b), "{packed:?}");
        assert_eq!(read("23:00-03").unwrap().at(0), TimeTz { time: 7_200_000_000, west: 0 });
    }

    #[test]
    fn times_move_within_the_day_and_become_moments() {
        let hours = |hours: i64| IntervalMonthDayNano::new(1, 1, hours * 3_600_000_000_000);
        let shown = |time: TimeTz| {
            let mut text = String::new();
            time.write(&mut text);
            text
        };
        let time = read("23:30-03").unwrap();
        assert_eq!(shown(time.after(hours(1), 1)), "00:30:00-03");
        assert_eq!(shown(time.after(hours(50), -1)), "21:30:00-03");
        assert_eq!(shown(read("23:59:59.95+00").unwrap().rounded(1)), "24:00:00+00");
        assert_eq!(time.on(1), Some(DAY_MICROSECONDS + 95_400_000_000));
        assert_eq!(time.on(i32::MAX), Some(i64::MAX));
        assert_eq!(time.on(i32::MAX - 1), None);
        let zone = Zone::Named(Tz::from_str("Europe/Berlin").unwrap());
        let moment = TimeTz::of_moment(1_720_000_000_000_000, &zone).unwrap();
        assert_eq!(shown(moment), "11:46:40+02");
        assert_eq!(TimeTz::of_moment(i64::MAX, &zone), None);
        assert_eq!(shown(TimeTz::of_time(0, &zone, 20_000)), "00:00:00+02");
    }

    #[test]
    fn casts_to_and_from_other_types() {
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec![Some("04:05-08"), None]));
        let times = cast(&texts, &Atom::String, &Atom::TimeTz, false).unwrap();
        let unit = Atom::Time(TimeUnit::Microsecond);
        let plain = cast(&times, &Atom::TimeTz, &unit, false).unwrap();
        let again = cast(&plain, &unit, &Atom::TimeTz, false).unwrap();
        let text = cast(&again, &Atom::TimeTz, &Atom::String, false).unwrap();
        let expected: ArrayRef = Arc::new(StringViewArray::from(vec![Some("04:05:00+00"), None]));
        assert_eq!(&text, &expected);
        for (from, to) in [
            (Atom::TimeTz, Atom::Interval),
            (Atom::Int64, Atom::TimeTz),
            (Atom::Date, Atom::TimeTz),
        ] {
            assert!(crate::cast::check_cast(&from, &to).is_err(), "{from} {to}");
        }
        let wrong: ArrayRef = Arc::new(StringViewArray::from(vec!["noon"]));
        assert!(cast(&wrong, &Atom::String, &Atom::TimeTz, false).is_err());
        assert!(cast(&wrong, &Atom::String, &Atom::TimeTz, true).unwrap().is_null(0));
    }
}
