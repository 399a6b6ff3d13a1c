//! What the front end asks of the session: tables, their scans and their statistics.

use std::sync::Arc;

use tessera_plan::{Params, Scalar};
use tessera_types::{Result, Tuple};

use crate::sample::Sample;

/// Tables by name.
pub trait Catalog: Sync + std::fmt::Debug {
    /// The table a reference means, `None` when there is none. A reference is the name in parts
    /// (`schema`, `name`), or one part that is a path as written in quotes: `'dir/*.parquet'`.
    ///
    /// # Errors
    /// The table is there but cannot be read.
    fn table(&self, reference: &[&str]) -> Result<Option<Arc<Table>>>;

    /// The files at a path or pattern, read as this format (`csv`, `json`, `parquet`, `arrow`) with
    /// these options, whatever their names end in.
    ///
    /// # Errors
    /// They cannot be read so, or the format has no such option.
    fn files(
        &self,
        path: &str,
        format: &str,
        options: &[FileOption],
    ) -> Result<Option<Arc<Table>>> {
        let _ = (format, options);
        self.table(&[path])
    }

    /// The query text a view stands for, `None` when there is no view of this name.
    ///
    /// # Errors
    /// The view is there but cannot be read.
    fn view(&self, _reference: &[&str]) -> Result<Option<Arc<str>>> {
        Ok(None)
    }

    /// The names of all tables, for messages.
    fn table_names(&self) -> Vec<String>;
}

/// An option of a function that reads files: `header = true`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOption {
    /// The name as written, in lower case.
    pub name: String,
    /// What stands behind it.
    pub value: OptionValue,
}

/// The value of an option, of texts as they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// `';'`, `true`, `1`.
    One(String),
    /// `['a', 'b']`.
    List(Vec<String>),
    /// `{'a': 'int', 'b': 'date'}`.
    Named(Vec<(String, String)>),
}

/// A table: what its tuples look like, how to scan it, what is known of its values.
#[derive(Debug, Clone)]
pub struct Table {
    /// The name, for messages.
    pub name: String,
    /// All its columns.
    pub tuple: Tuple,
    /// The sub-operator that scans it.
    pub operator: Arc<str>,
    /// The scan's parameters but for `columns` and `filter`, which planning adds.
    pub params: Params,
    /// Whether the scan takes a `filter`.
    pub filters: bool,
    /// What is known of its values.
    pub statistics: Statistics,
    /// Some of its rows, where they can be read without much ado.
    pub sample: Option<Arc<Sample>>,
}

/// What is known of a table's values; estimates, never relied on for answers.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// How many rows there are.
    pub rows: Option<f64>,
    /// One entry per column of the table, or none at all.
    pub columns: Vec<ColumnStatistics>,
}

/// What is known of a column's values; estimates, never relied on for answers.
#[derive(Debug, Clone, Default)]
pub struct ColumnStatistics {
    /// A value no value is less than.
    pub min: Option<Scalar>,
    /// A value no value is greater than.
    pub max: Option<Scalar>,
    /// The share of NULLs, 0 to 1.
    pub null_fraction: Option<f64>,
    /// How many distinct values there are.
    pub distinct: Option<f64>,
}
