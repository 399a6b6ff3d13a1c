//! `DISTINCT` and `ORDER BY` inside aggregates, and functions whose result depends on the order of their input.
//!
//! The values are kept, as bytes in Arrow's row format, until all of a group have come; then they are sorted and fed to
//! the function proper. With `DISTINCT` each is kept once.

use std::any::Any;
use std::hash::BuildHasher;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::row::{RowConverter, Rows, SortField};
use hashbrown::{DefaultHashBuilder, HashTable};
use tessera_encodings::Column;
use tessera_types::{Error, Result};

use super::area::Area;
use super::groups::{Groups, Pairs};
use super::{Aggregate, Function, Output};

/// Values fed to the function at once.
const FEED_ROWS: usize = 16_384;

/// What is kept, and in which order it is fed.
#[derive(Debug)]
pub(crate) struct OrderedSpec {
    /// The function that gets the values.
    pub(crate) function: Function,
    /// The types of its arguments, which come first.
    pub(crate) args: Vec<DataType>,
    /// The types and directions of the sort keys, which follow.
    pub(crate) keys: Vec<(DataType, SortOptions)>,
    /// Each combination of arguments once a group.
    pub(crate) distinct: bool,
    /// Without sort keys the order matters all the same: the source's, or with `distinct` that of the values.
    pub(crate) order_matters: bool,
}

/// One kept value: its group, and its bytes: arguments, then sort key.
#[derive(Debug, Clone, Copy)]
struct Entry {
    group: u32,
    args_bytes: u32,
    key_bytes: u32,
    start: usize,
}

/// The kept values of all groups.
#[derive(Debug)]
pub(crate) struct Ordered {
    spec: Arc<OrderedSpec>,
    offset: usize,
    args: RowConverter,
    keys: RowConverter,
    heap: Vec<u8>,
    entries: Vec<Entry>,
    seen: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// When sealed: entries stand group by group; here each group's start.
    starts: Option<Vec<u32>>,
}

impl Ordered {
    /// Nothing kept yet; the function's own state starts at `offset`.
    ///
    /// # Errors
    /// Values of an argument's type cannot be kept.
    pub(crate) fn new(spec: Arc<OrderedSpec>, offset: usize) -> Result<Self> {
        let last = SortOptions { descending: false, nulls_first: false };
        let field = |data_type: &DataType| SortField::new_with_options(data_type.clone(), last);
        let args = spec.args.iter().map(field).collect();
        let keys = spec
            .keys
            .iter()
            .map(|(data_type, options)| SortField::new_with_options(data_type.clone(), *options))
            .collect();
        Ok(Ordered {
            args: RowConverter::new(args)?,
            keys: RowConverter::new(keys)?,
            spec,
            offset,
            heap: Vec::new(),
            entries: Vec::new(),
            seen: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            starts: None,
        })
    }

    fn bytes(&self, entry: &Entry) -> (&[u8], &[u8]) {
        let key = entry.start + entry.args_bytes as usize;
        (&self.heap[entry.start..key], &self.heap[key..key + entry.key_bytes as usize])
    }

    /// Keeps a value; the key is given in pieces.
    fn keep(&mut self, group: u32, args: &[u8], key: [&[u8]; 2]) -> Result<()> {
        if self.spec.distinct {
            let hash = self.hasher.hash_one((group, args));
            let (heap, entries, hasher) = (&self.heap, &self.entries, &self.hasher);
            let args_of = |entry: &Entry| &heap[entry.start..entry.start + entry.args_bytes as usize];
            let equal = |&place: &u32| {
                let entry = &entries[place as usize];
                entry.group == group && args_of(entry) == args
            };
            if self.seen.find(hash, equal).is_some() {
                return Ok(());
            }
            let rehash = |&place: &u32| {
                let entry = &entries[place as usize];
                hasher.hash_one((entry.group, args_of(entry)))
            };
            self.seen.insert_unique(hash, self.entries.len() as u32, rehash);
        }
        let short = |length: usize| {
            u32::try_from(length).map_err(|_| Error::data("a value of 4 GiB or more inside an aggregate"))
        };
        if self.entries.len() >= u32::MAX as usize {
            return Err(Error::data("an aggregate with DISTINCT or ORDER BY over more than 2^32 values"));
        }
        let entry = Entry {
            group,
            args_bytes: short(args.len())?,
            key_bytes: short(key[0].len() + key[1].len())?,
            start: self.heap.len(),
        };
        self.heap.extend_from_slice(args);
        self.heap.extend_from_slice(key[0]);
        self.heap.extend_from_slice(key[1]);
        self.entries.push(entry);
        Ok(())
    }
}

