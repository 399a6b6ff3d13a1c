//! The threshold that a `top_k` publishes to the scans of its stream while both run. A scan may
//! read an older threshold, which only passes more tuples.

use std::sync::{Arc, PoisonError, RwLock};

use arrow::array::{Array, ArrayRef, BooleanArray, Scalar};
use arrow::compute::kernels::cmp;
use arrow::compute::{and, is_not_null, is_null, or};

use tessera_operator::describe;
use tessera_plan::{Expr, Node, SortKey, Value};
use tessera_types::{Atom, Error, Result, Tuple};
use tessera_values::canonical::canonical_values;
use tessera_values::scalar::array_value;

/// The best known value of a first sort key after which no tuple is needed.
#[derive(Debug, Default)]
pub struct Threshold {
    /// An array of one value, which may be NULL, normalized by [`canonical_values`].
    value: RwLock<Option<ArrayRef>>,
}

/// A scan's subscription to a threshold: the parameter `{of = :name, field = a, descending = true,
/// nulls_first = true}`.
#[derive(Debug, Clone)]
pub struct ThresholdSubscription {
    /// The name of the threshold.
    pub name: Arc<str>,
    /// The field and direction of the sort key.
    pub key: SortKey,
}

impl Threshold {
    /// Publishes a better value.
    pub fn set(&self, value: ArrayRef) {
        *self.value.write().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }

    /// Returns the value, if one has been published.
    pub fn get(&self) -> Option<ArrayRef> {
        self.value.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ThresholdSubscription {
    /// Parses the parameter `threshold` of a node over these columns, if present.
    ///
    /// # Errors
    /// The parameter is malformed, or names an unknown column.
    pub fn new(node: &Node, columns: &Tuple) -> Result<Option<ThresholdSubscription>> {
        let wrong = || {
            Error::semantic(
                "parameter threshold must be {of = :name, field = a, descending = true, nulls_first = true}",
            )
        };
        let entries = match node.params.get("threshold") {
            None => return Ok(None),
            Some(Value::Record(entries)) => entries,
            Some(_) => return Err(wrong()),
        };
        let mut name = None;
        let mut key = Vec::new();
        for (entry, value) in entries {
            match (&**entry, value) {
                ("of", Value::Name(of)) => name = Some(of.clone()),
                _ => key.push((entry.clone(), value.clone())),
            }
        }
        let key = SortKey::from_value("threshold", &Value::Record(key))?;
        describe::key(columns, &key.field, "threshold")?;
        Ok(Some(ThresholdSubscription { name: name.ok_or_else(wrong)?, key }))
    }
}

/// Returns a predicate that every tuple up to `value` satisfies, for pruning by statistics; `None`
/// if statistics could never refute it.
pub fn wanted(key: &SortKey, atom: &Atom, value: &ArrayRef) -> Option<Expr> {
    let field = Expr::Field(key.field.clone());
    let null = || Expr::IsNull(Box::new(field.clone()));
    if value.is_null(0) {
        return key.nulls_first.then(null);
    }
    if value.data_type() != &atom.arrow() {
        return None;
    }
    let value = Expr::Constant(array_value(value, 0).ok()?, atom.clone());
    let function = if key.descending { "gt_eq" } else { "lt_eq" };
    let compared = Expr::call(function, vec![field.clone(), value]);
    Some(if key.nulls_first { Expr::Or(vec![null(), compared]) } else { compared })
}

/// Returns which values are not after `value`.
///
/// # Errors
/// The values cannot be compared.
pub fn within(key: &SortKey, values: ArrayRef, value: &ArrayRef) -> Result<BooleanArray> {
    if value.is_null(0) {
        return Ok(match key.nulls_first {
            true => is_null(&values)?,
            false => BooleanArray::from(vec![true; values.len()]),
        });
    }
    let values = canonical_values(values)?;
    let value = Scalar::new(value.clone());
    let mask =
        if key.descending { cmp::gt_eq(&values, &value)? } else { cmp::lt_eq(&values, &value)? };
    if values.logical_null_count() == 0 {
        return Ok(mask);
    }
    // A comparison with NULL has no value.
    let (mask, _) = mask.into_parts();
    let known = and(&BooleanArray::new(mask, None), &is_not_null(&values)?)?;
    Ok(if key.nulls_first { or(&known, &is_null(&values)?)? } else { known })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Float64Array, Int64Array};

    fn key(descending: bool, nulls_first: bool) -> SortKey {
        SortKey { field: "a".into(), descending, nulls_first }
    }

    #[test]
    fn what_is_behind_is_out() {
        let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3), Some(5)]));
        let three: ArrayRef = Arc::new(Int64Array::from(vec![3]));
        let null: ArrayRef = Arc::new(Int64Array::from(vec![None::<i64>]));
        let kept = |key: SortKey, value: &ArrayRef| {
            let mask = within(&key, values.clone(), value).unwrap();
            assert_eq!(mask.null_count(), 0);
            mask.values().set_indices().collect::<Vec<_>>()
        };
        assert_eq!(kept(key(false, false), &three), [0, 2]);
        assert_eq!(kept(key(false, true), &three), [0, 1, 2]);
        assert_eq!(kept(key(true, false), &three), [2, 3]);
        assert_eq!(kept(key(true, true), &three), [1, 2, 3]);
        assert_eq!(kept(key(false, true), &null), [1], "behind NULL is what is not NULL");
        assert_eq!(kept(key(true, false), &null), [0, 1, 2, 3], "nothing is behind the last NULL");
    }

    #[test]
    fn nan_is_above_all_and_zeros_are_equal() {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![-0.0, f64::NAN, 1.0]));
        let zero: ArrayRef = Arc::new(Float64Array::from(vec![0.0]));
        let nan: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN]));
        let kept = |key: SortKey, value: &ArrayRef| {
            within(&key, values.clone(), value).unwrap().values().set_indices().collect::<Vec<_>>()
        };
        assert_eq!(kept(key(false, false), &zero), [0]);
        assert_eq!(kept(key(true, false), &zero), [0, 1, 2]);
        assert_eq!(kept(key(false, false), &nan), [0, 1, 2]);
        assert_eq!(kept(key(true, false), &nan), [1]);
    }
}
