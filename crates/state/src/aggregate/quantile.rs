//! `percentile_cont`, `percentile_disc`, `mode` and `mad`: results of a group's sorted values.
//!
//! All values of a group are stored, in Arrow arrays or in spilled sorted runs, without NULLs.
//! Floats have one zero and one NaN, the greatest value.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, ListArray, UInt32Array, make_comparator, new_empty_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{self, SortOptions, concat, sort_to_indices, take};
use arrow::datatypes::{DataType, Float64Type};
use arrow::row::{RowConverter, SortField};
use tessera_context::interrupt::Every;
use tessera_rows::spill::SpillFile;
use tessera_types::{Code, Error, Result};
use tessera_values::canonical::canonical_floats;
use tessera_values::plain::to_form;
use tessera_vector::Column;

use super::area::Area;
use super::groups::{Groups, Pairs};
use super::picked::{PickedValues, by_length, deviation, reached};
use super::spilled_values::{Entry, Merge, RunWriter, SpilledValues};
use super::{Aggregate, Output, plain};

/// Selects a result from a group's sorted values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantile {
    /// Interpolates between the two values next to the fraction.
    Continuous,
    /// The first value at or after the fraction.
    Discrete,
    /// The most frequent value; the first of several.
    Mode,
    /// The median of the distances from the median.
    Deviation,
}

/// The function, and the order of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuantileSpec {
    /// The kind of result.
    pub kind: Quantile,
    /// Whether the greatest value comes first.
    pub descending: bool,
    /// The values' type.
    pub values: DataType,
}

/// Memory to compute results, in multiples of the values' bytes: concatenated, sorted, and the sort
/// order.
const FINISH_MEMORY: usize = 3;

/// Approximate bytes of a spilled run: they are copied to write it.
const RUN_BYTES: usize = 4 << 20;

/// The fractions of a group, from its first row; `None` inside for NULL.
type Fractions = Option<Arc<[Option<f64>]>>;

/// The values of all groups.
#[derive(Debug)]
pub(super) struct Quantiles {
    spec: Arc<QuantileSpec>,
    values: Vec<ArrayRef>,
    /// The group of each value.
    groups: Vec<u32>,
    fractions: Vec<Option<Fractions>>,
    bytes: usize,
    /// When sealed, there is one array sorted by group; this is each group's start.
    starts: Option<Vec<u32>>,
    left: SpilledValues,
    /// The number of spilled values of each group.
    spilled_counts: Vec<usize>,
}

impl Quantiles {
    /// Creates the function without values.
    pub(super) fn new(spec: Arc<QuantileSpec>) -> Self {
        Quantiles {
            spec,
            values: Vec::new(),
            groups: Vec::new(),
            fractions: Vec::new(),
            bytes: 0,
            starts: None,
            left: SpilledValues::default(),
            spilled_counts: Vec::new(),
        }
    }

    fn keep(&mut self, values: ArrayRef) -> Result<()> {
        // Compact strings: the buffers may contain other strings.
        let values = Column::Plain(values).with_compact_strings().plain()?;
        self.bytes += values.get_array_memory_size();
        self.values.push(values);
        if self.groups.len() >= u32::MAX as usize {
            return Err(Error::data("a percentile or mode over more than 2^32 values"));
        }
        Ok(())
    }

    /// Stores the fractions of a group from its first row.
    fn note(&mut self, group: u32, row: usize, fractions: &ArrayRef) -> Result<()> {
        let group = group as usize;
        if self.fractions.len() <= group {
            self.fractions.resize(group + 1, None);
        }
        let known = &mut self.fractions[group];
        if known.is_some() {
            return Ok(());
        }
        let list = match fractions.as_list_opt::<i32>() {
            Some(lists) => lists.is_valid(row).then(|| lists.value(row)),
            None => fractions.is_valid(row).then(|| fractions.slice(row, 1)),
        };
        let list = list.map(|list| {
            let list = list.as_primitive_opt::<Float64Type>();
            let list = list.ok_or_else(|| Error::internal("fractions that are not doubles"))?;
            list.iter().map(checked).collect::<Result<Arc<[_]>>>()
        });
        *known = Some(list.transpose()?);
        Ok(())
    }

