//! Parses floats: decimal or hexadecimal digits, `NaN`, `Infinity`.

use crate::parse::Failure;

/// Parses a double.
///
/// # Errors
/// The text is invalid or out of range.
pub(super) fn double(text: &str) -> Result<f64, Failure> {
    match hexadecimal_float(text)? {
        Some(value) => Ok(value),
        None => in_range(text, text.parse().map_err(|_| Failure::Invalid)?),
    }
}

/// Parses a single-precision float.
///
/// # Errors
/// The text is invalid or out of range.
pub(super) fn single(text: &str) -> Result<f32, Failure> {
    let Some(wide) = hexadecimal_float(text)? else {
        let value: f32 = text.parse().map_err(|_| Failure::Invalid)?;
        return in_range(text, value.into()).map(|value| value as f32);
    };
    let value = wide as f32;
    if value.is_infinite() || (value == 0.0 && wide != 0.0) {
        Err(Failure::Range)
    } else {
        Ok(value)
    }
}

/// The maximum number of hexadecimal digits.
const HEXADECIMAL_DIGITS_MAX: usize = 32;

/// Checks that a parsed value did not overflow or underflow; removes the sign of NaN.
fn in_range(text: &str, value: f64) -> Result<f64, Failure> {
    let mantissa = || text.split(['e', 'E']).next().unwrap_or(text);
    match () {
        () if value.is_nan() => Ok(f64::NAN),
        () if value.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) => {
            Err(Failure::Range)
        }
        () if value == 0.0 && mantissa().contains(|c| ('1'..='9').contains(&c)) => {
            Err(Failure::Range)
        }
        () => Ok(value),
    }
}

/// Parses floats such as `0x1.8p3`; `None` for other formats.
///
/// # Errors
/// Digits are missing, or the value is too large or too small.
fn hexadecimal_float(text: &str) -> Result<Option<f64>, Failure> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let Some(body) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) else {
        return Ok(None);
    };
    let (digits, exponent) = match body.split_once(['p', 'P']) {
        Some((digits, exponent)) => {
            (digits, exponent.parse::<i32>().map_err(|_| Failure::Invalid)?)
        }
        None => (body, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.len() + fraction.len() == 0 || whole.len() + fraction.len() > HEXADECIMAL_DIGITS_MAX {
        return Err(Failure::Invalid);
    }
    let mantissa =
        u128::from_str_radix(&format!("{whole}{fraction}"), 16).map_err(|_| Failure::Invalid)?;
    let exponent = i64::from(exponent) - 4 * fraction.len() as i64;
    // Scale in two steps, so that no intermediate power overflows.
    let half = exponent.clamp(-2_000, 2_000) as i32 / 2;
    let value =
        mantissa as f64 * 2f64.powi(half) * 2f64.powi(exponent.clamp(-2_000, 2_000) as i32 - half);
    if value.is_infinite() || (value == 0.0 && mantissa != 0) {
        return Err(Failure::Range);
    }
    Ok(Some(if text.starts_with('-') { -value } else { value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_floats_are_read() {
        for (text, value) in [
            ("0x1p3", 8.0),
            ("-0XFFp-4", -15.9375),
            ("0x.8", 0.5),
            ("0x1.8p1", 3.0),
            ("0x1p-1074", 5e-324),
            ("0x0", 0.0),
        ] {
            assert_eq!(double(text), Ok(value), "{text}");
        }
        for text in ["0x", "0x1p", "0xg", "0x1.2.3", "1p3"] {
            assert_eq!(double(text), Err(Failure::Invalid), "{text}");
        }
        assert_eq!(
            (double("0x1p2000"), single("0x1p200")),
            (Err(Failure::Range), Err(Failure::Range))
        );
    }
}
