//! `histogram`, `entropy` and `approx_top_k`: the different values of a group, with their counts.
//!
//! Each value is stored once per group, as bytes in Arrow's row format, so memory grows with the
//! number of different values; it is counted, and not spilled.

use std::any::Any;
use std::hash::BuildHasher;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, ListArray, MapArray, StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Int64Type};
use arrow::row::{RowConverter, SortField};
use hashbrown::{DefaultHashBuilder, HashTable};
use tessera_context::interrupt::Every;
use tessera_types::{Error, Result, SqlState};
use tessera_values::canonical::canonical_floats;
use tessera_values::plain::to_form;
use tessera_vector::Column;

use super::area::Area;
use super::groups::{Groups, Pairs};
use super::{Aggregate, Output, plain};

/// Selects a result from the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedKind {
    /// A map from each value to its count, in the order of the values.
    Histogram,
    /// The entropy of the values in bits.
    Entropy,
    /// The most frequent values, as many as the second argument says.
    Top,
}

impl CountedKind {
    /// Returns the function of this name.
    pub fn named(name: &str) -> Option<CountedKind> {
        Some(match name {
            "histogram" => CountedKind::Histogram,
            "entropy" => CountedKind::Entropy,
            "approx_top_k" => CountedKind::Top,
            _ => return None,
        })
    }
}

/// One value of a group.
#[derive(Debug)]
struct Entry {
    group: u32,
    count: u64,
    key: Box<[u8]>,
}

/// The values of all groups.
#[derive(Debug)]
pub(super) struct Counted {
    kind: CountedKind,
    converter: RowConverter,
    entries: Vec<Entry>,
    places: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// The number of values that each group returns.
    tops: Vec<Option<i64>>,
    bytes: usize,
    /// When sealed, entries are sorted by group; this is each group's first entry.
    starts: Option<Vec<u32>>,
}

impl Counted {
    /// Creates the function over values of this type.
    pub(super) fn new(kind: CountedKind, values: &DataType) -> Result<Self> {
        let last = SortOptions { descending: false, nulls_first: false };
        let field = SortField::new_with_options(values.clone(), last);
        Ok(Counted {
            kind,
            converter: RowConverter::new(vec![field])?,
            entries: Vec::new(),
            places: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            tops: Vec::new(),
            bytes: 0,
            starts: None,
        })
    }

    fn add(&mut self, group: u32, key: &[u8], count: u64) -> Result<()> {
        let hash = self.hasher.hash_one((group, key));
        let (entries, hasher) = (&mut self.entries, &self.hasher);
        let is_same = |at: &u32| {
            let entry = &entries[*at as usize];
            entry.group == group && *entry.key == *key
        };
        if let Some(at) = self.places.find(hash, is_same) {
            entries[*at as usize].count += count;
            return Ok(());
        }
        let at = u32::try_from(entries.len())
            .map_err(|_| Error::data("an aggregate counts more than 2^32 different values"))?;
        entries.push(Entry { group, count, key: key.into() });
        self.bytes += key.len();
        let every = Every::default();
        let rehash = |at: &u32| {
            every.pass();
            let entry = &entries[*at as usize];
            hasher.hash_one((entry.group, &*entry.key))
        };
        self.places.insert_unique(hash, at, rehash);
        Ok(())
    }

    /// Notes how many values a group returns, from its first row.
    fn note(&mut self, group: u32, top: Option<i64>) -> Result<()> {
        let group = group as usize;
        if self.tops.len() <= group {
            self.tops.resize(group + 1, None);
        }
        match top {
            Some(top) if top <= 0 => Err(Error::data(format!(
                "approx_top_k takes a number of values above 0, not {top}"
            ))
            .with_state(SqlState::INVALID_PARAMETER_VALUE)),
            top => {
                self.tops[group] = self.tops[group].or(top);
                Ok(())
            }
        }
    }

    /// Sorts the entries by group and value; returns where each group starts.
    fn sorted(&mut self, groups: usize) -> Vec<u32> {
        let every = Every::default();
        self.entries.sort_unstable_by(|a, b| {
            every.pass();
            a.group.cmp(&b.group).then_with(|| a.key.cmp(&b.key))
        });
        let mut starts = vec![0u32; groups + 1];
        self.entries.iter().for_each(|entry| starts[entry.group as usize + 1] += 1);
        (1..starts.len()).for_each(|i| starts[i] += starts[i - 1]);
        self.places = HashTable::new();
        starts
    }

