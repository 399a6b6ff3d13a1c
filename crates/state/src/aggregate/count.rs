//! `count`: rows, or rows whose arguments are not NULL.

use std::any::Any;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::Int64Type;
use tessera_types::Result;
use tessera_vector::Column;

use super::area::Area;
use super::groups::{Fold, Groups, Pairs, fold, fold_array, merge};
use super::ranges::{Ranges, merge_ranges};
use super::{Aggregate, Output, counts, plain};

/// State: the count (1 word).
#[derive(Debug)]
pub(super) struct Count {
    /// The offset of the state.
    pub offset: usize,
}

fn add(count: &mut u64, other: u64) -> Result<()> {
    *count += other;
    Ok(())
}

struct One;

impl Fold for One {
    type State = u64;
    type Value = ();

    #[inline(always)]
    fn fold(&self, state: &mut u64, _: ()) -> Result<()> {
        *state += 1;
        Ok(())
    }
}

fn nulls_of(column: &Column) -> Option<NullBuffer> {
    match column {
        Column::Plain(array) | Column::Dictionary(array) => array.logical_nulls(),
        Column::Constant(value, len) if value.logical_null_count() > 0 => {
            Some(NullBuffer::new_null(*len))
        }
        Column::Constant(..) | Column::Handles(_) => None,
    }
}

impl Aggregate for Count {
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let nulls = args.iter().map(nulls_of).fold(None, |all: Option<NullBuffer>, one| {
            NullBuffer::union(all.as_ref(), one.as_ref())
        });
        fold(&One, area, self.offset, groups, nulls.as_ref(), |_| ())
    }

    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, _: &mut dyn Any) -> Result<()> {
        merge(area, self.offset, pairs, add)
    }

    fn merge_ranges(&mut self, from: &Area, ranges: &Ranges<'_>, into: &mut Area) -> Result<bool> {
        merge_ranges(from, self.offset, ranges, into, add).map(|()| true)
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        counts(area.states(self.offset), output)
    }
}

/// The sum of counts. The state is that of [`Count`].
#[derive(Debug)]
pub(super) struct MergedCount {
    /// The offset of the state.
    pub offset: usize,
}

struct Add;

impl Fold for Add {
    type State = u64;
    type Value = i64;

    #[inline(always)]
    fn fold(&self, state: &mut u64, count: i64) -> Result<()> {
        *state += count as u64;
        Ok(())
    }
}

impl Aggregate for MergedCount {
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()> {
        let array = plain(args, 0)?;
        fold_array(&Add, area, self.offset, groups, array.as_primitive::<Int64Type>())
    }

    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, other: &mut dyn Any) -> Result<()> {
        Count { offset: self.offset }.merge(area, pairs, other)
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        counts(area.states(self.offset), output)
    }
}
