//! Number patterns of `to_char` and `to_number`.

use tessera_types::{DECIMAL_PRECISION_MAX, Error, Result, SqlState};

use crate::data_error;
use crate::date_time_pattern::{Case, quoted, unquoted};

/// A piece of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    /// `9`
    Digit,
    /// `0`
    Zero,
    /// `.` or `D`
    Point,
    /// `,`
    Comma,
    /// `G`
    Group,
    /// `L`
    Currency,
    /// `MI`
    Minus,
    /// `PL`
    Plus,
    /// `SG`
    Signed,
    /// `RN`, `rn`
    Roman(Case),
    /// `TH`, `th`
    Ordinal(Case),
    /// An item about the whole number: `S`, `PR`, `V`, `FM` or `EEEE`; or `B`, `C` or `SP`, which
    /// have no effect.
    Mark,
    /// A literal character.
    Text(char),
}

/// The position of the sign of `S`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignPosition {
    /// Before the digits.
    Before,
    /// After the digits.
    Behind,
}

/// A parsed number pattern.
#[derive(Debug, Clone, Default)]
pub struct NumberPattern {
    pub(crate) items: Vec<Item>,
    /// The number of digits before the decimal point.
    pub before: usize,
    /// The number of digits after the decimal point.
    pub behind: usize,
    /// The number of digits after `V`.
    pub shifted: usize,
    /// The zero-based place of the first `0` before the decimal point.
    pub zero_start: usize,
    /// The number of places up to the last `0`.
    pub zero_end: usize,
    /// The number of digits before `S`.
    pub before_sign: usize,
    /// `S`
    pub sign: Option<SignPosition>,
    pub(crate) has_point: bool,
    pub(crate) has_zero: bool,
    /// `FM`
    pub fill: bool,
    /// `PR`
    pub brackets: bool,
    /// `MI` or `SG`
    pub minus: bool,
    /// `PL` or `SG`
    pub plus: bool,
    pub(crate) roman: bool,
    /// `V`
    pub shifts: bool,
    /// `EEEE`
    pub exponent: bool,
    blank: bool,
}

/// The names of items; longer names precede their prefixes. Lower case is equivalent.
const NAMES: [&str; 20] = [
    ",", ".", "0", "9", "B", "C", "D", "EEEE", "FM", "G", "L", "MI", "PL", "PR", "RN", "SG", "SP",
    "S", "TH", "V",
];

/// Returns the item name at the start of a text, and its case.
fn item_name(text: &str) -> Option<(&'static str, Case)> {
    if let Some(name) = NAMES.into_iter().find(|name| text.starts_with(name)) {
        return Some((name, Case::Upper));
    }
    let small = |name: &&str| {
        let start = text.as_bytes().get(..name.len());
        start.is_some_and(|start| start == name.to_ascii_lowercase().as_bytes())
    };
    NAMES.into_iter().find(small).map(|name| (name, Case::Lower))
}

fn invalid_pattern(message: &str) -> Error {
    data_error(format!("invalid number pattern: {message}"), SqlState::SYNTAX_ERROR)
}

impl NumberPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// Items of the pattern contradict each other.
    pub fn parse(text: &str) -> Result<NumberPattern> {
        let mut pattern = NumberPattern::default();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some((name, case)) = item_name(rest) {
                rest = &rest[name.len()..];
                let item = pattern.add(name, case)?;
                pattern.items.push(item);
            } else if let Some(behind) = rest.strip_prefix('"') {
                rest = quoted(behind, |character| pattern.items.push(Item::Text(character)));
            } else if let Some(character) = unquoted(&mut rest) {
                pattern.items.push(Item::Text(character));
            }
        }
        Ok(pattern)
    }

    fn add(&mut self, name: &str, case: Case) -> Result<Item> {
        if self.exponent && name != "EEEE" {
            return Err(invalid_pattern("EEEE must be last"));
        }
        let lone_sign = self.plus || self.minus;
        Ok(match name {
            "9" | "0" if self.brackets => return Err(invalid_pattern("PR must follow all digits")),
            "9" => {
                match (self.shifts, self.has_point) {
                    (true, _) => self.shifted += 1,
                    (_, true) => self.behind += 1,
                    _ => self.before += 1,
                }
                Item::Digit
            }
            "0" => {
                if !self.has_zero && !self.has_point {
                    self.has_zero = true;
                    self.zero_start = self.before;
                }
                match self.has_point {
                    true => self.behind += 1,
                    false => self.before += 1,
                }
                self.zero_end = self.before + self.behind;
                Item::Zero
            }
            "." | "D" => {
                if self.has_point {
                    return Err(invalid_pattern("it has two decimal points"));
                }
                if self.shifts {
                    return Err(invalid_pattern("V cannot be combined with a decimal point"));
                }
                self.has_point = true;
                Item::Point
            }
            "B" => {
                self.blank |= self.before == 0 && self.behind == 0 && !self.has_zero;
                Item::Mark
            }
            "FM" => {
                self.fill = true;
                Item::Mark
            }
            "S" => {
                if self.sign.is_some() {
                    return Err(invalid_pattern("it has S twice"));
                }
                if lone_sign || self.brackets {
                    return Err(invalid_pattern("S cannot be combined with PL, MI, SG or PR"));
                }
                self.sign =
                    Some(if self.has_point { SignPosition::Behind } else { SignPosition::Before });
                if !self.has_point {
                    self.before_sign = self.before;
                }
                Item::Mark
            }
            "MI" | "PL" | "SG" => {
                if self.sign.is_some() {
                    return Err(invalid_pattern("S cannot be combined with PL, MI or SG"));
                }
                self.minus |= name != "PL";
                self.plus |= name != "MI";
                match name {
                    "MI" => Item::Minus,
                    "PL" => Item::Plus,
                    _ => Item::Signed,
                }
            }
            "PR" => {
                if self.sign.is_some() || lone_sign {
                    return Err(invalid_pattern("PR cannot be combined with S, PL, MI or SG"));
                }
                self.brackets = true;
                Item::Mark
            }
            "RN" => {
                self.roman = true;
                Item::Roman(case)
            }
            "V" => {
                if self.has_point {
                    return Err(invalid_pattern("V cannot be combined with a decimal point"));
                }
                self.shifts = true;
                Item::Mark
            }
            "EEEE" => {
                if self.exponent {
                    return Err(invalid_pattern("it has EEEE twice"));
                }
                let others = self.blank
                    || self.fill
                    || self.brackets
                    || lone_sign
                    || self.roman
                    || self.shifts;
                if others || self.sign.is_some() {
                    return Err(invalid_pattern(
                        "EEEE can be combined only with digits and a decimal point",
                    ));
                }
                self.exponent = true;
                Item::Mark
            }
            "," => Item::Comma,
            "G" => Item::Group,
            "L" => Item::Currency,
            "TH" => Item::Ordinal(case),
            _ => Item::Mark,
        })
    }

    /// Returns the precision and scale of the decimals that `to_number` parses.
    pub fn decimal(&self) -> (u8, i8) {
        let most = usize::from(DECIMAL_PRECISION_MAX);
        let scale = (self.behind + self.shifted).min(most);
        let precision = (self.before + self.behind + self.shifted).clamp(1, most).max(scale);
        (precision as u8, scale as i8)
    }
}
