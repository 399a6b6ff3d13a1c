//! `array_agg` and `string_agg`, over values that `ordered` passes group by group, so that results
//! grow incrementally.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BinaryViewBuilder, ListArray, StringViewArray,
    new_empty_array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow::compute::concat;
use arrow::datatypes::DataType;
use tessera_context::interrupt::{Every, spans};
use tessera_types::{Error, Result};
use tessera_values::plain::to_form;
use tessera_vector::Column;

use super::area::Area;
use super::groups::{Groups, Pairs};
use super::{Aggregate, Output, plain};

/// Strings of at least this many bytes are not copied into the result.
const LARGE_BYTES: usize = 1 << 16;

/// Longer texts are moved piece by piece when they grow.
const MOVED_AT_ONCE_BYTES: usize = 16 << 20;

/// All values of a group, including NULLs.
#[derive(Debug, Default)]
pub(super) struct List {
    values: Vec<ArrayRef>,
    /// The length of each non-empty group.
    lengths: Vec<usize>,
}

/// The strings (or bytes) of a group, each after the first preceded by its separator; without
/// NULLs.
#[derive(Debug, Default)]
pub(super) struct Joined {
    texts: Vec<Option<Vec<u8>>>,
}

/// A column of strings, or of bytes.
enum Pieces<'a> {
    Texts(&'a StringViewArray),
    Bytes(&'a BinaryViewArray),
}

impl<'a> Pieces<'a> {
    fn of(array: &'a ArrayRef) -> Result<Self> {
        let texts = array.as_string_view_opt().map(Pieces::Texts);
        texts
            .or_else(|| array.as_binary_view_opt().map(Pieces::Bytes))
            .ok_or_else(|| Error::internal("string_agg of values that are not strings"))
    }

    /// Returns the bytes of a row; `None` if it is NULL.
    fn get(&self, row: usize) -> Option<&'a [u8]> {
        match self {
            Pieces::Texts(array) => array.is_valid(row).then(|| array.value(row).as_bytes()),
            Pieces::Bytes(array) => array.is_valid(row).then(|| array.value(row)),
        }
    }
}

/// Reserves memory for more bytes. A long text is moved piece by piece, so that a canceled query
/// does not wait for all of it.
fn reserve(text: &mut Vec<u8>, more: usize) {
    if text.len() < MOVED_AT_ONCE_BYTES || text.capacity() - text.len() >= more {
        return;
    }
    let mut longer = Vec::with_capacity((text.capacity() * 2).max(text.len() + more));
    spans(text).for_each(|span| longer.extend_from_slice(span));
    *text = longer;
}

fn unmerged() -> Error {
    Error::internal("merge of gathered values")
}

impl Aggregate for List {
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        self.lengths.resize(area.groups(), 0);
        (0..groups.rows).for_each(|row| self.lengths[groups.group(row) as usize] += 1);
        self.values.push(plain(args, 0)?);
        Ok(())
    }

    fn merge(&mut self, _: &mut Area, _: &Pairs<'_>, _: &mut dyn Any) -> Result<()> {
        Err(unmerged())
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        self.lengths.resize(area.groups(), 0);
        let DataType::List(item) = &output.data_type else {
            return Err(Error::internal(format!("a list as {}", output.data_type)));
        };
        if i32::try_from(self.lengths.iter().sum::<usize>()).is_err() {
            return Err(Error::data(
                "array_agg gives 2^31 values or more in all; aggregate fewer groups at once",
            ));
        }
        let parts: Vec<&dyn Array> = self.values.iter().map(|values| &**values).collect();
        let values =
            if parts.is_empty() { new_empty_array(item.data_type()) } else { concat(&parts)? };
        let offsets = OffsetBuffer::from_lengths(self.lengths.iter().copied());
        let valid = NullBuffer::from_iter(self.lengths.iter().map(|length| *length > 0));
        let values = to_form(values, item.data_type())?;
        Ok(Arc::new(ListArray::try_new(item.clone(), offsets, values, Some(valid))?))
    }
}

impl Aggregate for Joined {
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        self.texts.resize(area.groups(), None);
        let (values, separators) = (plain(args, 0)?, plain(args, 1)?);
        let (values, separators) = (Pieces::of(&values)?, Pieces::of(&separators)?);
        let every = Every::default();
        for row in 0..groups.rows {
            every.pass();
            let Some(value) = values.get(row) else { continue };
            match &mut self.texts[groups.group(row) as usize] {
                Some(text) => {
                    let separator = separators.get(row).unwrap_or_default();
                    reserve(text, separator.len() + value.len());
                    text.extend_from_slice(separator);
                    text.extend_from_slice(value);
                }
                none => *none = Some(value.to_vec()),
            }
        }
        Ok(())
    }

    fn merge(&mut self, _: &mut Area, _: &Pairs<'_>, _: &mut dyn Any) -> Result<()> {
        Err(unmerged())
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        self.texts.resize(area.groups(), None);
        let mut strings = BinaryViewBuilder::with_capacity(self.texts.len());
        for text in std::mem::take(&mut self.texts) {
            match text {
                Some(text) if text.len() >= LARGE_BYTES => {
                    let length = u32::try_from(text.len()).ok().filter(|length| *length < u32::MAX);
                    let length = length
                        .ok_or_else(|| Error::data("string_agg gives a string of 4 GiB or more"))?;
                    let block = strings.append_block(Buffer::from_vec(text));
                    strings.try_append_view(block, 0, length)?;
                }
                text => strings.append_option(text),
            }
        }
        let joined = strings.finish();
        match output.data_type {
            DataType::BinaryView => Ok(Arc::new(joined)),
            _ => Ok(Arc::new(joined.to_string_view()?)),
        }
    }
}