    /// Returns all values of a group, sorted.
    fn sorted(&self, values: &ArrayRef, range: std::ops::Range<u32>) -> Result<ArrayRef> {
        let slice = values.slice(range.start as usize, (range.end - range.start) as usize);
        if self.is_interval() {
            return by_length(&slice, self.spec.descending);
        }
        let options = SortOptions { descending: self.spec.descending, nulls_first: false };
        let order = sort_to_indices(&slice, Some(options), None)?;
        Ok(take(&slice, &order, None)?)
    }

    /// Whether the values are intervals, which are not ordered by their bytes.
    fn is_interval(&self) -> bool {
        matches!(self.spec.values, DataType::Interval(_))
    }

    /// Returns the indexes of the values needed from a group of this size.
    fn places(&self, group: usize, count: usize) -> Vec<usize> {
        let fractions = self.fractions.get(group).cloned().flatten().flatten();
        let mut places = Vec::new();
        for fraction in fractions.iter().flat_map(|fractions| fractions.iter().flatten()) {
            let place = *fraction * (count - 1) as f64;
            match self.spec.kind {
                Quantile::Continuous => {
                    places.extend([place.floor() as usize, place.ceil() as usize])
                }
                Quantile::Discrete => places.push(reached(*fraction, count)),
                Quantile::Mode | Quantile::Deviation => {}
            }
        }
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Returns the needed values of a group in memory.
    fn pick(
        &self,
        values: &ArrayRef,
        range: std::ops::Range<u32>,
        group: usize,
    ) -> Result<Option<PickedValues>> {
        if range.is_empty() {
            return Ok(None);
        }
        let sorted = self.sorted(values, range)?;
        if self.spec.kind == Quantile::Deviation {
            let values = deviation(&sorted)?;
            return Ok(Some(PickedValues { count: 1, values, places: vec![0] }));
        }
        let places = match self.spec.kind {
            Quantile::Mode => vec![Self::mode(&sorted)?],
            _ => self.places(group, sorted.len()),
        };
        let rows: UInt32Array = places.iter().map(|place| Some(*place as u32)).collect();
        Ok(Some(PickedValues { count: sorted.len(), values: take(&sorted, &rows, None)?, places }))
    }

    /// Returns the needed values of the next group of the spilled values.
    fn pick_spilled(
        &self,
        merge: &mut Merge,
        group: usize,
        converter: &RowConverter,
    ) -> Result<Option<PickedValues>> {
        let count = self.spilled_counts.get(group).copied().unwrap_or_default();
        if count == 0 {
            return Ok(None);
        }
        let places = self.places(group, count);
        let mut found: Vec<Vec<u8>> = Vec::new();
        // For the mode: the value being counted, its count, and the largest count so far.
        let (mut current, mut length, mut longest) = (Vec::new(), 0, 0);
        for place in 0..count {
            let entry = merge.peek().filter(|entry| entry.group as usize == group);
            let entry =
                entry.ok_or_else(|| Error::internal("fewer values were read back than spilled"))?;
            if self.spec.kind == Quantile::Mode {
                if place == 0 || entry.key != current {
                    current.clear();
                    current.extend(entry.key);
                    length = 0;
                }
                length += 1;
                if length > longest {
                    if length == 1 || found.first() != Some(&current) {
                        found = vec![current.clone()];
                    }
                    longest = length;
                }
            } else if places.get(found.len()) == Some(&place) {
                found.push(entry.key.to_vec());
            }
            merge.advance()?;
        }
        let parser = converter.parser();
        let values = converter.convert_rows(found.iter().map(|bytes| parser.parse(bytes)))?;
        let values =
            values.into_iter().next().ok_or_else(|| Error::internal("no column of values"))?;
        let places = if self.spec.kind == Quantile::Mode { vec![0] } else { places };
        Ok(Some(PickedValues { count, places, values }))
    }

    /// Returns the converter that encodes values in the requested order.
    fn converter(&self) -> Result<RowConverter> {
        let options = SortOptions { descending: self.spec.descending, nulls_first: false };
        Ok(RowConverter::new(vec![SortField::new_with_options(self.spec.values.clone(), options)])?)
    }

    /// Returns the position of the most frequent value among a group's sorted values.
    fn mode(values: &ArrayRef) -> Result<usize> {
        let compare = make_comparator(values, values, SortOptions::default())?;
        let (mut best, mut longest, mut start) = (0, 0, 0);
        for end in 1..=values.len() {
            if end == values.len() || compare(start, end).is_ne() {
                if end - start > longest {
                    (best, longest) = (start, end - start);
                }
                start = end;
            }
        }
        Ok(best)
    }
}

/// Checks that a fraction is between 0 and 1.
fn checked(fraction: Option<f64>) -> Result<Option<f64>> {
    match fraction {
        Some(fraction) if !(0.0..=1.0).contains(&fraction) => Err(Error::new(
            Code::Overflow,
            format!("the percentile {fraction} is not between 0 and 1"),
        )),
        fraction => Ok(fraction),
    }
}

impl Aggregate for Quantiles {
    fn update(&mut self, _: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let values = canonical_floats(&plain(args, 0)?)?;
        // The last argument is the sort key, which is the value itself.
        if !matches!(self.spec.kind, Quantile::Mode | Quantile::Deviation) {
            let fractions = plain(args, 1)?;
            for row in 0..groups.rows {
                self.note(groups.group(row), row, &fractions)?;
            }
        }
        match values.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
            None => {
                self.groups.extend((0..groups.rows).map(|row| groups.group(row)));
                self.keep(values)
            }
            Some(nulls) => {
                self.groups.extend(nulls.valid_indices().map(|row| groups.group(row)));
                let valid = compute::is_not_null(&values)?;
                self.keep(compute::filter(&values, &valid)?)
            }
        }
    }

