//! What both tiers agree on: bound expressions and state updates without names, functions or Arrow,
//! and the machine code that a compiler makes of them. Operators offer these forms and `jit`
//! implements [`Compiler`]. What the forms cannot say stays in the vectorized tier.

mod kernel;
mod value;

pub use kernel::{
    Compiler, Compute, ComputeCode, FieldCode, FindGroups, Function, GROUP_SLOT_BITS, GroupCode,
    HashCode, HashKeys, InputCode, InputPlace, Lookup, LookupCode, Promise, RawGroups, RawInput,
    RawTable, Select, SelectCode, StageCode, StateCode, StepCode, Update, UpdateCode,
    WRITTEN_AT_ONCE, WriteCode, WriteRows,
};
pub use value::{
    Comparison, FunctionCode, LikeCode, Machine, Op, Operation, SHORT_TEXT_BYTES, SIZE_MAX, Status,
    TextCode, ValueCode,
};
