//! `min`, `max` and `any_value` of strings, bytes and nested values.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder, StringViewBuilder};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use arrow::row::RowConverter;
use tessera_rows::{converter, decode};
use tessera_types::{Error, Result};
use tessera_values::plain::to_form;
use tessera_vector::Column;

use super::area::Area;
use super::extreme::ExtremeKind;
use super::groups::{Groups, Pairs};
use super::ranges::{Ranges, merge_ranges};
use super::{Aggregate, Output, plain};

/// State: 1 + the index of the value in a side table, 0 if there is none (1 word).
#[derive(Debug)]
pub(super) struct BytesExtreme {
    offset: usize,
    kind: ExtremeKind,
    codec: Codec,
    values: Vec<Box<[u8]>>,
    bytes: usize,
}

/// Converts values to bytes with the same order.
#[derive(Debug)]
enum Codec {
    Utf8,
    Binary,
    Rows(RowConverter),
}

impl BytesExtreme {
    /// Creates the function over values of this type.
    pub(super) fn new(offset: usize, kind: ExtremeKind, data_type: &DataType) -> Result<Self> {
        let codec = match data_type {
            DataType::Utf8View => Codec::Utf8,
            DataType::BinaryView => Codec::Binary,
            other => Codec::Rows(converter(other)?),
        };
        Ok(BytesExtreme { offset, kind, codec, values: Vec::new(), bytes: 0 })
    }

    /// Compares the value of every row that is not NULL with its group's current value.
    fn offer_all<'a>(
        &mut self,
        area: &mut Area,
        groups: &Groups<'_>,
        nulls: Option<NullBuffer>,
        value: impl Fn(usize) -> &'a [u8],
    ) {
        let counts = |row: &usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row));
        for row in (0..groups.rows).filter(counts) {
            self.offer(area, groups.group(row), value(row));
        }
    }

    fn offer(&mut self, area: &mut Area, group: u32, value: &[u8]) {
        let state = area.get_mut::<u64>(group, self.offset);
        if *state == 0 {
            self.values.push(value.into());
            self.bytes += value.len();
            *state = self.values.len() as u64;
            return;
        }
        let kept = &mut self.values[*state as usize - 1];
        let better = match self.kind {
            ExtremeKind::Min => *value < **kept,
            ExtremeKind::Max => *value > **kept,
            ExtremeKind::Any => false,
        };
        if better {
            self.bytes = self.bytes + value.len() - kept.len();
            *kept = value.into();
        }
    }
}

impl Aggregate for BytesExtreme {
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let array = plain(args, 0)?;
        let nulls = array.logical_nulls();
        match &self.codec {
            Codec::Utf8 => {
                let strings = array.as_string_view();
                self.offer_all(area, groups, nulls, |row| strings.value(row).as_bytes());
            }
            Codec::Binary => {
                let binary = array.as_binary_view();
                self.offer_all(area, groups, nulls, |row| binary.value(row));
            }
            Codec::Rows(converter) => {
                let rows = converter.convert_columns(std::slice::from_ref(&array))?;
                self.offer_all(area, groups, nulls, |row| rows.row(row).data());
            }
        }
        Ok(())
    }

    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, other: &mut dyn Any) -> Result<()> {
        let other = other
            .downcast_mut::<BytesExtreme>()
            .ok_or_else(|| Error::internal("merge of states of two functions"))?;
        for (into, row) in pairs.iter() {
            let state = pairs.from.get::<u64>(row, self.offset);
            if state != 0 {
                self.offer(area, into, &other.values[state as usize - 1]);
            }
        }
        Ok(())
    }

    fn merge_ranges(&mut self, from: &Area, ranges: &Ranges<'_>, into: &mut Area) -> Result<bool> {
        let (kind, values) = (self.kind, &self.values);
        merge_ranges(from, self.offset, ranges, into, |state: &mut u64, other| {
            let value = |state: u64| &values[state as usize - 1];
            let is_better = match (*state, other) {
                (_, 0) => false,
                (0, _) => true,
                (state, other) => match kind {
                    ExtremeKind::Min => value(other) < value(state),
                    ExtremeKind::Max => value(other) > value(state),
                    ExtremeKind::Any => false,
                },
            };
            if is_better {
                *state = other;
            }
            Ok(())
        })?;
        Ok(true)
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        let (offset, values) = (self.offset, &self.values);
        let kept = area.states::<u64>(offset).map(|place| match place {
            0 => None,
            place => Some(&*values[place as usize - 1]),
        });
        let array: ArrayRef = match &mut self.codec {
            Codec::Utf8 => {
                let mut builder = StringViewBuilder::with_capacity(area.groups());
                for value in kept {
                    let text = value.map(std::str::from_utf8).transpose();
                    builder.append_option(
                        text.map_err(|_| Error::internal("a string state is not UTF-8"))?,
                    );
                }
                Arc::new(builder.finish())
            }
            Codec::Binary => {
                let mut builder = BinaryViewBuilder::with_capacity(area.groups());
                kept.for_each(|value| builder.append_option(value));
                Arc::new(builder.finish())
            }
            Codec::Rows(converter) => decode(converter, &output.data_type, kept)?,
        };
        to_form(array, &output.data_type)
    }

    fn memory(&self) -> usize {
        self.bytes + self.values.capacity() * size_of::<Box<[u8]>>()
    }
}
