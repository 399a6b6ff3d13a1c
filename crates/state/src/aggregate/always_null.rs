//! Aggregates of an untyped NULL: always NULL.

use std::any::Any;

use arrow::array::{ArrayRef, new_null_array};
use tessera_types::Result;
use tessera_vector::Column;

use super::area::Area;
use super::groups::{Groups, Pairs};
use super::ranges::Ranges;
use super::{Aggregate, Output};

/// The function without state.
#[derive(Debug)]
pub(super) struct AlwaysNull;

impl Aggregate for AlwaysNull {
    fn update(&mut self, _: &mut Area, _: &Groups<'_>, _: &[Column]) -> Result<()> {
        Ok(())
    }

    fn merge(&mut self, _: &mut Area, _: &Pairs<'_>, _: &mut dyn Any) -> Result<()> {
        Ok(())
    }

    fn merge_ranges(&mut self, _: &Area, _: &Ranges<'_>, _: &mut Area) -> Result<bool> {
        Ok(true)
    }

    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef> {
        Ok(new_null_array(&output.data_type, area.groups()))
    }
}
