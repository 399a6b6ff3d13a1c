//! The format of an exchange object: an index, then row groups, one per receiver or per partition.
//!
//! The *index* has a magic word and the number of groups, then three words per group: length, rows,
//! checksum. It comes first because not every store can read the last bytes of an object of unknown
//! length (Azure cannot). A *row group* is a sequence of packets: three words (position of the
//! morsel, words of rows, bytes of strings), the rows, the strings. All words are little-endian.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use object_store::PutPayload;
use tessera_context::{Context, Reservation};
use tessera_rows::{RowLayout, Rows, WireBatch, WordBuffer};
use tessera_types::{Error, Result};
use tessera_vector::hash::word_of_bytes;

const HEADER_BYTES: usize = 24;
const CONTENT_WORDS: usize = 3;
const START_BYTES: usize = 16;
const MAGIC: u64 = u64::from_le_bytes(*b"tessera2");
/// The maximum size of an object that is written in one request.
const OBJECT_BYTES_MAX: u64 = 5 << 30;

/// Returns the size of the index of an object with this many groups.
pub(crate) fn index_bytes(groups: usize) -> usize {
    START_BYTES + groups * CONTENT_WORDS * 8
}

/// The length, rows and checksum of one or more row groups.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupSummary {
    len: u64,
    rows: u64,
    /// The sum of the packets' checksums, since threads add packets in any order.
    checksum: u64,
}

impl GroupSummary {
    /// The number of index words per group.
    pub(crate) const WORDS: usize = CONTENT_WORDS;

    #[cfg(any(test, fuzzing))]
    pub(crate) fn new(len: u64, rows: u64, checksum: u64) -> GroupSummary {
        GroupSummary { len, rows, checksum }
    }

    /// Combines two summaries.
    pub(crate) fn plus(self, other: GroupSummary) -> GroupSummary {
        GroupSummary {
            len: self.len.saturating_add(other.len),
            rows: self.rows.saturating_add(other.rows),
            checksum: self.checksum.wrapping_add(other.checksum),
        }
    }
}

/// A row group, or the part of it that one thread has filled.
#[derive(Debug, Default)]
pub(crate) struct Group {
    bytes: Vec<u8>,
    content: GroupSummary,
}

impl Group {
    pub(crate) fn add(
        &mut self,
        position: u64,
        mut packet: WireBatch<'_>,
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
        self.content = self.content.plus(GroupSummary {
            len: (self.bytes.len() - start) as u64,
            rows: (packet.rows.len() * 8 / layout.stride_bytes()) as u64,
            checksum: word_of_bytes(&self.bytes[start..]),
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The memory that the group uses.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

/// The index of an object: a summary of each group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Index(Vec<GroupSummary>);

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes))
}

impl Index {
    /// Computes the index of groups, each a list of parts.
    pub(crate) fn of_groups(groups: &[Vec<GroupData>]) -> Index {
        let content = |parts: &Vec<GroupData>| {
            parts.iter().map(|part| part.content).fold(GroupSummary::default(), GroupSummary::plus)
        };
        Index(groups.iter().map(content).collect())
    }

    /// Reads the index from the first bytes of an object with this many groups.
    ///
    /// # Errors
    /// The bytes are not a valid index.
    pub(crate) fn read(head: &[u8], groups: usize) -> Result<Index> {
        let read = || {
            let fits = word(head, 0)? == MAGIC && word(head, 8)? == groups as u64;
            let content = |group: usize| {
                let at =
                    |field: usize| word(head, START_BYTES + (group * CONTENT_WORDS + field) * 8);
                Some(GroupSummary { len: at(0)?, rows: at(1)?, checksum: at(2)? })
            };
            fits.then(|| (0..groups).map(content).collect::<Option<Vec<_>>>())?
        };
        let damaged = || Error::data("damaged exchange object: invalid index");
        read().map(Index).ok_or_else(damaged)
    }

    fn bytes(&self) -> Vec<u8> {
        [MAGIC, self.0.len() as u64]
            .into_iter()
            .chain(self.words())
            .flat_map(u64::to_le_bytes)
            .collect()
    }

    /// Checks that an object of this size holds exactly these groups.
    ///
    /// # Errors
    /// The size is different.
    pub(crate) fn check(&self, size: u64) -> Result<()> {
        let start = index_bytes(self.0.len()) as u64;
        if self.0.iter().fold(start, |end, content| end.saturating_add(content.len)) == size {
            return Ok(());
        }
        Err(Error::data("damaged exchange object: its length does not match its index"))
    }

