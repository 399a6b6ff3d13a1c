//! Merges many heaps into one: the small pages of workers and partitions become a few large
//! buffers.
//!
//! Every chunk of strings from a probe carries the whole list of heap buffers, so the list must be
//! short.

use std::sync::Arc;

use arrow::buffer::Buffer;

/// Pages of at least this many bytes stay unchanged; smaller ones are merged by copying.
const LARGE_BYTES: usize = 1 << 20;
/// Small pages are merged up to this many bytes.
const GATHERED_BYTES_MOST: usize = 16 << 20;

/// The new location of a page's bytes: buffer, and offset in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageLocation {
    pub(super) buffer: u32,
    pub(super) offset: u32,
}

/// Merges heaps.
#[derive(Debug, Default)]
pub(super) struct HeapJoiner {
    buffers: Vec<Option<Buffer>>,
    gathering: Vec<u8>,
    /// The index in `buffers` reserved for the pages being merged.
    gathering_at: Option<usize>,
}

impl HeapJoiner {
    /// Adds the pages of a heap; returns the new location of each.
    pub(super) fn add(&mut self, pages: &[Buffer]) -> Arc<[PageLocation]> {
        pages.iter().map(|page| self.add_page(page)).collect()
    }

    fn add_page(&mut self, page: &Buffer) -> PageLocation {
        if page.len() >= LARGE_BYTES {
            self.buffers.push(Some(page.clone()));
            return PageLocation { buffer: self.buffers.len() as u32 - 1, offset: 0 };
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
        PageLocation { buffer: at as u32, offset }
    }

    fn flush(&mut self) {
        if let Some(at) = self.gathering_at.take() {
            self.buffers[at] = Some(Buffer::from_vec(std::mem::take(&mut self.gathering)));
        }
    }

    /// Returns the merged heap.
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
        let location: Vec<_> = heaps.iter().map(|heap| joiner.add(heap)).collect();
        let joined = joiner.finish();
        assert!(joined.len() <= 5, "{}", joined.len());
        for (heap, location) in heaps.iter().zip(&location) {
            for (page, location) in heap.iter().zip(location.iter()) {
                let offset = location.offset as usize;
                assert_eq!(
                    &joined[location.buffer as usize][offset..offset + page.len()],
                    &page[..]
                );
            }
        }
    }
}