/// Rows of no columns are not rows to the converter.
fn rows_of(converter: &RowConverter, arrays: &[ArrayRef]) -> Result<Option<Rows>> {
    if arrays.is_empty() { Ok(None) } else { Ok(Some(converter.convert_columns(arrays)?)) }
}

/// Floats with one zero and one NaN, so that equal values have equal bytes.
pub(crate) fn normalised(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            Arc::new(values.unary::<_, Float64Type>(|v| if v.is_nan() { f64::NAN } else { v + 0.0 })
                as Float64Array)
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            Arc::new(values.unary::<_, Float32Type>(|v| if v.is_nan() { f32::NAN } else { v + 0.0 })
                as Float32Array)
        }
        _ => array,
    }
}

impl Aggregate for Ordered {
    fn update(&mut self, _: &mut Area, groups: &Groups<'_>, columns: &[Column]) -> Result<()> {
        let arrays = columns.iter().map(|c| Ok(normalised(c.plain()?))).collect::<Result<Vec<_>>>()?;
        let (args, keys) = arrays.split_at(self.spec.args.len());
        let keys = &keys[..self.spec.keys.len()];
        let (args, keys) = (rows_of(&self.args, args)?, rows_of(&self.keys, keys)?);
        let (morsel, first) = groups.position;
        for row in 0..groups.rows {
            let mut position = [0u8; 16];
            position[..8].copy_from_slice(&morsel.to_be_bytes());
            position[8..].copy_from_slice(&(first + row as u64).to_be_bytes());
            let arg = args.as_ref().map(|rows| rows.row(row));
            let key = keys.as_ref().map(|rows| rows.row(row));
            let key: &[u8] = key.as_ref().map_or(&[], |key| key.as_ref());
            let arg: &[u8] = arg.as_ref().map_or(&[], |arg| arg.as_ref());
            // Positions break ties, so that the result does not depend on who worked on what.
            let ordered = !self.spec.keys.is_empty() || (self.spec.order_matters && !self.spec.distinct);
            self.keep(groups.group(row), arg, [key, if ordered { &position } else { &[] }])?;
        }
        Ok(())
    }

    fn seal(&mut self, area: &Area) -> Result<()> {
        if self.starts.is_none() {
            let mut starts = vec![0u32; area.groups() + 1];
            self.entries.sort_by_key(|entry| entry.group);
            self.entries.iter().for_each(|entry| starts[entry.group as usize + 1] += 1);
            (1..starts.len()).for_each(|i| starts[i] += starts[i - 1]);
            self.starts = Some(starts);
            self.seen = HashTable::new();
        }
        Ok(())
    }

    fn merge(&mut self, _: &mut Area, pairs: &Pairs<'_>, other: &mut dyn Any) -> Result<()> {
        let other = other.downcast_mut::<Ordered>().map(|other| &*other);
        let (other, starts) = other
            .and_then(|other| other.starts.as_ref().map(|starts| (other, starts)))
            .ok_or_else(|| Error::internal("merge of states that are not sealed"))?;
        for (group, row) in pairs.iter() {
            let range = starts[row as usize] as usize..starts[row as usize + 1] as usize;
            for entry in &other.entries[range] {
                let (args, key) = other.bytes(entry);
                self.keep(group, args, [key, &[]])?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let mut entries = std::mem::take(&mut self.entries);
        let sorted_by_args = self.spec.order_matters && self.spec.distinct && self.spec.keys.is_empty();
        let key = |entry: &Entry| {
            let (args, key) = self.bytes(entry);
            if sorted_by_args { args } else { key }
        };
        // Stable: what neither keys nor positions tell apart stays as it came.
        entries.sort_by(|a, b| a.group.cmp(&b.group).then_with(|| key(a).cmp(key(b))));
        let mut function = self.spec.function.make(self.offset)?;
        let parser = self.args.parser();
        for part in entries.chunks(FEED_ROWS) {
            let groups: Vec<u32> = part.iter().map(|entry| entry.group).collect();
            let columns: Vec<Column> = match self.spec.args.is_empty() {
                true => Vec::new(),
                false => {
                    let rows = part.iter().map(|entry| parser.parse(self.bytes(entry).0));
                    self.args.convert_rows(rows)?.into_iter().map(Column::Plain).collect()
                }
            };
            function.update(area, &Groups::each(&groups, (0, 0)), &columns)?;
        }
        function.finish(area, output)
    }

    fn memory(&self) -> usize {
        self.heap.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.seen.capacity() * size_of::<u64>()
    }
}
