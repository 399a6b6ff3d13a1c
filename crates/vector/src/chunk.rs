//! A chunk: what flows between sub-operators.

use std::any::Any;
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::datatypes::Schema;

use tessera_codegen::{InputPlace, RawInput};
use tessera_types::{Result, Tuple};

use crate::column::Column;

/// The most tuples in a chunk, unless a query is set otherwise: what stands between two loops over
/// a chunk stays in the second-level cache.
pub const CHUNK_ROWS: usize = 8_192;

/// The most that can be set.
pub const CHUNK_ROWS_MAX: usize = 65_536;

/// Positions of the tuples that count, ascending.
pub type Selection = UInt32Array;

/// Tuples that lie elsewhere than in columns: who knows the place reads them there, others get
/// columns.
pub trait Elsewhere: Any + Debug + Send + Sync {
    /// How many fields they have.
    fn width(&self) -> usize;

    /// All fields as columns; asked once.
    fn columns(&self) -> Vec<Column>;

    /// Bytes of their values.
    fn value_bytes(&self) -> usize;

    /// The same tuples with these fields only.
    fn project(&self, fields: &[usize]) -> Box<dyn Elsewhere>;

    /// What hashes the tuples where they are, if that takes less than to make columns of them.
    fn hasher(&self) -> Option<&dyn HashFields> {
        None
    }

    /// How compiled code finds a field, and where; none where it has no code. `arrays` keeps the
    /// array that the field lies in, if there is one.
    fn input(&self, _field: usize, _arrays: &mut Vec<ArrayRef>) -> Option<(InputPlace, RawInput)> {
        None
    }
}

/// Hashes of tuples that lie elsewhere.
pub trait HashFields {
    /// Hashes all tuples by these fields, into `out` (replaced), as columns are hashed.
    ///
    /// # Errors
    /// A field has no hash.
    fn hash(&self, fields: &[usize], out: &mut Vec<u64>) -> Result<()>;
}

/// At most [`CHUNK_ROWS_MAX`] tuples, column-wise, of which a selection vector names those that
/// count.
#[derive(Debug, Clone)]
pub struct Chunk {
    columns: Columns,
    rows_stored: usize,
    selection: Option<Arc<Selection>>,
}

#[derive(Debug, Clone)]
enum Columns {
    Made(Vec<Column>),
    Elsewhere(Arc<Lying>),
}

impl Columns {
    fn lying(tuples: Box<dyn Elsewhere>) -> Columns {
        Columns::Elsewhere(Arc::new(Lying { tuples, columns: OnceLock::new() }))
    }
}

/// Tuples that lie elsewhere, and their columns once somebody has asked for them.
#[derive(Debug)]
struct Lying {
    tuples: Box<dyn Elsewhere>,
    columns: OnceLock<Vec<Column>>,
}

impl Chunk {
    /// A chunk whose every tuple counts. `rows` is needed for chunks without columns.
    pub fn new(columns: Vec<Column>, rows: usize) -> Self {
        debug_assert!(columns.iter().all(|column| column.len() == rows));
        debug_assert!(columns.iter().all(|column| match column {
            Column::Dictionary(array) => crate::column::dictionary_key_is_32_bits(array.as_ref()),
            _ => true,
        }));
        Chunk { columns: Columns::Made(columns), rows_stored: rows, selection: None }
    }

    /// A chunk of `rows` tuples that lie elsewhere, all of which count.
    pub fn lying(tuples: impl Elsewhere, rows: usize) -> Self {
        Chunk { columns: Columns::lying(Box::new(tuples)), rows_stored: rows, selection: None }
    }

    /// Where the stored tuples lie, if that is a place of this kind.
    pub fn elsewhere<T: Elsewhere>(&self) -> Option<&T> {
        let place: &dyn Any = self.place()?;
        place.downcast_ref()
    }

    /// The place where the stored tuples lie, of whatever kind.
    pub fn place(&self) -> Option<&dyn Elsewhere> {
        match &self.columns {
            Columns::Made(_) => None,
            Columns::Elsewhere(lying) => Some(&*lying.tuples),
        }
    }