    fn seal(&mut self, area: &Area) -> Result<()> {
        if self.starts.is_some() {
            return Ok(());
        }
        let parts: Vec<&dyn Array> = self.values.iter().map(|values| &**values).collect();
        let all =
            if parts.is_empty() { new_empty_array(&self.spec.values) } else { concat(&parts)? };
        let mut starts = vec![0u32; area.groups() + 1];
        self.groups.iter().for_each(|group| starts[*group as usize + 1] += 1);
        (1..starts.len()).for_each(|i| starts[i] += starts[i - 1]);
        let all = match area.groups() {
            0 | 1 => all,
            _ => {
                let (mut order, mut next) = (vec![0u32; self.groups.len()], starts.clone());
                for (value, group) in self.groups.iter().enumerate() {
                    order[next[*group as usize] as usize] = value as u32;
                    next[*group as usize] += 1;
                }
                take(&all, &UInt32Array::from(order), None)?
            }
        };
        self.groups = Vec::new();
        self.values = vec![all];
        self.fractions.resize(area.groups(), None);
        self.starts = Some(starts);
        Ok(())
    }

    fn merge(&mut self, _: &mut Area, pairs: &Pairs<'_>, other: &mut dyn Any) -> Result<()> {
        let unsealed = || Error::internal("merge of states that are not sealed");
        let other = other.downcast_mut::<Quantiles>().ok_or_else(unsealed)?;
        if !other.left.is_empty() && !pairs.is_identity() {
            return Err(Error::internal("merge of spilled values"));
        }
        self.left.append(&mut other.left);
        for (group, count) in other.spilled_counts.iter().enumerate() {
            self.spilled_counts.resize(self.spilled_counts.len().max(group + 1), 0);
            self.spilled_counts[group] += count;
        }
        let sealed = other.starts.as_ref().zip(other.values.first());
        let (starts, values) = sealed.ok_or_else(unsealed)?;
        let every = Every::default();
        let mut order: Vec<u32> = Vec::new();
        for (group, row) in pairs.iter() {
            every.pass();
            let range = starts[row as usize]..starts[row as usize + 1];
            self.groups.extend(range.clone().map(|_| group));
            order.extend(range);
            if let Some(fractions) = &other.fractions[row as usize] {
                if self.fractions.len() <= group as usize {
                    self.fractions.resize(group as usize + 1, None);
                }
                self.fractions[group as usize].get_or_insert_with(|| fractions.clone());
            }
        }
        self.keep(take(values, &UInt32Array::from(order), None)?)
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let mut merge = None;
        if let Some(file) = self.left.file() {
            self.spill(&file)?;
            merge = Some((self.left.merge()?, self.converter()?));
        }
        self.seal(area)?;
        let (Some(starts), Some(values)) = (&self.starts, self.values.first()) else {
            return Err(Error::internal("percentiles of values that are not sealed"));
        };
        let every = Every::default();
        let mut results = Vec::with_capacity(area.groups());
        let (mut lengths, mut valid) = (Vec::new(), Vec::new());
        let empty = new_empty_array(values.data_type());
        let nothing = arrow::array::new_null_array(values.data_type(), 1);
        for group in 0..area.groups() {
            every.pass();
            let picked = match &mut merge {
                Some((merge, converter)) => self.pick_spilled(merge, group, converter)?,
                None => self.pick(values, starts[group]..starts[group + 1], group)?,
            };
            let one = |fraction: Option<f64>| match (fraction, &picked) {
                (Some(fraction), Some(picked)) => picked.value(self.spec.kind, fraction),
                _ => Ok(nothing.clone()),
            };
            let fractions = self.fractions.get(group).cloned().flatten().flatten();
            match (self.spec.kind, &output.data_type, fractions) {
                (Quantile::Mode | Quantile::Deviation, ..) => results.push(match &picked {
                    Some(picked) => picked.values.slice(0, 1),
                    None => nothing.clone(),
                }),
                (_, DataType::List(_), Some(fractions)) if picked.is_some() => {
                    lengths.push(fractions.len());
                    valid.push(true);
                    for fraction in fractions.iter() {
                        results.push(one(*fraction)?);
                    }
                }
                (_, DataType::List(_), _) => {
                    lengths.push(0);
                    valid.push(false);
                }
                (_, _, fractions) => {
                    results.push(one(fractions.and_then(|f| f.first().copied().flatten()))?)
                }
            }
        }
        let parts: Vec<&dyn Array> = results.iter().map(|result| &**result).collect();
        let all = if parts.is_empty() { empty } else { concat(&parts)? };
        match &output.data_type {
            DataType::List(item) if self.spec.kind != Quantile::Mode => {
                let all = to_form(all, item.data_type())?;
                let offsets = OffsetBuffer::from_lengths(lengths);
                Ok(Arc::new(ListArray::try_new(
                    item.clone(),
                    offsets,
                    all,
                    Some(NullBuffer::from(valid)),
                )?))
            }
            other => to_form(all, other),
        }
    }

