//! Loops over tuples that a compiler turns into machine code: their forms, and how to call the
//! code.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use tessera_types::Result;

use crate::value::{FunctionCode, Machine, ValueCode};

/// A function that was compiled, over columns.
pub trait Function: Debug + Send + Sync {
    /// Calls it for so many tuples; writes the values, one behind the other (booleans as bytes),
    /// and for each the number of a [`crate::Status`].
    ///
    /// # Safety
    /// `inputs` are as many as it has arguments, of their types, each with a value and a bit of
    /// validity for each tuple. There is room for `rows` values and numbers; values of 16 bytes
    /// stand at a multiple of 8.
    ///
    /// # Errors
    /// The query was ended meanwhile, or the function calls itself too deeply.
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        rows: usize,
        values: *mut u8,
        statuses: *mut u32,
    ) -> Result<()>;
}

/// An input of compiled code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InputCode {
    /// Its type.
    pub machine: Machine,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Where its values are.
    pub place: InputPlace,
}

impl InputCode {
    /// An input in a column.
    pub fn column(machine: Machine, nullable: bool) -> InputCode {
        InputCode { machine, nullable, place: InputPlace::Column }
    }
}

/// Where an input has the value of a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InputPlace {
    /// In a column, at the position.
    Column,
    /// In a column, at the place that a list has for the position: numbers of 32 bits.
    Listed,
    /// In a column of one value, which all positions have.
    Once,
    /// In a column of views (16 bytes) at the position; the addresses of the buffers that long ones
    /// lie in are the input's list. Of texts.
    Views,
    /// In a row, whose number is the position, or what a list has for it.
    InRow {
        /// Bytes from one row to the next.
        stride: u32,
        /// How long the list's numbers are: 32 or 64 bits; 0 where there is none.
        list_bits: u8,
        /// The bit of the byte of a row's validity in which its own is, where it may be NULL.
        validity_bit: u8,
    },
}

/// What a tuple does to a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepCode {
    /// One more, unless an argument is NULL (1 word).
    Count,
    /// Adds an integer to 128 bits, and counts (3 words).
    ExactSum,
    /// Adds a float, and counts (2 words).
    FloatSum,
    /// Keeps the smallest value: its bits, widened, in 1 word or 2, and that there is one.
    Min,
    /// Keeps the largest value.
    Max,
}

/// A state that is updated.
#[derive(Debug, Clone, PartialEq)]
pub struct StateCode {
    /// Where it begins, in words of its group's record.
    pub offset: usize,
    /// What is done.
    pub step: StepCode,
    /// The arguments; nothing happens where one is NULL.
    pub args: Vec<ValueCode>,
}

/// States that are updated for the same tuples.
#[derive(Debug, Clone, PartialEq)]
pub struct StageCode {
    /// Those for which it is true; all where absent.
    pub filter: Option<ValueCode>,
    /// The states.
    pub states: Vec<StateCode>,
}

/// Updates of aggregate states (`docs/layout.md`).
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateCode {
    /// What is read.
    pub inputs: Vec<InputCode>,
    /// Values that several share, each over those before it.
    pub shared: Vec<ValueCode>,
    /// The updates.
    pub stages: Vec<StageCode>,
    /// Words of a record.
    pub stride: usize,
    /// Whether each tuple has a group of its own; else all belong to one.
    pub grouped: bool,
}

impl UpdateCode {
    /// Visits all values that it computes.
    pub fn each_value<'a>(&'a self, visit: impl FnMut(&'a ValueCode)) {
        let filters = self.stages.iter().filter_map(|stage| stage.filter.as_ref());
        let states = self.stages.iter().flat_map(|stage| &stage.states);
        filters.chain(&self.shared).chain(states.flat_map(|state| &state.args)).for_each(visit);
    }

    /// Visits the users' functions that it calls.
    pub fn each_function<'a>(&'a self, mut visit: impl FnMut(&'a Arc<FunctionCode>)) {
        self.each_value(|value| value.each_function(&mut visit));
    }
}

/// A predicate over the tuples of a chunk.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectCode {
    /// What is read.
    pub inputs: Vec<InputCode>,
    /// What is to be true.
    pub predicate: ValueCode,
}

/// A value for each tuple of a chunk.
#[derive(Debug, Clone, PartialEq)]
pub struct ComputeCode {
    /// What is read.
    pub inputs: Vec<InputCode>,
    /// What is computed.
    pub value: ValueCode,
}

/// A computation that was compiled.
pub trait Compute: Debug + Send + Sync {
    /// Writes the values of `rows` tuples, one behind the other (booleans as bytes), and for each a
    /// byte that says whether it is not NULL, where it may be; whether no tuple perhaps raises an
    /// error.
    ///
    /// # Safety
    /// `inputs` are those of the code, each with a value and a bit of validity for each tuple.
    /// There is room for `rows` values, of their width each, at a multiple of 8 where they are
    /// longer than that, and as many bytes.
    unsafe fn run(&self, inputs: &[RawInput], rows: usize, values: *mut u8, valid: *mut u8)
    -> bool;
}

