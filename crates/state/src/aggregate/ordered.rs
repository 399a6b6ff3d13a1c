//! `DISTINCT` and `ORDER BY` inside aggregates, and functions whose result depends on the order of
//! their input.
//!
//! The values are kept, as bytes in Arrow's row format, until all of a group have come; then they
//! are sorted and fed to the function proper. With `DISTINCT` each is kept once.

use std::any::Any;
use std::hash::BuildHasher;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Decimal128Array};
use arrow::compute::SortOptions;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, IntervalUnit};
use arrow::row::{RowConverter, Rows, SortField};
use hashbrown::{DefaultHashBuilder, HashTable};
use tessera_context::interrupt::{Every, check_here};
use tessera_functions::one_nan::one_nan;
use tessera_rows::spill::SpillFile;
use tessera_types::{Error, Result};
use tessera_vector::Column;
use tessera_vector::physical::{interval_length, interval_values};

use super::area::Area;
use super::groups::{Groups, Pairs};
use super::left::{Entry as LeftEntry, LeftValues, RunWriter};
use super::{Aggregate, Function, Output};

/// Values fed to the function at once, and how long they are together at most, about.
const FEED_ROWS: usize = 16_384;
/// Fewer entries are not worth cutting.
const CUT_LEAST: usize = if cfg!(test) { 16 } else { 4_096 };
const FEED_BYTES: usize = 1 << 20;

/// What is kept, and in which order it is fed.
#[derive(Debug)]
pub struct OrderedSpec {
    /// The function that gets the values.
    pub function: Function,
    /// The types of its arguments, which come first.
    pub args: Vec<DataType>,
    /// The types and directions of the sort keys, which follow.
    pub keys: Vec<(DataType, SortOptions)>,
    /// Each combination of arguments once a group.
    pub distinct: bool,
    /// Without sort keys the order matters all the same: the source's, or with `distinct` that of
    /// the values.
    pub order_matters: bool,
    /// How many values of a group are fed at most; others may be dropped as soon as so many come
    /// before them.
    pub first: Option<u64>,
}

impl OrderedSpec {
    /// Whether what is kept can leave memory. Where the result has all values, that would not help;
    /// and what is told apart by one thing and sorted by another cannot be done in one merge. Of
    /// what is fed in part, the rest is dropped in memory.
    fn can_leave(&self) -> bool {
        self.first.is_none() && !self.has_all_values() && (self.keys.is_empty() || !self.distinct)
    }

    /// Whether the result may be as large as all values.
    fn has_all_values(&self) -> bool {
        match &self.function {
            Function::List | Function::Joined => true,
            Function::Library(spec) => !spec.keeps_one(),
            _ => false,
        }
    }
}

/// One kept value: its group, and its bytes: what tells it from others, if not the arguments do,
/// arguments, sort key.
#[derive(Debug, Clone, Copy)]
struct Entry {
    group: u32,
    identity_bytes: u32,
    args_bytes: u32,
    key_bytes: u32,
    block: u32,
    start: u32,
}

impl Entry {
    /// Equal values have the same, and it sorts as they do.
    fn identity(self, blocks: &[Vec<u8>]) -> &[u8] {
        match self.identity_bytes {
            0 => self.args(blocks),
            bytes => &blocks[self.block as usize][self.start as usize..][..bytes as usize],
        }
    }

    fn args(self, blocks: &[Vec<u8>]) -> &[u8] {
        let start = self.start as usize + self.identity_bytes as usize;
        &blocks[self.block as usize][start..][..self.args_bytes as usize]
    }

    fn key(self, blocks: &[Vec<u8>]) -> &[u8] {
        let start = self.start as usize + self.identity_bytes as usize + self.args_bytes as usize;
        &blocks[self.block as usize][start..][..self.key_bytes as usize]
    }
}

/// Values are kept in blocks, each as large as all before it within these bounds, so that nothing
/// is ever moved; a larger value has a block of its own.
const BLOCK_BYTES_LEAST: usize = 1 << 10;
const BLOCK_BYTES_MOST: usize = 1 << 20;

/// The kept values of all groups.
#[derive(Debug)]
pub(super) struct Ordered {
    spec: Arc<OrderedSpec>,
    offset: usize,
    args: RowConverter,
    /// The arguments as what they are compared by, where that is not what they are.
    identity: Option<RowConverter>,
    keys: RowConverter,
    blocks: Vec<Vec<u8>>,
    /// Of all blocks.
    bytes: usize,
    entries: Vec<Entry>,
    seen: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// When sealed: entries stand group by group; here each group's start.
    starts: Option<Vec<u32>>,
    /// With so many entries, those that surely are not among the first of their group are dropped.
    cut_at: usize,
    left: LeftValues,
}

