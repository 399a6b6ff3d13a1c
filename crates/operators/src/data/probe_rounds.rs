//! Joins a spilled partition that cannot be subdivided, because most of its tuples share one key: a
//! block nested loop. Each round loads as many build tuples as fit into memory and reads the stream
//! again.

use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, Int64Array};
use arrow::datatypes::Int64Type;

use tessera_context::Run;
use tessera_operator::{Reader, Step};
use tessera_rows::spill::TupleBlock;
use tessera_state::join::{JoinKind, SpilledStream, TableBuild};
use tessera_types::{Atom, Error, Field, Result, Tuple};
use tessera_vector::{Chunk, Column};

use super::probe::{BuildTuples, ProbeRun, ProbeSpec};
use super::probe_spilled::{PartitionReader, table_of};

/// Joins one partition in rounds.
pub(super) struct Rounds {
    spec: Arc<ProbeSpec>,
    spilled_stream: Arc<SpilledStream>,
    all: BuildTuples,
    run: Run,
    build: Arc<TableBuild>,
    build_blocks: std::vec::IntoIter<TupleBlock>,
    stream_blocks: Vec<TupleBlock>,
    /// Whether each stream tuple has found a match; used if the kind of join needs it. Stream
    /// tuples then carry their numbers.
    found: Vec<bool>,
    are_numbered: bool,
    round: Option<PartitionReader>,
    /// Whether this is the last round, which yields stream tuples without a match.
    is_last: bool,
}

/// The stream tuples of a partition that a round reads.
pub(super) enum Stream {
    /// All tuples.
    Plain,
    /// All tuples, with their numbers.
    Numbered,
    /// Tuples whose flag is not set, with their numbers.
    NumberedWithout(Vec<bool>),
    /// Tuples whose flag is not set.
    Without(Vec<bool>),
}

impl Stream {
    /// Selects from a chunk that starts at tuple `first`.
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
        (spec, spilled_stream, all, run): (&Arc<ProbeSpec>, &Arc<SpilledStream>, BuildTuples, &Run),
        build: Arc<TableBuild>,
        build_blocks: Vec<TupleBlock>,
        stream_blocks: Vec<TupleBlock>,
    ) -> Result<Rounds> {
        run.counters.add("partitions_in_rounds", 1);
        let tuples = stream_blocks.iter().map(|block| block.rows).sum();
        Ok(Rounds {
            spec: spec.clone(),
            spilled_stream: spilled_stream.clone(),
            all,
            run: run.clone(),
            build,
            build_blocks: build_blocks.into_iter(),
            stream_blocks,
            found: vec![false; tuples],
            are_numbered: spec.kind().decides_stream(),
            round: None,
            is_last: false,
        })
    }

    /// Returns the blocks of build tuples for the next round.
    fn blocks(&mut self) -> Vec<TupleBlock> {
        let mut blocks: Vec<TupleBlock> = self.build_blocks.next().into_iter().collect();
        let mut bytes: usize = blocks.iter().map(|block| block.block.bytes()).sum();
        while let Some(block) = self.build_blocks.as_slice().first() {
            // All workers at once hold the rows and the blocks they are copied from.
            let many = 2 * self.run.context.workers();
            if !self.run.context.may_hold(many * bytes, many * block.block.bytes()) {
                break;
            }
            bytes += block.block.bytes();
            blocks.extend(self.build_blocks.next());
        }
        blocks
    }

    /// Starts the next round; `None` after the last.
    fn next(&mut self) -> Result<Option<PartitionReader>> {
        use JoinKind::{Anti, Full, Inner, Left, Mark, Right, Semi, Single};
        let kind = self.spec.kind();
        let file = self.build.spilled.as_ref().map(|spilled| spilled.file().clone());
        let file = file.ok_or_else(|| Error::internal("a build without spilled partitions"))?;
        let blocks = self.blocks();
        let (spec, stream) = if !blocks.is_empty() {
            match kind {
                Left | Single => (self.spec.numbered(Inner), Stream::Numbered),
                Full => (self.spec.numbered(Right), Stream::Numbered),
                Semi | Anti | Mark => {
                    (self.spec.numbered(Semi), Stream::NumberedWithout(self.found.clone()))
                }
                _ => (self.spec.clone(), Stream::Plain),
            }
        } else if !self.is_last && matches!(kind, Left | Single | Full | Anti | Mark) {
            self.is_last = true;
            let spec = if kind == Full { self.spec.of_kind(Left) } else { self.spec.clone() };
            (spec, Stream::Without(self.found.clone()))
        } else {
            return Ok(None);
        };
        let build = Arc::new(self.build.in_memory());
        let table = table_of(&build, &file, blocks)?;
        let run = ProbeRun::new(&spec, table, &self.run, Some(self.all))?;
        Ok(Some(PartitionReader::new(
            run,
            &self.spilled_stream,
            self.stream_blocks.clone(),
            stream,
            &self.run,
        )?))
    }

    /// Returns the part of a round's output that belongs to the join's output.
    fn output(&mut self, chunk: Chunk) -> Result<Option<Chunk>> {
        if self.is_last || !self.are_numbered {
            return Ok(Some(chunk));
        }
        let number = self.spec.stream().len();
        let numbers = chunk.column(number)?.plain()?;
        let numbers = numbers.as_primitive::<Int64Type>();
        for number in numbers.iter().flatten() {
            let before = std::mem::replace(&mut self.found[number as usize], true);
            self.spec.kind().check_repeated(before)?;
        }
        let mut columns = chunk.stored().to_vec();
        columns.remove(number);
        Ok(match self.spec.kind() {
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

/// The tuple type of the stream with the tuple number that rounds add.
pub(super) fn numbered(stream: &Tuple) -> Tuple {
    stream.concat(&Tuple::new(vec![
        Field::new("number of the stream tuple", Atom::Int64).with_nullable(true),
    ]))
}
