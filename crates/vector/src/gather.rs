//! Concatenates and interleaves columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, UInt32Array, new_null_array};
use arrow::compute;
use arrow::datatypes::DataType;

use tessera_types::{Error, Result};

use crate::chunk::Chunk;
use crate::column::{Column, Handle};

/// Concatenates columns. An encoding that all columns share is kept if that is free.
///
/// # Errors
/// Values and collections are mixed.
pub fn concat_columns(columns: &[Column]) -> Result<Column> {
    match columns {
        [] => return Err(Error::internal("no column to concatenate")),
        [only] => return Ok(only.clone()),
        _ => {}
    }
    if let Some(handles) = handles(columns)? {
        return Ok(Column::Handles(handles.concat().into()));
    }
    if let Some(value) = shared_constant(columns) {
        return Ok(Column::Constant(value, columns.iter().map(Column::len).sum()));
    }
    if let Some(arrays) = shared_dictionary(columns) {
        return Ok(Column::Dictionary(compute::concat(&arrays)?));
    }
    let arrays = columns.iter().map(Column::plain).collect::<Result<Vec<_>>>()?;
    Ok(Column::Plain(compute::concat(&arrays.iter().map(|array| &**array).collect::<Vec<_>>())?))
}

/// Gathers values at `positions`; each position is a column and a row of that column.
///
/// # Errors
/// Values and collections are mixed.
pub fn interleave_columns(columns: &[Column], positions: &[(usize, usize)]) -> Result<Column> {
    if let Some(handles) = handles(columns)? {
        return Ok(Column::Handles(
            positions.iter().map(|&(c, p)| handles[c][p].clone()).collect(),
        ));
    }
    if let Some(value) = shared_constant(columns) {
        return Ok(Column::Constant(value, positions.len()));
    }
    if let Some(arrays) = shared_dictionary(columns) {
        return Ok(Column::Dictionary(compute::interleave(&arrays, positions)?));
    }
    // Decoding whole columns would cost far more than gathering a few of their values.
    let sources = columns.iter().map(Source::new).collect::<Result<Vec<_>>>()?;
    let mut arrays: Vec<&dyn Array> = sources.iter().map(|source| source.values).collect();
    let no_value =
        new_null_array(arrays.first().map_or(&DataType::Null, |array| array.data_type()), 1);
    if sources.iter().all(|source| matches!(source.places, Places::Same)) {
        return Ok(Column::Plain(compute::interleave(&arrays, positions)?));
    }
    arrays.push(&*no_value);
    let places: Vec<(usize, usize)> = positions
        .iter()
        .map(|&(c, p)| sources[c].place(p).map_or((sources.len(), 0), |place| (c, place)))
        .collect();
    Ok(Column::Plain(compute::interleave(&arrays, &places)?))
}

/// The stored values of a column and the map from rows to them.
struct Source<'a> {
    values: &'a dyn Array,
    places: Places<'a>,
}

/// Maps a row to the index of its stored value.
enum Places<'a> {
    Same,
    First,
    Signed(&'a Int32Array),
    Unsigned(&'a UInt32Array),
}

impl Source<'_> {
    fn new(column: &Column) -> Result<Source<'_>> {
        Ok(match column {
            Column::Plain(array) => Source { values: &**array, places: Places::Same },
            Column::Constant(value, _) => Source { values: &**value, places: Places::First },
            Column::Dictionary(array) => {
                let dictionary = array.as_any_dictionary();
                let (keys, values) = (dictionary.keys(), &**dictionary.values());
                let places = match (keys.as_primitive_opt(), keys.as_primitive_opt()) {
                    (Some(keys), _) => Places::Signed(keys),
                    (_, Some(keys)) => Places::Unsigned(keys),
                    _ => {
                        return Err(Error::internal(
                            "the keys of a dictionary do not have 32 bits",
                        ));
                    }
                };
                Source { values, places }
            }
            Column::Handles(_) => return Err(Error::internal("values and collections are mixed")),
        })
    }

    /// The index of the value of a row; `None` for NULL.
    fn place(&self, position: usize) -> Option<usize> {
        match self.places {
            Places::Same => Some(position),
            Places::First => Some(0),
            Places::Signed(keys) => keys.is_valid(position).then(|| keys.value(position) as usize),
            Places::Unsigned(keys) => {
                keys.is_valid(position).then(|| keys.value(position) as usize)
            }
        }
    }
}

/// Concatenates chunks and applies their selections. There must be at least one chunk.
///
/// # Errors
/// As [`concat_columns`].
pub fn concat_chunks(chunks: &[Chunk]) -> Result<Chunk> {
    match chunks {
        [] => Err(Error::internal("no chunk to concatenate")),
        [only] => only.clone().compact(),
        [first, ..] => {
            let rows = chunks.iter().map(Chunk::rows).sum();
            let columns = (0..first.width()).map(|i| {
                let parts =
                    chunks.iter().map(|chunk| chunk.column(i)).collect::<Result<Vec<_>>>()?;
                concat_columns(&parts)
            });
            Ok(Chunk::new(columns.collect::<Result<_>>()?, rows))
        }
    }
}

/// Repeats the value at `position` of a column `len` times, without copying it.
///
/// # Errors
/// A dictionary cannot be decoded.
pub fn repeat_value(column: &Column, position: usize, len: usize) -> Result<Column> {
    Ok(match column {
        Column::Plain(array) => Column::Constant(array.slice(position, 1), len),
        Column::Dictionary(_) => Column::Constant(column.slice(position, 1).plain()?, len),
        Column::Constant(value, _) => Column::Constant(value.clone(), len),
        Column::Handles(handles) => Column::Handles(vec![handles[position].clone(); len].into()),
    })
}

