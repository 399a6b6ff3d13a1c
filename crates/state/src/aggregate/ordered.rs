//! `DISTINCT` and `ORDER BY` in aggregates, and functions whose result depends on the order of
//! their input.
//!
//! The values of a group are stored, as bytes in Arrow's row format, until all have arrived; then
//! they are sorted and passed to the underlying function. With `DISTINCT` equal values are stored
//! once.

use std::any::Any;
use std::hash::BuildHasher;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Decimal128Array};
use arrow::compute::SortOptions;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, IntervalUnit};
use arrow::row::{RowConverter, Rows, SortField};
use hashbrown::{DefaultHashBuilder, HashTable};
use tessera_context::interrupt::{Every, check_here};
use tessera_rows::spill::SpillFile;
use tessera_types::{Error, Result};
use tessera_values::canonical::canonical_floats;
use tessera_vector::Column;
use tessera_vector::physical::{interval_length, interval_values};

use super::area::Area;
use super::groups::{Groups, Pairs};
use super::spilled_values::{Entry as LeftEntry, RunWriter, SpilledValues};
use super::{Aggregate, Function, Output};

/// The most values passed to the function at once, and their approximate total bytes.
const FEED_ROWS: usize = 16_384;
/// Fewer entries are not worth pruning.
const CUT_LEAST: usize = if cfg!(test) { 16 } else { 4_096 };
const FEED_BYTES: usize = 1 << 20;

/// The stored values, and the order in which they are passed to the function.
#[derive(Debug)]
pub struct OrderedSpec {
    /// The underlying function.
    pub function: Function,
    /// The types of its arguments, which come first.
    pub args: Vec<DataType>,
    /// The types and directions of the sort keys, which follow.
    pub keys: Vec<(DataType, SortOptions)>,
    /// Whether each combination of arguments is passed once per group.
    pub distinct: bool,
    /// Whether order matters even without sort keys: the order of the source, or with `distinct`
    /// that of the values.
    pub order_matters: bool,
    /// Whether the last value of a group counts instead of the first: keys and positions are
    /// reversed.
    pub reversed: bool,
    /// The most values of a group that are passed on; once this many precede a value, it may be
    /// dropped.
    pub first: Option<u64>,
}

impl OrderedSpec {
    /// Returns whether the values can be spilled. Not if the result contains all of them anyway, if
    /// distinctness and order compare different values (that needs two merges).
    fn can_spill(&self) -> bool {
        !self.has_all_values() && (self.keys.is_empty() || !self.distinct)
    }

    /// Returns whether the result may be as large as all values.
    fn has_all_values(&self) -> bool {
        match &self.function {
            Function::List | Function::Joined => true,
            Function::Library(spec) => !spec.keeps_one(),
            _ => false,
        }
    }
}

/// One stored value: its group, and its bytes: its identity (if that is not the arguments), its
/// arguments, its sort key.
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
    /// Bytes that are equal for equal values, and sort as the values do.
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

/// Values are stored in blocks that double the total size, within these bounds, so that no value is
/// ever moved; a larger value gets its own block.
const BLOCK_BYTES_LEAST: usize = 1 << 10;
const BLOCK_BYTES_MOST: usize = 1 << 20;

/// The stored values of all groups.
#[derive(Debug)]
pub(super) struct Ordered {
    spec: Arc<OrderedSpec>,
    offset: usize,
    args: RowConverter,
    /// Converts arguments to their compared form, if that differs.
    identity: Option<RowConverter>,
    keys: RowConverter,
    blocks: Vec<Vec<u8>>,
    /// Bytes of all blocks.
    bytes: usize,
    entries: Vec<Entry>,
    seen: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// When sealed, entries are sorted by group; this is each group's first entry.
    starts: Option<Vec<u32>>,
    /// The number of entries at which those beyond the first of their group are dropped.
    cut_at: usize,
    left: SpilledValues,
}

impl Ordered {
    /// Creates the function without values; the underlying function's state starts at `offset`.
    ///
    /// # Errors
    /// Values of an argument's type cannot be stored.
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
            left: SpilledValues::default(),
        })
    }

    /// Returns a location for this many bytes: adds a block if the last one is full.
    fn room(&mut self, bytes: usize) -> Result<(usize, u32)> {
        if self.blocks.last().is_none_or(|block| block.capacity() - block.len() < bytes) {
            let capacity = bytes.max(self.bytes.clamp(BLOCK_BYTES_LEAST, BLOCK_BYTES_MOST));
            self.blocks.push(Vec::with_capacity(capacity));
            self.bytes += capacity;
        }
        let block = self.blocks.len() - 1;
        Ok((block, size(self.blocks[block].len())?))
    }

    /// Stores a value, whose key is in two pieces.
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

    /// Drops values that are not among the first of their group, when the number of entries has
    /// doubled since the last time.
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

