//! Kernels: loops over tuples that a compiler turns into machine code. Each has its IR (`…Code`)
//! and a trait to call the compiled code.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use tessera_types::Result;

use crate::value::{FunctionCode, MachineType, ValueCode};

/// A compiled user-defined function that runs over columns.
pub trait Function: Debug + Send + Sync {
    /// Calls the function for `rows` tuples. Writes the values contiguously (booleans as bytes) and
    /// one [`crate::Status`] number per tuple.
    ///
    /// # Safety
    /// `inputs` matches the arguments in number and type; each has a value and a validity bit for
    /// every tuple. `values` and `statuses` have room for `rows` entries; 16-byte values are
    /// aligned to 8 bytes.
    ///
    /// # Errors
    /// The query was cancelled, or the function recurses too deeply.
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        rows: usize,
        values: *mut u8,
        statuses: *mut u32,
    ) -> Result<()>;
}

/// An input of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InputCode {
    /// The type of the values.
    pub machine: MachineType,
    /// Whether a value may be NULL.
    pub nullable: bool,
    /// The memory layout of the values.
    pub place: InputPlace,
}

impl InputCode {
    /// Returns an input that is stored in a column.
    pub fn column(machine: MachineType, nullable: bool) -> InputCode {
        InputCode { machine, nullable, place: InputPlace::Column }
    }
}

/// The memory layout of an input: how the value of a position is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InputPlace {
    /// In a column, at the position.
    Column,
    /// In a column, at the 32-bit index that the input's list holds for the position.
    Indexed,
    /// In a column of one value that holds for all positions.
    Constant,
    /// A string in a column of views (16 bytes), at the position; the input's list holds the
    /// addresses of the data buffers.
    Views,
    /// In a row. The row number is the position, or the entry of the input's list for it.
    Row {
        /// Bytes from one row to the next.
        stride: u32,
        /// Width of the list's entries: 32 or 64 bits, or 0 without a list.
        list_bits: u8,
        /// Bit of this field in its validity byte, where it may be NULL.
        validity_bit: u8,
    },
}

/// The update that a tuple makes to an aggregate state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepCode {
    /// Adds 1 unless an argument is NULL (1 word).
    Count,
    /// Adds an integer to a 128-bit sum and counts it (3 words).
    ExactSum,
    /// Adds a float to a sum and counts it (2 words).
    FloatSum,
    /// Keeps the minimum: its bits, widened to 1 or 2 words, and a flag that there is one.
    Min,
    /// Keeps the maximum, stored like [`StepCode::Min`].
    Max,
}

/// An aggregate state and its update.
#[derive(Debug, Clone, PartialEq)]
pub struct StateCode {
    /// Offset of the state in its group's record, in words.
    pub offset: usize,
    /// The update.
    pub step: StepCode,
    /// The arguments; a tuple with a NULL argument is skipped.
    pub args: Vec<ValueCode>,
}

/// Aggregate states that share a FILTER condition.
#[derive(Debug, Clone, PartialEq)]
pub struct StageCode {
    /// The condition that selects tuples; absent, all tuples are used.
    pub filter: Option<ValueCode>,
    /// The states.
    pub states: Vec<StateCode>,
}

/// The update kernel of aggregate states (`docs/reference/layout.md`).
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateCode {
    /// The inputs.
    pub inputs: Vec<InputCode>,
    /// Shared subexpressions; each may use the ones before it.
    pub shared: Vec<ValueCode>,
    /// The updates.
    pub stages: Vec<StageCode>,
    /// Words per record.
    pub stride: usize,
    /// Whether each tuple names its group; otherwise all tuples belong to one group.
    pub grouped: bool,
}

impl UpdateCode {
    /// Calls `visit` on each expression of the kernel.
    pub fn each_value<'a>(&'a self, visit: impl FnMut(&'a ValueCode)) {
        let filters = self.stages.iter().filter_map(|stage| stage.filter.as_ref());
        let states = self.stages.iter().flat_map(|stage| &stage.states);
        filters.chain(&self.shared).chain(states.flat_map(|state| &state.args)).for_each(visit);
    }