    /// Converts the values of entries back to an array.
    fn values<'e>(
        &self,
        entries: impl Iterator<Item = &'e Entry>,
        data_type: &DataType,
    ) -> Result<ArrayRef> {
        let parser = self.converter.parser();
        let columns = self.converter.convert_rows(entries.map(|entry| parser.parse(&entry.key)))?;
        let values = columns.into_iter().next();
        to_form(values.ok_or_else(|| Error::internal("no column of values"))?, data_type)
    }

    fn histogram(&self, starts: &[u32], output: &Output) -> Result<ArrayRef> {
        let DataType::Map(entries, sorted) = &output.data_type else {
            return Err(Error::internal(format!("a histogram as {}", output.data_type)));
        };
        let DataType::Struct(fields) = entries.data_type() else {
            return Err(Error::internal("a map without keys and values"));
        };
        let keys = self.values(self.entries.iter(), fields[0].data_type())?;
        let counts = Int64Array::from_iter_values(self.entries.iter().map(|e| e.count as i64));
        let counts = to_form(Arc::new(counts), fields[1].data_type())?;
        let items = StructArray::try_new(fields.clone(), vec![keys, counts], None)?;
        let (offsets, valid) = bounds(starts)?;
        Ok(Arc::new(MapArray::try_new(entries.clone(), offsets, items, Some(valid), *sorted)?))
    }

    fn top(&self, starts: &[u32], output: &Output) -> Result<ArrayRef> {
        let DataType::List(item) = &output.data_type else {
            return Err(Error::internal(format!("a list as {}", output.data_type)));
        };
        let (mut chosen, mut lengths, every) = (Vec::new(), Vec::new(), Every::default());
        for (group, range) in starts.windows(2).enumerate() {
            let mut entries: Vec<&Entry> =
                self.entries[range[0] as usize..range[1] as usize].iter().collect();
            // A stable sort: of equally frequent values, the smaller comes first.
            entries.sort_by(|a, b| {
                every.pass();
                b.count.cmp(&a.count)
            });
            let top = self.tops.get(group).copied().flatten();
            entries.truncate(top.map_or(0, |top| usize::try_from(top).unwrap_or(usize::MAX)));
            lengths.push(entries.len() as u32);
            chosen.extend(entries);
        }
        let values = self.values(chosen.into_iter(), item.data_type())?;
        let mut ends = vec![0u32];
        lengths.iter().for_each(|length| ends.push(ends[ends.len() - 1] + length));
        let (offsets, valid) = bounds(&ends)?;
        Ok(Arc::new(ListArray::try_new(item.clone(), offsets, values, Some(valid))?))
    }
}

/// The offsets of lists, and which of them are not empty.
fn bounds(starts: &[u32]) -> Result<(OffsetBuffer<i32>, NullBuffer)> {
    let last = starts.last().copied().unwrap_or_default();
    if i32::try_from(last).is_err() {
        return Err(Error::data(
            "an aggregate gives 2^31 values or more in all; aggregate fewer groups at once",
        ));
    }
    let lengths = || starts.windows(2).map(|range| (range[1] - range[0]) as usize);
    Ok((OffsetBuffer::from_lengths(lengths()), lengths().map(|length| length > 0).collect()))
}

/// The entropy in bits of values with these counts; 0 without values.
fn entropy(counts: impl Iterator<Item = u64> + Clone) -> f64 {
    let all = counts.clone().sum::<u64>() as f64;
    let parts = counts.map(|count| count as f64 / all).map(|part| -part * part.log2());
    // The sum of no parts is -0.
    parts.sum::<f64>() + 0.0
}

impl Aggregate for Counted {
    fn update(&mut self, _: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let values = canonical_floats(&plain(args, 0)?)?;
        if self.kind == CountedKind::Top {
            let tops = plain(args, 1)?;
            let tops = tops.as_primitive_opt::<Int64Type>();
            let tops = tops.ok_or_else(|| Error::internal("a count that is not an integer"))?;
            for row in 0..groups.rows {
                self.note(groups.group(row), tops.is_valid(row).then(|| tops.value(row)))?;
            }
        }
        let nulls = values.logical_nulls();
        let rows = self.converter.convert_columns(&[values])?;
        let every = Every::default();
        for row in 0..groups.rows {
            every.pass();
            if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
                self.add(groups.group(row), rows.row(row).as_ref(), 1)?;
            }
        }
        Ok(())
    }

    fn seal(&mut self, area: &Area) -> Result<()> {
        if self.starts.is_none() {
            self.starts = Some(self.sorted(area.groups()));
            self.tops.resize(area.groups(), None);
        }
        Ok(())
    }

    fn merge(&mut self, _: &mut Area, pairs: &Pairs<'_>, other: &mut dyn Any) -> Result<()> {
        let unsealed = || Error::internal("merge of states that are not sealed");
        let other = other.downcast_mut::<Counted>().ok_or_else(unsealed)?;
        let starts = other.starts.as_ref().ok_or_else(unsealed)?;
        let every = Every::default();
        for (group, row) in pairs.iter() {
            if self.kind == CountedKind::Top {
                self.note(group, other.tops[row as usize])?;
            }
            let range = starts[row as usize] as usize..starts[row as usize + 1] as usize;
            for entry in &other.entries[range] {
                every.pass();
                self.add(group, &entry.key, entry.count)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let starts = self.sorted(area.groups());
        match self.kind {
            CountedKind::Histogram => self.histogram(&starts, output),
            CountedKind::Top => self.top(&starts, output),
            CountedKind::Entropy => {
                let values = starts.windows(2).map(|range| {
                    let entries = &self.entries[range[0] as usize..range[1] as usize];
                    entropy(entries.iter().map(|entry| entry.count))
                });
                to_form(Arc::new(Float64Array::from_iter_values(values)), &output.data_type)
            }
        }
    }

    fn memory(&self) -> usize {
        // The result may have all values once more.
        2 * self.bytes
            + self.entries.capacity() * size_of::<Entry>()
            + self.places.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_is_in_bits() {
        assert_eq!(entropy([1u64, 1].into_iter()), 1.0);
        assert_eq!(entropy([4u64, 4, 4, 4].into_iter()), 2.0);
        assert_eq!(entropy([7u64].into_iter()), 0.0);
        assert!(entropy(std::iter::empty()).is_sign_positive());
    }
}
