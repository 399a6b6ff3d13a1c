//! A column of a chunk, in one of several encodings.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute;
use arrow::datatypes::{DataType, Int32Type, UInt32Type};

use tessera_types::{Error, Result};

/// A collection made by a sub-operator, as it flows: a shared reference of unknown type.
#[derive(Clone)]
pub struct Handle(pub Arc<dyn Any + Send + Sync>);

/// Values of one logical type, encoded.
#[derive(Debug, Clone)]
pub enum Column {
    /// The atom's plain Arrow form.
    Plain(ArrayRef),
    /// An Arrow dictionary array (32-bit keys); the values are in plain form.
    Dictionary(ArrayRef),
    /// One plain value (an array of length 1), this many times.
    Constant(ArrayRef, usize),
    /// Collections.
    Handles(Arc<[Handle]>),
}

impl Handle {
    /// A handle to `value`.
    pub fn new<T: Any + Send + Sync>(value: T) -> Self {
        Handle(Arc::new(value))
    }

    /// The collection behind the handle.
    ///
    /// # Errors
    /// It is of another kind: the verifier let a wrong format through.
    pub fn get<T: Any + Send + Sync>(&self) -> Result<Arc<T>> {
        self.0.clone().downcast::<T>().map_err(|_| {
            Error::internal(format!("a collection is not a {}", std::any::type_name::<T>()))
        })
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handle")
    }
}

impl Column {
    /// A column from an Arrow array: dictionary arrays stay encoded, others are taken as plain.
    pub fn new(array: ArrayRef) -> Self {
        match array.data_type() {
            DataType::Dictionary(..) => Column::Dictionary(array),
            _ => Column::Plain(array),
        }
    }

    /// A column that holds one collection.
    pub fn handle<T: Any + Send + Sync>(value: T) -> Self {
        Column::Handles(Arc::new([Handle::new(value)]))
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        match self {
            Column::Plain(array) | Column::Dictionary(array) => array.len(),
            Column::Constant(_, len) => *len,
            Column::Handles(handles) => handles.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a value is NULL, or for a dictionary may be: an entry that is NULL need not be used.
    pub fn has_nulls(&self) -> bool {
        match self {
            Column::Plain(array) | Column::Constant(array, _) => array.logical_null_count() > 0,
            Column::Dictionary(array) => {
                array.null_count() > 0
                    || array.as_any_dictionary().values().logical_null_count() > 0
            }
            Column::Handles(_) => false,
        }
    }

    /// The values in plain form.
    ///
    /// # Errors
    /// Handles have none.
    pub fn plain(&self) -> Result<ArrayRef> {
        match self {
            Column::Plain(array) => Ok(array.clone()),
            Column::Dictionary(array) => {
                let dictionary = array.as_any_dictionary();
                Ok(compute::take(dictionary.values(), dictionary.keys(), None)?)
            }
            Column::Constant(value, len) => {
                let zeros = UInt32Array::from_value(0, *len);
                Ok(compute::take(value, &zeros, None)?)
            }
            Column::Handles(_) => {
                Err(Error::internal("a column of collections was read as values"))
            }
        }
    }

    /// The handles.
    ///
    /// # Errors
    /// The column holds values.
    pub fn handles(&self) -> Result<&[Handle]> {
        match self {
            Column::Handles(handles) => Ok(handles),
            _ => Err(Error::internal("a column of values was read as collections")),
        }
    }

    /// The values at these positions, encoding kept.
    pub fn take(&self, positions: &UInt32Array) -> Result<Column> {
        Ok(match self {
            Column::Plain(array) => Column::Plain(compute::take(array, positions, None)?),
            Column::Dictionary(array) => Column::Dictionary(compute::take(array, positions, None)?),
            Column::Constant(value, _) => Column::Constant(value.clone(), positions.len()),
            Column::Handles(handles) => Column::Handles(
                positions.values().iter().map(|&p| handles[p as usize].clone()).collect(),
            ),
        })
    }

    /// The values without what else is in the buffers that they refer to, where they are plain
    /// strings.
    pub fn with_own_strings(&self) -> Column {
        match self {
            Column::Plain(array) => Column::Plain(own_strings(array)),
            other => other.clone(),
        }
    }

    /// `len` values from `offset`, without copying.
    pub fn slice(&self, offset: usize, len: usize) -> Column {
        match self {
            Column::Plain(array) => Column::Plain(array.slice(offset, len)),
            Column::Dictionary(array) => Column::Dictionary(array.slice(offset, len)),
            Column::Constant(value, _) => Column::Constant(value.clone(), len),
            Column::Handles(handles) => Column::Handles(handles[offset..offset + len].into()),
        }
    }

    /// Bytes of memory the column keeps alive (shared buffers counted whole).
    pub fn memory_bytes(&self) -> usize {
        match self {
            Column::Plain(array) | Column::Dictionary(array) | Column::Constant(array, _) => {
                array.get_array_memory_size()
            }
            Column::Handles(handles) => std::mem::size_of_val::<[Handle]>(handles),
        }
    }

    /// Bytes of the values themselves, as if they had been copied out: what is counted as flowing.
    pub fn value_bytes(&self) -> usize {
        match self {
            Column::Plain(array) => plain_bytes(array),
            Column::Dictionary(array) => array.len() * 4,
            Column::Constant(..) | Column::Handles(_) => 16,
        }
    }
}

/// The values of an array without what else is in the buffers that they refer to: few strings of a
/// large file's chunk would keep all of it alive.
pub fn own_strings(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array.clone(),
    }
}

/// Asked for every chunk that flows: types whose values tell it do not build the array's generic
/// form, which for strings would copy the list of their buffers.
fn plain_bytes(array: &ArrayRef) -> usize {
    let views = |views: &[u128]| {
        let long = |view: &u128| if *view as u32 > 12 { *view as u32 as usize } else { 0 };
        views.len() * 16 + views.iter().map(long).sum::<usize>()
    };
    if let Some(width) = array.data_type().primitive_width() {
        array.len() * width
    } else if let Some(strings) = array.as_string_view_opt() {
        views(strings.views())
    } else if let Some(bytes) = array.as_binary_view_opt() {
        views(bytes.views())
    } else {
        array.to_data().get_slice_memory_size().unwrap_or(0)
    }
}

impl From<ArrayRef> for Column {
    fn from(array: ArrayRef) -> Self {
        Column::new(array)
    }
}

/// Checks at construction sites that dictionary keys are of a width kernels expect.
pub(crate) fn dictionary_key_is_32_bits(array: &dyn Array) -> bool {
    array.as_dictionary_opt::<Int32Type>().is_some()
        || array.as_dictionary_opt::<UInt32Type>().is_some()
}
