//! Floats as text: the shortest digits that read back.

use std::fmt::Write;

/// The format of integral floats without an exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatStyle {
    /// `1`, as in PostgreSQL.
    Bare,
    /// `1.0`, so that readers of a file recognize a float.
    WithPoint,
}

/// Appends a double with the shortest digits that parse back to it.
pub fn write_double(text: &mut String, value: f64, style: FloatStyle) {
    let mut scientific = format!("{value:e}");
    if value.abs() >= 2f64.powi(54) && value.abs() < WIDE {
        let neighbors = [value.next_down(), value.next_up()].map(|neighbor| neighbor as i128);
        between_neighbors(&mut scientific, value as i128, neighbors, |digits| {
            format!("{value:.digits$e}")
        });
    }
    write_float(text, value, &scientific, 15, style);
}

/// Appends a single-precision float with the shortest digits that parse back to it.
pub fn write_single(text: &mut String, value: f32, style: FloatStyle) {
    let mut scientific = format!("{value:e}");
    if value.abs() >= 2f32.powi(25) && f64::from(value.abs()) < WIDE {
        let neighbors = [value.next_down(), value.next_up()].map(|neighbor| neighbor as i128);
        between_neighbors(&mut scientific, value as i128, neighbors, |digits| {
            format!("{value:.digits$e}")
        });
    }
    write_float(text, value.into(), &scientific, 6, style);
}

/// Beyond this, adjacent floats are too far apart for a tie between few digits.
const WIDE: f64 = 1e37;

/// If the shortest digits lie exactly between the value and a neighbor, adds digits, as in
/// PostgreSQL.
fn between_neighbors(
    scientific: &mut String,
    value: i128,
    neighbors: [i128; 2],
    with_digits: impl Fn(usize) -> String,
) {
    let is_tie = |shown: i128| neighbors.iter().any(|neighbor| 2 * shown == value + neighbor);
    while let Some((mantissa, exponent)) = scientific.split_once('e') {
        let digits = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let number: Option<i128> = mantissa.replace('.', "").parse().ok();
        let power: Option<u32> = exponent
            .parse::<usize>()
            .ok()
            .and_then(|power| power.checked_sub(digits)?.try_into().ok());
        let shown = number
            .zip(power)
            .and_then(|(number, power)| number.checked_mul(10i128.checked_pow(power)?));
        if !shown.is_some_and(is_tie) {
            return;
        }
        *scientific = with_digits(digits + 1);
    }
}

/// Appends a float, given its digits in `scientific` notation. As in PostgreSQL, an exponent is
/// used below -4 and from `exponents_from` on.
fn write_float(
    text: &mut String,
    value: f64,
    scientific: &str,
    exponents_from: i32,
    style: FloatStyle,
) {
    if !value.is_finite() {
        text.push_str(match (value.is_nan(), value > 0.0) {
            (true, _) => "NaN",
            (false, true) => "Infinity",
            (false, false) => "-Infinity",
        });
        return;
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..exponents_from).contains(&exponent) {
        let _ = write!(
            text,
            "{mantissa}e{}{:02}",
            if exponent < 0 { '-' } else { '+' },
            exponent.abs()
        );
        return;
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    text.push_str(sign);
    if exponent < 0 {
        let _ = write!(text, "0.{}{digits}", "0".repeat((-exponent - 1) as usize));
    } else if digits.len() <= exponent as usize + 1 {
        let point = if style == FloatStyle::WithPoint { ".0" } else { "" };
        let _ = write!(text, "{digits}{}{point}", "0".repeat(exponent as usize + 1 - digits.len()));
    } else {
        let (whole, fraction) = digits.split_at(exponent as usize + 1);
        let _ = write!(text, "{whole}.{fraction}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_short_and_read_back() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (-1234.5, "-1234.5"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (1234567890123456.0, "1.234567890123456e+15"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (1e-5, "1e-05"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            let mut found = String::new();
            write_double(&mut found, value, FloatStyle::Bare);
            assert_eq!(found, text);
        }
        let mut found = String::new();
        write_single(&mut found, 1e6, FloatStyle::Bare);
        write_single(&mut found, -99999.0, FloatStyle::WithPoint);
        assert_eq!(found, "1e+06-99999.0");
    }
}