    fn memory(&self) -> usize {
        FINISH_MEMORY * self.bytes
            + self.groups.capacity() * size_of::<u32>()
            + self.fractions.capacity() * size_of::<Option<Fractions>>()
    }

    fn spill(&mut self, file: &Arc<SpillFile>) -> Result<()> {
        if self.spec.kind == Quantile::Deviation || self.is_interval() {
            return Ok(());
        }
        let (values, groups) = (std::mem::take(&mut self.values), std::mem::take(&mut self.groups));
        let converter = self.converter()?;
        (self.bytes, self.starts) = (0, None);
        let (mut first, every) = (0, Every::default());
        let mut arrays = values.iter().filter(|values| !values.is_empty()).peekable();
        while arrays.peek().is_some() {
            let (mut run, mut bytes) = (Vec::new(), 0);
            while let Some(array) = arrays.next_if(|_| bytes < RUN_BYTES) {
                bytes += array.get_array_memory_size();
                run.push(converter.convert_columns(std::slice::from_ref(array))?);
            }
            let rows = run.iter().flat_map(|rows| rows.iter());
            let mut entries: Vec<(u32, _)> = groups[first..].iter().copied().zip(rows).collect();
            first += entries.len();
            entries.sort_unstable_by(|a, b| {
                every.pass();
                a.cmp(b)
            });
            let mut writer = RunWriter::new(file);
            for (group, key) in &entries {
                let places = self.spilled_counts.len().max(*group as usize + 1);
                self.spilled_counts.resize(places, 0);
                self.spilled_counts[*group as usize] += 1;
                writer.push(&Entry { group: *group, key: key.as_ref(), rest: &[] })?;
            }
            self.left.add(writer)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_between_0_and_1() {
        assert!(checked(Some(1.5)).is_err() && checked(Some(f64::NAN)).is_err());
        assert_eq!(checked(Some(0.5)).unwrap(), Some(0.5));
    }
}
