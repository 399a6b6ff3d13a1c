//! Patterns of numbers.

use tessera_types::{DECIMAL_PRECISION_MAX, Error, Result, SqlState};

use crate::fault;
use crate::moment_patterns::{Case, quoted, unquoted};

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
    /// What is said of the whole number: `S`, `PR`, `V`, `FM`, `EEEE`, and `B`, `C` and `SP`, which
    /// say nothing.
    Mark,
    /// Another character.
    Text(char),
}

/// Where the sign of `S` stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignPlace {
    Before,
    Behind,
}

/// A pattern of numbers, and what it says of the whole number.
#[derive(Debug, Clone, Default)]
pub struct NumberPattern {
    pub(crate) items: Vec<Item>,
    /// How many digits stand before the point.
    pub before: usize,
    /// How many digits stand behind it.
    pub behind: usize,
    /// How many digits follow `V`.
    pub shifted: usize,
    /// The place of the first `0` before the point, from 0.
    pub zero_start: usize,
    /// How many places there are up to the last `0`.
    pub zero_end: usize,
    /// How many digits stand before `S`.
    pub before_sign: usize,
    /// `S`
    pub sign: Option<SignPlace>,
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

/// The names of items; those of two letters before those that they begin with. Small letters mean
/// the same.
const NAMES: [&str; 20] = [
    ",", ".", "0", "9", "B", "C", "D", "EEEE", "FM", "G", "L", "MI", "PL", "PR", "RN", "SG", "SP",
    "S", "TH", "V",
];

/// The name that a text begins with, in capitals, and whether it is written in small letters.
fn named(text: &str) -> Option<(&'static str, Case)> {
    if let Some(name) = NAMES.into_iter().find(|name| text.starts_with(name)) {
        return Some((name, Case::Upper));
    }
    let small = |name: &&str| {
        let start = text.as_bytes().get(..name.len());
        start.is_some_and(|start| start == name.to_ascii_lowercase().as_bytes())
    };
    NAMES.into_iter().find(small).map(|name| (name, Case::Lower))
}

fn refused(message: &str) -> Error {
    fault(format!("the pattern of a number is wrong: {message}"), SqlState::SYNTAX_ERROR)
}

impl NumberPattern {
    /// # Errors
    /// Items that do not go together.
    pub fn parse(text: &str) -> Result<NumberPattern> {
        let mut pattern = NumberPattern::default();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some((name, case)) = named(rest) {
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
            return Err(refused("EEEE must be last"));
        }
        let lone_sign = self.plus || self.minus;
        Ok(match name {
            "9" | "0" if self.brackets => return Err(refused("digits stand before PR")),
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
                    return Err(refused("it has two decimal points"));
                }
                if self.shifts {
                    return Err(refused("V and a decimal point do not go together"));
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
                    return Err(refused("it has S twice"));
                }
                if lone_sign || self.brackets {
                    return Err(refused("S and PL, MI, SG or PR do not go together"));
                }
                self.sign =
                    Some(if self.has_point { SignPlace::Behind } else { SignPlace::Before });
                if !self.has_point {
                    self.before_sign = self.before;
                }
                Item::Mark
            }
            "MI" | "PL" | "SG" => {
                if self.sign.is_some() {
                    return Err(refused("S and PL, MI or SG do not go together"));
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
                    return Err(refused("PR and S, PL, MI or SG do not go together"));
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
                    return Err(refused("V and a decimal point do not go together"));
                }
                self.shifts = true;
                Item::Mark
            }
            "EEEE" => {
                if self.exponent {
                    return Err(refused("it has EEEE twice"));
                }
                let others = self.blank
                    || self.fill
                    || self.brackets
                    || lone_sign
                    || self.roman
                    || self.shifts;
                if others || self.sign.is_some() {
                    return Err(refused("EEEE goes with digits and a decimal point only"));
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

    /// The precision and scale of the decimals that it reads.
    pub fn decimal(&self) -> (u8, i8) {
        let most = usize::from(DECIMAL_PRECISION_MAX);
        let scale = (self.behind + self.shifted).min(most);
        let precision = (self.before + self.behind + self.shifted).clamp(1, most).max(scale);
        (precision as u8, scale as i8)
    }
}
