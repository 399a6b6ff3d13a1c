//! DuckDB's `printf(format, values…)`, with the conversions of C.

use tessera_types::{Atom, Error, Result, SqlState};

use tessera_values::rowwise::{InputValue, OutputValue, fault, strict};
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

/// The greatest width and number of digits.
const WIDTH_MAX: usize = 1 << 20;

pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    if !args.first().is_some_and(|format| matches!(format.atom, Atom::String | Atom::Null)) {
        return Err(wrong_arguments(name, args, "it takes a format and values"));
    }
    let mut casts = vec![Atom::String];
    casts.extend(args[1..].iter().map(|arg| match arg.atom {
        Atom::Boolean => Atom::Boolean,
        atom if atom.is_integer() && *atom != Atom::UInt64 => Atom::Int64,
        atom if atom.is_numeric() => Atom::Float64,
        _ => Atom::String,
    }));
    Ok(strict(Atom::String, args, casts, |arguments| match arguments {
        [format, values @ ..] => printed(format.text(), values).map(OutputValue::Text),
        [] => Ok(OutputValue::Null),
    }))
}

fn wrong(message: impl Into<String>) -> Error {
    fault(message, SqlState::INVALID_PARAMETER_VALUE)
}

/// The flags, width and precision of a conversion.
#[derive(Debug, Default)]
struct Form {
    left: bool,
    plus: bool,
    blank: bool,
    zeros: bool,
    alternate: bool,
    thousands: Option<char>,
    width: usize,
    digits: Option<usize>,
}

fn printed(format: &str, values: &[InputValue<'_>]) -> Result<String> {
    let mut out = String::with_capacity(format.len() + 32);
    let mut values = values.iter();
    let mut rest = format.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        if rest.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let mut form = Form::default();
        while let Some(flag) = rest.peek().copied() {
            match flag {
                '-' => form.left = true,
                '+' => form.plus = true,
                ' ' => form.blank = true,
                '0' => form.zeros = true,
                '#' => form.alternate = true,
                ',' | '\'' | '_' => form.thousands = Some(flag),
                _ => break,
            }
            rest.next();
        }
        let mut number = || -> Result<Option<usize>> {
            let mut number = None;
            while let Some(digit) = rest.peek().and_then(|c| c.to_digit(10)) {
                rest.next();
                let larger = number.unwrap_or(0) * 10 + digit as usize;
                if larger > WIDTH_MAX {
                    return Err(wrong(format!("a width in printf is above {WIDTH_MAX}")));
                }
                number = Some(larger);
            }
            Ok(number)
        };
        form.width = number()?.unwrap_or(0);
        if rest.next_if_eq(&'.').is_some() {
            let mut digits = 0;
            while let Some(digit) = rest.peek().and_then(|c| c.to_digit(10)) {
                rest.next();
                digits = digits * 10 + digit as usize;
                if digits > WIDTH_MAX {
                    return Err(wrong(format!("a precision in printf is above {WIDTH_MAX}")));
                }
            }
            form.digits = Some(digits);
        }
        // C's names of integer sizes mean nothing here.
        while rest.next_if(|c| matches!(c, 'l' | 'h' | 'q' | 'j' | 'z' | 't')).is_some() {}
        let kind =
            rest.next().ok_or_else(|| wrong("the format of printf ends inside a conversion"))?;
        let value =
            values.next().ok_or_else(|| wrong("printf has fewer values than its format"))?;
        out.push_str(&converted(&form, kind, value)?);
    }
    Ok(out)
}

/// A value in the form of one conversion.
fn converted(form: &Form, kind: char, value: &InputValue<'_>) -> Result<String> {
    let whole = match value {
        InputValue::Boolean(value) => Some(i64::from(*value)),
        InputValue::Whole(value) => Some(*value),
        _ => None,
    };
    let (sign, body) = match (kind, value, whole) {
        ('s', InputValue::Text(text), _) => {
            let cut: String = match form.digits {
                Some(count) => text.chars().take(count).collect(),
                None => text.to_string(),
            };
            return Ok(padded(form, "", cut, false));
        }
        ('s', InputValue::Boolean(value), _) => {
            return Ok(padded(form, "", value.to_string(), false));
        }
        ('c', _, Some(number)) => {
            let character = u32::try_from(number).ok().and_then(char::from_u32);
            let character = character
                .ok_or_else(|| wrong(format!("{number} is not the number of a character")))?;
            return Ok(padded(form, "", character.to_string(), false));
        }
        ('d' | 'i' | 'u', _, Some(number)) => {
            (sign_of(form, number < 0), number.unsigned_abs().to_string())
        }
        // Negative numbers keep their sign, as in DuckDB.
        ('x', _, Some(number)) => {
            (sign_of(form, number < 0), format!("{:x}", number.unsigned_abs()))
        }
        ('X', _, Some(number)) => {
            (sign_of(form, number < 0), format!("{:X}", number.unsigned_abs()))
        }
        ('o', _, Some(number)) => {
            (sign_of(form, number < 0), format!("{:o}", number.unsigned_abs()))
        }
        ('f' | 'F' | 'e' | 'E' | 'g' | 'G', InputValue::Double(number), _) => {
            let sign = sign_of(form, number.is_sign_negative() && !number.is_nan());
            if !number.is_finite() {
                let body = if number.is_nan() { "nan" } else { "inf" };
                return Ok(padded(form, sign, body.to_string(), false));
            }
            (sign, of_double(form, kind, number.abs()))
        }
        _ => {
            let what = match value {
                InputValue::Double(_) => "a number with a fraction",
                InputValue::Text(_) => "a text",
                _ => "a whole number",
            };
            return Err(wrong(format!("printf cannot write {what} as %{kind}")));
        }
    };
    let body = match form.thousands {
        Some(mark) if !matches!(kind, 'x' | 'X' | 'o') => grouped(&body, mark),
        _ => body,
    };
    let prefix = match (form.alternate, kind) {
        (true, 'x') => format!("{sign}0x"),
        (true, 'X') => format!("{sign}0X"),
        (true, 'o') => format!("{sign}0"),
        _ => sign.to_string(),
    };
    Ok(padded(form, &prefix, body, form.zeros))
}