impl Ordered {
    /// Nothing kept yet; the function's own state starts at `offset`.
    ///
    /// # Errors
    /// Values of an argument's type cannot be kept.
    pub(super) fn new(spec: Arc<OrderedSpec>, offset: usize) -> Result<Self> {
        let last = SortOptions { descending: false, nulls_first: false };
        let field = |data_type: &DataType| SortField::new_with_options(data_type.clone(), last);
        let args = spec.args.iter().map(field).collect();
        let key = |(data_type, options): &(DataType, SortOptions)| {
            SortField::new_with_options(compared_type(data_type), *options)
        };
        let keys = spec.keys.iter().map(key).collect();
        let differs = spec.distinct && spec.args.iter().any(is_interval);
        let identity =
            || RowConverter::new(spec.args.iter().map(compared_type).map(|t| field(&t)).collect());
        Ok(Ordered {
            args: RowConverter::new(args)?,
            identity: if differs { Some(identity()?) } else { None },
            keys: RowConverter::new(keys)?,
            spec,
            offset,
            blocks: Vec::new(),
            bytes: 0,
            entries: Vec::new(),
            seen: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            starts: None,
            cut_at: CUT_LEAST,
            left: LeftValues::default(),
        })
    }

    /// The place of so many more bytes: a block that has room for them.
    fn room(&mut self, bytes: usize) -> Result<(usize, u32)> {
        if self.blocks.last().is_none_or(|block| block.capacity() - block.len() < bytes) {
            let capacity = bytes.max(self.bytes.clamp(BLOCK_BYTES_LEAST, BLOCK_BYTES_MOST));
            self.blocks.push(Vec::with_capacity(capacity));
            self.bytes += capacity;
        }
        let block = self.blocks.len() - 1;
        Ok((block, size(self.blocks[block].len())?))
    }

    /// Keeps a value; the key is given in pieces.
    fn keep(&mut self, group: u32, [identity, args]: [&[u8]; 2], key: [&[u8]; 2]) -> Result<()> {
        if self.spec.distinct {
            let same = if identity.is_empty() { args } else { identity };
            let hash = self.hasher.hash_one((group, same));
            let (blocks, entries, hasher) = (&self.blocks, &self.entries, &self.hasher);
            let equal = |&place: &u32| {
                let entry = &entries[place as usize];
                entry.group == group && entry.identity(blocks) == same
            };
            if self.seen.find(hash, equal).is_some() {
                return Ok(());
            }
            let every = Every::default();
            let rehash = |&place: &u32| {
                every.pass();
                let entry = &entries[place as usize];
                hasher.hash_one((entry.group, entry.identity(blocks)))
            };
            self.seen.insert_unique(hash, self.entries.len() as u32, rehash);
        }
        if self.entries.len() >= u32::MAX as usize {
            return Err(Error::data(
                "an aggregate with DISTINCT or ORDER BY over more than 2^32 values",
            ));
        }
        let key_bytes = key[0].len() + key[1].len();
        let (block, start) = self.room(identity.len() + args.len() + key_bytes)?;
        let (args_bytes, key_bytes) = (size(args.len())?, size(key_bytes)?);
        let identity_bytes = size(identity.len())?;
        for part in [identity, args, key[0], key[1]] {
            self.blocks[block].extend_from_slice(part);
        }
        self.entries.push(Entry {
            group,
            identity_bytes,
            args_bytes,
            key_bytes,
            block: block as u32,
            start,
        });
        Ok(())
    }

    /// Drops what is not among the first values of its group, once there is twice what the last
    /// time left.
    fn cut(&mut self) -> Result<()> {
        let Some(first) = self.spec.first.filter(|_| self.entries.len() >= self.cut_at) else {
            return Ok(());
        };
        let mut entries = std::mem::take(&mut self.entries);
        let blocks = std::mem::take(&mut self.blocks);
        self.bytes = 0;
        let every = Every::default();
        entries.sort_by(|a, b| {
            every.pass();
            a.group.cmp(&b.group).then_with(|| a.key(&blocks).cmp(b.key(&blocks)))
        });
        retain_first(&mut entries, first);
        for entry in entries {
            let value = [entry.args(&blocks), entry.key(&blocks)];
            self.keep(entry.group, [&[], value[0]], [value[1], &[]])?;
        }
        self.cut_at = CUT_LEAST.max(2 * self.entries.len());
        Ok(())
    }
}

/// The first entries of each group, of entries sorted by group.
fn retain_first(entries: &mut Vec<Entry>, first: u64) {
    let mut last = None;
    let mut count = 0;
    entries.retain(|entry| {
        count = if last == Some(entry.group) { count + 1 } else { 1 };
        last = Some(entry.group);
        count <= first
    });
}

fn size(bytes: usize) -> Result<u32> {
    u32::try_from(bytes).map_err(|_| Error::data("a value of 4 GiB or more inside an aggregate"))
}