/// An input in memory: values and validity as Arrow lays them out, or as rows do
/// (`docs/layout.md`).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawInput {
    /// The first value; of booleans the byte of the first; in rows that of the first row.
    pub values: *const u8,
    /// The byte of the first tuple's validity; in rows that of the first row.
    pub validity: *const u8,
    /// Where the first boolean is, in bits.
    pub values_offset: u64,
    /// Where the first tuple's validity is, in bits.
    pub validity_offset: u64,
    /// The list of places or rows, where there is one, or of buffers.
    pub list: *const u8,
}

impl RawInput {
    /// Values and validity in a column, and how many bits before the first of either.
    pub fn column(values: *const u8, validity: *const u8, offsets: (u64, u64)) -> RawInput {
        let (values_offset, validity_offset) = offsets;
        RawInput { values, validity, values_offset, validity_offset, list: std::ptr::null() }
    }

    /// How many words it is.
    pub const WORDS: usize = size_of::<RawInput>() / 8;
}

/// Looking tuples up in a join table (`docs/layout.md`), whose keys are whole numbers of at most 64
/// bits without NULL.
#[derive(Debug, Clone, PartialEq)]
pub struct LookupCode {
    /// The keys of the tuples; NULL matches nothing.
    pub keys: Vec<InputCode>,
    /// Where the same keys stand in the table's rows, in bytes.
    pub offsets: Vec<usize>,
    /// Bytes from one row to the next.
    pub stride: usize,
}

/// Pairs of a tuple that are written without a look at how many there are.
pub const WRITTEN_AT_ONCE: usize = 4;

/// A join table in memory, and how many pairs there is room for.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawTable {
    /// The directory.
    pub entries: *const u64,
    /// How far a hash is shifted to be the number of its slot.
    pub shift: u64,
    /// The tags of hashes.
    pub tags: *const u16,
    /// The first row.
    pub rows: *const u8,
    /// How many pairs may be found; behind them there is room for [`WRITTEN_AT_ONCE`] more.
    pub room: u64,
}

/// A look-up that was compiled.
pub trait Lookup: Debug + Send + Sync {
    /// Writes a pair for each of `rows` tuples, those at `positions`, and each row of the table
    /// with equal keys: how many tuples came before it to `tuples`, and the number of the row to
    /// `found`; in the tuples' order, and rows of one in theirs. Gives how many pairs there are;
    /// none where there may be more than there is room for.
    ///
    /// # Safety
    /// `inputs` are those of the code, each with a value and a bit of validity at each position,
    /// which is its number where `positions` is null. The table is one of the code's layout, and
    /// nobody changes it. There is room for as many pairs as it says.
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

/// Hashes of tuples by their keys, as `tessera_vector::hash` has them.
#[derive(Debug, Clone, PartialEq)]
pub struct HashCode {
    /// The keys, in the order in which they are folded.
    pub keys: Vec<InputCode>,
}

/// Hashes that were compiled.
pub trait HashKeys: Debug + Send + Sync {
    /// Writes the hash of each of `rows` tuples, those at `positions`, to the place of its position
    /// in `out`; whether that was done.
    ///
    /// # Safety
    /// `inputs` are those of the code, each with a value and a bit of validity at each position,
    /// which is its number where `positions` is null. There is room for a hash at each position.
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        out: *mut u64,
    ) -> bool;
}

/// Finding or making the groups of tuples in a group table (`docs/layout.md`), whose keys are of
/// fixed width.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupCode {
    /// The keys.
    pub keys: Vec<InputCode>,
    /// Of each the first of its words in a record, whose first word is the hash, and the next ones
    /// are bits of NULLs.
    pub offsets: Vec<usize>,
    /// Words of a record, which begin with zeros behind those of the keys.
    pub stride: usize,
}

/// In a slot of a group table these lower bits are the number of a group, and one; above them are
/// the hash's lowest bits.
pub const GROUP_SLOT_BITS: u32 = 48;

/// A group table in memory.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct RawGroups {
    /// The slots, of which there are a power of two.
    pub slots: *mut u64,
    /// How many, less one.
    pub mask: u64,
    /// How far a hash is rotated to the left, before it is shifted to the right to be the number of
    /// its slot.
    pub rotation: u64,
    /// How far it is shifted then.
    pub shift: u64,
    /// The records.
    pub records: *mut u64,
    /// How many groups there are.
    pub groups: u64,
}

