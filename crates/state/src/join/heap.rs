//! One heap out of many: the small pages of workers and partitions become a few large buffers.
//!
//! Every chunk of strings that a probe gives out carries the whole list of heap buffers, so that
//! list must be short.

use std::sync::Arc;

use arrow::buffer::Buffer;

/// Pages of at least this many bytes stay as they are; smaller ones are copied together.
const LARGE_BYTES: usize = 1 << 20;
/// Small pages are gathered up to this many bytes.
const GATHERED_BYTES_MOST: usize = 16 << 20;

/// Where the bytes of a page have gone: buffer, and offset in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) buffer: u32,
    pub(super) offset: u32,
}

/// Joins heaps.
#[derive(Debug, Default)]
pub(super) struct HeapJoiner {
    buffers: Vec<Option<Buffer>>,
    gathering: Vec<u8>,
    /// The place in `buffers` that what is being gathered will take.
    gathering_at: Option<usize>,
}

impl HeapJoiner {
    /// Takes the pages of a heap over; where each has gone.
    pub(super) fn add(&mut self, pages: &[Buffer]) -> Arc<[Moved]> {
        pages.iter().map(|page| self.add_page(page)).collect()
    }

    fn add_page(&mut self, page: &Buffer) -> Moved {
        if page.len() >= LARGE_BYTES {
            self.buffers.push(Some(page.clone()));
            return Moved { buffer: self.buffers.len() as u32 - 1, offset: 0 };
        }
        if self.gathering.len() + page.len() > GATHERED_BYTES_MOST {
            self.flush();
        }
        let at = *self.gathering_at.get_or_insert_with(|| {
            self.buffers.push(None);
            self.buffers.len() - 1
        });
        let offset = self.gathering.len() as u32;
        self.gathering.extend_from_slice(page);
        Moved { buffer: at as u32, offset }
    }

    fn flush(&mut self) {
        if let Some(at) = self.gathering_at.take() {
            self.buffers[at] = Some(Buffer::from_vec(std::mem::take(&mut self.gathering)));
        }
    }

    /// The joined heap.
    pub(super) fn finish(mut self) -> Arc<[Buffer]> {
        self.flush();
        self.buffers.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_where_they_have_gone() {
        let page = |byte: u8, len: usize| Buffer::from_vec(vec![byte; len]);
        let heaps =
            [vec![page(1, 100), page(2, LARGE_BYTES)], vec![], vec![page(3, LARGE_BYTES - 1); 40]];
        let mut joiner = HeapJoiner::default();
        let moved: Vec<_> = heaps.iter().map(|heap| joiner.add(heap)).collect();
        let joined = joiner.finish();
        assert!(joined.len() <= 5, "{}", joined.len());
        for (heap, moved) in heaps.iter().zip(&moved) {
            for (page, moved) in heap.iter().zip(moved.iter()) {
                let offset = moved.offset as usize;
                assert_eq!(&joined[moved.buffer as usize][offset..offset + page.len()], &page[..]);
            }
        }
    }
}
