//! Time zones by name.

use std::str::FromStr;

use arrow::array::timezone::Tz;
use tessera_text::calendar::offset_at;
use tessera_types::{Error, Result, SqlState, did_you_mean};

use crate::parse::timestamp::offset_in;

/// A parsed time zone.
#[derive(Debug, Clone, Copy)]
pub enum Zone {
    /// Seconds east of Greenwich.
    Fixed(i64),
    /// A zone of the IANA database.
    Named(Tz),
}

impl Zone {
    /// The offset from UTC, in seconds, at a time in seconds since 1970.
    pub fn offset_at(&self, seconds: i64) -> i64 {
        match self {
            Zone::Fixed(offset) => *offset,
            Zone::Named(zone) => offset_at(zone, seconds),
        }
    }

    /// The offset from UTC, in seconds, at a local time in seconds since 1970.
    pub fn offset_in(&self, local: i64) -> i64 {
        match self {
            Zone::Fixed(offset) => *offset,
            Zone::Named(zone) => offset_in(local, zone),
        }
    }
}

/// Parses a zone as an argument of a function names it: an abbreviation, a name or an offset.
///
/// # Errors
/// The name is unknown.
pub fn zone_of(name: &str) -> Result<Zone> {
    // An offset alone is in POSIX notation: positive is west of Greenwich.
    let spelled = match name.starts_with(['+', '-']) {
        true => format!("utc{name}"),
        false => name.to_ascii_lowercase(),
    };
    match zone_named(&spelled) {
        Some(zone) => Ok(zone),
        None => Tz::from_str(name).map(Zone::Named).map_err(|_| unknown_zone(name)),
    }
}

/// The error for an unknown name of a time zone.
pub(super) fn unknown_zone(name: &str) -> Error {
    let hint = did_you_mean(name, chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name()));
    let message = format!(
        "unknown time zone '{name}'{}",
        match hint.is_empty() {
            true => "; use a name of the IANA database, such as Europe/Berlin, an offset or UTC",
            false => &hint,
        }
    );
    Error::data(message).with_state(SqlState::INVALID_PARAMETER_VALUE)
}

