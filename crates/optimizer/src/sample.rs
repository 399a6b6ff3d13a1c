//! Rows of a table that estimates are tried on: predicates are evaluated on them, and keys
//! compared.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Float64Type};
use tessera_context::lock;
use tessera_functions::{Bound, Library};
use tessera_plan::Expr;
use tessera_types::{Field, Result, Tuple};
use tessera_vector::hash::hash_columns;
use tessera_vector::{Chunk, Column};

use crate::planning::planning;

/// The word of NULL, which equals nothing.
pub const NO_WORD: u64 = 0;
/// In a list of row numbers: the row that an outer join made up.
pub const NO_ROW: u32 = u32::MAX;

/// Reads a few rows of a table.
pub trait Draw: Send + Sync + fmt::Debug {
    /// The values of these columns in the sampled rows: the same rows in the same order each time,
    /// whatever the columns. Nothing where they cannot be read; that is no error, since estimates
    /// do without.
    fn draw(&self, columns: &[usize]) -> Option<Drawn>;

    /// Gives this for later draws, in the place of what it draws itself: all columns of the table.
    /// Whether it is kept beyond this process.
    fn replace(&self, drawn: &Drawn) -> bool;
}

/// What was drawn.
#[derive(Debug, Clone, Default)]
pub struct Drawn {
    /// The values of each column, plain, all of the same length.
    pub columns: Vec<ArrayRef>,
    /// How many rows were drawn.
    pub rows: usize,
    /// How many rows the table has, as far as is known.
    pub table_rows: f64,
    /// Whether every row of the table had the same chance; otherwise the rows are of a few places
    /// in it.
    pub even: bool,
    /// How many distinct values each column has in the whole table, where that was counted.
    pub distinct: Vec<Option<f64>>,
}

/// Sampled rows of a table. Columns are drawn when they are first asked for, and kept.
pub struct Sample {
    tuple: Tuple,
    draw: Box<dyn Draw>,
    library: Arc<Library>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    size: Option<Size>,
    columns: HashMap<usize, Option<Arc<Values>>>,
}

/// How much of a table a sample is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    pub(crate) rows: usize,
    pub(crate) table_rows: f64,
    pub(crate) even: bool,
}

impl Size {
    /// Whether every row of the table is there.
    pub fn whole(&self) -> bool {
        self.rows as f64 >= self.table_rows
    }
}

/// The values of a column.
#[derive(Debug)]
pub struct Values {
    array: ArrayRef,
    /// A hash of each value; [`NO_WORD`] of NULL.
    pub words: Vec<u64>,
    /// How many distinct values the table's column has: counted, or as far as these tell (Duj1, as
    /// for components).
    pub distinct: f64,
    /// They were counted.
    pub counted: bool,
}

impl fmt::Debug for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sample")
            .field("tuple", &self.tuple)
            .field("draw", &self.draw)
            .finish_non_exhaustive()
    }
}

impl Sample {
    /// A sample of a table with these columns; `library` has the functions that predicates call.
    pub fn new(tuple: Tuple, draw: Box<dyn Draw>, library: Arc<Library>) -> Sample {
        Sample { tuple, draw, library, known: Mutex::default() }
    }

    /// Draws those of these columns that have not been, together.
    pub fn load(&self, columns: &[usize]) {
        let mut known = lock(&self.known);
        let missing: Vec<usize> =
            columns.iter().copied().filter(|column| !known.columns.contains_key(column)).collect();
        if missing.is_empty() {
            return;
        }
        let drawn = self.draw.draw(&missing);
        let size =
            drawn.as_ref().map(|d| Size { rows: d.rows, table_rows: d.table_rows, even: d.even });
        // The table has changed meanwhile: what was drawn before is of other rows.
        let same = known.size.is_none() || size == known.size;
        let drawn = drawn.filter(|_| same);
        for (position, column) in missing.iter().enumerate() {
            let array = drawn.as_ref().and_then(|drawn| drawn.columns.get(position));
            let rows = size.map_or(0.0, |size| size.table_rows);
            let counted =
                drawn.as_ref().and_then(|drawn| drawn.distinct.get(position).copied().flatten());
            let values = array.and_then(|array| values(array, rows, counted).ok()).map(Arc::new);
            known.columns.insert(*column, values);
        }
        known.size = known.size.or(size);
    }

