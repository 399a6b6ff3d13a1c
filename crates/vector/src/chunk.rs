//! Chunks: batches of tuples that flow between sub-operators.

use std::any::Any;
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::datatypes::Schema;

use tessera_codegen::{InputPlace, RawInput};
use tessera_types::{Result, Tuple};

use crate::column::Column;

/// The default maximum number of tuples in a chunk. An intermediate result of a loop over a chunk
/// fits into the second-level cache.
pub const CHUNK_ROWS: usize = 8_192;

/// The largest chunk size that a query can set.
pub const CHUNK_ROWS_MAX: usize = 65_536;

/// Positions of the selected tuples, ascending.
pub type Selection = UInt32Array;

/// Tuples that are not materialized as columns yet. An operator that knows the representation reads
/// the tuples directly; all others get columns.
pub trait LazyTuples: Any + Debug + Send + Sync {
    /// The number of fields.
    fn width(&self) -> usize;

    /// Materializes all fields as columns; called at most once.
    fn columns(&self) -> Vec<Column>;

    /// The size of the values in bytes.
    fn value_bytes(&self) -> usize;

    /// Returns the same tuples with only these fields.
    fn project(&self, fields: &[usize]) -> Box<dyn LazyTuples>;

    /// Returns a hasher that reads the tuples directly, if that is cheaper than materializing
    /// columns.
    fn hasher(&self) -> Option<&dyn HashFields> {
        None
    }

    /// Describes to compiled code where a field is stored; `None` if compiled code cannot read it.
    /// Arrays that hold the field are added to `arrays`, which keeps them alive.
    fn input(&self, _field: usize, _arrays: &mut Vec<ArrayRef>) -> Option<(InputPlace, RawInput)> {
        None
    }
}

/// Hashes tuples that are not materialized as columns.
pub trait HashFields {
    /// Hashes all tuples by these fields into `out`, replacing its contents, as columns are hashed.
    ///
    /// # Errors
    /// A field cannot be hashed.
    fn hash(&self, fields: &[usize], out: &mut Vec<u64>) -> Result<()>;
}

/// At most [`CHUNK_ROWS_MAX`] tuples in columns, with a selection vector that lists the selected
/// tuples.
#[derive(Debug, Clone)]
pub struct Chunk {
    columns: Columns,
    rows_stored: usize,
    selection: Option<Arc<Selection>>,
}

#[derive(Debug, Clone)]
enum Columns {
    Materialized(Vec<Column>),
    Lazy(Arc<LazyColumns>),
}

impl Columns {
    fn lazy(tuples: Box<dyn LazyTuples>) -> Columns {
        Columns::Lazy(Arc::new(LazyColumns { tuples, columns: OnceLock::new() }))
    }
}

/// Lazy tuples and their columns, which are materialized on first use.
#[derive(Debug)]
struct LazyColumns {
    tuples: Box<dyn LazyTuples>,
    columns: OnceLock<Vec<Column>>,
}

impl Chunk {
    /// Creates a chunk in which every tuple is selected. `rows` is needed for chunks without
    /// columns.
    pub fn new(columns: Vec<Column>, rows: usize) -> Self {
        debug_assert!(columns.iter().all(|column| column.len() == rows));
        debug_assert!(columns.iter().all(|column| match column {
            Column::Dictionary(array) => crate::column::dictionary_key_is_32_bits(array.as_ref()),
            _ => true,
        }));
        Chunk { columns: Columns::Materialized(columns), rows_stored: rows, selection: None }
    }

    /// Creates a chunk of `rows` lazy tuples, all selected.
    pub fn lazy(tuples: impl LazyTuples, rows: usize) -> Self {
        Chunk { columns: Columns::lazy(Box::new(tuples)), rows_stored: rows, selection: None }
    }

    /// Returns the lazy tuples if they are of type `T`.
    pub fn lazy_as<T: LazyTuples>(&self) -> Option<&T> {
        let tuples: &dyn Any = self.lazy_tuples()?;
        tuples.downcast_ref()
    }

    /// Returns the lazy tuples; `None` for a chunk made of columns.
    pub fn lazy_tuples(&self) -> Option<&dyn LazyTuples> {
        match &self.columns {
            Columns::Materialized(_) => None,
            Columns::Lazy(lazy) => Some(&*lazy.tuples),
        }
    }

    /// Whether the stored tuples are lazy and not materialized yet.
    pub fn is_lazy(&self) -> bool {
        matches!(&self.columns, Columns::Lazy(lazy) if lazy.columns.get().is_none())
    }

    /// Returns the same tuples with only these columns, in this order.
    pub fn project(&self, columns: &[usize]) -> Chunk {
        let projected = match &self.columns {
            Columns::Lazy(lazy) if self.is_lazy() => Columns::lazy(lazy.tuples.project(columns)),
            _ => Columns::Materialized(
                columns.iter().map(|column| self.stored()[*column].clone()).collect(),
            ),
        };
        Chunk {
            columns: projected,
            rows_stored: self.rows_stored,
            selection: self.selection.clone(),
        }
    }

    /// Creates a chunk of one tuple without fields: the input of a plan without inputs.
    pub fn unit() -> Self {
        Chunk::new(Vec::new(), 1)
    }

    /// Creates a chunk from plain arrays.
    pub fn from_arrays(arrays: Vec<ArrayRef>) -> Self {
        let rows = arrays.first().map_or(0, |array| array.len());
        Chunk::new(arrays.into_iter().map(Column::new).collect(), rows)
    }