/// The handles of each column; `None` if the first column holds values.
fn handles(columns: &[Column]) -> Result<Option<Vec<&[Handle]>>> {
    match columns.first() {
        Some(Column::Handles(_)) => {
            columns.iter().map(Column::handles).collect::<Result<_>>().map(Some)
        }
        _ => Ok(None),
    }
}

fn shared_constant(columns: &[Column]) -> Option<ArrayRef> {
    let Some(Column::Constant(first, _)) = columns.first() else { return None };
    let same = |column: &Column| match column {
        Column::Constant(value, _) => {
            Arc::ptr_eq(value, first) || value.as_ref().to_data() == first.as_ref().to_data()
        }
        _ => false,
    };
    columns.iter().all(same).then(|| first.clone())
}

/// The arrays, if all share one dictionary. Merging different dictionaries would cost more than
/// decoding to plain values.
fn shared_dictionary(columns: &[Column]) -> Option<Vec<&dyn Array>> {
    let Some(Column::Dictionary(first)) = columns.first() else { return None };
    let values = first.as_any_dictionary().values();
    let same = |column: &Column| match column {
        Column::Dictionary(array) => {
            array.data_type() == first.data_type()
                && (Arc::ptr_eq(array.as_any_dictionary().values(), values)
                    || array.as_any_dictionary().values().to_data().ptr_eq(&values.to_data()))
        }
        _ => false,
    };
    columns.iter().all(same).then(|| {
        columns
            .iter()
            .filter_map(|column| match column {
                Column::Dictionary(array) => Some(&**array),
                _ => None,
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{DictionaryArray, Int64Array, StringViewArray};
    use arrow::datatypes::Int32Type;

    use super::*;

    fn plain(values: &[i64]) -> Column {
        Column::Plain(Arc::new(Int64Array::from(values.to_vec())))
    }

    fn ints(column: &Column) -> Vec<i64> {
        let array = column.plain().unwrap();
        array.as_primitive::<arrow::datatypes::Int64Type>().values().to_vec()
    }

    #[test]
    fn constants_stay_constant_only_when_equal() {
        let one = || Column::Constant(Arc::new(Int64Array::from(vec![1])), 2);
        let two = Column::Constant(Arc::new(Int64Array::from(vec![2])), 1);
        assert!(matches!(concat_columns(&[one(), one()]).unwrap(), Column::Constant(_, 4)));
        assert_eq!(ints(&concat_columns(&[one(), two.clone()]).unwrap()), [1, 1, 2]);
        let columns = [one(), two, plain(&[7, 8])];
        assert_eq!(
            ints(&interleave_columns(&columns, &[(2, 1), (0, 1), (1, 0)]).unwrap()),
            [8, 1, 2]
        );
    }

    #[test]
    fn a_shared_dictionary_is_kept() {
        let values: ArrayRef = Arc::new(StringViewArray::from(vec!["a", "b"]));
        let keys = |keys: Vec<i32>| {
            Column::Dictionary(Arc::new(
                DictionaryArray::<Int32Type>::try_new(keys.into(), values.clone()).unwrap(),
            ))
        };
        let both = concat_columns(&[keys(vec![0, 1]), keys(vec![1])]).unwrap();
        assert!(matches!(both, Column::Dictionary(_)));
        let other: ArrayRef = Arc::new(StringViewArray::from(vec!["c"]));
        let mixed = concat_columns(&[both, Column::Plain(other)]).unwrap();
        let mixed = mixed.plain().unwrap();
        let texts: Vec<_> = mixed.as_string_view().iter().flatten().collect();
        assert_eq!(texts, ["a", "b", "b", "c"]);
    }

    #[test]
    fn values_of_several_encodings_are_interleaved() {
        let dictionary = |keys: Vec<Option<i32>>, values: [&str; 2]| {
            let values: ArrayRef = Arc::new(StringViewArray::from(values.to_vec()));
            Column::Dictionary(Arc::new(
                DictionaryArray::<Int32Type>::try_new(keys.into(), values.clone()).unwrap(),
            ))
        };
        let columns = [
            dictionary(vec![Some(1), None, Some(0)], ["a", "b"]),
            Column::Plain(Arc::new(StringViewArray::from(vec![Some("c"), None]))),
            dictionary(vec![Some(0)], ["d", "e"]),
            Column::Constant(Arc::new(StringViewArray::from(vec!["f"])), 9),
        ];
        let positions = [(3, 8), (0, 0), (0, 1), (1, 1), (2, 0), (1, 0), (0, 2)];
        let found = interleave_columns(&columns, &positions).unwrap().plain().unwrap();
        let texts: Vec<_> = found.as_string_view().iter().map(|text| text.unwrap_or("-")).collect();
        assert_eq!(texts, ["f", "b", "-", "-", "d", "c", "a"]);
    }

    #[test]
    fn chunks_are_joined_with_their_selections() {
        let chunk = Chunk::new(vec![plain(&[1, 2, 3])], 3).select(Arc::new(vec![0, 2].into()));
        let all = concat_chunks(&[chunk, Chunk::new(vec![plain(&[4])], 1)]).unwrap();
        assert_eq!(ints(&all.column(0).unwrap()), [1, 3, 4]);
        assert_eq!(concat_chunks(&[Chunk::unit(), Chunk::unit()]).unwrap().rows(), 2);
    }
}