    /// Takes a better sample, of all columns, in the place of what has been drawn. Whether it is
    /// kept beyond this process.
    pub fn replace(&self, drawn: &Drawn) -> bool {
        let mut known = lock(&self.known);
        *known = Known::default();
        self.draw.replace(drawn)
    }

    /// How much of the table has been drawn; nothing before something has.
    pub fn size(&self) -> Option<Size> {
        lock(&self.known).size
    }

    /// The values of a column that has been drawn.
    pub fn values(&self, column: usize) -> Option<Arc<Values>> {
        lock(&self.known).columns.get(&column).cloned().flatten()
    }

    pub(crate) fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// The column's field under another name, and its values in these rows; NULL in rows that are
    /// none.
    pub fn field(&self, column: usize, name: &str, rows: &[u32]) -> Option<(Field, ArrayRef)> {
        let values = self.values(column)?;
        let field = self.tuple.fields().get(column)?.renamed(name).with_nullable(true);
        if rows.len() == values.array.len()
            && rows.iter().zip(0..).all(|(row, position)| *row == position)
        {
            return Some((field, values.array.clone()));
        }
        let positions: UInt32Array =
            rows.iter().map(|row| (*row != NO_ROW).then_some(*row)).collect();
        Some((field, take(&values.array, &positions, None).ok()?))
    }
}

fn values(array: &ArrayRef, table_rows: f64, counted: Option<f64>) -> Result<Values> {
    let mut words = Vec::new();
    hash_columns(&[Column::new(array.clone())], array.len(), &mut words)?;
    for (position, word) in words.iter_mut().enumerate() {
        if array.is_null(position) {
            *word = NO_WORD;
        }
    }
    let mut sorted: Vec<u64> = words.iter().copied().filter(|word| *word != NO_WORD).collect();
    sorted.sort_unstable();
    let runs = sorted.chunk_by(|a, b| a == b);
    let (found, once) = runs.fold((0.0, 0.0), |(found, once), run| {
        (found + 1.0, once + f64::from(u8::from(run.len() == 1)))
    });
    let distinct = counted.unwrap_or_else(|| distinct(found, once, words.len() as f64, table_rows));
    Ok(Values { array: array.clone(), words, distinct, counted: counted.is_some() })
}

/// How many distinct values there are among `all` tuples, where `here` of them have `found`, and
/// `once` of these stand there once (Haas et al., Sampling-Based Estimation of the Number of
/// Distinct Values of an Attribute, 1995: Duj1).
pub fn distinct(found: f64, once: f64, here: f64, all: f64) -> f64 {
    let all = all.max(here).max(1.0);
    let seen = 1.0 - (1.0 - here / all) * once / here.max(1.0);
    (found / seen.max(f64::MIN_POSITIVE)).clamp(found.max(1.0), all)
}

/// The positions at which a predicate over these columns is true; nothing where it cannot be said.
pub fn select(
    predicate: &Expr,
    columns: Vec<(Field, ArrayRef)>,
    library: &Arc<Library>,
) -> Option<Vec<u32>> {
    let (bound, chunk) = bound(predicate, columns, library)?;
    let kept = bound.select(chunk, &planning()).ok()?;
    Some(match kept.selection() {
        Some(selection) => selection.values().to_vec(),
        None => (0..kept.rows_stored() as u32).collect(),
    })
}

/// The values of an expression over these columns that are not NULL, as numbers; nothing where they
/// are none.
pub fn numbers(
    expr: &Expr,
    columns: Vec<(Field, ArrayRef)>,
    library: &Arc<Library>,
) -> Option<Vec<f64>> {
    let (bound, chunk) = bound(expr, columns, library)?;
    let values = bound.evaluate(&chunk, &planning()).ok()?.plain().ok()?;
    if !values.data_type().is_numeric() {
        return None;
    }
    let values = cast(&values, &DataType::Float64).ok()?;
    Some(values.as_primitive::<Float64Type>().iter().flatten().collect())
}

fn bound(
    expr: &Expr,
    columns: Vec<(Field, ArrayRef)>,
    library: &Arc<Library>,
) -> Option<(Bound, Chunk)> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let bound = Bound::new(expr, &Tuple::new(fields), &Tuple::empty(), library).ok()?;
    Some((bound, Chunk::from_arrays(arrays)))
}
