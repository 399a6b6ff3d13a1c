//! Spilled values of groups: sorted runs in a scratch file, and their merge.

use std::cmp::Ordering;
use std::sync::Arc;

use tessera_context::interrupt::check_here;
use tessera_rows::spill::{SpillBlock, SpillFile};
use tessera_types::{Error, Result};

use crate::loser_tree::LoserTree;

/// Bytes of a block; a merge has one block of each run in memory.
const BLOCK_BYTES: usize = 64 << 10;
/// The most runs merged at once.
const RUNS_MAX: usize = 64;
/// Bytes of the group and of the lengths of key and rest.
const HEAD_BYTES: usize = 12;

/// A value: its group, its sort key within the group, and the remaining bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) group: u32,
    pub(super) key: &'a [u8],
    pub(super) rest: &'a [u8],
}

impl Entry<'_> {
    fn compare(&self, other: &Entry<'_>) -> Ordering {
        self.group.cmp(&other.group).then_with(|| self.key.cmp(other.key))
    }
}

/// The spilled values of all groups.
#[derive(Debug, Default)]
pub(super) struct SpilledValues {
    runs: Vec<Run>,
}

#[derive(Debug)]
struct Run {
    file: Arc<SpillFile>,
    blocks: Vec<SpillBlock>,
}

/// Writes a run.
pub(super) struct RunWriter {
    run: Run,
    bytes: Vec<u8>,
}

impl RunWriter {
    pub(super) fn new(file: &Arc<SpillFile>) -> RunWriter {
        RunWriter { run: Run { file: file.clone(), blocks: Vec::new() }, bytes: Vec::new() }
    }

    /// Appends a value; values must be in order.
    pub(super) fn push(&mut self, entry: &Entry<'_>) -> Result<()> {
        let more = HEAD_BYTES + entry.key.len() + entry.rest.len();
        if !self.bytes.is_empty() && self.bytes.len() + more > BLOCK_BYTES {
            self.write()?;
        }
        let length = |bytes: &[u8]| {
            u32::try_from(bytes.len())
                .map_err(|_| Error::data("a value of 4 GiB or more inside an aggregate"))
        };
        for word in [entry.group, length(entry.key)?, length(entry.rest)?] {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend(entry.key);
        self.bytes.extend(entry.rest);
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        check_here()?;
        self.run.blocks.push(self.run.file.write(&self.bytes)?);
        self.bytes.clear();
        Ok(())
    }
}

impl SpilledValues {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The file of the first run.
    pub(super) fn file(&self) -> Option<Arc<SpillFile>> {
        self.runs.first().map(|run| run.file.clone())
    }

    /// Adds a run.
    pub(super) fn add(&mut self, mut writer: RunWriter) -> Result<()> {
        writer.write()?;
        self.runs.push(writer.run);
        Ok(())
    }

    /// Adds the runs of the same groups from another worker.
    pub(super) fn append(&mut self, other: &mut SpilledValues) {
        self.runs.append(&mut other.runs);
    }

    /// Merges all values, group by group, in order.
    pub(super) fn merge(&mut self) -> Result<Merge> {
        while self.runs.len() > RUNS_MAX {
            let first: Vec<Run> = self.runs.drain(..RUNS_MAX).collect();
            let mut writer = RunWriter::new(&first[0].file);
            let mut merge = Merge::new(first)?;
            while let Some(entry) = merge.peek() {
                writer.push(&entry)?;
                merge.advance()?;
            }
            self.add(writer)?;
        }
        Merge::new(std::mem::take(&mut self.runs))
    }
}

/// Reads values in order.
pub(super) struct Merge {
    cursors: Vec<Cursor>,
    tree: Option<LoserTree>,
}

struct Cursor {
    run: Run,
    /// The number of the next block.
    next: usize,
    bytes: Vec<u8>,
    /// The offset of the current value in the block; the block's length if there is none.
    at: usize,
}

impl Cursor {
    fn entry(&self) -> Option<Entry<'_>> {
        let head = self.bytes.get(self.at..self.at + HEAD_BYTES)?;
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (key, end) = (self.at + HEAD_BYTES + word(4) as usize, word(8) as usize);
        let rest = self.bytes.get(key..key + end)?;
        Some(Entry { group: word(0), key: &self.bytes[self.at + HEAD_BYTES..key], rest })
    }

    fn advance(&mut self) -> Result<()> {
        self.at += self.entry().map_or(0, |entry| HEAD_BYTES + entry.key.len() + entry.rest.len());
        if self.at == self.bytes.len()
            && let Some(block) = self.run.blocks.get(self.next)
        {
            self.bytes = self.run.file.read(block)?;
            (self.at, self.next) = (0, self.next + 1);
        }
        Ok(())
    }
}

/// Finished runs come last.
fn is_first(cursors: &[Cursor], a: usize, b: usize) -> bool {
    match (cursors[a].entry(), cursors[b].entry()) {
        (Some(x), Some(y)) => x.compare(&y).is_lt(),
        (x, _) => x.is_some(),
    }
}

impl Merge {
    fn new(runs: Vec<Run>) -> Result<Merge> {
        let mut cursors = Vec::with_capacity(runs.len());
        for run in runs {
            let mut cursor = Cursor { run, next: 0, bytes: Vec::new(), at: 0 };
            cursor.advance()?;
            cursors.push(cursor);
        }
        let tree = (!cursors.is_empty())
            .then(|| LoserTree::new(cursors.len(), |a, b| is_first(&cursors, a, b)));
        Ok(Merge { cursors, tree })
    }

    /// Returns the current value.
    pub(super) fn peek(&self) -> Option<Entry<'_>> {
        self.tree.as_ref().and_then(|tree| self.cursors[tree.winner()].entry())
    }

    /// Moves to the next value.
    pub(super) fn advance(&mut self) -> Result<()> {
        let Some(tree) = &mut self.tree else { return Ok(()) };
        self.cursors[tree.winner()].advance()?;
        tree.replay(|a, b| is_first(&self.cursors, a, b));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{Numbers, TestContext, run_in};

    use super::*;

    #[test]
    fn runs_are_merged_in_order() {
        let context = TestContext::new(61, 1);
        let file = SpillFile::new(&run_in(&context));
        for runs in [0, 1, 3, 200] {
            let (mut left, mut expected, mut numbers) =
                (SpilledValues::default(), Vec::new(), Numbers::new(7));
            for _ in 0..runs {
                let value = |numbers: &mut Numbers| {
                    let length = numbers.below(40) as usize;
                    (
                        numbers.below(5) as u32,
                        vec![numbers.below(9) as u8; length],
                        numbers.below(1000).to_string(),
                    )
                };
                let mut run: Vec<_> = (0..50).map(|_| value(&mut numbers)).collect();
                run.push((9, vec![1; 100_000], String::new()));
                run.sort();
                let mut writer = RunWriter::new(&file);
                for (group, key, rest) in &run {
                    writer.push(&Entry { group: *group, key, rest: rest.as_bytes() }).unwrap();
                }
                left.add(writer).unwrap();
                expected.append(&mut run);
            }
            let (mut merge, mut found) = (left.merge().unwrap(), Vec::new());
            while let Some(entry) = merge.peek() {
                found.push((
                    entry.group,
                    entry.key.to_vec(),
                    String::from_utf8_lossy(entry.rest).to_string(),
                ));
                merge.advance().unwrap();
            }
            assert!(found.is_sorted_by(|a, b| (a.0, &a.1) <= (b.0, &b.1)));
            expected.sort();
            found.sort();
            assert!(found == expected);
        }
    }
}
