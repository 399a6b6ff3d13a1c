//! Times of day with an offset from UTC, packed in integers that sort as PostgreSQL sorts them:
//! by the moment, then by the offset, from the east to the west.

use tessera_text::calendar::DAY_MICROSECONDS;
use tessera_types::TimeUnit;

use crate::format::{write_offset, write_time};
use crate::parse::Failure;
use crate::temporal::read::{DateTimeValue, read_time};
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
    pub(crate) fn read(text: &str, session: &Zone, today: i64) -> Result<TimeTz, Failure> {
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

    /// Appends the value in PostgreSQL's format.
    pub(crate) fn write(self, text: &mut String) {
        write_time(text, self.time, TimeUnit::Microsecond);
        write_offset(text, -self.west);
    }
}

/// The local time in seconds since 1970.
fn seconds(day: i64, time: i64) -> i64 {
    day.saturating_mul(86_400).saturating_add(time.div_euclid(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TimeTz, Failure> {
        TimeTz::read(text, &Zone::Fixed(3_600), 0)
    }

    #[test]
    fn texts_are_read_packed_and_written() {
        for (text, written) in [
            ("04:05:06.789-08", "04:05:06.789-08"),
            ("040506+05:30", "04:05:06+05:30"),
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
}
