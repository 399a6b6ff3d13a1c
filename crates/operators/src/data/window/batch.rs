//! A batch of whole partitions.

use arrow::array::BooleanArray;
use tessera_types::{Error, Result};
use tessera_vector::Chunk;

use super::{FlagFields, flags};

/// Whole partitions: the fields that calls read, and the borders of partitions and peers.
#[derive(Debug)]
pub(super) struct Batch {
    /// The fields that calls read, without a selection.
    pub(super) chunk: Chunk,
    /// The first row of each partition, and the number of rows.
    pub(super) partitions: Vec<u32>,
    /// The first row of each group of peers, and the number of rows.
    pub(super) peers: Vec<u32>,
}

/// The rows from `start` to before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Batch {
    pub(super) fn new(chunk: Chunk, fields: FlagFields) -> Result<Batch> {
        let partitions = starts(&flags(&chunk, fields.partition)?);
        let peers = starts(&flags(&chunk, fields.peer)?);
        if partitions.first() != Some(&0) || peers.first() != Some(&0) {
            return Err(Error::internal("a batch of a window function begins inside a partition"));
        }
        Ok(Batch { chunk, partitions, peers })
    }

    pub(super) fn rows(&self) -> usize {
        self.chunk.rows()
    }

    /// Iterates over the partitions.
    pub(super) fn partition_spans(&self) -> impl Iterator<Item = Span> {
        spans(&self.partitions)
    }

    /// Iterates over the groups of peers.
    pub(super) fn peer_spans(&self) -> impl Iterator<Item = Span> {
        spans(&self.peers)
    }

    /// Iterates over the partitions, each with its groups of peers.
    pub(super) fn partitions_with_peers(&self) -> impl Iterator<Item = (Span, &[u32])> {
        let mut first = 0;
        self.partition_spans().map(move |partition| {
            let count = self.peers[first..].partition_point(|start| *start < partition.end);
            let peers = &self.peers[first..=first + count];
            first += count;
            (partition, peers)
        })
    }

    /// Returns a value for each row, computed for each of these spans.
    pub(super) fn of_rows(
        &self,
        spans: impl Iterator<Item = Span>,
        value: impl Fn(Span) -> u32,
    ) -> Vec<u32> {
        let mut values = Vec::with_capacity(self.rows());
        for span in spans {
            values.resize(span.end as usize, value(span));
        }
        values
    }
}

/// Iterates over the spans between borders.
pub(super) fn spans(borders: &[u32]) -> impl Iterator<Item = Span> + '_ {
    borders.windows(2).map(|pair| Span { start: pair[0], end: pair[1] })
}

fn starts(flags: &BooleanArray) -> Vec<u32> {
    let mut starts: Vec<u32> = flags.values().set_indices_u32().collect();
    starts.push(flags.len() as u32);
    starts
}
