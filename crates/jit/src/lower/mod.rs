//! Lowers the IR of `codegen` to LLVM IR.

mod arithmetic;
mod compute;
mod emitter;
mod function;
mod grid;
mod group;
mod hash;
mod lookup;
mod provider;
mod registers;
mod select;
mod text;
mod update;
mod value;
mod write;

use tessera_codegen::{MachineType, StepCode};

pub(crate) use compute::{COMPUTE, lower_compute};
pub(crate) use function::{FUNCTION, linked_name, lower_function};
pub(crate) use group::{GROUP, lower_group};
pub(crate) use hash::{HASH, lower_hash};
pub(crate) use lookup::{LOOKUP, lower_lookup};
pub(crate) use provider::Provider;
pub(crate) use select::{SELECT, lower_select};
pub(crate) use text::poll_function;
pub(crate) use update::{UPDATE, lower_update};
pub(crate) use value::Built;
pub(crate) use write::{WRITE, lower_write};

/// The return value of a function that has no count of tuples to return.
pub(crate) const NONE: u64 = u64::MAX;

/// Returns the identity of min or max, which every value replaces, as bits; for 128-bit types the
/// lower half.
pub(crate) fn identity(step: StepCode, machine: MachineType) -> u64 {
    let is_min = step == StepCode::Min;
    match (machine, is_min) {
        (MachineType::Integer { bits, signed: true }, true) => {
            i64::MAX as u64 >> (64 - bits.min(64))
        }
        (MachineType::Integer { bits, signed: true }, false) => {
            (i64::MIN >> (64 - bits.min(64))) as u64
        }
        (MachineType::Integer { .. } | MachineType::Boolean, true) => u64::MAX,
        (MachineType::Integer { .. } | MachineType::Boolean, false) => 0,
        (MachineType::Float32, true) => f32::NAN.to_bits().into(),
        (MachineType::Float32, false) => f32::NEG_INFINITY.to_bits().into(),
        (MachineType::Float64, true) => f64::NAN.to_bits(),
        (MachineType::Float64, false) => f64::NEG_INFINITY.to_bits(),
    }
}