    /// Calls `visit` on each user-defined function of the kernel.
    pub fn each_function<'a>(&'a self, mut visit: impl FnMut(&'a Arc<FunctionCode>)) {
        self.each_value(|value| value.each_function(&mut visit));
    }
}

/// The filter kernel: a predicate over the tuples of a chunk.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectCode {
    /// The inputs.
    pub inputs: Vec<InputCode>,
    /// The predicate.
    pub predicate: ValueCode,
}

/// The map kernel: one value per tuple of a chunk.
#[derive(Debug, Clone, PartialEq)]
pub struct ComputeCode {
    /// The inputs.
    pub inputs: Vec<InputCode>,
    /// The expression.
    pub value: ValueCode,
}

/// A compiled [`ComputeCode`].
pub trait Compute: Debug + Send + Sync {
    /// Writes the values of `rows` tuples contiguously (booleans as bytes) and, if the value may be
    /// NULL, one validity byte per tuple. Returns `false` if some tuple may raise an error.
    ///
    /// # Safety
    /// `inputs` matches the code; each has a value and a validity bit for every tuple. `values` has
    /// room for `rows` values, aligned to their width but at most to 8 bytes, `valid` for `rows`
    /// bytes.
    unsafe fn run(&self, inputs: &[RawInput], rows: usize, values: *mut u8, valid: *mut u8)
    -> bool;
}

/// The memory of an input: values and validity in Arrow's layout, or in rows
/// (`docs/reference/layout.md`).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawInput {
    /// The first value (for booleans the byte that holds it); in rows, the field of the first row.
    pub values: *const u8,
    /// The byte with the first tuple's validity bit; in rows, that of the first row.
    pub validity: *const u8,
    /// Offset of the first boolean, in bits.
    pub values_offset: u64,
    /// Offset of the first validity bit, in bits.
    pub validity_offset: u64,
    /// The list of indexes, row numbers or buffer addresses, if the layout has one.
    pub list: *const u8,
}

impl RawInput {
    /// Returns the memory of a column; `offsets` are the bits before its first value and validity
    /// bit.
    pub fn column(values: *const u8, validity: *const u8, offsets: (u64, u64)) -> RawInput {
        let (values_offset, validity_offset) = offsets;
        RawInput { values, validity, values_offset, validity_offset, list: std::ptr::null() }
    }

    /// Size in 64-bit words.
    pub const WORDS: usize = size_of::<RawInput>() / 8;
}

/// The probe kernel of a join table (`docs/reference/layout.md`) with integer keys of at most 64
/// bits that are never NULL in the table.
#[derive(Debug, Clone, PartialEq)]
pub struct LookupCode {
    /// The probe keys; NULL matches nothing.
    pub keys: Vec<InputCode>,
    /// Offsets of the build keys in the table's rows, in bytes.
    pub offsets: Vec<usize>,
    /// Bytes from one row to the next.
    pub stride: usize,
}

/// The kernel writes up to this many matches of a tuple without a check of the remaining room.
pub const UNCHECKED_MATCHES: usize = 4;

/// The memory of a join table, and the room for its matches.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawTable {
    /// The directory.
    pub entries: *const u64,
    /// The right shift that turns a hash into a directory slot.
    pub shift: u64,
    /// The hash tags.
    pub tags: *const u16,
    /// The first row.
    pub rows: *const u8,
    /// The maximum number of matches; the buffers have room for [`UNCHECKED_MATCHES`] more.
    pub room: u64,
}

