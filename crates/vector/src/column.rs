//! Columns of a chunk, in one of several encodings.

use std::any::Any;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute;
use arrow::datatypes::{DataType, Int32Type, UInt32Type};

use tessera_types::{Error, Result};

/// A shared, type-erased reference to a collection that a sub-operator produced.
#[derive(Clone)]
pub struct Handle(pub Arc<dyn Any + Send + Sync>);

/// Encoded values of one logical type.
#[derive(Debug, Clone)]
pub enum Column {
    /// The plain Arrow form of the type.
    Plain(ArrayRef),
    /// An Arrow dictionary array with 32-bit keys and plain values.
    Dictionary(ArrayRef),
    /// One plain value (an array of length 1), repeated this many times.
    Constant(ArrayRef, usize),
    /// Handles to collections.
    Handles(Arc<[Handle]>),
}

impl Handle {
    /// Creates a handle to `value`.
    pub fn new<T: Any + Send + Sync>(value: T) -> Self {
        Handle(Arc::new(value))
    }

    /// Returns the collection that the handle refers to.
    ///
    /// # Errors
    /// The collection has another type: the verifier accepted a wrong format.
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
    /// Creates a column from an Arrow array: dictionary arrays stay encoded, all others are plain.
    pub fn new(array: ArrayRef) -> Self {
        match array.data_type() {
            DataType::Dictionary(..) => Column::Dictionary(array),
            _ => Column::Plain(array),
        }
    }

    /// Creates a column that holds one collection.
    pub fn handle<T: Any + Send + Sync>(value: T) -> Self {
        Column::Handles(Arc::new([Handle::new(value)]))
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        match self {
            Column::Plain(array) | Column::Dictionary(array) => array.len(),
            Column::Constant(_, len) => *len,
            Column::Handles(handles) => handles.len(),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the column may contain NULLs. For a dictionary, an unused NULL entry counts too.
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

    /// Returns the values in plain form.
    ///
    /// # Errors
    /// The column holds collections.
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

    /// Returns the handles.
    ///
    /// # Errors
    /// The column holds values.
    pub fn handles(&self) -> Result<&[Handle]> {
        match self {
            Column::Handles(handles) => Ok(handles),
            _ => Err(Error::internal("a column of values was read as collections")),
        }
    }

    /// Returns the values at these positions, in the same encoding.
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

    /// Copies plain strings out of shared buffers; other columns are returned unchanged.
    pub fn with_compact_strings(&self) -> Column {
        match self {
            Column::Plain(array) => Column::Plain(compact_strings(array)),
            other => other.clone(),
        }
    }

    /// Returns `len` values from `offset` without copying.
    pub fn slice(&self, offset: usize, len: usize) -> Column {
        match self {
            Column::Plain(array) => Column::Plain(array.slice(offset, len)),
            Column::Dictionary(array) => Column::Dictionary(array.slice(offset, len)),
            Column::Constant(value, _) => Column::Constant(value.clone(), len),
            Column::Handles(handles) => Column::Handles(handles[offset..offset + len].into()),
        }
    }

    /// Bytes of memory that the column keeps alive; shared buffers are counted in full.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Column::Plain(array) | Column::Dictionary(array) | Column::Constant(array, _) => {
                array.get_array_memory_size()
            }
            Column::Handles(handles) => std::mem::size_of_val::<[Handle]>(handles),
        }
    }

    /// The size of the values in bytes, as if they were copied; profiles and budgets count it.
    pub fn value_bytes(&self) -> usize {
        match self {
            Column::Plain(array) => plain_bytes(array),
            Column::Dictionary(array) => array.len() * 4,
            Column::Constant(..) | Column::Handles(_) => 16,
        }
    }
}

/// Copies strings and bytes into buffers of their own. Otherwise a few strings would keep the large
/// buffers of a whole file chunk alive.
pub fn compact_strings(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array.clone(),
    }
}

/// The size of plain values in bytes. It runs for every chunk, so common types avoid `to_data`,
/// which would copy the buffer list of string arrays.
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

/// Whether dictionary keys have 32 bits, as all kernels expect.
pub(crate) fn dictionary_key_is_32_bits(array: &dyn Array) -> bool {
    array.as_dictionary_opt::<Int32Type>().is_some()
        || array.as_dictionary_opt::<UInt32Type>().is_some()
}
