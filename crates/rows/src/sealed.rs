//! Immutable rows.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::buffer::Buffer;

use tessera_context::Reservation;
use tessera_types::{Error, Result, Tuple};
use tessera_vector::{Chunk, Column, Handle};

use crate::SpillableChunk;
use crate::spill::{SpillFile, TupleBlock};

use super::compare::{Heap, RowsRef};
use super::gather::RowSelection;
use super::layout::{HASH_OFFSET, RowLayout};
use super::memory::{Fixed, Pages};
use super::range::RowRange;

/// Immutable rows; cheap to clone.
#[derive(Debug, Clone)]
pub struct Rows {
    layout: Arc<RowLayout>,
    parts: Vec<Piece>,
    /// The number of the first row of each piece, followed by the total number of rows.
    starts: Vec<u64>,
}

/// A piece of [`Rows`] with consecutive row numbers.
#[derive(Debug, Clone)]
enum Piece {
    Memory(Arc<Part>),
    /// Spilled rows: a block of tuples, without hashes and states.
    File(SpillableChunk),
}

impl Piece {
    fn rows(&self) -> usize {
        match self {
            Piece::Memory(part) => part.rows,
            Piece::File(chunk) => chunk.rows(),
        }
    }

    fn part(&self) -> Option<&Arc<Part>> {
        match self {
            Piece::Memory(part) => Some(part),
            Piece::File(_) => None,
        }
    }

    /// Gathers a field of some of these rows.
    fn gather(&self, layout: &RowLayout, field: usize, rows: &[u64]) -> Result<Column> {
        match self {
            Piece::Memory(part) => part.gather(layout, field, RowSelection::Listed(rows)),
            Piece::File(chunk) => {
                let column = chunk.chunk()?.column(field)?.plain()?;
                let position = |row: &u64| u32::try_from(*row).ok();
                let positions: UInt32Array = rows.iter().map(position).collect();
                Ok(Column::Plain(arrow::compute::take(&column, &positions, None)?))
            }
        }
    }
}

/// The position of a sequential reader.
#[derive(Debug, Default)]
pub struct RowsPlace {
    row: u64,
    /// The last spilled piece that was read, by the number of its first row.
    read: Option<(u64, Chunk)>,
}

/// Rows with one heap, from one builder.
#[derive(Debug)]
pub struct Part {
    /// The rows.
    pub pages: Pages,
    /// The number of rows.
    pub rows: usize,
    /// The bytes of strings that are too long for their rows.
    pub heap: Arc<[Buffer]>,
    /// Side stores that fields of other types refer to.
    pub sides: Vec<Side>,
    /// Whether each field has a NULL.
    pub has_nulls: Vec<bool>,
    /// Accounts for the memory; released with it.
    pub reservations: Vec<Reservation>,
}

/// A side store: values that rows refer to.
#[derive(Debug, Clone)]
pub enum Side {
    /// Values of lists, structs and maps.
    Array(ArrayRef),
    /// Collections.
    Handles(Arc<[Handle]>),
}

impl Side {
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Side::Array(array) => array.to_data().get_slice_memory_size().unwrap_or(0),
            Side::Handles(handles) => std::mem::size_of_val::<[Handle]>(handles),
        }
    }
}

impl Part {
    /// Returns a view for comparing and gathering.
    pub fn view<'a>(&'a self, layout: &'a RowLayout) -> RowsRef<'a> {
        RowsRef {
            layout,
            pages: &self.pages,
            heap: Heap::Sealed(&self.heap),
            sides: &self.sides,
            has_nulls: &self.has_nulls,
        }
    }
}

impl Rows {
    pub(crate) fn new(layout: Arc<RowLayout>, parts: Vec<Arc<Part>>) -> Rows {
        Rows::of_pieces(layout, parts.into_iter().map(Piece::Memory).collect())
    }

    /// Creates rows that are spilled to these blocks.
    pub fn in_file(layout: Arc<RowLayout>, file: &Arc<SpillFile>, blocks: Vec<TupleBlock>) -> Rows {
        let piece = |block| Piece::File(SpillableChunk::in_file(file, block));
        Rows::of_pieces(layout, blocks.into_iter().map(piece).collect())
    }

    fn of_pieces(layout: Arc<RowLayout>, parts: Vec<Piece>) -> Rows {
        let mut starts = vec![0];
        let mut total = 0;
        for part in &parts {
            total += part.rows() as u64;
            starts.push(total);
        }
        Rows { layout, parts, starts }
    }