    /// Whether the stored tuples have not been made columns yet.
    pub fn is_lying(&self) -> bool {
        matches!(&self.columns, Columns::Elsewhere(lying) if lying.columns.get().is_none())
    }

    /// The same tuples with these columns only, in this order.
    pub fn project(&self, columns: &[usize]) -> Chunk {
        let projected = match &self.columns {
            Columns::Elsewhere(lying) if self.is_lying() => {
                Columns::lying(lying.tuples.project(columns))
            }
            _ => {
                Columns::Made(columns.iter().map(|column| self.stored()[*column].clone()).collect())
            }
        };
        Chunk {
            columns: projected,
            rows_stored: self.rows_stored,
            selection: self.selection.clone(),
        }
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
        match &self.columns {
            Columns::Made(columns) => columns.len(),
            Columns::Elsewhere(lying) => lying.tuples.width(),
        }
    }

    /// The selection vector, where not every stored tuple counts.
    pub fn selection(&self) -> Option<&Arc<Selection>> {
        self.selection.as_ref()
    }

    /// The columns as stored, selection not applied.
    pub fn stored(&self) -> &[Column] {
        match &self.columns {
            Columns::Made(columns) => columns,
            Columns::Elsewhere(lying) => lying.columns.get_or_init(|| lying.tuples.columns()),
        }
    }

    /// How many tuples are stored.
    pub fn rows_stored(&self) -> usize {
        self.rows_stored
    }

    /// A column of the tuples that count (dense: gathered when there is a selection).
    pub fn column(&self, index: usize) -> Result<Column> {
        match &self.selection {
            None => Ok(self.stored()[index].clone()),
            Some(selection) => self.stored()[index].take(selection),
        }
    }

    /// The same tuples in columns, without a selection vector.
    pub fn compact(self) -> Result<Chunk> {
        match &self.selection {
            // Kept as it is, it would keep what it lies in.
            None if self.is_lying() => Ok(Chunk::new(self.stored().to_vec(), self.rows_stored)),
            None => Ok(self),
            Some(selection) => {
                let columns =
                    self.stored().iter().map(|c| c.take(selection)).collect::<Result<Vec<_>>>()?;
                Ok(Chunk::new(columns, selection.len()))
            }
        }
    }

    /// The same tuples without what else is in the buffers that their strings refer to.
    pub fn with_own_strings(&self) -> Chunk {
        self.with_stored(self.stored().iter().map(Column::with_own_strings).collect())
    }

    /// The same tuples, to be held: where they are few of the tuples that their buffers hold (of
    /// those stored, and of at least `rows_before`), they are copied, so that they do not keep the
    /// buffers of all of them alive.
    ///
    /// # Errors
    /// As [`Chunk::compact`].
    pub fn without_much_else(self, rows_before: usize) -> Result<Chunk> {
        let is_few = self.rows() < self.rows_stored.max(rows_before) / 2;
        if is_few { Ok(self.compact()?.with_own_strings()) } else { Ok(self) }
    }

    /// Keeps the tuples (of those that count) for which `mask` is true and not NULL.
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

    /// Keeps the tuples at these positions (of those stored), ascending.
    pub fn select(mut self, selection: Arc<Selection>) -> Chunk {
        self.selection = Some(selection);
        self
    }

    /// Other columns over the same stored tuples and selection: what a projection gives.
    pub fn with_stored(&self, columns: Vec<Column>) -> Chunk {
        let columns = Columns::Made(columns);
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
            None if (offset, len) == (0, self.rows_stored) => self.clone(),
            None => Chunk::new(
                self.stored().iter().map(|column| column.slice(offset, len)).collect(),
                len,
            ),
        }
    }

    /// The tuples as an Arrow batch in plain forms.
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

    /// Bytes of the values that count, as counted in profiles and budgets.
    pub fn value_bytes(&self) -> usize {
        let stored: usize = match &self.columns {
            Columns::Made(columns) => columns.iter().map(Column::value_bytes).sum(),
            Columns::Elsewhere(lying) => lying.tuples.value_bytes(),
        };
        if self.rows_stored == 0 { 0 } else { stored / self.rows_stored.max(1) * self.rows() }
    }
}
