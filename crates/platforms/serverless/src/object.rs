//! What an exchange's object holds: a row group per receiver, and an index of them at the end.
//!
//! A *row group* is a sequence of packets: three words (position of the morsel, words of rows, bytes of strings), the rows, the
//! strings. The *index* has five words per group: offset, length, rows, bytes of strings, checksum; then follow the number of
//! groups and a magic word. All words are little-endian.

use std::sync::Arc;

use bytes::Bytes;
use object_store::PutPayload;
use tessera_ops::hash::word_of_bytes;
use tessera_ops::rows::{Packet, Region, RowLayout, Rows};
use tessera_ops::{Context, Reservation};
use tessera_types::{Error, Result};

const HEADER_BYTES: usize = 24;
const ENTRY_WORDS: usize = 5;
const TRAILER_BYTES: usize = 16;
const MAGIC: u64 = u64::from_le_bytes(*b"tessera1");
/// The largest object that a store takes in one request.
const OBJECT_BYTES_MAX: u64 = 5 << 30;

/// The bytes of the index of an object with so many groups.
pub(crate) fn index_bytes(groups: usize) -> usize {
    groups * ENTRY_WORDS * 8 + TRAILER_BYTES
}

/// A row group, or the part of one that one thread has filled.
#[derive(Debug, Default)]
pub(crate) struct Group {
    bytes: Vec<u8>,
    rows: u64,
    heap_bytes: u64,
    /// Over all packets; a sum, since threads fill in any order.
    checksum: u64,
}

impl Group {
    pub(crate) fn add(
        &mut self,
        position: u64,
        mut packet: Packet,
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
        self.rows += (packet.rows.len() * 8 / layout.stride_bytes()) as u64;
        self.heap_bytes += packet.heap.len() as u64;
        self.checksum = self.checksum.wrapping_add(word_of_bytes(&self.bytes[start..]));
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// The object of groups, each in parts.
///
/// # Errors
/// It would be larger than a store takes.
pub(crate) fn encode(groups: Vec<Vec<Group>>) -> Result<PutPayload> {
    let mut pieces = Vec::new();
    let mut index = Vec::with_capacity(index_bytes(groups.len()));
    let (count, mut offset) = (groups.len() as u64, 0);
    for parts in groups {
        let sum = |of: fn(&Group) -> u64| parts.iter().map(of).fold(0, u64::wrapping_add);
        let len = sum(|part| part.bytes.len() as u64);
        for word in
            [offset, len, sum(|part| part.rows), sum(|part| part.heap_bytes), sum(|part| part.checksum)]
        {
            index.extend_from_slice(&word.to_le_bytes());
        }
        offset += len;
        pieces.extend(
            parts.into_iter().filter(|part| !part.bytes.is_empty()).map(|part| Bytes::from(part.bytes)),
        );
    }
    if offset > OBJECT_BYTES_MAX {
        return Err(Error::unsupported(format!(
            "a worker would have to send {} GiB at once, and an object holds 5; run with more --workers",
            offset >> 30
        )));
    }
    index.extend_from_slice(&count.to_le_bytes());
    index.extend_from_slice(&MAGIC.to_le_bytes());
    pieces.push(index.into());
    Ok(pieces.into_iter().collect())
}

/// Where a row group lies, and what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    rows: u64,
    heap_bytes: u64,
    checksum: u64,
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes))
}

/// The entry of a group, from the last bytes of an object with so many groups.
///
/// # Errors
/// These are not the last bytes of such an object.
pub(crate) fn entry(tail: &[u8], groups: usize, group: usize) -> Result<Entry> {
    let read = || {
        let start = tail.len().checked_sub(index_bytes(groups))?;
        let trailer = tail.len() - TRAILER_BYTES;
        let fits =
            word(tail, trailer)? == groups as u64 && word(tail, trailer + 8)? == MAGIC && group < groups;
        let at = |field: usize| word(tail, start + (group * ENTRY_WORDS + field) * 8);
        fits.then_some(())?;
        Some(Entry { offset: at(0)?, len: at(1)?, rows: at(2)?, heap_bytes: at(3)?, checksum: at(4)? })
    };
    read().ok_or_else(|| Error::data("an object of an exchange is damaged: its index does not fit"))
}

/// A row group that has come, and what its index says of it.
#[derive(Debug, Clone)]
pub(crate) struct Came {
    pub(crate) entry: Entry,
    pub(crate) bytes: Bytes,
}

