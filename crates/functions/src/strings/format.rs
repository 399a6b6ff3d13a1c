//! PostgreSQL's `format(text, values…)`.

use tessera_types::{Atom, Error, Result, SqlState};

use super::quote::{ident, literal};
use tessera_values::rowwise::{InputValue, OutputValue, fault, lenient};
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    if !args.first().is_some_and(|format| matches!(format.atom, Atom::String | Atom::Null)) {
        return Err(wrong_arguments(name, args, "it takes a format and values"));
    }
    let casts = vec![Atom::String; args.len()];
    Ok(lenient(Atom::String, args, casts, |arguments| match arguments {
        [InputValue::Null, ..] | [] => Ok(OutputValue::Null),
        [format, values @ ..] => formatted(format.text(), values).map(OutputValue::Text),
    }))
}

fn wrong(message: impl Into<String>) -> Error {
    fault(message, SqlState::INVALID_PARAMETER_VALUE)
}

fn formatted(format: &str, values: &[InputValue<'_>]) -> Result<String> {
    let mut out = String::with_capacity(format.len() + 32);
    let mut rest = format.chars().peekable();
    let mut next = 0;
    while let Some(character) = rest.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        if rest.peek() == Some(&'%') {
            rest.next();
            out.push('%');
            continue;
        }
        let ended = || wrong("unterminated format() type specifier");
        let digits =
            |rest: &mut std::iter::Peekable<std::str::Chars<'_>>| -> Result<Option<usize>> {
                let mut number = None;
                while let Some(digit) = rest.peek().and_then(|c| c.to_digit(10)) {
                    let larger = number.unwrap_or(0usize) * 10 + digit as usize;
                    if larger > 1 << 30 {
                        return Err(fault(
                            "number is out of range",
                            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                        ));
                    }
                    number = Some(larger);
                    rest.next();
                }
                Ok(number)
            };
        let value_at = |index: usize| -> Result<InputValue<'_>> {
            values.get(index).copied().ok_or_else(|| wrong("too few arguments for format()"))
        };
        let (mut position, mut width, mut left) = (None, None, false);
        let number = digits(&mut rest)?;
        if let Some(number) = number {
            if rest.peek() == Some(&'$') {
                rest.next();
                position = Some(number);
            } else {
                width = Some(number as i64);
            }
        }
        if width.is_none() {
            if rest.peek() == Some(&'-') {
                rest.next();
                left = true;
            }
            if rest.peek() == Some(&'*') {
                rest.next();
                let place = match digits(&mut rest)? {
                    // The formatted value is the argument after the width argument.
                    Some(place) if rest.next() == Some('$') => {
                        next = place;
                        place
                    }
                    Some(_) => return Err(wrong("width argument position must be ended by \"$\"")),
                    None => {
                        next += 1;
                        next
                    }
                };
                if place == 0 {
                    return Err(wrong(
                        "format specifies argument 0, but arguments are numbered from 1",
                    ));
                }
                width = match value_at(place - 1)? {
                    InputValue::Null => None,
                    value => Some(value.text().parse::<i64>().map_err(|_| {
                        fault(
                            format!("invalid input for type int32: '{}'", value.text()),
                            SqlState::INVALID_TEXT_REPRESENTATION,
                        )
                    })?),
                };
            } else if let Some(number) = digits(&mut rest)? {
                width = Some(number as i64);
            }
        }
        if let Some(width) = &mut width
            && *width < 0
        {
            left = true;
            *width = width.saturating_neg();
        }
        let kind = rest.next().ok_or_else(ended)?;
        if !matches!(kind, 's' | 'I' | 'L') {
            return Err(wrong(format!("unrecognized format() type specifier \"{kind}\"")));
        }
        let index = match position {
            Some(0) => {
                return Err(wrong(
                    "format specifies argument 0, but arguments are numbered from 1",
                ));
            }
            Some(position) => position,
            None => next + 1,
        };
        next = index;
        let value = value_at(index - 1)?;
        let text = match (kind, value) {
            ('L', InputValue::Null) => "NULL".to_string(),
            ('I', InputValue::Null) => {
                return Err(fault(
                    "null values cannot be formatted as an SQL identifier",
                    SqlState::NULL_VALUE_NOT_ALLOWED,
                ));
            }
            (_, InputValue::Null) => String::new(),
            ('I', value) => ident(value.text()),
            ('L', value) => literal(value.text()),
            (_, value) => value.text().to_string(),
        };
        let missing =
            width.unwrap_or(0).saturating_sub(text.chars().count() as i64).clamp(0, 1 << 30)
                as usize;
        let blanks = " ".repeat(missing);
        if left {
            out.push_str(&text);
            out.push_str(&blanks);
        } else {
            out.push_str(&blanks);
            out.push_str(&text);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_postgresqls() {
        let of = |format, values: &[InputValue<'_>]| formatted(format, values).ok();
        let (a, b) = (InputValue::Text("a"), InputValue::Text("b c"));
        assert_eq!(of("%s %I %L %%", &[a, b, b]).as_deref(), Some("a \"b c\" 'b c' %"));
        assert_eq!(of("%2$s %s|%1$s", &[a, b, InputValue::Text("d")]).as_deref(), Some("b c d|a"));
        assert_eq!(
            of("[%5s][%-5s][%*s]", &[a, a, InputValue::Text("3"), a]).as_deref(),
            Some("[    a][a    ][  a]")
        );
        assert_eq!(of("%s", &[]), None);
        assert_eq!(of("%x", &[a]), None);
        assert_eq!(of("%", &[a]), None);
    }
}
