//! Formatting of numbers: `to_char`.

use tessera_types::{Code, Error, Result, SqlState};

use crate::data_error;
use crate::date_time_format::ordinal;
use crate::date_time_pattern::Case;
use crate::number_pattern::{Item, NumberPattern, SignPosition};

/// A number with its type, which determines rounding and limits.
#[derive(Debug, Clone, Copy)]
pub enum Number<'a> {
    /// An integer of at most 32 bits.
    Short(i64),
    /// A 64-bit integer.
    Long(i64),
    /// A single-precision float.
    Single(f32),
    /// A double-precision float.
    Double(f64),
    /// A decimal number in digits.
    Decimal(&'a str),
}

/// The significant digits of a double-precision float.
const DOUBLE_DIGITS: usize = 15;
/// The significant digits of a single-precision float.
const SINGLE_DIGITS: usize = 6;
/// The width of a Roman numeral.
const ROMAN_WIDTH: usize = 15;

fn out_of_range() -> Error {
    Error::new(Code::Overflow, "to_char: the number is out of range for its pattern")
}

/// Formats a number.
///
/// # Errors
/// The number overflows when shifted by the pattern, or cannot be a Roman numeral.
pub fn format(number: Number<'_>, pattern: &NumberPattern) -> Result<String> {
    if pattern.roman {
        let whole = match number {
            Number::Short(value) => value,
            Number::Long(value) => i32::try_from(value).map_err(|_| out_of_range())?.into(),
            Number::Single(value) => f64::from(value).round_ties_even() as i64,
            Number::Double(value) => value.round_ties_even() as i64,
            Number::Decimal(digits) => {
                rounded(digits, 0, 0).parse::<i32>().map_err(|_| out_of_range())?.into()
            }
        };
        return Ok(with_roman(whole, pattern));
    }
    if pattern.exponent {
        return Ok(with_exponent(number, pattern));
    }
    let (digits, behind) = digits_of(number, pattern)?;
    let (negative, digits) = match digits.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, &*digits),
    };
    let before = digits.find('.').unwrap_or(digits.len());
    let places = pattern.before + pattern.shifted;
    let filled;
    let digits = if before > places {
        // The number does not fit the pattern.
        filled = format!("{}.{}", "#".repeat(places), "#".repeat(behind));
        filled.as_str()
    } else {
        digits
    };
    let blanks = places.saturating_sub(before);
    Writer::new(pattern, digits, blanks, places, behind, negative).write()
}

/// Returns the digits of a number, rounded to the places of the pattern, and the number of
/// fractional digits.
fn digits_of(number: Number<'_>, pattern: &NumberPattern) -> Result<(String, usize)> {
    let shift = pattern.shifted;
    let floating = |value: f64, digits: usize| {
        let before = float_digits(value.abs(), 0).len();
        let behind = pattern.behind.min(digits.saturating_sub(before));
        (float_digits(value, behind), behind)
    };
    Ok(match number {
        Number::Short(value) | Number::Long(value) => {
            let factor = u32::try_from(shift).ok().and_then(|shift| 10_i64.checked_pow(shift));
            let value =
                factor.and_then(|factor| value.checked_mul(factor)).ok_or_else(out_of_range)?;
            let mut digits = value.to_string();
            if pattern.behind > 0 {
                digits.push('.');
                digits.extend(std::iter::repeat_n('0', pattern.behind));
            }
            (digits, pattern.behind)
        }
        Number::Single(value) => {
            let value =
                if pattern.shifts { value * 10_f32.powi(shift.min(999) as i32) } else { value };
            floating(value.into(), SINGLE_DIGITS)
        }
        Number::Double(value) => {
            let value =
                if pattern.shifts { value * 10_f64.powi(shift.min(999) as i32) } else { value };
            floating(value, DOUBLE_DIGITS)
        }
        Number::Decimal(digits) => (rounded(digits, shift, pattern.behind), pattern.behind),
    })
}

/// Formats a float with this number of fractional digits, or returns its name.
fn float_digits(value: f64, digits: usize) -> String {
    match value {
        _ if value.is_nan() => "NaN".to_string(),
        f64::INFINITY => "Infinity".to_string(),
        f64::NEG_INFINITY => "-Infinity".to_string(),
        _ => format!("{value:.digits$}"),
    }
}

