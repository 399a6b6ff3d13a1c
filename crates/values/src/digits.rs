//! Fast formatting of integers, decimals and dates for text formats, without `std::fmt`.

/// The decimal digits of 0 to 99.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The maximum number of digits of a `u64`.
const DIGITS_MAX: usize = 20;
/// Room for the digits, a sign and a point, padded so that copies use whole words.
const TEXT_MAX: usize = 24;

/// A target of formatted text: a string, or the bytes of a string.
pub trait Text {
    /// Appends a string.
    fn push_str(&mut self, text: &str);

    /// Appends the first `len` bytes, which are ASCII.
    fn push_ascii(&mut self, text: &[u8; TEXT_MAX], len: usize);
}

impl Text for String {
    fn push_str(&mut self, text: &str) {
        self.push_str(text);
    }

    fn push_ascii(&mut self, text: &[u8; TEXT_MAX], len: usize) {
        self.push_str(std::str::from_utf8(&text[..len]).unwrap_or_default());
    }
}

impl Text for Vec<u8> {
    fn push_str(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }

    fn push_ascii(&mut self, text: &[u8; TEXT_MAX], len: usize) {
        // Copying a size known at compile time is much faster.
        let end = self.len() + len;
        self.extend_from_slice(text);
        self.truncate(end);
    }
}

/// Fills `text` with the digits of a number, with leading zeros.
fn fill(text: &mut [u8], mut number: u64) {
    let mut pairs = text.rchunks_exact_mut(2);
    for pair in &mut pairs {
        pair.copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if let [first] = pairs.into_remainder() {
        *first = b'0' + (number % 10) as u8;
    }
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// Appends a number, with leading zeros up to `digits_min` digits (at most 20).
pub fn push_padded(out: &mut impl Text, number: u64, digits_min: usize) {
    let mut text = [b'0'; TEXT_MAX];
    let len = digits(number).max(digits_min.min(DIGITS_MAX));
    fill(&mut text[..len], number);
    out.push_ascii(&text, len);
}

/// Appends an integer.
pub fn push_whole(out: &mut impl Text, number: i64) {
    let mut text = [b'-'; TEXT_MAX];
    let (sign, number) = (usize::from(number < 0), number.unsigned_abs());
    let len = sign + digits(number);
    fill(&mut text[sign..len], number);
    out.push_ascii(&text, len);
}

/// Appends a decimal with `scale` fractional digits (1 to 19), given its unscaled value. Returns
/// false if it is out of range.
pub fn push_decimal(out: &mut impl Text, unscaled: i128, scale: u32) -> bool {
    let Ok(number) = u64::try_from(unscaled.unsigned_abs()) else { return false };
    let scale = scale as usize;
    if !(1..DIGITS_MAX).contains(&scale) {
        return false;
    }
    let mut text = [b'-'; TEXT_MAX];
    let sign = usize::from(unscaled < 0);
    let point = sign + digits(number).max(scale + 1) - scale;
    let len = point + scale + 1;
    // Write all digits one place to the right, then move the integer digits back to make room for
    // the point.
    fill(&mut text[sign + 1..len], number);
    text.copy_within(sign + 1..point + 1, sign);
    text[point] = b'.';
    out.push_ascii(&text, len);
    true
}

/// Appends an ISO date of the years 0 to 9999. Returns false if it is out of range.
pub fn push_date(out: &mut impl Text, year: i64, month: i64, date: i64) -> bool {
    let pair = |number: i64| usize::try_from(number).ok().and_then(|number| PAIRS.get(number));
    let pairs = (pair(year.div_euclid(100)), pair(year.rem_euclid(100)), pair(month), pair(date));
    let (Some(&[a, b]), Some(&[c, d]), Some(&[e, f]), Some(&[g, h])) = pairs else { return false };
    let mut text = [b'-'; TEXT_MAX];
    text[..10].copy_from_slice(&[a, b, c, d, b'-', e, f, b'-', g, h]);
    out.push_ascii(&text, 10);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::decimal_text;

    fn wholes() -> impl Iterator<Item = i64> {
        let powers = (0..19).flat_map(|power| {
            let one = 10i64.pow(power);
            [one - 1, one, one + 1, 3 * (one / 2), -one, 1 - one]
        });
        powers.chain([0, i64::MAX, i64::MIN, i64::MIN + 1]).chain(-1_200..1_200)
    }

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        for number in wholes() {
            let mut text = String::new();
            push_whole(&mut text, number);
            assert_eq!(text, number.to_string());
            for digits in [1, 2, 3, 4, 19, 20] {
                let mut text = String::new();
                push_padded(&mut text, number.unsigned_abs(), digits);
                assert_eq!(text, format!("{:0digits$}", number.unsigned_abs()));
            }
        }
    }

    #[test]
    fn decimals_are_those_of_casts() {
        for number in wholes() {
            for scale in 1..=19 {
                let mut text = String::new();
                assert!(push_decimal(&mut text, number.into(), scale));
                assert_eq!(text, decimal_text(number.into(), scale as i8));
            }
        }
        assert!(!push_decimal(&mut String::new(), i128::MAX, 2));
    }

    #[test]
    fn bytes_are_those_of_strings() {
        for number in wholes() {
            let (mut text, mut bytes) = (String::from("x"), vec![b'x']);
            push_whole(&mut text, number);
            push_whole(&mut bytes, number);
            push_decimal(&mut text, number.into(), 2);
            push_decimal(&mut bytes, number.into(), 2);
            push_padded(&mut text, number.unsigned_abs(), 4);
            push_padded(&mut bytes, number.unsigned_abs(), 4);
            assert_eq!(text.as_bytes(), bytes);
        }
    }

    #[test]
    fn dates_of_four_digits() {
        let date = |year, month, day| {
            let mut text = String::new();
            push_date(&mut text, year, month, day).then_some(text)
        };
        assert_eq!(date(1994, 1, 31).as_deref(), Some("1994-01-31"));
        assert_eq!(date(7, 12, 9).as_deref(), Some("0007-12-09"));
        assert_eq!(date(9999, 12, 31).as_deref(), Some("9999-12-31"));
        assert_eq!([date(10_000, 1, 1), date(-1, 1, 1)], [None, None]);
    }
}
