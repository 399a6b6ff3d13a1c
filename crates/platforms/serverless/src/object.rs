//! What an exchange's object holds: an index, and row groups, each for a receiver or of a
//! partition.
//!
//! The *index* has a magic word and the number of groups, then three words per group: length, rows,
//! checksum. It stands first, since not every store gives the last bytes of an object whose length
//! one does not know (Azure's does not). A *row group* is a sequence of packets: three words
//! (position of the morsel, words of rows, bytes of strings), the rows, the strings. All words are
//! little-endian.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use object_store::PutPayload;
use tessera_context::{Context, Reservation};
use tessera_rows::{Packet, Region, RowLayout, Rows};
use tessera_types::{Error, Result};
use tessera_vector::hash::word_of_bytes;

const HEADER_BYTES: usize = 24;
const CONTENT_WORDS: usize = 3;
const START_BYTES: usize = 16;
const MAGIC: u64 = u64::from_le_bytes(*b"tessera2");
/// The largest object that a store takes in one request.
const OBJECT_BYTES_MAX: u64 = 5 << 30;

/// The bytes of the index of an object with so many groups.
pub(crate) fn index_bytes(groups: usize) -> usize {
    START_BYTES + groups * CONTENT_WORDS * 8
}

/// What is in a row group, or in several together.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content {
    len: u64,
    rows: u64,
    /// Over all packets; a sum, since threads fill in any order.
    checksum: u64,
}

impl Content {
    /// Words of an index for each group.
    pub(crate) const WORDS: usize = CONTENT_WORDS;

    #[cfg(any(test, fuzzing))]
    pub(crate) fn new(len: u64, rows: u64, checksum: u64) -> Content {
        Content { len, rows, checksum }
    }

    /// Of both together.
    pub(crate) fn and(self, other: Content) -> Content {
        Content {
            len: self.len.saturating_add(other.len),
            rows: self.rows.saturating_add(other.rows),
            checksum: self.checksum.wrapping_add(other.checksum),
        }
    }
}

/// A row group, or the part of one that one thread has filled.
#[derive(Debug, Default)]
pub(crate) struct Group {
    bytes: Vec<u8>,
    content: Content,
}

impl Group {
    pub(crate) fn add(
        &mut self,
        position: u64,
        mut packet: Packet<'_>,
        layout: &RowLayout,
        heap_words: &[usize],
    ) {
        packet.relocate(layout, heap_words, 0);
        let start = self.bytes.len();
        self.bytes.reserve(HEADER_BYTES + packet.rows.len() * 8 + packet.heap.len());
        for number in [position, packet.rows.len() as u64, packet.heap.len() as u64] {
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
        packet.rows.iter().for_each(|word| self.bytes.extend_from_slice(&word.to_le_bytes()));
        self.bytes.extend_from_slice(&packet.heap);
        self.content = self.content.and(Content {
            len: (self.bytes.len() - start) as u64,
            rows: (packet.rows.len() * 8 / layout.stride_bytes()) as u64,
            checksum: word_of_bytes(&self.bytes[start..]),
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The memory that it takes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

/// What is in each group of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Index(Vec<Content>);

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes))
}

impl Index {
    /// Of groups, each in parts.
    pub(crate) fn of(groups: &[Vec<Came>]) -> Index {
        let content = |parts: &Vec<Came>| {
            parts.iter().map(|part| part.content).fold(Content::default(), Content::and)
        };
        Index(groups.iter().map(content).collect())
    }

    /// From the first bytes of an object with so many groups.
    ///
    /// # Errors
    /// These are not the first bytes of such an object.
    pub(crate) fn read(head: &[u8], groups: usize) -> Result<Index> {
        let read = || {
            let fits = word(head, 0)? == MAGIC && word(head, 8)? == groups as u64;
            let content = |group: usize| {
                let at =
                    |field: usize| word(head, START_BYTES + (group * CONTENT_WORDS + field) * 8);
                Some(Content { len: at(0)?, rows: at(1)?, checksum: at(2)? })
            };
            fits.then(|| (0..groups).map(content).collect::<Option<Vec<_>>>())?
        };
        let damaged = || Error::data("an object of an exchange is damaged: its index does not fit");
        read().map(Index).ok_or_else(damaged)
    }

    fn bytes(&self) -> Vec<u8> {
        [MAGIC, self.0.len() as u64]
            .into_iter()
            .chain(self.words())
            .flat_map(u64::to_le_bytes)
            .collect()
    }

    /// Checks that an object of this size holds these groups and nothing else.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn check(&self, size: u64) -> Result<()> {
        let start = index_bytes(self.0.len()) as u64;
        if self.0.iter().fold(start, |end, content| end.saturating_add(content.len)) == size {
            return Ok(());
        }
        Err(Error::data("an object of an exchange is damaged: it is not as long as its index says"))
    }

    /// How many rows each group has.
    pub(crate) fn rows(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|content| content.rows)
    }