    /// Returns no rows.
    pub fn empty(layout: Arc<RowLayout>) -> Rows {
        Rows::new(layout, Vec::new())
    }

    /// Concatenates rows without copying them.
    ///
    /// # Errors
    /// The layouts differ.
    pub fn concat(layout: Arc<RowLayout>, several: impl IntoIterator<Item = Rows>) -> Result<Rows> {
        let mut parts = Vec::new();
        for rows in several {
            if *rows.layout != *layout {
                return Err(Error::internal("rows of different layouts were concatenated"));
            }
            parts.extend(rows.parts.into_iter().filter(|part| part.rows() > 0));
        }
        Ok(Rows::of_pieces(layout, parts))
    }

    /// The layout.
    pub fn layout(&self) -> &Arc<RowLayout> {
        &self.layout
    }

    /// The tuple type.
    pub fn tuple(&self) -> &Tuple {
        self.layout.tuple()
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.starts.last().map_or(0, |total| *total as usize)
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.parts.iter().filter_map(Piece::part).map(|part| part.memory_bytes()).sum()
    }

    /// Gathers a field of these rows, in this order; [`super::NO_ROW`] gives NULL. Strings share
    /// the heap.
    ///
    /// # Errors
    /// A row that does not exist: an internal error.
    pub fn gather(&self, field: usize, rows: &[u64]) -> Result<Column> {
        match &self.parts[..] {
            [part] => part.gather(&self.layout, field, rows),
            _ => self.gather_across(field, rows),
        }
    }

    /// Gathers all fields of these rows.
    pub fn gather_all(&self, rows: &[u64]) -> Result<Vec<Column>> {
        (0..self.tuple().len()).map(|field| self.gather(field, rows)).collect()
    }

    /// Like [`Rows::chunk`], but the chunk refers to the rows if it can, without copying. The rows
    /// live as long as the chunk.
    pub fn lazy_chunk(&self, rows: Range<u64>) -> Result<Chunk> {
        let (index, len) = (self.part_of(rows.start), (rows.end - rows.start) as usize);
        let part = self.parts.get(index).filter(|_| rows.end <= self.starts[index + 1]);
        let part = part.and_then(Piece::part);
        let first = (rows.start - self.starts[index]) as usize;
        match part.and_then(|part| RowRange::chunk(&self.layout, part, first, len)) {
            Some(chunk) => Ok(chunk),
            None => self.chunk(rows),
        }
    }

    /// Returns the rows of a range as a chunk; a range should not exceed the context's
    /// `chunk_rows`.
    pub fn chunk(&self, rows: Range<u64>) -> Result<Chunk> {
        let (index, len) = (self.part_of(rows.start), (rows.end - rows.start) as usize);
        // Most ranges are in one part and need no list of rows.
        if let Some(piece) = self.parts.get(index).filter(|_| rows.end <= self.starts[index + 1]) {
            let first = (rows.start - self.starts[index]) as usize;
            let Some(part) = piece.part() else { return Ok(self.read(index)?.slice(first, len)) };
            let run = RowSelection::Run(first, len);
            let columns =
                (0..self.tuple().len()).map(|field| part.gather(&self.layout, field, run));
            return Ok(Chunk::new(columns.collect::<Result<_>>()?, len));
        }
        let numbers: Vec<u64> = rows.collect();
        Ok(Chunk::new(self.gather_all(&numbers)?, len))
    }

    /// Reads the next rows, at most `rows` (not 0); `None` at the end. With `lazy`, the chunk may
    /// refer to the rows as [`Rows::lazy_chunk`] does.
    ///
    /// # Errors
    /// Spilled rows cannot be read.
    pub fn next(&self, place: &mut RowsPlace, rows: usize, lazy: bool) -> Result<Option<Chunk>> {
        let start = place.row;
        let mut index = self.part_of(start);
        let Some(piece) = self.parts.get(index).filter(|_| start < self.len() as u64) else {
            return Ok(None);
        };
        let limit = start + rows as u64;
        if piece.part().is_some() {
            while index < self.parts.len()
                && self.starts[index] < limit
                && self.parts[index].part().is_some()
            {
                index += 1;
            }
            place.row = limit.min(self.starts[index]);
            let range = start..place.row;
            return if lazy { self.lazy_chunk(range) } else { self.chunk(range) }.map(Some);
        }
        let first = self.starts[index];
        let block = match place.read.take() {
            Some((at, block)) if at == first => block,
            _ => self.read(index)?,
        };
        place.row = limit.min(self.starts[index + 1]);
        let chunk = block.slice((start - first) as usize, (place.row - start) as usize);
        place.read = Some((first, block));
        Ok(Some(chunk))
    }