/// Fixed offsets of zone abbreviations in seconds east of Greenwich: PostgreSQL's default list.
const SHORT: [(&str, i64); 145] = [
    ("acdt", 37800),
    ("acsst", 37800),
    ("acst", 34200),
    ("act", -18000),
    ("acwst", 31500),
    ("adt", -10800),
    ("aedt", 39600),
    ("aesst", 39600),
    ("aest", 36000),
    ("aft", 16200),
    ("akdt", -28800),
    ("akst", -32400),
    ("almst", 25200),
    ("almt", 21600),
    ("amt", -14400),
    ("ast", -14400),
    ("awsst", 32400),
    ("awst", 28800),
    ("azost", 0),
    ("azot", -3600),
    ("bdst", 7200),
    ("bdt", 21600),
    ("bnt", 28800),
    ("bort", 28800),
    ("bot", -14400),
    ("bra", -10800),
    ("brst", -7200),
    ("brt", -10800),
    ("bst", 3600),
    ("btt", 21600),
    ("cadt", 37800),
    ("cast", 34200),
    ("cct", 28800),
    ("cdt", -18000),
    ("cest", 7200),
    ("cet", 3600),
    ("cetdst", 7200),
    ("chadt", 49500),
    ("chast", 45900),
    ("chut", 36000),
    ("clst", -10800),
    ("cot", -18000),
    ("cst", -21600),
    ("cxt", 25200),
    ("ddut", 36000),
    ("eat", 10800),
    ("edt", -14400),
    ("eest", 10800),
    ("eet", 7200),
    ("eetdst", 10800),
    ("egst", 0),
    ("egt", -3600),
    ("est", -18000),
    ("fet", 10800),
    ("fjst", 46800),
    ("fjt", 43200),
    ("fnst", -3600),
    ("fnt", -7200),
    ("galt", -21600),
    ("gamt", -32400),
    ("gft", -10800),
    ("gilt", 43200),
    ("gmt", 0),
    ("hkt", 28800),
    ("hst", -36000),
    ("ict", 25200),
    ("idt", 10800),
    ("irt", 12600),
    ("ist", 7200),
    ("jayt", 32400),
    ("jst", 32400),
    ("kdt", 36000),
    ("kgst", 21600),
    ("kst", 32400),
    ("lhst", 37800),
    ("ligt", 36000),
    ("mart", -34200),
    ("mdt", -21600),
    ("mest", 7200),
    ("mesz", 7200),
    ("met", 3600),
    ("metdst", 7200),
    ("mez", 3600),
    ("mht", 43200),
    ("mmt", 23400),
    ("mpt", 36000),
    ("msd", 14400),
    ("mst", -25200),
    ("must", 18000),
    ("mut", 14400),
    ("mvt", 18000),
    ("myt", 28800),
    ("ndt", -9000),
    ("nft", -12600),
    ("npt", 20700),
    ("nst", -12600),
    ("nzdt", 46800),
    ("nzst", 43200),
    ("nzt", 43200),
    ("pdt", -25200),
    ("pet", -18000),
    ("pgt", 36000),
    ("pht", 28800),
    ("pkst", 21600),
    ("pkt", 18000),
    ("pmdt", -7200),
    ("pmst", -10800),
    ("pont", 39600),
    ("pst", -28800),
    ("pwt", 32400),
    ("pyst", -10800),
    ("ret", 14400),
    ("sadt", 37800),
    ("sast", 7200),
    ("sct", 14400),
    ("taht", -36000),
    ("tft", 18000),
    ("tjt", 18000),
    ("tot", 46800),
    ("trut", 36000),
    ("tvt", 43200),
    ("uct", 0),
    ("ulast", 32400),
    ("ut", 0),
    ("utc", 0),
    ("uyst", -7200),
    ("uyt", -10800),
    ("uzst", 21600),
    ("uzt", 18000),
    ("vut", 39600),
    ("wadt", 28800),
    ("wakt", 43200),
    ("wast", 25200),
    ("wat", 3600),
    ("wdt", 32400),
    ("wet", 0),
    ("wetdst", 3600),
    ("wft", 43200),
    ("wgst", -7200),
    ("wgt", -10800),
    ("xjt", 21600),
    ("yapt", 36000),
    ("yekst", 21600),
    ("z", 0),
    ("zulu", 0),
];

/// Abbreviations for offsets that have changed over time, with a place in the zone.
const OF_PLACES: [(&str, &str); 50] = [
    ("amst", "Asia/Yerevan"),
    ("anast", "Asia/Anadyr"),
    ("anat", "Asia/Anadyr"),
    ("arst", "America/Argentina/Buenos_Aires"),
    ("art", "America/Argentina/Buenos_Aires"),
    ("azst", "Asia/Baku"),
    ("azt", "Asia/Baku"),
    ("ckt", "Pacific/Rarotonga"),
    ("clt", "America/Santiago"),
    ("davt", "Antarctica/Davis"),
    ("easst", "Pacific/Easter"),
    ("east", "Pacific/Easter"),
    ("fkst", "Atlantic/Stanley"),
    ("fkt", "Atlantic/Stanley"),
    ("gest", "Asia/Tbilisi"),
    ("get", "Asia/Tbilisi"),
    ("gyt", "America/Guyana"),
    ("iot", "Indian/Chagos"),
    ("irkst", "Asia/Irkutsk"),
    ("irkt", "Asia/Irkutsk"),
    ("kgt", "Asia/Bishkek"),
    ("kost", "Pacific/Kosrae"),
    ("krast", "Asia/Krasnoyarsk"),
    ("krat", "Asia/Krasnoyarsk"),
    ("lhdt", "Australia/Lord_Howe"),
    ("lint", "Pacific/Kiritimati"),
    ("lkt", "Asia/Colombo"),
    ("magst", "Asia/Magadan"),
    ("magt", "Asia/Magadan"),
    ("mawt", "Antarctica/Mawson"),
    ("msk", "Europe/Moscow"),
    ("novst", "Asia/Novosibirsk"),
    ("novt", "Asia/Novosibirsk"),
    ("nut", "Pacific/Niue"),
    ("omsst", "Asia/Omsk"),
    ("omst", "Asia/Omsk"),
    ("petst", "Asia/Kamchatka"),
    ("pett", "Asia/Kamchatka"),
    ("pyt", "America/Asuncion"),
    ("sgt", "Asia/Singapore"),
    ("tkt", "Pacific/Fakaofo"),
    ("tmt", "Asia/Ashgabat"),
    ("ulat", "Asia/Ulaanbaatar"),
    ("vet", "America/Caracas"),
    ("vlast", "Asia/Vladivostok"),
    ("vlat", "Asia/Vladivostok"),
    ("volt", "Europe/Volgograd"),
    ("yakst", "Asia/Yakutsk"),
    ("yakt", "Asia/Yakutsk"),
    ("yekt", "Asia/Yekaterinburg"),
];

