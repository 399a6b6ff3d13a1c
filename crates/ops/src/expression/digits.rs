//! Whole numbers and decimals as text, without the formatting of the standard library: text formats write many of them.

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

/// The most digits of a `u64`.
const DIGITS_MAX: usize = 20;

/// Appends a number, with zeros before it up to so many digits (20 at most).
pub(crate) fn push_padded(out: &mut String, mut number: u64, digits_min: usize) {
    let mut text = [b'0'; DIGITS_MAX];
    let mut at = DIGITS_MAX;
    while number >= 100 {
        at -= 2;
        text[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    // Two digits, or the only one.
    at -= 2;
    text[at..at + 2].copy_from_slice(&PAIRS[number as usize]);
    at += usize::from(number < 10);
    let start = at.min(DIGITS_MAX - digits_min.min(DIGITS_MAX));
    out.push_str(std::str::from_utf8(&text[start..]).unwrap_or_default());
}

/// Appends a number.
pub(crate) fn push_whole(out: &mut String, number: i64) {
    if number < 0 {
        out.push('-');
    }
    push_padded(out, number.unsigned_abs(), 1);
}

/// Appends a decimal with so many digits behind the point (1 to 19) from its unscaled value; whether it could.
pub(crate) fn push_decimal(out: &mut String, unscaled: i128, scale: u32) -> bool {
    let Ok(number) = u64::try_from(unscaled.unsigned_abs()) else { return false };
    let Some(one) = 10u64.checked_pow(scale) else { return false };
    if unscaled < 0 {
        out.push('-');
    }
    push_padded(out, number / one, 1);
    out.push('.');
    push_padded(out, number % one, scale as usize);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::format::decimal_text;

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
}
