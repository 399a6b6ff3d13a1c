//! DuckDB's texts that show a number: sizes with units, and bars.

use tessera_types::{Atom, Result, SqlState};

use tessera_values::rowwise::{OutputValue, fault, signature, strict};
use tessera_values::types::{Arg, ResolvedCall};

/// The width of a bar, in characters, if none is given.
const BAR_WIDTH: f64 = 80.0;
/// The largest width of a bar.
const BAR_WIDTH_MAX: f64 = 1000.0;
/// The last character of a bar, by the number of its eighths.
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// `format_bytes(n)`, also `formatreadablesize`, in units of 1024; `formatreadabledecimalsize` in
/// units of 1000. Digits after the first one behind the point are cut off.
pub(super) fn of_bytes(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Int64])?;
    let (unit, names) = match name {
        "formatreadabledecimalsize" => (1000, ["kB", "MB", "GB", "TB", "PB"]),
        _ => (1024, ["KiB", "MiB", "GiB", "TiB", "PiB"]),
    };
    Ok(strict(Atom::String, args, casts, move |arguments| {
        let number = arguments[0].whole();
        let sign = if number < 0 { "-" } else { "" };
        let (mut whole, mut rest, mut name) = (number.unsigned_abs(), 0, None);
        for next in names {
            if whole < unit {
                break;
            }
            (whole, rest, name) = (whole / unit, whole % unit, Some(next));
        }
        Ok(OutputValue::Text(match name {
            None if whole == 1 => format!("{sign}1 byte"),
            None => format!("{sign}{whole} bytes"),
            Some(name) => format!("{sign}{whole}.{} {name}", rest * 10 / unit),
        }))
    }))
}

/// `bar(x, least, greatest [, width])`: a bar whose length shows where `x` is between two numbers.
pub(super) fn bar(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[const { Atom::Float64 }; 4][..args.len().clamp(3, 4)])?;
    Ok(strict(Atom::String, args, casts, |arguments| {
        let [x, least, greatest] = [0, 1, 2].map(|at| arguments[at].double());
        let width = arguments.get(3).map_or(BAR_WIDTH, |width| width.double());
        if !(1.0..=BAR_WIDTH_MAX).contains(&width) {
            let message = format!("the width of a bar must be between 1 and 1000, not {width}");
            return Err(fault(message, SqlState::INVALID_PARAMETER_VALUE));
        }
        let length = match x {
            _ if x.is_nan() || least.is_nan() || greatest.is_nan() || x <= least => 0.0,
            _ if x >= greatest => width,
            _ => width * (x - least) / (greatest - least),
        };
        if !length.is_finite() {
            let message =
                format!("a bar from {least} to {greatest} is too long; give other bounds");
            return Err(fault(message, SqlState::INVALID_PARAMETER_VALUE));
        }
        let eighths = (length * 8.0) as usize;
        let mut bar = "█".repeat(eighths / 8);
        let last = eighths % 8;
        bar.extend((last > 0).then(|| EIGHTHS[last]));
        let used = eighths.div_ceil(8);
        bar.extend(std::iter::repeat_n(' ', (width as usize).saturating_sub(used)));
        Ok(OutputValue::Text(bar))
    }))
}

#[cfg(test)]
mod tests {
    use tessera_plan::{Expr, Scalar};
    use tessera_types::Atom;

    use crate::testing::{call, constant};

    fn float(number: f64) -> Expr {
        Expr::Constant(Scalar::Float(number), Atom::Float64)
    }

    fn text(function: &str, args: Vec<Expr>) -> String {
        match constant(&call(function, args)) {
            Ok(Scalar::String(text)) => text.to_string(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn sizes_have_units() {
        for (number, binary, decimal) in [
            (0, "0 bytes", "0 bytes"),
            (1, "1 byte", "1 byte"),
            (-1, "-1 byte", "-1 byte"),
            (1023, "1023 bytes", "1.0 kB"),
            (-5000, "-4.8 KiB", "-5.0 kB"),
            (16_000, "15.6 KiB", "16.0 kB"),
            (1_048_575, "1023.9 KiB", "1.0 MB"),
            (i64::MAX, "8191.9 PiB", "9223.3 PB"),
            (i64::MIN, "-8192.0 PiB", "-9223.3 PB"),
        ] {
            for (function, expected) in [
                ("format_bytes", binary),
                ("formatreadablesize", binary),
                ("formatreadabledecimalsize", decimal),
            ] {
                assert_eq!(text(function, vec![Expr::int64(number)]), expected);
            }
        }
    }

    #[test]
    fn bars() {
        let bar =
            |numbers: &[f64]| text("bar", numbers.iter().map(|number| float(*number)).collect());
        assert_eq!(bar(&[5.0, 0.0, 20.0, 10.0]), "██▌       ");
        assert_eq!(bar(&[3.3, 0.0, 10.0, 7.0]), "██▎    ");
        assert_eq!(bar(&[25.0, 0.0, 20.0, 2.7]), "██▋");
        assert_eq!(bar(&[f64::NAN, 0.0, 20.0, 3.0]), "   ");
        assert_eq!(bar(&[20.0, 0.0, 20.0]).chars().count(), 80);
        for width in [0.5, 1001.0, f64::NAN] {
            assert!(bar(&[1.0, 0.0, 2.0, width]).contains("between 1 and 1000"));
        }
    }
}