/// Finding and making groups, compiled.
pub trait FindGroups: Debug + Send + Sync {
    /// Writes the group of each of `rows` tuples, those at `positions`, to `groups`; false where
    /// the vectorised tier is to do that, and nothing has changed.
    ///
    /// # Safety
    /// `inputs` are those of the code, each with a value and a bit of validity at each position,
    /// which is its number where `positions` is null. The table is one of the code's layout, with
    /// room for that many more groups and half of its slots free even then; nobody else uses it
    /// meanwhile. There is room for that many numbers of groups.
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        table: &mut RawGroups,
        groups: *mut u32,
    ) -> bool;
}

/// Tuples written as rows (`docs/layout.md`), one behind the other. They are written first: bytes
/// of a word of 64 bits that no field here has become zero where another of the word's is written.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteCode {
    /// What is read: the values.
    pub inputs: Vec<InputCode>,
    /// Where each goes.
    pub fields: Vec<FieldCode>,
    /// The first byte of a row's validity, and how many there are; of fields that are not written
    /// all bits are set.
    pub validity: Option<(usize, usize)>,
    /// Bytes from one row to the next.
    pub stride: usize,
}

/// A field of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldCode {
    /// Its number among the fields of a row: that of its bit of validity.
    pub number: usize,
    /// Its first byte.
    pub offset: usize,
}

/// A writer of rows that was compiled.
pub trait WriteRows: Debug + Send + Sync {
    /// Writes `rows` tuples, those at `positions`, to rows from `out` on, and sets the bits of the
    /// fields' numbers in `nulls` that a tuple is NULL in; whether that was done.
    ///
    /// # Safety
    /// `inputs` are those of the code, each with a value and a bit of validity at each position,
    /// which is its number where `positions` is null. At `out` is room for so many rows, and at
    /// `nulls` a bit for each field.
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        out: *mut u8,
        nulls: *mut u64,
    ) -> bool;
}

/// Updates that were compiled.
pub trait Update: Debug + Send + Sync {
    /// Updates the states of so many tuples, those at `positions`, one after the other; gives how
    /// many. It stops before a tuple that perhaps raises an error, whose states it leaves alone,
    /// or, where the code is not grouped, before all of them. None where a sum has left its 128
    /// bits.
    ///
    /// # Safety
    /// `inputs` are those of the code, each with a value and a bit of validity at each of the
    /// `rows` positions, which is its number where `positions` is null (only where the code is not
    /// grouped). `groups` are as many numbers of records in `area`, whose stride is the code's;
    /// where it is not grouped, it may be null, and `area` is one record. Nobody else uses the area
    /// meanwhile.
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        groups: *const u32,
        area: *mut u64,
    ) -> Option<usize>;
}

/// A predicate that was compiled.
pub trait Select: Debug + Send + Sync {
    /// Writes those of `rows` positions at which the predicate is true to `out`, in their order;
    /// gives how many. None where some tuple perhaps raises an error.
    ///
    /// # Safety
    /// `inputs` are those of the code, each with a value and a bit of validity at each position,
    /// which is its number where `positions` is null. There is room for `rows` numbers at `out`.
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        out: *mut u32,
    ) -> Option<usize>;
}

/// Code that will be compiled, perhaps.
pub trait Promise<T: ?Sized>: Debug + Send + Sync {
    /// The compiled code, once it is there. `rows` more tuples want it: whether to compile at all
    /// depends on how many there are.
    ///
    /// # Errors
    /// It was to be compiled before anything runs, and that has failed.
    fn get(&self, rows: usize) -> Result<Option<&T>>;
}

/// Compiles.
pub trait Compiler: Debug + Send + Sync {
    /// Takes updates.
    fn update(&self, code: UpdateCode) -> Arc<dyn Promise<dyn Update>>;

    /// Takes predicates.
    fn select(&self, code: SelectCode) -> Arc<dyn Promise<dyn Select>>;

    /// Takes a look-up; none where there is no code for one.
    fn lookup(&self, _code: LookupCode) -> Option<Arc<dyn Promise<dyn Lookup>>> {
        None
    }

    /// Takes a computation; none where there is no code for any.
    fn compute(&self, _code: ComputeCode) -> Option<Arc<dyn Promise<dyn Compute>>> {
        None
    }

    /// Takes hashes; none where there is no code for any.
    fn hash(&self, _code: HashCode) -> Option<Arc<dyn Promise<dyn HashKeys>>> {
        None
    }

    /// Takes the finding of groups; none where there is no code for any.
    fn find_groups(&self, _code: GroupCode) -> Option<Arc<dyn Promise<dyn FindGroups>>> {
        None
    }

    /// Takes rows to be written; none where there is no code for any.
    fn write(&self, _code: WriteCode) -> Option<Arc<dyn Promise<dyn WriteRows>>> {
        None
    }

    /// Whether its code can read inputs elsewhere than in columns.
    fn reads_lists(&self) -> bool {
        false
    }

    /// How many pieces were compiled for who asked this compiler, and how long that took. What
    /// others had compiled, or files had, is not counted.
    fn spent(&self) -> (usize, Duration);
}
