//! Constant encoding: one value for all rows.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array};
use arrow::compute::take;
use tessera_types::Result;

use super::{Aggregate, Condition, Encoding, Offer, Values, Verdict};
use crate::column::{Column, compact_strings};
use crate::segment::Positions;

/// Values that are all NULL, or all equal and not nested.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, Int64Array};
/// # use tessera_vector::encoding::{Encoding, Constant};
/// # use tessera_vector::{Positions, Segment};
/// let values: ArrayRef = Arc::new(Int64Array::from(vec![7, 7, 7, 7, 7]));
/// let segment = Segment::with(&values, &[Constant::encode])?;
/// assert_eq!(segment.encoding(), "constant");
/// assert_eq!(&segment.decode(&Positions::Range(1, 3))?.plain()?, &values.slice(1, 3));
/// # Ok::<(), tessera_types::Error>(())
/// ```
#[derive(Debug)]
pub struct Constant {
    value: ArrayRef,
    len: usize,
}

impl Encoding for Constant {
    fn name(&self) -> &'static str {
        "constant"
    }

    fn encode(values: &Values) -> Result<Option<Offer<'_>>> {
        if !values.is_constant() {
            return Ok(None);
        }
        let array = values.array();
        let first = UInt32Array::from(vec![(!values.is_all_null()).then_some(0)]);
        let value = compact_strings(&take(array, &first, None)?);
        let bytes = Column::Plain(value.clone()).value_bytes();
        Offer::new(bytes, || Ok(Constant { value, len: array.len() }))
    }

    fn len(&self) -> usize {
        self.len
    }

    fn bytes(&self) -> usize {
        self.value.get_array_memory_size()
    }

    fn decode(&self, rows: Range<usize>) -> Result<Column> {
        Ok(Column::Constant(self.value.clone(), rows.len()))
    }

    fn take(&self, positions: &[u32]) -> Result<Column> {
        Ok(Column::Constant(self.value.clone(), positions.len()))
    }

    fn compare(&self, condition: &Condition, positions: &Positions) -> Result<BooleanArray> {
        let truth = condition.of_plain(&self.value)?;
        Ok(vec![truth.is_valid(0).then(|| truth.value(0)); positions.len()].into())
    }

    fn verdict(&self, condition: &Condition) -> Result<Verdict> {
        let is_true = condition.of_plain(&self.value)?.true_count() > 0;
        Ok(if is_true { Verdict::All } else { Verdict::None })
    }

    fn aggregate(&self, aggregate: Aggregate) -> Result<Option<ArrayRef>> {
        aggregate.of_runs(&self.value, [self.len as u32])
    }
}