/// A group of this worker's own, which needs no store.
pub(crate) fn own(parts: Vec<Group>) -> Vec<Came> {
    let entry = |part: &Group| Entry {
        offset: 0,
        len: part.bytes.len() as u64,
        rows: part.rows,
        heap_bytes: part.heap_bytes,
        checksum: part.checksum,
    };
    parts.into_iter().map(|part| Came { entry: entry(&part), bytes: part.bytes.into() }).collect()
}

/// A packet as it came: its position, and where its rows and strings are.
struct Piece<'a> {
    position: u64,
    rows: &'a [u8],
    heap: &'a [u8],
}

/// The tuples of all groups, by position and then as the groups are ordered.
///
/// # Errors
/// A group is damaged, or the memory budget is exhausted.
pub(crate) fn decode(came: &[Came], layout: &Arc<RowLayout>, context: &Arc<dyn Context>) -> Result<Rows> {
    let damaged =
        || Error::data("an object of an exchange is damaged: its content does not fit its checksum");
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    let (mut rows, mut heap_bytes) = (0, 0);
    for Came { entry, bytes } in came {
        let (mut rest, mut checksum) = (&bytes[..], 0u64);
        let before = (rows, heap_bytes);
        while !rest.is_empty() {
            let number = |at: usize| word(rest, at).ok_or_else(damaged);
            let (position, words, heap_len) = (number(0)?, number(8)? as usize, number(16)? as usize);
            let len =
                words.checked_mul(8).and_then(|len| len.checked_add(heap_len)?.checked_add(HEADER_BYTES));
            let (packet, behind) = len.and_then(|len| rest.split_at_checked(len)).ok_or_else(damaged)?;
            checksum = checksum.wrapping_add(word_of_bytes(packet));
            let (of_rows, of_heap) = packet[HEADER_BYTES..].split_at(words * 8);
            pieces.push(Piece { position, rows: of_rows, heap: of_heap });
            rows += of_rows.len() / layout.stride_bytes();
            heap_bytes += heap_len;
            rest = behind;
        }
        let found = (bytes.len() as u64, (rows - before.0) as u64, (heap_bytes - before.1) as u64, checksum);
        if found != (entry.len, entry.rows, entry.heap_bytes, entry.checksum) {
            return Err(damaged());
        }
    }
    pieces.sort_by_key(|piece| piece.position);
    let mut memory = Reservation::new(context.clone());
    memory.grow(rows * layout.stride_bytes() + heap_bytes)?;
    let heap_words = tessera_ops::rows::heap_words(layout)?;
    let mut all = Vec::with_capacity(rows * layout.stride_bytes() / 8);
    let mut heap: Vec<u8> = Vec::with_capacity(heap_bytes);
    for piece in pieces {
        let words = piece.rows.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let mut packet = Packet::came(words.collect(), piece.heap.to_vec());
        packet.relocate(layout, &heap_words, heap.len() as u64);
        all.extend_from_slice(&packet.rows);
        heap.extend_from_slice(&packet.heap);
    }
    let heap = Region::of_bytes(&heap);
    Rows::arrived(layout, Region::owned(all), &heap, heap_bytes, vec![memory])
}

#[cfg(test)]
mod tests {
    use tessera_exec::{Governor, Query, Settings};

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
        let parts = vec![vec![group(5, 3), group(1, 2)], vec![], vec![group(9, 4)]];
        let object: Vec<u8> = encode(parts).unwrap().into_iter().flatten().collect();
        let came = |group: usize| {
            let entry = entry(&object, 3, group).unwrap();
            let bytes = object[entry.offset as usize..(entry.offset + entry.len) as usize].to_vec();
            Came { entry, bytes: bytes.into() }
        };
        for (group, rows) in [(0, 5), (1, 0), (2, 4)] {
            assert_eq!(decode(&[came(group)], &layout(), &context).unwrap().len(), rows);
        }
        assert_eq!(decode(&[came(2), came(0)], &layout(), &context).unwrap().len(), 9);
        let mut broken = came(0);
        let mut bytes = broken.bytes.to_vec();
        bytes[HEADER_BYTES + 3] ^= 1;
        broken.bytes = bytes.into();
        assert!(decode(&[broken], &layout(), &context).unwrap_err().message().contains("damaged"));
        let mut short = came(0);
        short.bytes.truncate(HEADER_BYTES);
        assert!(decode(&[short], &layout(), &context).is_err());
        assert!(entry(&object, 2, 0).is_err() && entry(&object[..40], 3, 0).is_err());
    }
}
