//! From the form of `codegen` to LLVM IR.

mod arithmetic;
mod compute;
mod function;
mod grid;
mod group;
mod hash;
mod lookup;
mod parts;
mod provider;
mod select;
mod text;
mod update;
mod value;
mod whole;
mod write;

use tessera_codegen::{Machine, StepCode};

pub(crate) use compute::{COMPUTE, lower_compute};
pub(crate) use function::{FUNCTION, linked_name, lower_function};
pub(crate) use group::{GROUP, lower_group};
pub(crate) use hash::{HASH, lower_hash};
pub(crate) use lookup::{LOOKUP, lower_lookup};
pub(crate) use provider::Provider;
pub(crate) use select::{SELECT, lower_select};
pub(crate) use text::ask_function;
pub(crate) use update::{UPDATE, lower_update};
pub(crate) use value::Built;
pub(crate) use write::{WRITE, lower_write};

/// What a function gives in the place of a number of tuples where it has none to give.
pub(crate) const NONE: u64 = u64::MAX;

/// The bits of what no value is further from being the smallest (or the largest) than: what keeps
/// the smallest of some values begins with it. Of 128 bits the lower half.
pub(crate) fn furthest(step: StepCode, machine: Machine) -> u64 {
    let is_min = step == StepCode::Min;
    match (machine, is_min) {
        (Machine::Integer { bits, signed: true }, true) => i64::MAX as u64 >> (64 - bits.min(64)),
        (Machine::Integer { bits, signed: true }, false) => {
            (i64::MIN >> (64 - bits.min(64))) as u64
        }
        (Machine::Integer { .. } | Machine::Boolean, true) => u64::MAX,
        (Machine::Integer { .. } | Machine::Boolean, false) => 0,
        (Machine::Float32, true) => f32::NAN.to_bits().into(),
        (Machine::Float32, false) => f32::NEG_INFINITY.to_bits().into(),
        (Machine::Float64, true) => f64::NAN.to_bits(),
        (Machine::Float64, false) => f64::NEG_INFINITY.to_bits(),
    }
}
