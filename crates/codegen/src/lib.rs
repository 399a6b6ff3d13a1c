//! The intermediate representation (IR) that the vectorized and the compiled tier share.
//!
//! Bound expressions and state updates, free of names, library functions and Arrow arrays, and
//! traits for the machine code that a compiler makes of them. Operators build the IR; the `jit`
//! crate implements [`Compiler`]. Work that the IR cannot express runs in the vectorized tier.
//!
//! The crate runs no unsafe code, but the traits of the module `kernel` declare `unsafe` methods.

mod kernel;
mod tier;
mod value;

pub use kernel::{
    Compiler, Compute, ComputeCode, FieldCode, FindGroups, Function, GROUP_SLOT_BITS, GroupCode,
    HashCode, HashKeys, InputCode, InputPlace, Lookup, LookupCode, Promise, RawGroups, RawInput,
    RawTable, Select, SelectCode, StageCode, StateCode, StepCode, UNCHECKED_MATCHES, Update,
    UpdateCode, WriteCode, WriteRows,
};
pub use tier::Tier;
pub use value::{
    Comparison, FunctionCode, LikeCode, MAX_CODE_SIZE, MachineType, Op, Operation,
    SHORT_TEXT_BYTES, Status, TextCode, ValueCode,
};
