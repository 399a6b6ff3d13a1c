//! Clears values hidden behind NULL lists, maps and structs. Files may store arbitrary values
//! there, and DataFusion's functions read parts of a value without checking whether the whole is
//! NULL.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, MapArray, StructArray, UInt32Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{nullif, take};
use arrow::datatypes::DataType;
use tessera_types::{Error, Result};

/// Makes the fields of NULL structs NULL, and NULL lists and maps empty; other values are
/// unchanged.
pub fn clear_hidden_values(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Struct(_) => Ok(Arc::new(clear_struct(array.as_struct())?)),
        DataType::List(item) => {
            let array = without_hidden_items(array, array.as_list::<i32>().offsets())?;
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            Ok(Arc::new(ListArray::try_new(
                item.clone(),
                offsets,
                clear_hidden_values(&values)?,
                nulls,
            )?))
        }
        DataType::Map(entries, ordered) => {
            let array = without_hidden_items(array, array.as_map().offsets())?;
            let (_, offsets, pairs, nulls, _) = array.as_map().clone().into_parts();
            let pairs = clear_struct(&pairs)?;
            Ok(Arc::new(MapArray::try_new(entries.clone(), offsets, pairs, nulls, *ordered)?))
        }
        _ => Ok(array.clone()),
    }
}

fn clear_struct(structs: &StructArray) -> Result<StructArray> {
    let nulls = structs.nulls().filter(|nulls| nulls.null_count() > 0);
    let hidden = nulls.map(|nulls| BooleanArray::new(!nulls.inner(), None));
    let column = |column: &ArrayRef| match &hidden {
        Some(hidden) => clear_hidden_values(&nullif(column, hidden)?),
        None => clear_hidden_values(column),
    };
    let columns = structs.columns().iter().map(column).collect::<Result<Vec<_>>>()?;
    let fields = structs.fields().clone();
    Ok(StructArray::try_new_with_length(fields, columns, structs.nulls().cloned(), structs.len())?)
}

/// Removes the items of NULL lists or maps.
pub fn without_hidden_items(array: &ArrayRef, offsets: &OffsetBuffer<i32>) -> Result<ArrayRef> {
    let hides = |nulls: &NullBuffer| {
        let lengths = offsets.windows(2).map(|pair| pair[1] - pair[0]);
        nulls.iter().zip(lengths).any(|(valid, length)| !valid && length > 0)
    };
    let Some(nulls) = array.nulls().filter(|nulls| hides(nulls)) else { return Ok(array.clone()) };
    let rows =
        u32::try_from(array.len()).map_err(|_| Error::internal("a chunk of too many lists"))?;
    let kept = (0..rows).zip(nulls.iter()).map(|(row, valid)| valid.then_some(row));
    Ok(take(array, &kept.collect::<UInt32Array>(), None)?)
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;
    use arrow::datatypes::{Field, Fields, Int64Type};

    use super::*;

    fn numbers() -> ArrayRef {
        Arc::new(Int64Array::from(vec![1, 2, 3, 4]))
    }

    #[test]
    fn fields_of_a_null_struct_are_null() {
        let fields = Fields::from(vec![Field::new("x", DataType::Int64, true)]);
        let nulls = Some(NullBuffer::from(vec![true, false, true, false]));
        let inner: ArrayRef =
            Arc::new(StructArray::try_new(fields, vec![numbers()], nulls).unwrap());
        let fields = Fields::from(vec![Field::new("s", inner.data_type().clone(), true)]);
        let nulls = Some(NullBuffer::from(vec![false, true, true, true]));
        let outer: ArrayRef = Arc::new(StructArray::try_new(fields, vec![inner], nulls).unwrap());
        let clear_hidden_values = clear_hidden_values(&outer).unwrap();
        let x = clear_hidden_values.as_struct().column(0).as_struct().column(0).clone();
        let x: Vec<Option<i64>> = x.as_primitive::<Int64Type>().iter().collect();
        assert_eq!(x, [None, None, Some(3), None]);
    }

    #[test]
    fn null_lists_and_maps_are_empty() {
        let offsets = OffsetBuffer::from_lengths([1, 2, 1]);
        let nulls = Some(NullBuffer::from(vec![true, false, true]));
        let item = Arc::new(Field::new("item", DataType::Int64, true));
        let list = ListArray::try_new(item, offsets.clone(), numbers(), nulls.clone()).unwrap();
        let list = clear_hidden_values(&(Arc::new(list) as ArrayRef)).unwrap();
        assert_eq!(list.as_list::<i32>().offsets().as_ref(), [0, 1, 1, 2]);
        let fields = Fields::from(vec![
            Field::new("key", DataType::Int64, false),
            Field::new("value", DataType::Int64, true),
        ]);
        let pairs = StructArray::try_new(fields, vec![numbers(), numbers()], None).unwrap();
        let entries = Arc::new(Field::new("entries", pairs.data_type().clone(), false));
        let map = MapArray::try_new(entries, offsets, pairs, nulls, false).unwrap();
        let map = clear_hidden_values(&(Arc::new(map) as ArrayRef)).unwrap();
        assert_eq!(map.as_map().offsets().as_ref(), [0, 1, 1, 2]);
    }
}
