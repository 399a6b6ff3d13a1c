//! Correctly rounded conversions between decimals and floats: to the nearest value, ties to even.

use crate::parse::decimal;

/// The highest power of ten that is exact as a double.
const EXACT_POWERS: usize = 22;

/// Integers up to this one are exact as doubles.
pub const WHOLE_MAX: u128 = 1 << 53;

/// Decimals of this many digits are exact as doubles, so dividing by a power of ten rounds only
/// once.
pub const EXACT_DIGITS: u8 = 15;

const POWERS: [f64; EXACT_POWERS + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// The power of ten of a scale, if it is exact.
pub fn exact_power(scale: i8) -> Option<f64> {
    POWERS.get(usize::try_from(scale).ok()?).copied()
}

/// The double nearest to a decimal, given as its unscaled value and scale.
pub fn decimal_to_double(value: i128, scale: i8) -> f64 {
    match exact_power(scale) {
        Some(power) if value.unsigned_abs() <= WHOLE_MAX => value as f64 / power,
        _ => quotient(value, 1, scale),
    }
}

/// The single-precision float nearest to a decimal, given as its unscaled value and scale.
pub fn decimal_to_single(value: i128, scale: i8) -> f32 {
    if value.unsigned_abs() <= 1 << 24 && (0..=10).contains(&scale) {
        return value as f32 / 10f32.powi(scale.into());
    }
    format!("{value}e{}", -i32::from(scale)).parse().unwrap_or(f32::NAN)
}

/// The double nearest to `sum / (count * 10^scale)`; `count` must not be zero.
pub fn quotient(sum: i128, count: u64, scale: i8) -> f64 {
    let power = u32::try_from(scale).ok().and_then(|scale| 10u128.checked_pow(scale));
    let divisor = power.and_then(|power| power.checked_mul(count.into())).filter(|d| *d < 1 << 127);
    let Some(divisor) = divisor else {
        return sum as f64 / count as f64 / 10f64.powi(scale.into());
    };
    let magnitude = sum.unsigned_abs();
    let nearest = match magnitude <= WHOLE_MAX && divisor <= WHOLE_MAX {
        true => magnitude as f64 / divisor as f64,
        false => long_division(magnitude, divisor),
    };
    if sum < 0 { -nearest } else { nearest }
}

/// The double nearest to a quotient, from its first 56 bits and a sticky bit.
fn long_division(dividend: u128, divisor: u128) -> f64 {
    let (mut whole, mut rest) = (dividend / divisor, dividend % divisor);
    let mut exponent = 0;
    while whole < 1 << 55 && (whole != 0 || rest != 0) {
        rest <<= 1;
        let bit = u128::from(rest >= divisor);
        rest -= bit * divisor;
        whole = whole << 1 | bit;
        exponent -= 1;
    }
    let sticky = whole | u128::from(rest != 0);
    sticky as f64 * 2f64.powi(exponent)
}

/// Converts a double to a decimal: the shortest digits that parse back to it, rounded half away
/// from zero. From 2^53 on, where all doubles are integers, its exact value.
pub fn double_to_decimal(value: f64, precision: u8, scale: i8) -> Option<i128> {
    to_decimal(value, WHOLE_MAX as f64, &format!("{value:e}"), precision, scale)
}

/// Like [`double_to_decimal`] for a single-precision float; exact from 2^24 on.
pub fn single_to_decimal(value: f32, precision: u8, scale: i8) -> Option<i128> {
    to_decimal(value.into(), 16_777_216.0, &format!("{value:e}"), precision, scale)
}

fn to_decimal(
    value: f64,
    whole_from: f64,
    shortest: &str,
    precision: u8,
    scale: i8,
) -> Option<i128> {
    if !value.is_finite() {
        return None;
    }
    if value.abs() < whole_from {
        return decimal(shortest, precision, scale).ok();
    }
    let limit = 10i128.checked_pow(precision.into())?;
    let whole = (value.abs() < 1e38).then_some(value as i128)?;
    let scaled = whole.checked_mul(10i128.checked_pow(u32::try_from(scale).ok()?)?)?;
    (scaled.abs() < limit).then_some(scaled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_become_the_nearest_double() {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..20_000 {
            let bits = next() % 126;
            let value = ((u128::from(next()) << 64 | u128::from(next())) >> (127 - bits)) as i128;
            let scale = (next() % 39) as i8;
            for value in [value, -value] {
                let text = format!("{value}e-{scale}");
                assert_eq!(decimal_to_double(value, scale), text.parse::<f64>().unwrap(), "{text}");
                assert_eq!(decimal_to_single(value, scale), text.parse::<f32>().unwrap(), "{text}");
            }
        }
        assert_eq!(decimal_to_double(9_999_999_999_999_999_999_999_999, 5), 1e20);
        assert_eq!(quotient(1, 3, 0), 1.0 / 3.0);
        assert_eq!(quotient(i128::MAX, u64::MAX, 0), 9.223372036854776e18);
    }

    #[test]
    fn doubles_become_decimals() {
        for (value, scale, expected) in [
            (0.1, 20, Some(10i128.pow(19))),
            (2.675, 2, Some(268)),
            (-2.675, 2, Some(-268)),
            (1e-30, 10, Some(0)),
            (9_007_199_254_740_993.0, 0, Some(9_007_199_254_740_992)),
            (1e37, 0, Some(9_999_999_999_999_999_538_762_658_202_121_142_272)),
            (1e38, 0, None),
            (f64::NAN, 0, None),
            (f64::INFINITY, 0, None),
        ] {
            assert_eq!(double_to_decimal(value, 38, scale), expected, "{value}");
        }
        assert_eq!(single_to_decimal(0.1, 38, 10), Some(1_000_000_000));
    }
}
