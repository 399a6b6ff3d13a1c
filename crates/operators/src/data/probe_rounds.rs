//! The join of a partition that cannot be cut, because most of its tuples have one key: block
//! nested loops. The build is taken in rounds of what fits into memory, the stream is read again in
//! each.

use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, Int64Array};
use arrow::datatypes::Int64Type;

use tessera_context::Run;
use tessera_operator::{Reader, Step};
use tessera_rows::spill::TupleBlock;
use tessera_state::join::{Away, JoinKind, TableBuild};
use tessera_types::{Atom, Error, Field, Result, Tuple};
use tessera_vector::{Chunk, Column};

use super::probe::{BuildTuples, How, ProbeRun};
use super::probe_spilled::{PartitionReader, table_of};

/// Joins one partition in rounds.
pub(super) struct Rounds {
    how: Arc<How>,
    away: Arc<Away>,
    all: BuildTuples,
    run: Run,
    build: Arc<TableBuild>,
    build_blocks: std::vec::IntoIter<TupleBlock>,
    stream_blocks: Vec<TupleBlock>,
    /// Whether each stream tuple has found a match, where the join wants to know: then they carry
    /// numbers.
    found: Vec<bool>,
    are_numbered: bool,
    round: Option<PartitionReader>,
    /// Whether the round is the last, of tuples that have found none.
    is_last: bool,
}

/// Stream tuples of a partition, as a round wants them.
pub(super) enum Stream {
    /// As they are.
    Plain,
    /// With their numbers; all of them.
    Numbered,
    /// With their numbers; those whose flag is not set.
    NumberedWithout(Vec<bool>),
    /// Those whose flag is not set.
    Without(Vec<bool>),
}

impl Stream {
    /// The tuples of a chunk that starts at tuple `first`.
    pub(super) fn take(&self, chunk: Chunk, first: usize) -> Chunk {
        let rows = chunk.rows();
        let numbered = |chunk: Chunk| {
            let mut columns = chunk.stored().to_vec();
            let numbers =
                Int64Array::from_iter_values((first..first + rows).map(|number| number as i64));
            columns.push(Column::Plain(Arc::new(numbers)));
            Chunk::new(columns, rows)
        };
        let without = |chunk: Chunk, found: &[bool]| {
            chunk.filter(&found[first..first + rows].iter().map(|found| Some(!found)).collect())
        };
        match self {
            Stream::Plain => chunk,
            Stream::Numbered => numbered(chunk),
            Stream::NumberedWithout(found) => without(numbered(chunk), found),
            Stream::Without(found) => without(chunk, found),
        }
    }
}

impl Rounds {
    pub(super) fn new(
        (how, away, all, run): (&Arc<How>, &Arc<Away>, BuildTuples, &Run),
        build: Arc<TableBuild>,
        build_blocks: Vec<TupleBlock>,
        stream_blocks: Vec<TupleBlock>,
    ) -> Result<Rounds> {
        run.counters.add("partitions_in_rounds", 1);
        let tuples = stream_blocks.iter().map(|block| block.rows).sum();
        Ok(Rounds {
            how: how.clone(),
            away: away.clone(),
            all,
            run: run.clone(),
            build,
            build_blocks: build_blocks.into_iter(),
            stream_blocks,
            found: vec![false; tuples],
            are_numbered: how.kind().decides_stream(),
            round: None,
            is_last: false,
        })
    }

    /// The build tuples of the next round.
    fn blocks(&mut self) -> Vec<TupleBlock> {
        let mut blocks: Vec<TupleBlock> = self.build_blocks.next().into_iter().collect();
        let mut bytes: usize = blocks.iter().map(|block| block.block.bytes()).sum();
        while let Some(block) = self.build_blocks.as_slice().first() {
            // Twice: rows and what they are copied from; by all workers at once.
            let many = 2 * self.run.context.workers();
            if !self.run.context.may_hold(many * bytes, many * block.block.bytes()) {
                break;
            }
            bytes += block.block.bytes();
            blocks.extend(self.build_blocks.next());
        }
        blocks
    }

    /// The next round; none when all are done.
    fn next(&mut self) -> Result<Option<PartitionReader>> {
        use JoinKind::{Anti, Full, Inner, Left, Mark, Right, Semi, Single};
        let kind = self.how.kind();
        let file = self.build.spilled.as_ref().map(|spilled| spilled.file().clone());
        let file = file.ok_or_else(|| Error::internal("a build that has not left"))?;
        let blocks = self.blocks();
        let (how, stream) = if !blocks.is_empty() {
            match kind {
                Left | Single => (self.how.numbered(Inner), Stream::Numbered),
                Full => (self.how.numbered(Right), Stream::Numbered),
                Semi | Anti | Mark => {
                    (self.how.numbered(Semi), Stream::NumberedWithout(self.found.clone()))
                }
                _ => (self.how.clone(), Stream::Plain),
            }
        } else if !self.is_last && matches!(kind, Left | Single | Full | Anti | Mark) {
            self.is_last = true;
            let how = if kind == Full { self.how.of_kind(Left) } else { self.how.clone() };
            (how, Stream::Without(self.found.clone()))
        } else {
            return Ok(None);
        };
        let build = Arc::new(self.build.in_memory());
        let table = table_of(&build, &file, blocks)?;
        let run = ProbeRun::new(&how, table, &self.run, Some(self.all))?;
        Ok(Some(PartitionReader::new(
            run,
            &self.away,
            self.stream_blocks.clone(),
            stream,
            &self.run,
        )?))
    }

    /// What of a round's output is the join's.
    fn output(&mut self, chunk: Chunk) -> Result<Option<Chunk>> {
        if self.is_last || !self.are_numbered {
            return Ok(Some(chunk));
        }
        let number = self.how.stream().len();
        let numbers = chunk.column(number)?.plain()?;
        let numbers = numbers.as_primitive::<Int64Type>();
        for number in numbers.iter().flatten() {
            let before = std::mem::replace(&mut self.found[number as usize], true);
            self.how.kind().check_repeated(before)?;
        }
        let mut columns = chunk.stored().to_vec();
        columns.remove(number);
        Ok(match self.how.kind() {
            JoinKind::Anti => None,
            JoinKind::Mark => {
                let marks = BooleanArray::from(vec![true; chunk.rows_stored()]);
                columns.push(Column::Plain(Arc::new(marks)));
                Some(chunk.with_stored(columns))
            }
            _ => Some(chunk.with_stored(columns)),
        })
    }
}

impl Reader for Rounds {
    fn step(&mut self) -> Result<Step> {
        loop {
            let Some(round) = &mut self.round else {
                self.round = self.next()?;
                if self.round.is_none() {
                    return Ok(Step::Done);
                }
                continue;
            };
            match round.step()? {
                Step::HasOutput(chunk) => {
                    if let Some(chunk) = self.output(chunk)? {
                        return Ok(Step::HasOutput(chunk));
                    }
                }
                Step::Done => self.round = None,
                step => return Ok(step),
            }
        }
    }
}

/// The stream's tuple with the number that rounds add.
pub(super) fn numbered(stream: &Tuple) -> Tuple {
    stream.concat(&Tuple::new(vec![
        Field::new("number of the stream tuple", Atom::Int64).with_nullable(true),
    ]))
}