    /// Three words for each group.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|content| [content.len, content.rows, content.checksum])
    }

    /// From such words.
    pub(crate) fn of_words(words: &[u64]) -> Index {
        let content = |words: &[u64; CONTENT_WORDS]| {
            let [len, rows, checksum] = *words;
            Content { len, rows, checksum }
        };
        Index(words.as_chunks::<CONTENT_WORDS>().0.iter().map(content).collect())
    }

    /// Where some groups lie, in order, and what is there; of neighbours together.
    pub(crate) fn runs(&self, wanted: impl Fn(usize) -> bool) -> Vec<(Range<u64>, Content)> {
        self.runs_from(index_bytes(self.0.len()) as u64, wanted)
    }

    /// The same, where the first group begins at this byte.
    pub(crate) fn runs_from(
        &self,
        mut start: u64,
        wanted: impl Fn(usize) -> bool,
    ) -> Vec<(Range<u64>, Content)> {
        let mut runs: Vec<(Range<u64>, Content)> = Vec::new();
        for (group, content) in self.0.iter().enumerate() {
            let end = start.saturating_add(content.len);
            if content.len > 0 && wanted(group) {
                match runs.last_mut() {
                    Some((run, before)) if run.end == start => {
                        (run.end, *before) = (end, before.and(*content));
                    }
                    _ => runs.push((start..end, *content)),
                }
            }
            start = end;
        }
        runs
    }
}

/// The object of groups, each in parts.
///
/// # Errors
/// It would be larger than a store takes.
pub(crate) fn payload(groups: &[Vec<Came>], index: &Index) -> Result<PutPayload> {
    let len: u64 = index.0.iter().map(|content| content.len).sum();
    if len > OBJECT_BYTES_MAX {
        return Err(Error::unsupported(format!(
            "a worker would have to send {} GiB at once, and an object holds 5; run with more --workers",
            len >> 30
        )));
    }
    let parts =
        groups.iter().flatten().map(|part| part.bytes.clone()).filter(|bytes| !bytes.is_empty());
    Ok([Bytes::from(index.bytes())].into_iter().chain(parts).collect())
}

/// Row groups that have come, or a part of one that is this worker's own, and what is said of them.
#[derive(Debug, Clone)]
pub(crate) struct Came {
    pub(crate) content: Content,
    pub(crate) bytes: Bytes,
}

impl From<Group> for Came {
    fn from(group: Group) -> Came {
        Came { content: group.content, bytes: group.bytes.into() }
    }
}

/// A packet as it came: its position, and where its rows and strings are.
struct Piece<'a> {
    position: u64,
    rows: &'a [u8],
    heap: &'a [u8],
}

fn damaged() -> Error {
    Error::data("an object of an exchange is damaged: its content does not fit its checksum")
}

/// Cuts the packets out of row groups that come in pieces, and checks them.
pub(crate) struct Checking {
    stride_bytes: usize,
    /// So far.
    found: Content,
}

impl Checking {
    pub(crate) fn new(layout: &RowLayout) -> Checking {
        Checking { stride_bytes: layout.stride_bytes(), found: Content::default() }
    }

    /// The packets that are whole, and how many bytes they have.
    fn pieces<'a>(&mut self, bytes: &'a [u8]) -> Result<(Vec<Piece<'a>>, usize)> {
        let (mut pieces, mut rest) = (Vec::new(), bytes);
        while let (Some(position), Some(words), Some(heap_len)) =
            (word(rest, 0), word(rest, 8), word(rest, 16))
        {
            let of_rows = words
                .checked_mul(8)
                .and_then(|len| usize::try_from(len).ok())
                .ok_or_else(damaged)?;
            let heap_len = usize::try_from(heap_len).map_err(|_| damaged())?;
            let len = of_rows.checked_add(heap_len).and_then(|len| len.checked_add(HEADER_BYTES));
            let len = len.filter(|_| of_rows % self.stride_bytes == 0).ok_or_else(damaged)?;
            let Some((packet, behind)) = rest.split_at_checked(len) else { break };
            let (rows, heap) = packet[HEADER_BYTES..].split_at(of_rows);
            self.found = self.found.and(Content {
                len: len as u64,
                rows: (of_rows / self.stride_bytes) as u64,
                checksum: word_of_bytes(packet),
            });
            pieces.push(Piece { position, rows, heap });
            rest = behind;
        }
        Ok((pieces, bytes.len() - rest.len()))
    }

    /// The tuples of the packets that are whole, which are taken out of `bytes`.
    ///
    /// # Errors
    /// A packet is damaged, or the memory budget is exhausted.
    pub(crate) fn rows(
        &mut self,
        bytes: &mut Vec<u8>,
        layout: &Arc<RowLayout>,
        context: &Arc<dyn Context>,
    ) -> Result<Rows> {
        let (pieces, taken) = self.pieces(bytes)?;
        let rows = put_together(pieces, layout, context)?;
        bytes.drain(..taken);
        Ok(rows)
    }

    /// All has come: nothing may be left, and it must be what was said.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn end(&self, rest: &[u8], content: &Content) -> Result<()> {
        if rest.is_empty() && self.found == *content { Ok(()) } else { Err(damaged()) }
    }
}

