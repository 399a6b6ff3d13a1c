//! Date and time patterns, split into fields and literal characters.

/// The kind of a field. The case of a name selects the case of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `AD` or `BC`, optionally with periods.
    Era {
        points: bool,
        case: Case,
    },
    /// `AM` or `PM`, optionally with periods.
    Half {
        points: bool,
        case: Case,
    },
    Century,
    Day(Case),
    DayShort(Case),
    DayOfYear,
    IsoDayOfYear,
    DayOfMonth,
    DayOfWeek,
    IsoDayOfWeek,
    /// This number of fractional digits of a second.
    Fraction(u32),
    Fixed,
    Hour24,
    Hour12,
    IsoWeek,
    /// This number of trailing digits of the ISO week year; 4 means all digits.
    IsoYear(u32),
    Julian,
    Minute,
    Month,
    MonthName(Case),
    MonthShort(Case),
    Milliseconds,
    Microseconds,
    Offset,
    Quarter,
    Roman(Case),
    SecondOfDay,
    Second,
    ZoneHour,
    ZoneMinute,
    Zone(Case),
    Week,
    WeekOfMonth,
    /// `Y,YYY`
    YearWithComma,
    /// This number of trailing digits of the year; 4 means all digits.
    Year(u32),
}

/// The letter case of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Upper,
    Title,
    Lower,
}

impl Case {
    /// Converts a capitalized English name to this case.
    pub(crate) fn of(self, name: &str) -> String {
        match self {
            Case::Upper => name.to_ascii_uppercase(),
            Case::Title => name.to_string(),
            Case::Lower => name.to_ascii_lowercase(),
        }
    }
}

/// The two conventions for dates, which a pattern must not mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Convention {
    Gregorian,
    IsoWeek,
}

impl Kind {
    /// Returns whether the field consists of digits.
    pub(crate) fn is_digits(self) -> bool {
        use Kind::*;
        !matches!(
            self,
            Era { .. }
                | Half { .. }
                | Day(_)
                | DayShort(_)
                | Fixed
                | MonthName(_)
                | MonthShort(_)
                | Offset
                | Roman(_)
                | ZoneHour
                | Zone(_)
        )
    }

    pub(crate) fn convention(self) -> Option<Convention> {
        use Kind::*;
        match self {
            DayOfYear | DayOfMonth | DayOfWeek | Month | MonthName(_) | MonthShort(_)
            | Roman(_) | Week | WeekOfMonth | YearWithComma | Year(_) => {
                Some(Convention::Gregorian)
            }
            IsoDayOfYear | IsoDayOfWeek | IsoWeek | IsoYear(_) => Some(Convention::IsoWeek),
            _ => None,
        }
    }
}

