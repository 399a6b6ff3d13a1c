//! Parsing of numbers: `to_number`.

use tessera_types::{Code, Error, Result, SqlState};

use crate::data_error;
use crate::number_pattern::{Item, NumberPattern, SignPosition};

/// Parses a number with a pattern into a decimal of this precision and scale.
///
/// # Errors
/// The text contains no number, or the number has too many digits for the decimal.
pub fn parse(text: &str, pattern: &NumberPattern, precision: u8, scale: i8) -> Result<i128> {
    if pattern.exponent || pattern.roman {
        let name = if pattern.exponent { "EEEE" } else { "RN" };
        return Err(Error::unsupported(format!(
            "pattern item '{name}' is supported only in to_char"
        )));
    }
    let mut reader = Reader {
        pattern,
        rest: text,
        sign: None,
        digits: String::new(),
        has_point: false,
        before: 0,
        behind: 0,
    };
    reader.read();
    let digits = reader.digits.trim_end_matches('.');
    if digits.is_empty() {
        return Err(data_error(
            format!("to_number: '{text}' has no digits at the positions of the pattern"),
            SqlState::INVALID_TEXT_REPRESENTATION,
        ));
    }
    let overflow = || {
        let message =
            format!("to_number('{text}') is out of range for type decimal({precision}, {scale})");
        Error::new(Code::Overflow, message)
    };
    // Digits after `V` are fractional digits of the number.
    let shift = i32::from(scale) - reader.behind as i32 - pattern.shifted as i32;
    let value: i128 = digits.replace('.', "").parse().map_err(|_| overflow())?;
    // A pattern without digits accepts only zero.
    if pattern.before + pattern.behind + pattern.shifted == 0 && value != 0 {
        return Err(overflow());
    }
    let value = match u32::try_from(shift) {
        Ok(shift) => 10_i128.checked_pow(shift).and_then(|factor| value.checked_mul(factor)),
        Err(_) => {
            let factor = 10_i128.checked_pow(shift.unsigned_abs());
            factor.map(|factor| (value + factor / 2) / factor).or(Some(0))
        }
    };
    let value =
        value.filter(|value| *value < 10_i128.pow(precision.into())).ok_or_else(overflow)?;
    Ok(if reader.sign == Some('-') { -value } else { value })
}

/// The state of parsing a number.
struct Reader<'a> {
    pattern: &'a NumberPattern,
    rest: &'a str,
    sign: Option<char>,
    digits: String,
    has_point: bool,
    /// The number of digits read before the decimal point.
    before: usize,
    /// The number of digits read after the decimal point.
    behind: usize,
}

impl Reader<'_> {
    fn skip(&mut self) {
        let mut characters = self.rest.chars();
        characters.next();
        self.rest = characters.as_str();
    }

    /// Skips up to `count` characters that cannot belong to a number.
    fn skip_others(&mut self, count: usize) {
        for _ in 0..count {
            if self
                .rest
                .starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '+' | '-'))
            {
                return;
            }
            self.skip();
        }
    }

    fn read_sign(&mut self, signs: &[char]) {
        match self.rest.chars().next() {
            Some(sign) if signs.contains(&sign) => {
                self.sign = Some(sign);
                self.skip();
            }
            _ => self.skip_others(1),
        }
    }

    fn read(&mut self) {
        let pattern = self.pattern;
        for item in &pattern.items {
            if self.rest.is_empty() {
                return;
            }
            match item {
                Item::Digit | Item::Zero | Item::Point => {
                    self.digit(*item);
                    self.skip();
                }
                Item::Comma | Item::Group => {
                    if !self.pattern.fill && self.rest.starts_with(',') {
                        self.skip();
                    }
                }
                Item::Currency => self.skip_others(1),
                Item::Ordinal(_) if self.pattern.has_point => {}
                Item::Ordinal(_) => self.skip_others(2),
                Item::Minus => self.read_sign(&['-']),
                Item::Plus => self.read_sign(&['+']),
                Item::Signed => self.read_sign(&['-', '+']),
                // Any character matches a literal character of the pattern.
                Item::Text(_) => self.skip(),
                Item::Roman(_) | Item::Mark => {}
            }
        }
    }

    /// Reads a digit or the decimal point, with a sign before the first digit or after the last.
    /// The caller skips the last character, whether or not it was used.
    fn digit(&mut self, item: Item) {
        if self.rest.starts_with(' ') {
            self.skip();
        }
        if self.sign.is_none() && item != Item::Point && self.before + self.behind == 0 {
            let sign = match self.rest.chars().next() {
                Some('<')
                    if self.pattern.brackets && self.pattern.sign != Some(SignPosition::Before) =>
                {
                    Some('-')
                }
                Some(sign @ ('-' | '+')) => Some(sign),
                _ => None,
            };
            if sign.is_some() {
                self.sign = sign;
                self.skip();
            }
        }
        let mut was_read = false;
        match self.rest.chars().next() {
            None => return,
            Some(digit) if digit.is_ascii_digit() => {
                if self.has_point && self.behind == self.pattern.behind {
                    return;
                }
                self.digits.push(digit);
                match self.has_point {
                    true => self.behind += 1,
                    false => self.before += 1,
                }
                was_read = true;
            }
            Some('.') if self.pattern.has_point && !self.has_point => {
                self.digits.push('.');
                self.has_point = true;
                was_read = true;
            }
            _ => {}
        }
        if self.sign.is_some() || self.before + self.behind == 0 {
            return;
        }
        let mut behind = self.rest.chars();
        let here = behind.next();
        if self.pattern.sign.is_some() && was_read {
            if let Some(sign @ ('-' | '+')) = behind.next() {
                self.sign = Some(sign);
                self.skip();
            }
        } else if !was_read
            && self.pattern.sign.is_none()
            && (self.pattern.plus || self.pattern.minus)
        {
            self.sign = here.filter(|sign| matches!(sign, '-' | '+'));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_by_postgresql() {
        let of = |text: &str, pattern: &str| {
            let pattern = NumberPattern::parse(pattern).unwrap();
            let (precision, scale) = pattern.decimal();
            parse(text, &pattern, precision, scale).ok()
        };
        for (text, pattern, expected) in [
            ("12,454.8-", "99G999D9S", Some(-124_548)),
            ("-34,338,492", "99G999G999", Some(-34_338_492)),
            ("0.00001-", "9.999999S", Some(-10)),
            ("5.01-", "FM9.999999MI", Some(-5_010_000)),
            ("$1,234.56", "L99,999.99", Some(123_456)),
            ("123456", "999G999", Some(123_456)),
            ("42nd", "99th", Some(42)),
            ("123456", "99999V9", Some(123_456)),
            ("<12>", "99PR", Some(-12)),
            ("x", "9", None),
        ] {
            assert_eq!(of(text, pattern), expected, "'{text}' '{pattern}'");
        }
    }
}