fn is_interval(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(IntervalUnit::MonthDayNano))
}

/// What values of a type are compared by: intervals by their length.
fn compared_type(data_type: &DataType) -> DataType {
    match is_interval(data_type) {
        true => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
        false => data_type.clone(),
    }
}

/// Values as what they are compared by.
fn compared(array: &ArrayRef) -> Result<ArrayRef> {
    if !is_interval(array.data_type()) {
        return Ok(array.clone());
    }
    let lengths = interval_values(array)?.iter().map(|value| interval_length(*value));
    let lengths = Decimal128Array::new(lengths.collect::<Vec<_>>().into(), array.nulls().cloned());
    Ok(Arc::new(lengths.with_precision_and_scale(DECIMAL128_MAX_PRECISION, 0)?))
}

/// Rows of no columns are not rows to the converter.
fn rows_of(converter: &RowConverter, arrays: &[ArrayRef]) -> Result<Option<Rows>> {
    if arrays.is_empty() { Ok(None) } else { Ok(Some(converter.convert_columns(arrays)?)) }
}

impl Aggregate for Ordered {
    fn update(&mut self, _: &mut Area, groups: &Groups<'_>, columns: &[Column]) -> Result<()> {
        let arrays = columns.iter().map(|c| one_nan(&c.plain()?)).collect::<Result<Vec<_>>>()?;
        let (args, keys) = arrays.split_at(self.spec.args.len());
        let keys = keys[..self.spec.keys.len()].iter().map(compared).collect::<Result<Vec<_>>>()?;
        let identity = match &self.identity {
            Some(converter) => {
                rows_of(converter, &args.iter().map(compared).collect::<Result<Vec<_>>>()?)?
            }
            None => None,
        };
        let (args, keys) = (rows_of(&self.args, args)?, rows_of(&self.keys, &keys)?);
        let (morsel, first) = groups.position;
        for row in 0..groups.rows {
            let mut position = [0u8; 16];
            position[..8].copy_from_slice(&morsel.to_be_bytes());
            position[8..].copy_from_slice(&(first + row as u64).to_be_bytes());
            let arg = args.as_ref().map(|rows| rows.row(row));
            let key = keys.as_ref().map(|rows| rows.row(row));
            let key: &[u8] = key.as_ref().map_or(&[], |key| key.as_ref());
            let arg: &[u8] = arg.as_ref().map_or(&[], |arg| arg.as_ref());
            let identity = identity.as_ref().map(|rows| rows.row(row));
            let identity: &[u8] = identity.as_ref().map_or(&[], |identity| identity.as_ref());
            // Positions break ties, so that the result does not depend on who worked on what.
            let ordered =
                !self.spec.keys.is_empty() || (self.spec.order_matters && !self.spec.distinct);
            self.keep(
                groups.group(row),
                [identity, arg],
                [key, if ordered { &position } else { &[] }],
            )?;
        }
        self.cut()
    }

    fn seal(&mut self, area: &Area) -> Result<()> {
        if self.starts.is_none() {
            let mut starts = vec![0u32; area.groups() + 1];
            let every = Every::default();
            self.entries.sort_by_key(|entry| {
                every.pass();
                entry.group
            });
            self.entries.iter().for_each(|entry| starts[entry.group as usize + 1] += 1);
            (1..starts.len()).for_each(|i| starts[i] += starts[i - 1]);
            self.starts = Some(starts);
            self.seen = HashTable::new();
        }
        Ok(())
    }

    fn merge(&mut self, _: &mut Area, pairs: &Pairs<'_>, other: &mut dyn Any) -> Result<()> {
        let unsealed = || Error::internal("merge of states that are not sealed");
        let other = other.downcast_mut::<Ordered>().ok_or_else(unsealed)?;
        if !other.left.is_empty() && !pairs.is_identity() {
            return Err(Error::internal("merge of values that have left memory"));
        }
        self.left.append(&mut other.left);
        let starts = other.starts.as_ref().ok_or_else(unsealed)?;
        let every = Every::default();
        for (group, row) in pairs.iter() {
            let range = starts[row as usize] as usize..starts[row as usize + 1] as usize;
            for entry in &other.entries[range] {
                every.pass();
                let identity = match entry.identity_bytes {
                    0 => &[],
                    _ => entry.identity(&other.blocks),
                };
                let value = [identity, entry.args(&other.blocks)];
                self.keep(group, value, [entry.key(&other.blocks), &[]])?;
            }
        }
        self.cut()
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        if let Some(file) = self.left.file() {
            self.leave(&file)?;
            return self.finish_left(area, output);
        }
        let mut entries = std::mem::take(&mut self.entries);
        let sorted_by_args =
            self.spec.order_matters && self.spec.distinct && self.spec.keys.is_empty();
        let blocks = &self.blocks;
        let key =
            |entry: &Entry| if sorted_by_args { entry.identity(blocks) } else { entry.key(blocks) };
        // Stable: what neither keys nor positions tell apart stays as it came.
        let every = Every::default();
        entries.sort_by(|a, b| {
            every.pass();
            a.group.cmp(&b.group).then_with(|| key(a).cmp(key(b)))
        });
        if let Some(first) = self.spec.first {
            retain_first(&mut entries, first);
        }
        let mut function = self.spec.function.make(self.offset)?;
        let parser = self.args.parser();
        for part in entries.chunks(FEED_ROWS) {
            check_here()?;
            let groups: Vec<u32> = part.iter().map(|entry| entry.group).collect();
            let columns: Vec<Column> = match self.spec.args.is_empty() {
                true => Vec::new(),
                false => {
                    let rows = part.iter().map(|entry| parser.parse(entry.args(blocks)));
                    self.args.convert_rows(rows)?.into_iter().map(Column::Plain).collect()
                }
            };
            function.update(area, &Groups::each(&groups, (0, 0)), &columns)?;
        }
        function.finish(area, output)
    }

