//! Strings of new rows: views, and the heap of long strings.

use std::sync::Arc;

use arrow::array::ArrayRef;

use tessera_context::Reservation;
use tessera_types::{Code, Error, Result};

use super::RowsBuilder;
use super::fields::put;
use crate::resolved_columns::{ResolvedColumn, long_bytes, view_buffers};

/// Bytes of the first heap page; each later page has twice the size of the one before it, up to a
/// maximum.
pub(super) const HEAP_PAGE_BYTES_FIRST: usize = 1 << 12;
pub(super) const HEAP_PAGE_BYTES_MOST: usize = 1 << 22;
/// The longest string a view can describe.
const VIEW_BYTES_MAX: usize = i32::MAX as usize;
/// Translations are cached for dictionaries of at most this many values, so that each string is
/// copied once.
const TRANSLATED_VALUES_MOST: usize = 4_096;

/// Maps a dictionary's values to views in the builder's heap; 0 means not copied yet.
#[derive(Debug)]
pub(super) struct Translation {
    values: ArrayRef,
    views: Vec<u128>,
}

impl RowsBuilder {
    #[expect(clippy::too_many_arguments)]
    pub(super) fn append_views(
        &mut self,
        field: usize,
        column: &ResolvedColumn,
        views: &[u128],
        array: &ArrayRef,
        start: usize,
        len: usize,
        selection: Option<&[u32]>,
    ) -> Result<()> {
        let offset = self.layout.fields[field].offset;
        let buffers = view_buffers(array);
        let view_at = |p: usize| {
            if column.is_null(p) { 0 } else { views.get(column.at(p)).copied().unwrap_or_default() }
        };
        if buffers.is_empty() {
            put(&mut self.pages, start, len, offset, selection, view_at);
            return Ok(());
        }
        let translated =
            self.translates && column.index.is_some() && views.len() <= TRANSLATED_VALUES_MOST;
        let mut translation = self.translations[field].take().filter(|t| {
            translated && std::ptr::addr_eq(Arc::as_ptr(&t.values), Arc::as_ptr(array))
        });
        if translated && translation.is_none() {
            translation = Some(Translation { values: array.clone(), views: vec![0; views.len()] });
        }
        for row in 0..len {
            let position = selection.map_or(row, |selection| selection[row] as usize);
            let mut view = view_at(position);
            if view as u32 > 12 {
                let known = translation.as_mut().and_then(|t| t.views.get_mut(column.at(position)));
                view = match known {
                    Some(known) if *known != 0 => *known,
                    known => {
                        let bytes = long_bytes(view, buffers).ok_or_else(|| {
                            Error::internal("a string view points outside its buffers")
                        })?;
                        let most = self.heap_page_bytes_most;
                        let view = push_bytes(&mut self.heap, most, &mut self.reservation, bytes)?;
                        if let Some(known) = known {
                            *known = view;
                        }
                        view
                    }
                };
            }
            self.pages.write(start + row, offset, view);
        }
        self.translations[field] = translation;
        Ok(())
    }
}

pub(super) fn push_bytes(
    heap: &mut Vec<Vec<u8>>,
    page_bytes_most: usize,
    reservation: &mut Reservation,
    bytes: &[u8],
) -> Result<u128> {
    let len = bytes.len();
    if len <= 12 {
        let mut view = [0u8; 16];
        view[..4].copy_from_slice(&(len as u32).to_le_bytes());
        view[4..4 + len].copy_from_slice(bytes);
        return Ok(u128::from_le_bytes(view));
    }
    if len > VIEW_BYTES_MAX {
        return Err(Error::new(
            Code::Limit,
            format!("a string of {len} bytes; the most is {VIEW_BYTES_MAX}"),
        ));
    }
    let room = heap.last().map_or(0, |page| page.capacity() - page.len());
    if room < len {
        let next = HEAP_PAGE_BYTES_FIRST << heap.len().min(16);
        let capacity = next.min(page_bytes_most).max(len);
        reservation.grow(capacity)?;
        heap.push(Vec::with_capacity(capacity));
    }
    let index = heap.len() - 1;
    let page = &mut heap[index];
    let offset = page.len();
    page.extend_from_slice(bytes);
    let prefix = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    Ok(len as u128 | u128::from(prefix) << 32 | (index as u128) << 64 | (offset as u128) << 96)
}
