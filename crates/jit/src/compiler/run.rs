//! Calls of compiled pieces.

use std::panic::resume_unwind;

use tessera_codegen::{
    Compute, FindGroups, HashKeys, Lookup, RawGroups, RawInput, RawTable, Select, Update, WriteRows,
};

use super::Request;
use super::piece::Piece;
use crate::lower::NONE;
use crate::stop::run_stoppable;

type UpdateFunction =
    unsafe extern "C" fn(*const RawInput, *const u32, u64, *const u64, *const u32, *mut u64) -> u64;
type LookupFunction = unsafe extern "C" fn(
    *const RawInput,
    *const u32,
    u64,
    *const u64,
    *const RawTable,
    *mut u32,
    *mut u64,
) -> u64;
type HashFunction =
    unsafe extern "C" fn(*const RawInput, *const u32, u64, *const u64, *mut u64) -> u64;
type GroupFunction = unsafe extern "C" fn(
    *const RawInput,
    *const u32,
    u64,
    *const u64,
    *mut RawGroups,
    *mut u32,
) -> u64;
type WriteFunction =
    unsafe extern "C" fn(*const RawInput, *const u32, u64, *const u64, *mut u8, *mut u64) -> u64;
type ComputeFunction =
    unsafe extern "C" fn(*const RawInput, *const u32, u64, *const u64, *mut u8, *mut u8) -> u64;
type SelectFunction =
    unsafe extern "C" fn(*const RawInput, *const u32, u64, *const u64, *mut u32) -> u64;

/// Runs code that may poll. If the code was stopped, unwinds with the error like
/// [`tessera_context::interrupt::point`].
fn run_or_unwind<T>(run: impl FnOnce() -> T) -> T {
    run_stoppable(run).unwrap_or_else(|error| resume_unwind(Box::new(error)))
}

fn to_count(number: u64) -> Option<usize> {
    (number != NONE).then_some(number as usize)
}

impl Update for Request {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        groups: *const u32,
        area: *mut u64,
    ) -> Option<usize> {
        let (Piece::Update(..), Some(Ok(code))) = (&self.entry.piece, self.entry.code.get()) else {
            return Some(0);
        };
        // SAFETY: `lower_update` made the function at this address with these parameters; it stays
        // loaded as long as `self` lives.
        let function: UpdateFunction = unsafe { std::mem::transmute(code.address() as usize) };
        let constants = self.constants.words.as_ptr();
        // SAFETY: the caller keeps the contract of `Update::run`, and the constants are those of
        // the code, in their order; the function relies on nothing else.
        to_count(run_or_unwind(|| unsafe {
            function(inputs.as_ptr(), positions, rows as u64, constants, groups, area)
        }))
    }
}

impl Select for Request {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        out: *mut u32,
    ) -> Option<usize> {
        let (Piece::Select(..), Some(Ok(code))) = (&self.entry.piece, self.entry.code.get()) else {
            return None;
        };
        // SAFETY: as above, for `lower_select`.
        let function: SelectFunction = unsafe { std::mem::transmute(code.address() as usize) };
        let constants = self.constants.words.as_ptr();
        // SAFETY: the caller keeps the contract of `Select::run`; the constants are as above.
        to_count(run_or_unwind(|| unsafe {
            function(inputs.as_ptr(), positions, rows as u64, constants, out)
        }))
    }
}

impl Lookup for Request {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        table: &RawTable,
        tuples: *mut u32,
        found: *mut u64,
    ) -> Option<usize> {
        let (Piece::Lookup(_), Some(Ok(code))) = (&self.entry.piece, self.entry.code.get()) else {
            return None;
        };
        // SAFETY: as above, for `lower_lookup`.
        let function: LookupFunction = unsafe { std::mem::transmute(code.address() as usize) };
        let constants = self.constants.words.as_ptr();
        // SAFETY: the caller keeps the contract of `Lookup::run`; the code has no constants.
        to_count(unsafe {
            function(inputs.as_ptr(), positions, rows as u64, constants, table, tuples, found)
        })
    }
}

impl Compute for Request {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        rows: usize,
        values: *mut u8,
        valid: *mut u8,
    ) -> bool {
        let (Piece::Compute(..), Some(Ok(code))) = (&self.entry.piece, self.entry.code.get())
        else {
            return false;
        };
        // SAFETY: as above, for `lower_compute`.
        let function: ComputeFunction = unsafe { std::mem::transmute(code.address() as usize) };
        let (constants, all) = (self.constants.words.as_ptr(), std::ptr::null());
        // SAFETY: the caller keeps the contract of `Compute::run`; the constants are as above.
        let run =
            || unsafe { function(inputs.as_ptr(), all, rows as u64, constants, values, valid) };
        to_count(run_or_unwind(run)).is_some()
    }
}

impl HashKeys for Request {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        out: *mut u64,
    ) -> bool {
        let (Piece::Hash(_), Some(Ok(code))) = (&self.entry.piece, self.entry.code.get()) else {
            return false;
        };
        // SAFETY: as above, for `lower_hash`.
        let function: HashFunction = unsafe { std::mem::transmute(code.address() as usize) };
        // SAFETY: the caller keeps the contract of `HashKeys::run`; the code has no constants.
        unsafe {
            function(inputs.as_ptr(), positions, rows as u64, self.constants.words.as_ptr(), out)
        };
        true
    }
}

impl FindGroups for Request {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        table: &mut RawGroups,
        groups: *mut u32,
    ) -> bool {
        let (Piece::Group(_), Some(Ok(code))) = (&self.entry.piece, self.entry.code.get()) else {
            return false;
        };
        // SAFETY: as above, for `lower_group`.
        let function: GroupFunction = unsafe { std::mem::transmute(code.address() as usize) };
        let constants = self.constants.words.as_ptr();
        // SAFETY: the caller keeps the contract of `FindGroups::run`; the code has no constants.
        unsafe { function(inputs.as_ptr(), positions, rows as u64, constants, table, groups) == 0 }
    }
}

impl WriteRows for Request {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        out: *mut u8,
        nulls: *mut u64,
    ) -> bool {
        let (Piece::Write(_), Some(Ok(code))) = (&self.entry.piece, self.entry.code.get()) else {
            return false;
        };
        // SAFETY: as above, for `lower_write`.
        let function: WriteFunction = unsafe { std::mem::transmute(code.address() as usize) };
        // SAFETY: the caller keeps the contract of `WriteRows::run`; the code has no constants.
        unsafe {
            function(
                inputs.as_ptr(),
                positions,
                rows as u64,
                self.constants.words.as_ptr(),
                out,
                nulls,
            )
        };
        true
    }
}