    fn memory(&self) -> usize {
        let result = if self.spec.has_all_values() { self.bytes } else { 0 };
        let entries = self.entries.capacity() * size_of::<Entry>();
        self.bytes + result + entries + self.seen.capacity() * size_of::<u64>()
    }

    fn leave(&mut self, file: &Arc<SpillFile>) -> Result<()> {
        if !self.spec.can_leave() || self.entries.is_empty() {
            return Ok(());
        }
        let mut entries = std::mem::take(&mut self.entries);
        let blocks = std::mem::take(&mut self.blocks);
        (self.bytes, self.seen, self.starts) = (0, HashTable::new(), None);
        let distinct = self.spec.distinct;
        let key =
            |entry: Entry| if distinct { entry.identity(&blocks) } else { entry.key(&blocks) };
        let every = Every::default();
        entries.sort_unstable_by(|a, b| {
            every.pass();
            a.group.cmp(&b.group).then_with(|| key(*a).cmp(key(*b)))
        });
        let mut writer = RunWriter::new(file);
        for entry in entries {
            // Arguments that tell values apart are not written twice.
            let rest =
                if distinct && entry.identity_bytes == 0 { &[] } else { entry.args(&blocks) };
            writer.push(&LeftEntry { group: entry.group, key: key(entry), rest })?;
        }
        self.left.add(writer)
    }
}

/// Values that are fed next.
#[derive(Default)]
struct Feed {
    groups: Vec<u32>,
    /// The arguments of each, one after the other, and where they end.
    args: Vec<u8>,
    ends: Vec<usize>,
}

impl Ordered {
    /// The results where values have left memory: all of them have.
    fn finish_left(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let mut function = self.spec.function.make(self.offset)?;
        let mut merge = self.left.merge()?;
        let (mut feed, mut before) = (Feed::default(), None::<(u32, Vec<u8>)>);
        while let Some(entry) = merge.peek() {
            let known = |(group, key): &(u32, Vec<u8>)| *group == entry.group && key == entry.key;
            if !self.spec.distinct || !before.as_ref().is_some_and(known) {
                let is_key = self.spec.distinct && self.identity.is_none();
                feed.groups.push(entry.group);
                feed.args.extend(if is_key { entry.key } else { entry.rest });
                feed.ends.push(feed.args.len());
                if self.spec.distinct {
                    let mut key = before.take().map_or_else(Vec::new, |(_, key)| key);
                    key.clear();
                    key.extend(entry.key);
                    before = Some((entry.group, key));
                }
            }
            merge.advance()?;
            if feed.groups.len() == FEED_ROWS || feed.args.len() > FEED_BYTES {
                self.feed(&mut *function, area, &mut feed)?;
            }
        }
        self.feed(&mut *function, area, &mut feed)?;
        function.finish(area, output)
    }

    fn feed(&self, function: &mut dyn Aggregate, area: &mut Area, feed: &mut Feed) -> Result<()> {
        check_here()?;
        let parser = self.args.parser();
        let starts = std::iter::once(0).chain(feed.ends.iter().copied());
        let columns: Vec<Column> = match self.spec.args.is_empty() || feed.groups.is_empty() {
            true => Vec::new(),
            false => {
                let rows = starts
                    .zip(&feed.ends)
                    .map(|(start, end)| parser.parse(&feed.args[start..*end]));
                self.args.convert_rows(rows)?.into_iter().map(Column::Plain).collect()
            }
        };
        if !feed.groups.is_empty() {
            function.update(area, &Groups::each(&feed.groups, (0, 0)), &columns)?;
        }
        *feed = Feed::default();
        Ok(())
    }
}