/// The tuples of all groups, by position and then as the groups are ordered.
///
/// # Errors
/// A group is damaged, or the memory budget is exhausted.
pub(crate) fn decode(
    came: &[Came],
    layout: &Arc<RowLayout>,
    context: &Arc<dyn Context>,
) -> Result<Rows> {
    let mut all: Vec<Piece<'_>> = Vec::new();
    for Came { content, bytes } in came {
        let mut checking = Checking::new(layout);
        let (pieces, taken) = checking.pieces(bytes)?;
        checking.end(&bytes[taken..], content)?;
        all.extend(pieces);
    }
    all.sort_by_key(|piece| piece.position);
    put_together(all, layout, context)
}

fn put_together(
    pieces: Vec<Piece<'_>>,
    layout: &Arc<RowLayout>,
    context: &Arc<dyn Context>,
) -> Result<Rows> {
    let bytes = |of: fn(&Piece<'_>) -> usize| pieces.iter().map(of).sum::<usize>();
    let (row_bytes, heap_bytes) =
        (bytes(|piece| piece.rows.len()), bytes(|piece| piece.heap.len()));
    let mut memory = Reservation::new(context.clone());
    memory.grow(row_bytes + heap_bytes)?;
    let heap_words = tessera_rows::heap_words(layout)?;
    let mut all = Vec::with_capacity(row_bytes / 8);
    let mut heap: Vec<u8> = Vec::with_capacity(heap_bytes);
    for piece in pieces {
        let words = piece.rows.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let mut packet = Packet::came(words.collect(), piece.heap.to_vec());
        packet.check(layout)?;
        packet.relocate(layout, &heap_words, heap.len() as u64);
        all.extend_from_slice(&packet.rows);
        heap.extend_from_slice(&packet.heap);
    }
    let heap = Region::of_bytes(&heap);
    Rows::arrived(layout, Region::owned(all), &heap, heap_bytes, vec![memory])
}

#[cfg(test)]
mod tests {
    use tessera_engine::{Governor, Query, Settings};

    use super::*;

    fn layout() -> Arc<RowLayout> {
        RowLayout::bare(&"<k: int64>".parse().unwrap()).unwrap()
    }

    fn group(position: u64, rows: usize) -> Group {
        let layout = layout();
        let mut group = Group::default();
        let words = vec![position; rows * layout.stride_bytes() / 8];
        group.add(position, Packet::came(words, Vec::new()), &layout, &[]);
        group
    }

    #[test]
    fn groups_are_found_and_checked() {
        let context: Arc<dyn Context> = Query::new(Settings::default(), &Governor::unlimited());
        let parts = [vec![group(5, 3), group(1, 2)], vec![], vec![group(9, 4)], vec![group(9, 1)]];
        let parts = parts.map(|parts| parts.into_iter().map(Came::from).collect::<Vec<_>>());
        let object: Vec<u8> =
            payload(&parts, &Index::of(&parts)).unwrap().into_iter().flatten().collect();
        let index = Index::read(&object[..object.len() - 3], 4).unwrap();
        assert_eq!(index, Index::of(&parts));
        assert_eq!(index.rows().collect::<Vec<_>>(), [5, 0, 4, 1]);
        let came = |groups: &[usize]| {
            let runs = index.runs(|group| groups.contains(&group)).into_iter();
            let bytes =
                |range: Range<u64>| object[range.start as usize..range.end as usize].to_vec();
            runs.map(|(range, content)| Came { content, bytes: bytes(range).into() })
                .collect::<Vec<_>>()
        };
        // Neighbours are read together, with what is empty between them.
        for (groups, runs, rows) in [
            (&[0][..], 1, 5),
            (&[1], 0, 0),
            (&[2], 1, 4),
            (&[0, 2], 1, 9),
            (&[0, 3], 2, 6),
            (&[1, 2, 3], 1, 5),
        ] {
            assert_eq!(came(groups).len(), runs);
            assert_eq!(decode(&came(groups), &layout(), &context).unwrap().len(), rows);
        }
        let mut broken = came(&[0]).remove(0);
        let mut bytes = broken.bytes.to_vec();
        bytes[HEADER_BYTES + 3] ^= 1;
        broken.bytes = bytes.into();
        assert!(decode(&[broken], &layout(), &context).unwrap_err().message().contains("damaged"));
        let mut short = came(&[0]).remove(0);
        short.bytes.truncate(HEADER_BYTES);
        assert!(decode(&[short], &layout(), &context).is_err());
        assert!(Index::read(&object, 2).is_err() && Index::read(&object[..40], 4).is_err());
    }
}
