//! One page of rows.

use super::WordBuffer;

/// The words of one page.
#[derive(Debug)]
pub(super) enum Page {
    Own(Vec<u64>),
    Foreign(WordBuffer),
}

impl std::ops::Deref for Page {
    type Target = [u64];

    #[inline(always)]
    fn deref(&self) -> &[u64] {
        match self {
            Page::Own(words) => words,
            Page::Foreign(buffer) => buffer.as_slice(),
        }
    }
}

impl Page {
    pub(super) fn own(&mut self) -> &mut Vec<u64> {
        match self {
            Page::Own(words) => words,
            Page::Foreign(_) => unreachable!("a foreign page was written to"),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Page::Own(words) => words.capacity() * 8,
            Page::Foreign(buffer) => buffer.words() * 8,
        }
    }
}