    /// The number of rows of each group.
    pub(crate) fn rows(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|content| content.rows)
    }

    /// The index as words, three for each group.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|content| [content.len, content.rows, content.checksum])
    }

    /// Reads an index from its words.
    pub(crate) fn of_words(words: &[u64]) -> Index {
        let content = |words: &[u64; CONTENT_WORDS]| {
            let [len, rows, checksum] = *words;
            GroupSummary { len, rows, checksum }
        };
        Index(words.as_chunks::<CONTENT_WORDS>().0.iter().map(content).collect())
    }

    /// Returns the byte ranges of the wanted groups, in order, with their summaries; neighboring
    /// groups share a range.
    pub(crate) fn runs(&self, wanted: impl Fn(usize) -> bool) -> Vec<(Range<u64>, GroupSummary)> {
        self.runs_from(index_bytes(self.0.len()) as u64, wanted)
    }

    /// Like [`Index::runs`], with the first group at byte `start`.
    pub(crate) fn runs_from(
        &self,
        mut start: u64,
        wanted: impl Fn(usize) -> bool,
    ) -> Vec<(Range<u64>, GroupSummary)> {
        let mut runs: Vec<(Range<u64>, GroupSummary)> = Vec::new();
        for (group, content) in self.0.iter().enumerate() {
            let end = start.saturating_add(content.len);
            if content.len > 0 && wanted(group) {
                match runs.last_mut() {
                    Some((run, before)) if run.end == start => {
                        (run.end, *before) = (end, before.plus(*content));
                    }
                    _ => runs.push((start..end, *content)),
                }
            }
            start = end;
        }
        runs
    }
}

/// Returns the object of these groups, each a list of parts.
///
/// # Errors
/// The object would exceed the size limit of stores.
pub(crate) fn payload(groups: &[Vec<GroupData>], index: &Index) -> Result<PutPayload> {
    let len: u64 = index.0.iter().map(|content| content.len).sum();
    if len > OBJECT_BYTES_MAX {
        return Err(Error::unsupported(format!(
            "a worker would send {} GiB in one object, above the limit of 5 GiB; run with more --workers",
            len >> 30
        )));
    }
    let parts =
        groups.iter().flatten().map(|part| part.bytes.clone()).filter(|bytes| !bytes.is_empty());
    Ok([Bytes::from(index.bytes())].into_iter().chain(parts).collect())
}

/// The bytes of row groups, received or this worker's own, with the summary that they must match.
#[derive(Debug, Clone)]
pub(crate) struct GroupData {
    pub(crate) content: GroupSummary,
    pub(crate) bytes: Bytes,
}

impl From<Group> for GroupData {
    fn from(group: Group) -> GroupData {
        GroupData { content: group.content, bytes: group.bytes.into() }
    }
}

/// A packet within received bytes: its position, rows and strings.
struct PacketSlice<'a> {
    position: u64,
    rows: &'a [u8],
    heap: &'a [u8],
}

fn damaged() -> Error {
    Error::data("damaged exchange object: its content does not match its checksum")
}

/// Splits received row groups into packets and checks them.
pub(crate) struct PacketChecker {
    stride_bytes: usize,
    /// The summary of the packets so far.
    found: GroupSummary,
}

impl PacketChecker {
    pub(crate) fn new(layout: &RowLayout) -> PacketChecker {
        PacketChecker { stride_bytes: layout.stride_bytes(), found: GroupSummary::default() }
    }

    /// Returns the complete packets and the number of bytes they take.
    fn packets<'a>(&mut self, bytes: &'a [u8]) -> Result<(Vec<PacketSlice<'a>>, usize)> {
        let (mut packets, mut rest) = (Vec::new(), bytes);
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
            self.found = self.found.plus(GroupSummary {
                len: len as u64,
                rows: (of_rows / self.stride_bytes) as u64,
                checksum: word_of_bytes(packet),
            });
            packets.push(PacketSlice { position, rows, heap });
            rest = behind;
        }
        Ok((packets, bytes.len() - rest.len()))
    }

    /// Returns the tuples of the complete packets and removes their bytes.
    ///
    /// # Errors
    /// A packet is damaged, or the memory budget is exhausted.
    pub(crate) fn rows(
        &mut self,
        bytes: &mut Vec<u8>,
        layout: &Arc<RowLayout>,
        context: &Arc<dyn Context>,
    ) -> Result<Rows> {
        let (packets, taken) = self.packets(bytes)?;
        let rows = concatenate(packets, layout, context)?;
        bytes.drain(..taken);
        Ok(rows)
    }

    /// Checks, after the last byte, that no bytes are left and that the packets match their
    /// summary.
    ///
    /// # Errors
    /// The packets do not match.
    pub(crate) fn end(&self, rest: &[u8], content: &GroupSummary) -> Result<()> {
        if rest.is_empty() && self.found == *content { Ok(()) } else { Err(damaged()) }
    }
}

