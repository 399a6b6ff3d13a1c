//! Samples of tables: estimates evaluate predicates on them and compare their keys.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use tessera_context::lock;
use tessera_functions::{BoundExpr, Library};
use tessera_plan::Expr;
use tessera_types::{Field, Result, Tuple};
use tessera_vector::hash::hash_columns;
use tessera_vector::{Chunk, Column};

use crate::planning::planning;

/// The hash that stands for NULL, which equals nothing.
pub const NULL_HASH: u64 = 0;
/// In a list of row numbers: a row of NULLs that an outer join added.
pub const NO_ROW: u32 = u32::MAX;

/// Reads a sample of a table.
pub trait Sampler: Send + Sync + fmt::Debug {
    /// Returns the values of these columns in the sampled rows. Every call returns the same rows in
    /// the same order. Returns `None` if they cannot be read; estimates then work without.
    fn draw(&self, columns: &[usize]) -> Option<SampledRows>;

    /// Replaces the sample by `drawn`, which has all columns of the table, for later calls. Returns
    /// whether it is stored beyond this process.
    fn replace(&self, drawn: &SampledRows) -> bool;
}

/// The sampled rows of some columns.
#[derive(Debug, Clone, Default)]
pub struct SampledRows {
    /// The values of each column in the plain Arrow type, all of the same length.
    pub columns: Vec<ArrayRef>,
    /// The number of sampled rows.
    pub rows: usize,
    /// The number of rows in the table, exact or estimated.
    pub table_rows: f64,
    /// Whether every row of the table had the same chance to be sampled. If not, the rows come from
    /// a few places in the table.
    pub uniform: bool,
    /// The number of distinct values of each column in the whole table, if it was counted.
    pub distinct: Vec<Option<f64>>,
}

/// A sample of a table. Columns are read on first use and cached.
pub struct Sample {
    tuple: Tuple,
    draw: Box<dyn Sampler>,
    library: Arc<Library>,
    cache: Mutex<SampleCache>,
}

#[derive(Default)]
struct SampleCache {
    size: Option<SampleSize>,
    columns: HashMap<usize, Option<Arc<ColumnSample>>>,
}

/// The size of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleSize {
    pub(crate) rows: usize,
    pub(crate) table_rows: f64,
    pub(crate) uniform: bool,
}

impl SampleSize {
    /// Whether the sample is the whole table.
    pub fn whole(&self) -> bool {
        self.rows as f64 >= self.table_rows
    }
}

/// The sampled values of a column.
#[derive(Debug)]
pub struct ColumnSample {
    array: ArrayRef,
    /// A hash of each value; [`NULL_HASH`] for NULL.
    pub hashes: Vec<u64>,
    /// The number of distinct values in the table's column: counted, or estimated from the sample
    /// ([`distinct`]).
    pub distinct: f64,
    /// Whether `distinct` was counted.
    pub counted: bool,
    whole_numbers: OnceLock<Option<WholeNumbers>>,
}

/// The sampled values of a column of whole numbers or dates, in the units of its plain type.
#[derive(Debug)]
pub struct WholeNumbers {
    /// The value of each row.
    pub by_row: Vec<Option<i64>>,
    /// The distinct values, in order.
    sorted: Vec<i64>,
}

impl WholeNumbers {
    /// Returns the number of distinct values in a range.
    pub fn distinct_between(&self, min: f64, max: f64) -> usize {
        let start = self.sorted.partition_point(|number| (*number as f64) < min);
        let end = self.sorted.partition_point(|number| *number as f64 <= max);
        end.saturating_sub(start)
    }
}

impl ColumnSample {
    /// The values of a column of whole numbers or dates; `None` for other types.
    pub fn whole_numbers(&self) -> Option<&WholeNumbers> {
        let read = || {
            let numbers = match self.array.data_type() {
                DataType::Date32 => &cast(&self.array, &DataType::Int32).ok()?,
                plain if plain.is_integer() => &self.array,
                _ => return None,
            };
            let numbers = cast(numbers, &DataType::Int64).ok()?;
            let by_row: Vec<Option<i64>> = numbers.as_primitive::<Int64Type>().iter().collect();
            let mut sorted: Vec<i64> = by_row.iter().copied().flatten().collect();
            sorted.sort_unstable();
            sorted.dedup();
            Some(WholeNumbers { by_row, sorted })
        };
        self.whole_numbers.get_or_init(read).as_ref()
    }
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
    /// Creates a sample of a table with these columns; `library` has the functions of predicates.
    pub fn new(tuple: Tuple, draw: Box<dyn Sampler>, library: Arc<Library>) -> Sample {
        Sample { tuple, draw, library, cache: Mutex::default() }
    }