/// Retains the first entries of each group; entries are sorted by group.
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

/// The type by which values are compared: intervals by their length.
fn compared_type(data_type: &DataType) -> DataType {
    match is_interval(data_type) {
        true => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
        false => data_type.clone(),
    }
}

/// Converts values to their compared form.
fn compared(array: &ArrayRef) -> Result<ArrayRef> {
    if !is_interval(array.data_type()) {
        return Ok(array.clone());
    }
    let lengths = interval_values(array)?.iter().map(|value| interval_length(*value));
    let lengths = Decimal128Array::new(lengths.collect::<Vec<_>>().into(), array.nulls().cloned());
    Ok(Arc::new(lengths.with_precision_and_scale(DECIMAL128_MAX_PRECISION, 0)?))
}

/// Returns `None` without columns, which the converter does not support.
fn rows_of(converter: &RowConverter, arrays: &[ArrayRef]) -> Result<Option<Rows>> {
    if arrays.is_empty() { Ok(None) } else { Ok(Some(converter.convert_columns(arrays)?)) }
}

impl Aggregate for Ordered {
    fn update(&mut self, _: &mut Area, groups: &Groups<'_>, columns: &[Column]) -> Result<()> {
        let arrays =
            columns.iter().map(|c| canonical_floats(&c.plain()?)).collect::<Result<Vec<_>>>()?;
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
            if self.spec.reversed {
                position.iter_mut().for_each(|byte| *byte = !*byte);
            }
            let arg = args.as_ref().map(|rows| rows.row(row));
            let key = keys.as_ref().map(|rows| rows.row(row));
            let key: &[u8] = key.as_ref().map_or(&[], |key| key.as_ref());
            let arg: &[u8] = arg.as_ref().map_or(&[], |arg| arg.as_ref());
            let identity = identity.as_ref().map(|rows| rows.row(row));
            let identity: &[u8] = identity.as_ref().map_or(&[], |identity| identity.as_ref());
            // Positions break ties, so that the result does not depend on the distribution of work.
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
            return Err(Error::internal("merge of spilled values"));
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
            self.spill(&file)?;
            return self.finish_spilled(area, output);
        }
        let mut entries = std::mem::take(&mut self.entries);
        let sorted_by_args =
            self.spec.order_matters && self.spec.distinct && self.spec.keys.is_empty();
        let blocks = &self.blocks;
        let key =
            |entry: &Entry| if sorted_by_args { entry.identity(blocks) } else { entry.key(blocks) };
        // A stable sort: entries with equal keys and positions stay in insertion order.
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

    fn spill(&mut self, file: &Arc<SpillFile>) -> Result<()> {
        if !self.spec.can_spill() || self.entries.is_empty() {
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
        if let Some(first) = self.spec.first {
            retain_first(&mut entries, first);
        }
        let mut writer = RunWriter::new(file);
        for entry in entries {
            // Arguments that serve as identity are not written twice.
            let rest =
                if distinct && entry.identity_bytes == 0 { &[] } else { entry.args(&blocks) };
            writer.push(&LeftEntry { group: entry.group, key: key(entry), rest })?;
        }
        self.left.add(writer)
    }
}

/// Values to pass to the function next.
#[derive(Default)]
struct Feed {
    groups: Vec<u32>,
    /// The arguments of all values, one after the other, and their ends.
    args: Vec<u8>,
    ends: Vec<usize>,
}

impl Ordered {
    /// Computes the results from spilled values: then all values are spilled.
    fn finish_spilled(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let mut function = self.spec.function.make(self.offset)?;
        let mut merge = self.left.merge()?;
        let (mut feed, mut before) = (Feed::default(), None::<(u32, Vec<u8>)>);
        let (mut group, mut passed) = (None, 0);
        while let Some(entry) = merge.peek() {
            let known = |(group, key): &(u32, Vec<u8>)| *group == entry.group && key == entry.key;
            passed = if group == Some(entry.group) { passed + 1 } else { 1 };
            group = Some(entry.group);
            let is_beyond = self.spec.first.is_some_and(|first| passed > first);
            if !is_beyond && (!self.spec.distinct || !before.as_ref().is_some_and(known)) {
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