/// Decodes the tuples of all groups, ordered by position and then by group.
///
/// # Errors
/// A group is damaged, or the memory budget is exhausted.
pub(crate) fn decode(
    groups: &[GroupData],
    layout: &Arc<RowLayout>,
    context: &Arc<dyn Context>,
) -> Result<Rows> {
    let mut all: Vec<PacketSlice<'_>> = Vec::new();
    for GroupData { content, bytes } in groups {
        let mut checker = PacketChecker::new(layout);
        let (packets, taken) = checker.packets(bytes)?;
        checker.end(&bytes[taken..], content)?;
        all.extend(packets);
    }
    all.sort_by_key(|packet| packet.position);
    concatenate(all, layout, context)
}

fn concatenate(
    packets: Vec<PacketSlice<'_>>,
    layout: &Arc<RowLayout>,
    context: &Arc<dyn Context>,
) -> Result<Rows> {
    let bytes = |of: fn(&PacketSlice<'_>) -> usize| packets.iter().map(of).sum::<usize>();
    let (row_bytes, heap_bytes) =
        (bytes(|packet| packet.rows.len()), bytes(|packet| packet.heap.len()));
    let mut memory = Reservation::new(context.clone());
    memory.grow(row_bytes + heap_bytes)?;
    let heap_words = tessera_rows::heap_words(layout)?;
    let mut all = Vec::with_capacity(row_bytes / 8);
    let mut heap: Vec<u8> = Vec::with_capacity(heap_bytes);
    for piece in packets {
        let words = piece.rows.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let mut packet = WireBatch::received(words.collect(), piece.heap.to_vec());
        packet.check(layout)?;
        packet.relocate(layout, &heap_words, heap.len() as u64);
        all.extend_from_slice(&packet.rows);
        heap.extend_from_slice(&packet.heap);
    }
    let heap = WordBuffer::of_bytes(&heap);
    Rows::received(layout, WordBuffer::owned(all), &heap, heap_bytes, vec![memory])
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
        group.add(position, WireBatch::received(words, Vec::new()), &layout, &[]);
        group
    }

    #[test]
    fn groups_are_found_and_checked() {
        let context: Arc<dyn Context> = Query::new(Settings::default(), &Governor::unlimited());
        let parts = [vec![group(5, 3), group(1, 2)], vec![], vec![group(9, 4)], vec![group(9, 1)]];
        let parts = parts.map(|parts| parts.into_iter().map(GroupData::from).collect::<Vec<_>>());
        let object: Vec<u8> =
            payload(&parts, &Index::of_groups(&parts)).unwrap().into_iter().flatten().collect();
        let index = Index::read(&object[..object.len() - 3], 4).unwrap();
        assert_eq!(index, Index::of_groups(&parts));
        assert_eq!(index.rows().collect::<Vec<_>>(), [5, 0, 4, 1]);
        let received = |groups: &[usize]| {
            let runs = index.runs(|group| groups.contains(&group)).into_iter();
            let bytes =
                |range: Range<u64>| object[range.start as usize..range.end as usize].to_vec();
            runs.map(|(range, content)| GroupData { content, bytes: bytes(range).into() })
                .collect::<Vec<_>>()
        };
        // Neighboring groups are read together, with empty groups between them.
        for (groups, runs, rows) in [
            (&[0][..], 1, 5),
            (&[1], 0, 0),
            (&[2], 1, 4),
            (&[0, 2], 1, 9),
            (&[0, 3], 2, 6),
            (&[1, 2, 3], 1, 5),
        ] {
            assert_eq!(received(groups).len(), runs);
            assert_eq!(decode(&received(groups), &layout(), &context).unwrap().len(), rows);
        }
        let mut broken = received(&[0]).remove(0);
        let mut bytes = broken.bytes.to_vec();
        bytes[HEADER_BYTES + 3] ^= 1;
        broken.bytes = bytes.into();
        assert!(decode(&[broken], &layout(), &context).unwrap_err().message().contains("damaged"));
        let mut short = received(&[0]).remove(0);
        short.bytes.truncate(HEADER_BYTES);
        assert!(decode(&[short], &layout(), &context).is_err());
        assert!(Index::read(&object, 2).is_err() && Index::read(&object[..40], 4).is_err());
    }
}