/// A compiled [`LookupCode`].
pub trait Lookup: Debug + Send + Sync {
    /// Probes the table with the `rows` tuples at `positions`. For each match, writes the tuple's
    /// index to `tuples` and the row number to `found`, ordered by tuple, then by the table's
    /// order. Returns the number of matches; `None` if they might not fit `table.room`.
    ///
    /// # Safety
    /// `inputs` matches the code; each has a value and a validity bit at every position. A null
    /// `positions` stands for 0, 1, 2, …. The table has the code's layout and is not modified
    /// during the call. `tuples` and `found` have room for `table.room` + [`UNCHECKED_MATCHES`]
    /// entries.
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        table: &RawTable,
        tuples: *mut u32,
        found: *mut u64,
    ) -> Option<usize>;
}

/// The hash kernel: hashes of key columns, as defined by `tessera_vector::hash`.
#[derive(Debug, Clone, PartialEq)]
pub struct HashCode {
    /// The keys, in hash order.
    pub keys: Vec<InputCode>,
}

/// A compiled [`HashCode`].
pub trait HashKeys: Debug + Send + Sync {
    /// Writes the hashes of the `rows` tuples at `positions` to `out`, each at its position.
    /// Returns `false` if nothing was written.
    ///
    /// # Safety
    /// `inputs` matches the code; each has a value and a validity bit at every position. A null
    /// `positions` stands for 0, 1, 2, …. `out` has room for a hash at every position.
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        out: *mut u64,
    ) -> bool;
}

/// The kernel that finds or creates groups in a group table (`docs/reference/layout.md`) with
/// fixed-width keys.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupCode {
    /// The keys.
    pub keys: Vec<InputCode>,
    /// The first word of each key in a record. Word 0 of a record is the hash; NULL bits follow it.
    pub offsets: Vec<usize>,
    /// Words per record; those after the keys are zero in a new record.
    pub stride: usize,
}

/// The lower bits of a slot that hold a group number plus 1; the upper bits hold the lowest bits of
/// the hash.
pub const GROUP_SLOT_BITS: u32 = 48;

/// The memory of a group table.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawGroups {
    /// The slots; their number is a power of two.
    pub slots: *mut u64,
    /// The number of slots minus 1.
    pub mask: u64,
    /// The left rotation of a hash, applied before `shift`.
    pub rotation: u64,
    /// The right shift that turns a rotated hash into a slot.
    pub shift: u64,
    /// The records.
    pub records: *mut u64,
    /// The number of groups.
    pub groups: u64,
}

/// A compiled [`GroupCode`].
pub trait FindGroups: Debug + Send + Sync {
    /// Writes the group numbers of the `rows` tuples at `positions` to `groups`. Returns `false` if
    /// the vectorized tier must do the work; the table is then unchanged.
    ///
    /// # Safety
    /// `inputs` matches the code; each has a value and a validity bit at every position. A null
    /// `positions` stands for 0, 1, 2, …. The table has the code's layout, room for `rows` more
    /// groups with half of its slots still free, and no other user during the call. `groups` has
    /// room for `rows` numbers.
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        table: &mut RawGroups,
        groups: *mut u32,
    ) -> bool;
}

/// The kernel that writes tuples as consecutive rows (`docs/reference/layout.md`).
///
/// Compiled fields are written before all others: in a 64-bit word that holds at least one of
/// them, the bytes of other fields become zero.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteCode {
    /// The inputs: the values of the fields.
    pub inputs: Vec<InputCode>,
    /// The target field of each input.
    pub fields: Vec<FieldCode>,
    /// Offset and number of a row's validity bytes; the bits of fields that are not written here
    /// are set.
    pub validity: Option<(usize, usize)>,
    /// Bytes from one row to the next.
    pub stride: usize,
}

/// A field of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldCode {
    /// The field's index in the row, which is also its validity bit.
    pub number: usize,
    /// Offset of the field in bytes.
    pub offset: usize,
}