fn sign_of(form: &Form, negative: bool) -> &'static str {
    match (negative, form.plus, form.blank) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    }
}

/// Pads to the width: behind, in front, or with zeros between the sign and the digits.
fn padded(form: &Form, prefix: &str, body: String, zeros: bool) -> String {
    let missing = form.width.saturating_sub(prefix.len() + body.chars().count());
    match (form.left, zeros) {
        (true, _) => format!("{prefix}{body}{}", " ".repeat(missing)),
        (_, true) => format!("{prefix}{}{body}", "0".repeat(missing)),
        _ => format!("{}{prefix}{body}", " ".repeat(missing)),
    }
}

/// Marks thousands before the decimal point.
fn grouped(digits: &str, mark: char) -> String {
    let end = digits.find(['.', 'e', 'E']).unwrap_or(digits.len());
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits[..end].chars().enumerate() {
        if at > 0 && (end - at).is_multiple_of(3) {
            out.push(mark);
        }
        out.push(digit);
    }
    out.push_str(&digits[end..]);
    out
}

/// A finite number that is not negative.
fn of_double(form: &Form, kind: char, number: f64) -> String {
    let digits = form.digits.unwrap_or(6);
    let text = match kind {
        'f' | 'F' => format!("{number:.digits$}"),
        'e' | 'E' => with_exponent(number, digits),
        _ => {
            let significant = digits.max(1);
            let scientific = with_exponent(number, significant - 1);
            let exponent: i64 = scientific
                .split_once('e')
                .and_then(|(_, exponent)| exponent.parse().ok())
                .unwrap_or_default();
            if exponent < -4 || exponent >= significant as i64 {
                let (body, tail) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
                format!("{}e{tail}", without_zeros(body, form.alternate))
            } else {
                let places = (significant as i64 - 1 - exponent).max(0) as usize;
                without_zeros(&format!("{number:.places$}"), form.alternate).to_string()
            }
        }
    };
    if kind.is_uppercase() { text.to_uppercase() } else { text }
}

/// `1.500000e+00`.
fn with_exponent(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$e}");
    let (body, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i64 = exponent.parse().unwrap_or_default();
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{body}e{sign}{:02}", exponent.unsigned_abs())
}

/// Cuts zeros at the end of a fraction off.
fn without_zeros(text: &str, keep: bool) -> &str {
    match text.contains('.') && !keep {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_are_those_of_c() {
        let whole = |format: &str, value| printed(format, &[InputValue::Whole(value)]).ok();
        let double = |format: &str, value| printed(format, &[InputValue::Double(value)]).ok();
        for (format, value, expected) in [
            ("[%5d]", 7, "[    7]"),
            ("[%-5d]", 7, "[7    ]"),
            ("%05d", -7, "-0007"),
            ("%+d", 7, "+7"),
            ("%,d", 1_234_567, "1,234,567"),
            ("%x %%", 255, "ff %"),
            ("%#X", 255, "0XFF"),
            ("%c", 65, "A"),
            ("%ld", i64::MIN, "-9223372036854775808"),
        ] {
            assert_eq!(whole(format, value).as_deref(), Some(expected), "{format}");
        }
        for (format, value, expected) in [
            ("%.2f", 1.236, "1.24"),
            ("%e", 1.5, "1.500000e+00"),
            ("%.0e", 12345.0, "1e+04"),
            ("%g", 0.1, "0.1"),
            ("%g", 1e-5, "1e-05"),
            ("%g", 1e6, "1e+06"),
            ("%g", 100_000.0, "100000"),
            ("%G", 1e-10, "1E-10"),
            ("%f", f64::INFINITY, "inf"),
            ("%,.1f", 1_234.56, "1,234.6"),
        ] {
            assert_eq!(double(format, value).as_deref(), Some(expected), "{format}");
        }
        assert_eq!(whole("%s", 1), None);
        assert_eq!(double("%d", 1.0), None);
        assert_eq!(whole("%d %d", 1), None);
        assert_eq!(whole("%", 1), None);
        assert_eq!(whole("%9999999d", 1), None);
    }
}
