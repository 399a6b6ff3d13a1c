//! Random access to one field of the rows.

use super::{Fixed, Pages};

/// Reads one field of any row.
#[derive(Debug, Clone, Copy)]
pub struct FieldReader<'a, T> {
    pub(super) pages: &'a Pages,
    pub(super) offset: usize,
    pub(super) phantom: std::marker::PhantomData<T>,
}

impl<T: Fixed> FieldReader<'_, T> {
    /// Returns the value of a row.
    #[inline(always)]
    pub fn get(&self, row: u64) -> T {
        let row = row as usize;
        assert!(row < self.pages.allocated, "a row outside its pages");
        // SAFETY: the row was checked here, the offset when the reader was created.
        unsafe { self.pages.row_unchecked(row).add(self.offset).cast::<T>().read_unaligned() }
    }
}