    /// The number of selected tuples.
    pub fn rows(&self) -> usize {
        self.selection.as_ref().map_or(self.rows_stored, |selection| selection.len())
    }

    /// Whether no tuple is selected.
    pub fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    /// The number of columns.
    pub fn width(&self) -> usize {
        match &self.columns {
            Columns::Materialized(columns) => columns.len(),
            Columns::Lazy(lazy) => lazy.tuples.width(),
        }
    }

    /// The selection vector; `None` if every stored tuple is selected.
    pub fn selection(&self) -> Option<&Arc<Selection>> {
        self.selection.as_ref()
    }

    /// The stored columns, without the selection applied. Materializes lazy tuples.
    pub fn stored(&self) -> &[Column] {
        match &self.columns {
            Columns::Materialized(columns) => columns,
            Columns::Lazy(lazy) => lazy.columns.get_or_init(|| lazy.tuples.columns()),
        }
    }

    /// The number of stored tuples.
    pub fn rows_stored(&self) -> usize {
        self.rows_stored
    }

    /// Returns a column of the selected tuples, gathered if there is a selection vector.
    pub fn column(&self, index: usize) -> Result<Column> {
        match &self.selection {
            None => Ok(self.stored()[index].clone()),
            Some(selection) => self.stored()[index].take(selection),
        }
    }

    /// Returns the selected tuples as materialized columns without a selection vector.
    pub fn compact(self) -> Result<Chunk> {
        match &self.selection {
            // A lazy chunk would keep its underlying storage alive.
            None if self.is_lazy() => Ok(Chunk::new(self.stored().to_vec(), self.rows_stored)),
            None => Ok(self),
            Some(selection) => {
                let columns =
                    self.stored().iter().map(|c| c.take(selection)).collect::<Result<Vec<_>>>()?;
                Ok(Chunk::new(columns, selection.len()))
            }
        }
    }

    /// Copies strings out of shared buffers, so that the chunk does not keep other strings alive.
    pub fn with_compact_strings(&self) -> Chunk {
        self.with_stored(self.stored().iter().map(Column::with_compact_strings).collect())
    }

    /// Copies the selected tuples if they are few of the tuples in their buffers, so that a chunk
    /// that is kept does not keep those buffers alive. The buffers hold at least `rows_before`
    /// tuples.
    ///
    /// # Errors
    /// As [`Chunk::compact`].
    pub fn compact_if_sparse(self, rows_before: usize) -> Result<Chunk> {
        let is_few = self.rows() < self.rows_stored.max(rows_before) / 2;
        if is_few { Ok(self.compact()?.with_compact_strings()) } else { Ok(self) }
    }

    /// Keeps the selected tuples for which `mask` is true (not false or NULL).
    pub fn filter(mut self, mask: &BooleanArray) -> Chunk {
        debug_assert_eq!(mask.len(), self.rows());
        let kept = |i: &usize| mask.is_valid(*i) && mask.value(*i);
        let selection: Selection = match (&self.selection, mask.null_count()) {
            (None, 0) => UInt32Array::from_iter_values(mask.values().set_indices_u32()),
            (None, _) => {
                UInt32Array::from_iter_values((0..mask.len()).filter(kept).map(|i| i as u32))
            }
            (Some(old), _) => {
                UInt32Array::from_iter_values((0..mask.len()).filter(kept).map(|i| old.value(i)))
            }
        };
        if selection.len() != self.rows() {
            self.selection = Some(Arc::new(selection));
        }
        self
    }

    /// Replaces the selection vector. Positions refer to stored tuples and are ascending.
    pub fn select(mut self, selection: Arc<Selection>) -> Chunk {
        self.selection = Some(selection);
        self
    }

    /// Returns a chunk with other columns and the same selection, such as the result of a
    /// projection.
    pub fn with_stored(&self, columns: Vec<Column>) -> Chunk {
        let columns = Columns::Materialized(columns);
        Chunk { columns, rows_stored: self.rows_stored, selection: self.selection.clone() }
    }

    /// Returns `len` of the selected tuples, starting at `offset`.
    pub fn slice(&self, offset: usize, len: usize) -> Chunk {
        match &self.selection {
            Some(selection) => Chunk {
                columns: self.columns.clone(),
                rows_stored: self.rows_stored,
                selection: Some(Arc::new(selection.slice(offset, len))),
            },
            None if (offset, len) == (0, self.rows_stored) => self.clone(),
            None => Chunk::new(
                self.stored().iter().map(|column| column.slice(offset, len)).collect(),
                len,
            ),
        }
    }

    /// Converts the selected tuples to an Arrow batch of plain arrays.
    ///
    /// # Errors
    /// A column holds collections.
    pub fn to_batch(&self, tuple: &Tuple) -> Result<RecordBatch> {
        let schema: Schema = tuple.arrow_schema()?;
        let arrays =
            (0..self.width()).map(|i| self.column(i)?.plain()).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows()));
        Ok(RecordBatch::try_new_with_options(Arc::new(schema), arrays, &options)?)
    }

    /// The approximate size of the selected values in bytes, as counted in profiles and budgets.
    pub fn value_bytes(&self) -> usize {
        let stored: usize = match &self.columns {
            Columns::Materialized(columns) => columns.iter().map(Column::value_bytes).sum(),
            Columns::Lazy(lazy) => lazy.tuples.value_bytes(),
        };
        if self.rows_stored == 0 { 0 } else { stored / self.rows_stored.max(1) * self.rows() }
    }
}