    /// Reads a spilled piece.
    fn read(&self, index: usize) -> Result<Chunk> {
        match self.parts.get(index) {
            Some(Piece::File(chunk)) => chunk.chunk(),
            _ => Err(Error::internal("rows in memory were read from a file")),
        }
    }

    /// Returns the hashes of a range of rows.
    pub fn hashes(&self, rows: Range<u64>) -> Result<Vec<u64>> {
        self.fixed(HASH_OFFSET, rows)
    }

    /// Returns a state field of a range of rows.
    pub fn states<T: Fixed>(&self, state: usize, rows: Range<u64>) -> Result<Vec<T>> {
        self.fixed(self.layout.state_offset(state), rows)
    }

    /// Returns the bytes of a view from a state field of row `part_of_row`; short ones are in the
    /// view itself.
    pub fn bytes<'a>(&'a self, part_of_row: u64, view: &'a [u8; 16]) -> &'a [u8] {
        let bits = u128::from_le_bytes(*view);
        let len = bits as u32 as usize;
        if len <= 12 {
            return &view[4..4 + len];
        }
        let part = self.parts.get(self.part_of(part_of_row)).and_then(Piece::part);
        part.and_then(|part| super::resolved_columns::long_bytes(bits, &part.heap))
            .unwrap_or_default()
    }

    fn fixed<T: Fixed>(&self, offset: usize, rows: Range<u64>) -> Result<Vec<T>> {
        let mut out = Vec::with_capacity((rows.end - rows.start) as usize);
        let mut next = rows.start;
        while next < rows.end {
            let index = self.part_of(next);
            let Some(part) = self.parts.get(index).and_then(Piece::part) else {
                return Err(Error::internal(format!("row {next} of {} was read", self.len())));
            };
            let (start, end) = (self.starts[index], self.starts[index + 1].min(rows.end));
            out.extend(
                part.pages
                    .gather_range::<T>(offset, (next - start) as usize..(end - start) as usize),
            );
            next = end;
        }
        Ok(out)
    }

    /// The index of the piece that contains a row.
    fn part_of(&self, row: u64) -> usize {
        self.starts.partition_point(|start| *start <= row).saturating_sub(1)
    }

    fn gather_across(&self, field: usize, rows: &[u64]) -> Result<Column> {
        if rows.is_empty() || self.parts.is_empty() {
            if rows.iter().any(|row| *row != super::NO_ROW) {
                return Err(Error::internal("a row of empty rows was read"));
            }
            return super::gather::nulls_of(&self.layout, field, rows.len());
        }
        // The rows of each piece are gathered separately, then put back into order.
        let mut places = Vec::with_capacity(rows.len());
        let mut wanted: Vec<(usize, Vec<u64>)> = Vec::new();
        let mut current = usize::MAX;
        for row in rows {
            let index = if *row == super::NO_ROW { 0 } else { self.part_of(*row) };
            if wanted.get(current).is_none_or(|(part, _)| *part != index) {
                current = match wanted.iter().position(|(part, _)| *part == index) {
                    Some(found) => found,
                    None => {
                        wanted.push((index, Vec::new()));
                        wanted.len() - 1
                    }
                };
            }
            let list = &mut wanted[current].1;
            places.push((current, list.len()));
            let start = self.starts.get(index).copied().unwrap_or_default();
            list.push(if *row == super::NO_ROW { *row } else { *row - start });
        }
        let mut columns = Vec::with_capacity(wanted.len());
        for (index, list) in &wanted {
            let part =
                self.parts.get(*index).ok_or_else(|| Error::internal("a row beyond the last"))?;
            columns.push(part.gather(&self.layout, field, list)?);
        }
        if columns.len() == 1 {
            return Ok(columns.remove(0));
        }
        if let Some(Column::Handles(_)) = columns.first() {
            let lists = columns.iter().map(Column::handles).collect::<Result<Vec<_>>>()?;
            return Ok(Column::Handles(
                places.iter().map(|(list, place)| lists[*list][*place].clone()).collect(),
            ));
        }
        let arrays = columns.iter().map(Column::plain).collect::<Result<Vec<_>>>()?;
        let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
        Ok(Column::Plain(arrow::compute::interleave(&arrays, &places)?))
    }
}

impl Part {
    /// The bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        let heap: usize = self.heap.iter().map(Buffer::capacity).sum();
        self.pages.memory_bytes() + heap + self.sides.iter().map(Side::memory_bytes).sum::<usize>()
    }
}