/// The names of fields; the first match counts.
const NAMES: [(&str, Kind); 61] = [
    ("A.D.", Kind::Era { points: true, case: Case::Upper }),
    ("A.M.", Kind::Half { points: true, case: Case::Upper }),
    ("AD", Kind::Era { points: false, case: Case::Upper }),
    ("AM", Kind::Half { points: false, case: Case::Upper }),
    ("B.C.", Kind::Era { points: true, case: Case::Upper }),
    ("BC", Kind::Era { points: false, case: Case::Upper }),
    ("CC", Kind::Century),
    ("DAY", Kind::Day(Case::Upper)),
    ("DDD", Kind::DayOfYear),
    ("DD", Kind::DayOfMonth),
    ("DY", Kind::DayShort(Case::Upper)),
    ("Day", Kind::Day(Case::Title)),
    ("Dy", Kind::DayShort(Case::Title)),
    ("D", Kind::DayOfWeek),
    ("FF1", Kind::Fraction(1)),
    ("FF2", Kind::Fraction(2)),
    ("FF3", Kind::Fraction(3)),
    ("FF4", Kind::Fraction(4)),
    ("FF5", Kind::Fraction(5)),
    ("FF6", Kind::Fraction(6)),
    ("FX", Kind::Fixed),
    ("HH24", Kind::Hour24),
    ("HH12", Kind::Hour12),
    ("HH", Kind::Hour12),
    ("IDDD", Kind::IsoDayOfYear),
    ("ID", Kind::IsoDayOfWeek),
    ("IW", Kind::IsoWeek),
    ("IYYY", Kind::IsoYear(4)),
    ("IYY", Kind::IsoYear(3)),
    ("IY", Kind::IsoYear(2)),
    ("I", Kind::IsoYear(1)),
    ("J", Kind::Julian),
    ("MI", Kind::Minute),
    ("MM", Kind::Month),
    ("MONTH", Kind::MonthName(Case::Upper)),
    ("MON", Kind::MonthShort(Case::Upper)),
    ("MS", Kind::Milliseconds),
    ("Month", Kind::MonthName(Case::Title)),
    ("Mon", Kind::MonthShort(Case::Title)),
    ("OF", Kind::Offset),
    ("P.M.", Kind::Half { points: true, case: Case::Upper }),
    ("PM", Kind::Half { points: false, case: Case::Upper }),
    ("Q", Kind::Quarter),
    ("RM", Kind::Roman(Case::Upper)),
    ("SSSSS", Kind::SecondOfDay),
    ("SSSS", Kind::SecondOfDay),
    ("SS", Kind::Second),
    ("TZH", Kind::ZoneHour),
    ("TZM", Kind::ZoneMinute),
    ("TZ", Kind::Zone(Case::Upper)),
    ("US", Kind::Microseconds),
    ("WW", Kind::Week),
    ("W", Kind::WeekOfMonth),
    ("Y,YYY", Kind::YearWithComma),
    ("YYYY", Kind::Year(4)),
    ("YYY", Kind::Year(3)),
    ("YY", Kind::Year(2)),
    ("Y", Kind::Year(1)),
    // Lower case names with an output of their own.
    ("day", Kind::Day(Case::Lower)),
    ("month", Kind::MonthName(Case::Lower)),
    ("mon", Kind::MonthShort(Case::Lower)),
];

/// Returns the name and kind of the field at the start of a text.
fn field(text: &str) -> Option<(&'static str, Kind)> {
    let known = NAMES.iter().find(|(name, _)| text.starts_with(name));
    if let Some((name, kind)) = known {
        return Some((name, *kind));
    }
    // Other names may be entirely in lower case.
    let small = |name: &str| {
        let start = text.as_bytes().get(..name.len());
        start.is_some_and(|start| {
            let mut pairs = start.iter().zip(name.bytes());
            pairs.all(|(byte, capital)| *byte == capital.to_ascii_lowercase())
        })
    };
    let (name, kind) = NAMES.iter().find(|(name, _)| small(name))?;
    let kind = match *kind {
        Kind::Era { points, .. } => Kind::Era { points, case: Case::Lower },
        Kind::Half { points, .. } => Kind::Half { points, case: Case::Lower },
        Kind::DayShort(_) => Kind::DayShort(Case::Lower),
        Kind::Roman(_) => Kind::Roman(Case::Lower),
        Kind::Zone(_) => Kind::Zone(Case::Lower),
        kind => kind,
    };
    Some((name, kind))
}

/// A field of a pattern with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub kind: Kind,
    pub name: &'static str,
    /// `FM`: without leading zeros and trailing blanks.
    pub fill: bool,
    /// `TM`: a localized name; the locale is always English.
    pub local: bool,
    /// `TH` or `th`.
    pub ordinal: Option<Case>,
}

/// A piece of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Field(Field),
    /// An unquoted punctuation character.
    Separator(char),
    Space(char),
    Text(char),
}

/// A parsed date and time pattern.
#[derive(Debug)]
pub struct DateTimePattern {
    pub(crate) parts: Vec<Part>,
}

