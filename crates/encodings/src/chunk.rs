//! A chunk: what flows between sub-operators.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::datatypes::Schema;

use tessera_types::{Result, Tuple};

use crate::column::Column;

/// The most tuples in a chunk; a setting makes them smaller for tests.
pub const CHUNK_ROWS_MAX: usize = 8_192;

/// Positions of the tuples that count, ascending.
pub type Selection = UInt32Array;

/// At most [`CHUNK_ROWS_MAX`] tuples, column-wise, of which a selection vector names those that count.
#[derive(Debug, Clone)]
pub struct Chunk {
    columns: Vec<Column>,
    rows_stored: usize,
    selection: Option<Arc<Selection>>,
}

impl Chunk {
    /// A chunk whose every tuple counts. `rows` is needed for chunks without columns.
    pub fn new(columns: Vec<Column>, rows: usize) -> Self {
        debug_assert!(columns.iter().all(|column| column.len() == rows));
        debug_assert!(columns.iter().all(|column| match column {
            Column::Dictionary(array) => crate::column::dictionary_key_is_32_bits(array.as_ref()),
            _ => true,
        }));
        Chunk { columns, rows_stored: rows, selection: None }
    }

    /// One tuple without fields: what starts a plan that has no input.
    pub fn unit() -> Self {
        Chunk::new(Vec::new(), 1)
    }

    /// A chunk of plain arrays.
    pub fn from_arrays(arrays: Vec<ArrayRef>) -> Self {
        let rows = arrays.first().map_or(0, |array| array.len());
        Chunk::new(arrays.into_iter().map(Column::new).collect(), rows)
    }

    /// How many tuples count.
    pub fn rows(&self) -> usize {
        self.selection.as_ref().map_or(self.rows_stored, |selection| selection.len())
    }

    /// Whether no tuple counts.
    pub fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    /// How many columns there are.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// The selection vector, where not every stored tuple counts.
    pub fn selection(&self) -> Option<&Arc<Selection>> {
        self.selection.as_ref()
    }

    /// The columns as stored, selection not applied.
    pub fn stored(&self) -> &[Column] {
        &self.columns
    }

    /// How many tuples are stored.
    pub fn rows_stored(&self) -> usize {
        self.rows_stored
    }

    /// A column of the tuples that count (dense: gathered when there is a selection).
    pub fn column(&self, index: usize) -> Result<Column> {
        match &self.selection {
            None => Ok(self.columns[index].clone()),
            Some(selection) => self.columns[index].take(selection),
        }
    }

    /// The same tuples without a selection vector.
    pub fn compact(self) -> Result<Chunk> {
        match self.selection {
            None => Ok(self),
            Some(selection) => {
                let columns = self.columns.iter().map(|c| c.take(&selection)).collect::<Result<Vec<_>>>()?;
                Ok(Chunk::new(columns, selection.len()))
            }
        }
    }

    /// The same tuples without what else is in the buffers that their strings refer to.
    pub fn with_own_strings(&self) -> Chunk {
        self.with_stored(self.columns.iter().map(Column::with_own_strings).collect())
    }

    /// Keeps the tuples (of those that count) for which `mask` is true and not NULL.
    pub fn filter(mut self, mask: &BooleanArray) -> Chunk {
        debug_assert_eq!(mask.len(), self.rows());
        let kept = |i: &usize| mask.is_valid(*i) && mask.value(*i);
        let selection: Selection = match (&self.selection, mask.null_count()) {
            (None, 0) => UInt32Array::from_iter_values(mask.values().set_indices_u32()),
            (None, _) => UInt32Array::from_iter_values((0..mask.len()).filter(kept).map(|i| i as u32)),
            (Some(old), _) => {
                UInt32Array::from_iter_values((0..mask.len()).filter(kept).map(|i| old.value(i)))
            }
        };
        if selection.len() != self.rows() {
            self.selection = Some(Arc::new(selection));
        }
        self
    }

    /// Keeps the tuples at these positions (of those stored), ascending.
    pub fn select(mut self, selection: Arc<Selection>) -> Chunk {
        self.selection = Some(selection);
        self
    }

    /// Other columns over the same stored tuples and selection: what a projection gives.
    pub fn with_stored(&self, columns: Vec<Column>) -> Chunk {
        Chunk { columns, rows_stored: self.rows_stored, selection: self.selection.clone() }
    }

    /// `len` tuples (of those that count) from `offset`.
    pub fn slice(&self, offset: usize, len: usize) -> Chunk {
        match &self.selection {
            Some(selection) => Chunk {
                columns: self.columns.clone(),
                rows_stored: self.rows_stored,
                selection: Some(Arc::new(selection.slice(offset, len))),
            },
            None => Chunk::new(self.columns.iter().map(|column| column.slice(offset, len)).collect(), len),
        }
    }

    /// The tuples as an Arrow batch in plain forms.
    ///
    /// # Errors
    /// A column holds collections.
    pub fn to_batch(&self, tuple: &Tuple) -> Result<RecordBatch> {
        let schema: Schema = tuple.arrow_schema()?;
        let arrays = (0..self.width()).map(|i| self.column(i)?.plain()).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows()));
        Ok(RecordBatch::try_new_with_options(Arc::new(schema), arrays, &options)?)
    }

    /// Bytes of the values that count, as counted in profiles and budgets.
    pub fn value_bytes(&self) -> usize {
        let stored: usize = self.columns.iter().map(Column::value_bytes).sum();
        if self.rows_stored == 0 { 0 } else { stored / self.rows_stored.max(1) * self.rows() }
    }
}
