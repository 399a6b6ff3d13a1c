//! What a `top_k` tells the scans of its stream while both run. Whoever reads it may be late: an
//! older threshold only keeps more.

use std::sync::{Arc, PoisonError, RwLock};

use arrow::array::{Array, ArrayRef, BooleanArray, Scalar};
use arrow::compute::kernels::cmp;
use arrow::compute::{and, is_not_null, is_null, or};

use tessera_functions::one_nan::normalised;
use tessera_functions::scalar::array_value;
use tessera_operator::describe;
use tessera_plan::{Expr, Node, SortKey, Value};
use tessera_types::{Atom, Error, Result, Tuple};

/// The best value known of a first sort key behind which no tuple is wanted.
#[derive(Debug, Default)]
pub struct Threshold {
    /// An array of one value, which may be NULL, as [`normalised`] gives it.
    value: RwLock<Option<ArrayRef>>,
}

/// A threshold as a scan sees it: the parameter `{of = :name, field = a, descending = true,
/// nulls_first = true}`.
#[derive(Debug, Clone)]
pub struct ThresholdOf {
    /// Its name.
    pub name: Arc<str>,
    /// The field it is a value of, and which way is behind.
    pub key: SortKey,
}

impl Threshold {
    /// Tells a better value.
    pub fn set(&self, value: ArrayRef) {
        *self.value.write().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }

    /// The value, as soon as there is one.
    pub fn get(&self) -> Option<ArrayRef> {
        self.value.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ThresholdOf {
    /// The parameter `threshold` of a node over these columns, where given.
    ///
    /// # Errors
    /// It is ill-formed, or names no column.
    pub fn new(node: &Node, columns: &Tuple) -> Result<Option<ThresholdOf>> {
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
        Ok(Some(ThresholdOf { name: name.ok_or_else(wrong)?, key }))
    }
}

/// What is true of every tuple that is not behind `value`, for statistics to refute; nothing where
/// none could.
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

/// Which of some values are not behind `value`.
///
/// # Errors
/// They cannot be compared.
pub fn within(key: &SortKey, values: ArrayRef, value: &ArrayRef) -> Result<BooleanArray> {
    if value.is_null(0) {
        return Ok(match key.nulls_first {
            true => is_null(&values)?,
            false => BooleanArray::from(vec![true; values.len()]),
        });
    }
    let values = normalised(values)?;
    let value = Scalar::new(value.clone());
    let mask =
        if key.descending { cmp::gt_eq(&values, &value)? } else { cmp::lt_eq(&values, &value)? };
    if values.logical_null_count() == 0 {
        return Ok(mask);
    }
    // What a comparison with NULL gives is no value.
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