/// Parses a zone abbreviation, a POSIX offset or a zone name, in lower case.
pub(super) fn zone_named(name: &str) -> Option<Zone> {
    if let Ok(at) = SHORT.binary_search_by_key(&name, |(short, _)| *short) {
        return Some(Zone::Fixed(SHORT[at].1));
    }
    if let Ok(at) = OF_PLACES.binary_search_by_key(&name, |(short, _)| *short) {
        return Tz::from_str(OF_PLACES[at].1).ok().map(Zone::Named);
    }
    if let Some(offset) = posix_offset(name) {
        return Some(Zone::Fixed(offset));
    }
    // Parse `est5edt` as `EST5EDT` and `europe/zurich` as `Europe/Zurich`.
    let upper = name
        .strip_prefix("etc/")
        .map_or(name.to_ascii_uppercase(), |name| format!("Etc/{}", name.to_ascii_uppercase()));
    if let Ok(zone) = Tz::from_str(&upper) {
        return Some(Zone::Named(zone));
    }
    let mut spelled = String::with_capacity(name.len());
    let mut first = true;
    for c in name.chars() {
        spelled.push(if first { c.to_ascii_uppercase() } else { c });
        first = matches!(c, '/' | '_' | '-');
    }
    for word in ["_Of_", "_Es_", "-Au-"] {
        spelled = spelled.replace(word, &word.to_ascii_lowercase());
    }
    Tz::from_str(&spelled).ok().map(Zone::Named)
}

/// Parses a POSIX offset to seconds east of Greenwich: `utc+3` is west of Greenwich.
pub(super) fn posix_offset(name: &str) -> Option<i64> {
    let letters = name.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (sign, digits) = match name.get(letters..)?.strip_prefix(['+', '-']) {
        Some(digits) if name[letters..].starts_with('-') => (1, digits),
        Some(digits) => (-1, digits),
        None => (-1, &name[letters..]),
    };
    let mut parts = digits.split(':').map(|part| match part.len() {
        1..=3 if part.bytes().all(|byte| byte.is_ascii_digit()) => part.parse::<i64>().ok(),
        _ => None,
    });
    let hours = parts.next()?.filter(|hours| *hours < 168)?;
    let [minutes, seconds] = [parts.next(), parts.next()].map(|part| part.unwrap_or(Some(0)));
    let (minutes, seconds) =
        (minutes.filter(|part| *part < 60)?, seconds.filter(|part| *part < 60)?);
    (letters > 0 && parts.next().is_none())
        .then_some(sign * ((hours * 60 + minutes) * 60 + seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_postgresqls() {
        let offset = |name: &str| match zone_named(name) {
            Some(Zone::Fixed(offset)) => Some(offset),
            _ => None,
        };
        assert!(SHORT.is_sorted() && OF_PLACES.is_sorted());
        for (name, expected) in [
            ("z", 0),
            ("pst", -28_800),
            ("ist", 7_200),
            ("utc+3", -10_800),
            ("abc-5:45:10", 20_710),
        ] {
            assert_eq!(offset(name), Some(expected), "{name}");
        }
        for name in ["msk", "europe/zurich", "america/port_of_spain", "etc/gmt+3", "cst6cdt"] {
            assert!(matches!(zone_named(name), Some(Zone::Named(_))), "{name}");
        }
        for name in ["west", "utc+200", "nowhere", "utc+1:60", "+3"] {
            assert!(zone_named(name).is_none(), "{name}");
        }
    }
}
