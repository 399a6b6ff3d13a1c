//! `lpad` and `rpad`.

use std::sync::Arc;

use arrow::array::ArrayRef;

use tessera_context::interrupt::Every;
use tessera_types::{Atom, Result, SqlState};

use crate::growth::reserve_for_result;
use tessera_values::kernel::{Argument, Kernel};
use tessera_values::rowwise::{OutputValue, fault, signature, strict};
use tessera_values::types::{Arg, ResolvedCall};

/// PostgreSQL's values are smaller than 1 GB, and a character takes up to four bytes.
pub(crate) const CHARACTERS_MAX: i64 = (0x3fff_ffff - 4) / 4;

/// `lpad(text, length [, fill])` and `rpad`: pads a text with `fill`, or cuts it, to `length`
/// characters. A length below 1 gives the empty text.
pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let mut wanted = vec![Atom::String, Atom::Int64];
    wanted.extend((args.len() > 2).then_some(Atom::String));
    let casts = signature(name, args, &wanted)?;
    let (name, is_left) = if name == "lpad" { ("lpad", true) } else { ("rpad", false) };
    let resolved = strict(Atom::String, args, casts, move |arguments| {
        let (text, length) = (arguments[0].text(), arguments[1].whole().max(0));
        if length > CHARACTERS_MAX {
            let message = format!(
                "{name}: the length {length} is too large; expected at most {CHARACTERS_MAX}"
            );
            return Err(fault(message, SqlState::PROGRAM_LIMIT_EXCEEDED));
        }
        let fill = arguments.get(2).map_or(" ", |fill| fill.text());
        Ok(OutputValue::Text(padded(text, length as usize, fill, is_left)))
    });
    Ok(reserving(name, resolved))
}

/// Makes a call reserve memory for results that are far longer than its arguments.
pub(crate) fn reserving(name: &'static str, call: ResolvedCall) -> ResolvedCall {
    ResolvedCall { kernel: Arc::new(ReservingKernel { name, inner: call.kernel }), ..call }
}

fn padded(text: &str, length: usize, fill: &str, is_left: bool) -> String {
    if let Some((end, _)) = text.char_indices().nth(length) {
        return text[..end].to_string();
    }
    let missing = length - text.chars().count();
    let every = Every::default();
    let padding: String = fill.chars().cycle().take(missing).inspect(|_| every.pass()).collect();
    if is_left { padding + text } else { text.to_string() + &padding }
}

/// Wraps a kernel with results far longer than its arguments: reserves memory before the call.
#[derive(Debug)]
struct ReservingKernel {
    name: &'static str,
    inner: Arc<dyn Kernel>,
}

impl Kernel for ReservingKernel {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let _reservation = reserve_for_result(self.name, args, rows)?;
        self.inner.call(args, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::padded;

    #[test]
    fn texts_are_cut_or_filled() {
        assert_eq!(padded("grün", 6, "äb", true), "äbgrün");
        assert_eq!(padded("grün", 7, "äb", false), "grünäbä");
        assert_eq!(padded("grün", 3, "x", true), "grü");
        assert_eq!(padded("grün", 4, "x", false), "grün");
        assert_eq!(padded("grün", 0, "x", false), "");
        assert_eq!(padded("a", 5, "", true), "a");
    }
}