    /// Reads the columns that are not cached yet, in one call.
    pub fn load(&self, columns: &[usize]) {
        let mut cache = lock(&self.cache);
        let missing: Vec<usize> =
            columns.iter().copied().filter(|column| !cache.columns.contains_key(column)).collect();
        if missing.is_empty() {
            return;
        }
        let drawn = self.draw.draw(&missing);
        let size = drawn.as_ref().map(|d| SampleSize {
            rows: d.rows,
            table_rows: d.table_rows,
            uniform: d.uniform,
        });
        // The table has changed in between: the cached columns belong to other rows.
        let same = cache.size.is_none() || size == cache.size;
        let drawn = drawn.filter(|_| same);
        for (position, column) in missing.iter().enumerate() {
            let array = drawn.as_ref().and_then(|drawn| drawn.columns.get(position));
            let rows = size.map_or(0.0, |size| size.table_rows);
            let counted =
                drawn.as_ref().and_then(|drawn| drawn.distinct.get(position).copied().flatten());
            let values = array.and_then(|array| values(array, rows, counted).ok()).map(Arc::new);
            cache.columns.insert(*column, values);
        }
        cache.size = cache.size.or(size);
    }

    /// Replaces the sample by a better one with all columns. Returns whether it is stored beyond
    /// this process.
    pub fn replace(&self, drawn: &SampledRows) -> bool {
        let mut cache = lock(&self.cache);
        *cache = SampleCache::default();
        self.draw.replace(drawn)
    }

    /// The size of the sample; `None` before the first column was read.
    pub fn size(&self) -> Option<SampleSize> {
        lock(&self.cache).size
    }

    /// The values of a column that has been read.
    pub fn values(&self, column: usize) -> Option<Arc<ColumnSample>> {
        lock(&self.cache).columns.get(&column).cloned().flatten()
    }

    pub(crate) fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// Returns the field of a column under another name, and its values in these rows; NULL for
    /// [`NO_ROW`].
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

fn values(array: &ArrayRef, table_rows: f64, counted: Option<f64>) -> Result<ColumnSample> {
    let mut hashes = Vec::new();
    hash_columns(&[Column::new(array.clone())], array.len(), &mut hashes)?;
    for (position, hash) in hashes.iter_mut().enumerate() {
        if array.is_null(position) {
            *hash = NULL_HASH;
        }
    }
    let mut sorted: Vec<u64> = hashes.iter().copied().filter(|hash| *hash != NULL_HASH).collect();
    sorted.sort_unstable();
    let runs = sorted.chunk_by(|a, b| a == b);
    let (found, once) = runs.fold((0.0, 0.0), |(found, once), run| {
        (found + 1.0, once + f64::from(u8::from(run.len() == 1)))
    });
    let distinct =
        counted.unwrap_or_else(|| distinct(found, once, hashes.len() as f64, table_rows));
    Ok(ColumnSample {
        array: array.clone(),
        hashes,
        distinct,
        counted: counted.is_some(),
        whole_numbers: OnceLock::new(),
    })
}

/// Estimates the number of distinct values among `all` tuples from a sample of `here` tuples that
/// has `found` distinct values, `once` of which occur once (Haas et al., Sampling-Based Estimation
/// of the Number of Distinct Values of an Attribute, 1995: Duj1).
pub fn distinct(found: f64, once: f64, here: f64, all: f64) -> f64 {
    let all = all.max(here).max(1.0);
    let seen = 1.0 - (1.0 - here / all) * once / here.max(1.0);
    (found / seen.max(f64::MIN_POSITIVE)).clamp(found.max(1.0), all)
}

/// Returns the positions at which a predicate over these columns is true; `None` if it cannot be
/// evaluated.
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

/// Returns the values of a numeric expression over these columns that are not NULL; `None` if it
/// cannot be evaluated or is not numeric.
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
) -> Option<(BoundExpr, Chunk)> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let bound = BoundExpr::new(expr, &Tuple::new(fields), &Tuple::empty(), library).ok()?;
    Some((bound, Chunk::from_arrays(arrays)))
}