/// Returns whether a character is ASCII punctuation.
pub(crate) fn is_separator(character: char) -> bool {
    character.is_ascii_punctuation()
}

/// Returns whether a character is whitespace in C.
pub(crate) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

impl DateTimePattern {
    /// Parses a pattern.
    pub fn parse(text: &str) -> DateTimePattern {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (mut fill, mut local) = (false, false);
            if let Some(behind) = rest.strip_prefix("FM").or_else(|| rest.strip_prefix("fm")) {
                (fill, rest) = (true, behind);
            } else if let Some(behind) = rest.strip_prefix("TM").or_else(|| rest.strip_prefix("tm"))
            {
                (local, rest) = (true, behind);
            }
            if let Some((name, kind)) = field(rest) {
                rest = &rest[name.len()..];
                let mut ordinal = None;
                if let Some(behind) = rest.strip_prefix("TH") {
                    (ordinal, rest) = (Some(Case::Upper), behind);
                } else if let Some(behind) = rest.strip_prefix("th") {
                    (ordinal, rest) = (Some(Case::Lower), behind);
                } else if let Some(behind) = rest.strip_prefix("SP") {
                    rest = behind;
                }
                parts.push(Part::Field(Field { kind, name, fill, local, ordinal }));
            } else if let Some(behind) = rest.strip_prefix('"') {
                rest = quoted(behind, |character| parts.push(Part::Text(character)));
            } else if let Some(character) = unquoted(&mut rest) {
                parts.push(match character {
                    _ if is_separator(character) => Part::Separator(character),
                    _ if is_space(character) => Part::Space(character),
                    _ => Part::Text(character),
                });
            }
        }
        DateTimePattern { parts }
    }

    /// Returns whether the next part cannot start with a digit, so that a number may have any
    /// length.
    pub fn ends_at_separator(&self, index: usize) -> bool {
        if matches!(self.parts.get(index), Some(Part::Field(Field { ordinal: Some(_), .. }))) {
            return true;
        }
        match self.parts.get(index + 1) {
            None => true,
            Some(Part::Field(field)) => !field.kind.is_digits(),
            Some(Part::Text(character) | Part::Separator(character) | Part::Space(character)) => {
                !character.is_ascii_digit()
            }
        }
    }
}

/// Reads the characters up to the closing quote, where a backslash escapes the next character.
/// Returns the rest of the text.
pub(crate) fn quoted(text: &str, mut each: impl FnMut(char)) -> &str {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => each(characters.next().unwrap_or('\\')),
            other => each(other),
        }
    }
    characters.as_str()
}

/// Reads a character outside of quotes. A backslash escapes only a quote.
pub(crate) fn unquoted(rest: &mut &str) -> Option<char> {
    if let Some(behind) = rest.strip_prefix("\\\"") {
        *rest = behind;
        return Some('"');
    }
    let mut characters = rest.chars();
    let character = characters.next();
    *rest = characters.as_str();
    character
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_cut_into_fields() {
        let shown = |text: &str| {
            let show = |part: &Part| match part {
                Part::Field(field) => format!("<{}>", field.name),
                Part::Separator(c) | Part::Space(c) | Part::Text(c) => c.to_string(),
            };
            DateTimePattern::parse(text).parts.iter().map(show).collect::<String>()
        };
        assert_eq!(shown("YYYY-MM-DD"), "<YYYY>-<MM>-<DD>");
        assert_eq!(shown("FMDay, ddth\"of\" month"), "<Day>, <DD>of <month>");
        assert_eq!(shown("HH24:MI:SS.US tz"), "<HH24>:<MI>:<SS>.<US> <TZ>");
        assert_eq!(shown("\\\"a\\b\"\\\"q\\x\""), "\"a\\b\"qx");
        assert_eq!(shown("dy Mon yyyy mi"), "<DY> <Mon> <YYYY> <MI>");
    }
}
