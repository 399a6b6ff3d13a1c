//! Arithmetic on times with time zone.

use tessera_codegen::Operation;
use tessera_types::{Atom, Code, Error, SqlState};

use crate::rowwise::{InputValue, OutputValue, strict, zoned};
use crate::temporal::timetz::TimeTz;
use crate::types::{Arg, ResolvedCall};

/// Resolves `time ± interval` and `date + time`, also with the operands of `+` swapped.
pub fn arithmetic(operation: Operation, args: &[Arg<'_>]) -> Option<ResolvedCall> {
    let [left, right] = args else { return None };
    let is_interval = |atom: &Atom| matches!(atom, Atom::Interval | Atom::Duration(_));
    let sign = if operation == Operation::Sub { -1 } else { 1 };
    let (time_at, atom, casts) = match (operation, left.atom, right.atom) {
        (Operation::Add | Operation::Sub, Atom::TimeTz, other) if is_interval(other) => {
            (0, Atom::TimeTz, [Atom::TimeTz, Atom::Interval])
        }
        (Operation::Add, other, Atom::TimeTz) if is_interval(other) => {
            (1, Atom::TimeTz, [Atom::Interval, Atom::TimeTz])
        }
        (Operation::Add, Atom::TimeTz, Atom::Date) => (0, zoned(), [Atom::TimeTz, Atom::Date]),
        (Operation::Add, Atom::Date, Atom::TimeTz) => (1, zoned(), [Atom::Date, Atom::TimeTz]),
        _ => return None,
    };
    Some(strict(atom, args, casts.into(), move |arguments| {
        let time = TimeTz::unpacked(arguments[time_at].whole());
        match arguments[1 - time_at] {
            InputValue::Interval(by) => Ok(OutputValue::Whole(time.after(by, sign).packed())),
            ref day => i32::try_from(day.whole())
                .ok()
                .and_then(|day| time.on(day))
                .map(OutputValue::Whole)
                .ok_or_else(out_of_range),
        }
    }))
}

fn out_of_range() -> Error {
    Error::new(Code::Overflow, format!("the result of + is out of range for type {}", zoned()))
        .with_state(SqlState::DATETIME_FIELD_OVERFLOW)
}