/// Multiplies a decimal by a power of ten and rounds it to a number of fractional digits, halves
/// away from zero.
fn rounded(text: &str, shift: usize, behind: usize) -> String {
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let point = whole.len() + shift;
    let end = point + behind;
    let up = digits.get(end).is_some_and(|digit| *digit >= b'5');
    digits.resize(end, b'0');
    if up {
        increment(&mut digits);
    }
    // A carry into a new digit moves the decimal point.
    let point = digits.len() - behind;
    let mut out = String::with_capacity(digits.len() + 2);
    let shown: String = digits.iter().copied().map(char::from).collect();
    let (whole, fraction) = shown.split_at(point);
    let whole = whole.trim_start_matches('0');
    if negative && digits.iter().any(|digit| *digit != b'0') {
        out.push('-');
    }
    out.push_str(if whole.is_empty() { "0" } else { whole });
    if behind > 0 {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// Adds one to a number given as digits.
fn increment(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
}

fn with_exponent(number: Number<'_>, pattern: &NumberPattern) -> String {
    let behind = pattern.behind;
    let scientific = |value: f64| {
        if !value.is_finite() {
            return format!(" {}.{}", "#".repeat(pattern.before), "#".repeat(behind + 4));
        }
        let text = format!("{value:.behind$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        signed(format!("{mantissa}e{exponent:+03}"))
    };
    match number {
        Number::Short(value) => scientific(value as f64),
        Number::Single(value) => scientific(value.into()),
        Number::Double(value) => scientific(value),
        Number::Long(value) => decimal_exponent(&value.to_string(), behind),
        Number::Decimal(digits) => decimal_exponent(digits, behind),
    }
}

fn signed(text: String) -> String {
    if text.starts_with('-') { text } else { format!(" {text}") }
}

/// Formats a decimal in scientific notation. A carry in the rounding stays before the decimal
/// point.
fn decimal_exponent(text: &str, behind: usize) -> String {
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => ("-", text),
        None => ("", text),
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: String = [whole, fraction].concat();
    let Some(first) = digits.find(|digit| digit != '0') else {
        let exponent = 0;
        return signed(format!("{}e{exponent:+03}", rounded("0", 0, behind)));
    };
    let exponent = whole.len() as i64 - 1 - first as i64;
    let significand = format!("{sign}{}.{}", &digits[first..=first], &digits[first + 1..]);
    signed(format!("{}e{exponent:+03}", rounded(&significand, 0, behind)))
}

/// Returns the Roman numeral of a number, or `#` characters if it is out of range.
fn roman(number: i64) -> String {
    const VALUES: [(i64, &str); 13] = [
        (1_000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if !(1..=3_999).contains(&number) {
        return "#".repeat(ROMAN_WIDTH);
    }
    let mut out = String::new();
    let mut rest = number;
    for (value, digits) in VALUES {
        while rest >= value {
            out.push_str(digits);
            rest -= value;
        }
    }
    out
}

/// Formats a Roman numeral; the pattern's digits, decimal points and signs are dropped.
fn with_roman(number: i64, pattern: &NumberPattern) -> String {
    let mut out = String::new();
    let number = roman(number);
    for item in &pattern.items {
        match item {
            Item::Roman(case) => {
                let text = case.of(&number);
                let width = if pattern.fill { 0 } else { ROMAN_WIDTH };
                out.push_str(&format!("{text:>width$}"));
            }
            Item::Text(character) => out.push(*character),
            Item::Comma | Item::Group | Item::Minus | Item::Plus if !pattern.fill => out.push(' '),
            Item::Currency => out.push(' '),
            _ => {}
        }
    }
    out
}

/// The state of formatting a number item by item.
struct Writer<'a> {
    pattern: &'a NumberPattern,
    /// Digits with an optional decimal point.
    number: &'a [u8],
    /// The position of the next character of `number`.
    next: usize,
    /// The position of the last character to show if trailing zeros are dropped.
    last_relevant: Option<usize>,
    negative: bool,
    sign: Option<SignPosition>,
    brackets: bool,
    sign_written: bool,
    /// The number of places before the first digit.
    blanks: usize,
    /// The number of fractional digits.
    behind: usize,
    /// The place of the last digit.
    last_place: i64,
    /// The next place.
    place: usize,
    in_number: bool,
    out: String,
    /// The end of the output: a place after the last digit of the number ends it.
    end: Option<usize>,
}

impl<'a> Writer<'a> {
    fn new(
        pattern: &'a NumberPattern,
        number: &'a str,
        blanks: usize,
        places: usize,
        behind: usize,
        negative: bool,
    ) -> Self {
        let lone_sign = pattern.plus || pattern.minus;
        let sign = match pattern.sign {
            Some(SignPosition::Before) if !lone_sign && places == pattern.before_sign => {
                Some(SignPosition::Behind)
            }
            sign => sign,
        };
        let brackets = pattern.brackets && (lone_sign || negative || !pattern.fill);
        let sign_written = match lone_sign {
            true => pattern.minus,
            false => !negative && pattern.fill && sign.is_none(),
        };
        let mut last_relevant = None;
        let bytes = number.as_bytes();
        if pattern.fill && pattern.has_point {
            let point = bytes.iter().position(|byte| *byte == b'.');
            last_relevant = point.map(|point| {
                bytes[point + 1..]
                    .iter()
                    .rposition(|byte| *byte != b'0')
                    .map_or(point, |at| point + 1 + at)
            });
            // Digits of `0` items are always shown.
            if let Some(last) = &mut last_relevant
                && pattern.zero_end > blanks
            {
                *last = (*last).max((bytes.len() - 1).min(pattern.zero_end - blanks));
            }
        }
        let extra = i64::from(!sign_written && blanks == 0);
        Writer {
            pattern,
            number: bytes,
            next: 0,
            last_relevant,
            negative,
            sign,
            brackets,
            sign_written,
            blanks,
            behind,
            last_place: (behind + places) as i64 - 1 + extra,
            place: 0,
            in_number: false,
            out: String::new(),
            end: None,
        }
    }

    fn write(mut self) -> Result<String> {
        let pattern = self.pattern;
        let fill = pattern.fill;
        for item in &pattern.items {
            match *item {
                Item::Digit | Item::Zero | Item::Point => self.digit(*item),
                Item::Comma | Item::Group => match self.in_number {
                    true => self.out.push(','),
                    false if fill => {}
                    false => self.out.push(' '),
                },
                Item::Currency => self.out.push(' '),
                Item::Ordinal(case) => self.ordinal(case)?,
                Item::Minus if self.negative => self.out.push('-'),
                Item::Plus if !self.negative => self.out.push('+'),
                Item::Minus | Item::Plus if fill => {}
                Item::Minus | Item::Plus => self.out.push(' '),
                Item::Signed => self.out.push(if self.negative { '-' } else { '+' }),
                Item::Text(character) => self.out.push(character),
                Item::Roman(_) | Item::Mark => {}
            }
        }
        self.out.truncate(self.end.unwrap_or(self.out.len()));
        Ok(self.out)
    }

    fn ordinal(&mut self, case: Case) -> Result<()> {
        if self.number.first() == Some(&b'#') || self.negative || self.pattern.has_point {
            return Ok(());
        }
        let number: String = self.number.iter().copied().map(char::from).collect();
        if !number.ends_with(|last: char| last.is_ascii_digit()) {
            let message = format!(
                "to_char: '{number}' cannot have an ordinal suffix; remove TH from the pattern"
            );
            return Err(data_error(message, SqlState::INVALID_TEXT_REPRESENTATION));
        }
        self.out.push_str(ordinal(&number, case));
        Ok(())
    }

    /// Returns whether the next digit is a single zero before the decimal point, which is not
    /// shown.
    fn is_zero_before_point(&self) -> bool {
        let is_lone = !self.pattern.has_zero && self.next == 0 && self.behind > 0;
        is_lone && self.number.first() == Some(&b'0')
    }

    fn has_only_zeros_behind(&self) -> bool {
        self.last_relevant.is_some_and(|last| self.number.get(last) == Some(&b'.'))
    }

    fn digit(&mut self, item: Item) {
        self.in_number = false;
        let pattern = self.pattern;
        let begins =
            self.place >= self.blanks || (pattern.has_zero && pattern.zero_start == self.place);
        if !self.sign_written
            && begins
            && (!self.is_zero_before_point() || self.has_only_zeros_behind())
        {
            self.write_sign();
        }
        let is_before = self.place < self.blanks;
        if is_before && (!pattern.has_zero || pattern.zero_start > self.place) {
            if !pattern.fill {
                self.out.push(' ');
            }
        } else if is_before {
            self.out.push('0');
            self.in_number = true;
        } else {
            self.write_digit(item);
            self.next += usize::from(self.next < self.number.len());
        }
        let mut end = self.last_place + i64::from(self.blanks > 0) + i64::from(pattern.has_point);
        if self.last_relevant == Some(self.next) {
            end = self.place as i64;
        }
        if self.place as i64 + 1 == end {
            if self.sign_written && self.brackets {
                self.out.push(if self.negative { '>' } else { ' ' });
            } else if self.sign == Some(SignPosition::Behind) {
                self.out.push(if self.negative { '-' } else { '+' });
            }
        }
        self.place += 1;
    }

    fn write_sign(&mut self) {
        match self.sign {
            Some(SignPosition::Before) => self.out.push(if self.negative { '-' } else { '+' }),
            // The sign follows the last digit.
            Some(SignPosition::Behind) => return,
            None if self.brackets => self.out.push(if self.negative { '<' } else { ' ' }),
            None if self.negative => self.out.push('-'),
            None if self.pattern.fill => {}
            None => self.out.push(' '),
        }
        self.sign_written = true;
    }

    fn write_digit(&mut self, item: Item) {
        match self.number.get(self.next) {
            // The decimal point is shown even if only zeros follow.
            Some(b'.') => self.out.push('.'),
            _ if self.last_relevant.is_some_and(|last| self.next > last) && item != Item::Zero => {}
            _ if self.is_zero_before_point() => {
                if !self.pattern.fill {
                    self.out.push(' ');
                } else if self.has_only_zeros_behind() {
                    self.out.push('0');
                }
            }
            Some(digit) => {
                self.out.push(char::from(*digit));
                self.in_number = true;
            }
            None => self.end = self.end.or(Some(self.out.len())),
        }
    }
}

#[cfg(test)]
mod tests;