/// A compiled [`WriteCode`].
pub trait WriteRows: Debug + Send + Sync {
    /// Writes the `rows` tuples at `positions` as rows to `out`, and sets the bit of each field in
    /// `nulls` in which some tuple is NULL. Returns `false` if nothing was written.
    ///
    /// # Safety
    /// `inputs` matches the code; each has a value and a validity bit at every position. A null
    /// `positions` stands for 0, 1, 2, …. `out` has room for `rows` rows, `nulls` a bit per field.
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        out: *mut u8,
        nulls: *mut u64,
    ) -> bool;
}

/// A compiled [`UpdateCode`].
pub trait Update: Debug + Send + Sync {
    /// Updates the states with the `rows` tuples at `positions`, in order, and returns how many
    /// were processed. It stops before a tuple that may raise an error without changing its states;
    /// without groups it then processes no tuple. Returns `None` if a sum overflows 128 bits.
    ///
    /// # Safety
    /// `inputs` matches the code; each has a value and a validity bit at every position.
    /// `positions` may be null, for 0, 1, 2, …, only if the code is not grouped. `groups` holds
    /// `rows` record numbers in `area`, which has the code's stride; if the code is not grouped,
    /// `groups` may be null and `area` is one record. `area` has no other user during the call.
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        groups: *const u32,
        area: *mut u64,
    ) -> Option<usize>;
}

/// A compiled [`SelectCode`].
pub trait Select: Debug + Send + Sync {
    /// Writes the positions where the predicate is true to `out`, in order, and returns their
    /// number. Returns `None` if some tuple may raise an error.
    ///
    /// # Safety
    /// `inputs` matches the code; each has a value and a validity bit at every position. A null
    /// `positions` stands for 0, 1, 2, …. `out` has room for `rows` positions.
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        out: *mut u32,
    ) -> Option<usize>;
}

/// A handle to code that may be compiled later.
pub trait Promise<T: ?Sized>: Debug + Send + Sync {
    /// Returns the compiled code if it is ready, after announcing `rows` more tuples. The compiler
    /// decides by the number of tuples whether to compile at all.
    ///
    /// # Errors
    /// The tier requires the code before execution ([`crate::Tier::Compiled`]), and its compilation
    /// failed.
    fn get(&self, rows: usize) -> Result<Option<&T>>;
}

/// A compiler of kernels.
pub trait Compiler: Debug + Send + Sync {
    /// Accepts an update kernel.
    fn update(&self, code: UpdateCode) -> Arc<dyn Promise<dyn Update>>;

    /// Accepts a filter kernel.
    fn select(&self, code: SelectCode) -> Arc<dyn Promise<dyn Select>>;

    /// Accepts a probe kernel; `None` if the compiler does not support it.
    fn lookup(&self, _code: LookupCode) -> Option<Arc<dyn Promise<dyn Lookup>>> {
        None
    }

    /// Accepts a map kernel; `None` if the compiler does not support it.
    fn compute(&self, _code: ComputeCode) -> Option<Arc<dyn Promise<dyn Compute>>> {
        None
    }

    /// Accepts a hash kernel; `None` if the compiler does not support it.
    fn hash(&self, _code: HashCode) -> Option<Arc<dyn Promise<dyn HashKeys>>> {
        None
    }

    /// Accepts a kernel that finds groups; `None` if the compiler does not support it.
    fn find_groups(&self, _code: GroupCode) -> Option<Arc<dyn Promise<dyn FindGroups>>> {
        None
    }

    /// Accepts a kernel that writes rows; `None` if the compiler does not support it.
    fn write(&self, _code: WriteCode) -> Option<Arc<dyn Promise<dyn WriteRows>>> {
        None
    }

    /// Whether compiled code can read inputs through a list or from rows, not only from columns.
    fn reads_lists(&self) -> bool {
        false
    }

    /// Returns the number of kernels that this compiler's user had compiled, and the time spent.
    /// Kernels compiled for others or loaded from cache files are not counted.
    fn compile_stats(&self) -> (usize, Duration);
}
