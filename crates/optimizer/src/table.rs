//! Tables as the binder and the optimizer see them: scans and statistics.

use std::sync::Arc;

use tessera_plan::{Params, Scalar};
use tessera_types::{Result, Tuple};

use crate::sample::Sample;

/// The tables and views of a session, by name.
pub trait TableCatalog: Sync + std::fmt::Debug {
    /// Returns the table with this name, or `None`. A reference is the parts of the name (`schema`,
    /// `name`), or a single part with the text of a quoted path: `'dir/*.parquet'`.
    ///
    /// # Errors
    /// The table exists but cannot be read.
    fn table(&self, reference: &[&str]) -> Result<Option<Arc<Table>>>;

    /// Returns the files at a path or pattern as a table, read in this format (`csv`, `json`,
    /// `parquet`, `arrow`) with these options, regardless of their names.
    ///
    /// # Errors
    /// The files cannot be read in this format, or the format has no such option.
    fn files(
        &self,
        path: &str,
        format: &str,
        options: &[FileOption],
    ) -> Result<Option<Arc<Table>>> {
        let _ = (format, options);
        self.table(&[path])
    }

    /// Returns the query text of a view, or `None`.
    ///
    /// # Errors
    /// The view exists but cannot be read.
    fn view(&self, _reference: &[&str]) -> Result<Option<Arc<str>>> {
        Ok(None)
    }

    /// Returns the names of all tables, for messages.
    fn table_names(&self) -> Vec<String>;
}

/// An option of a function that reads files: `header = true`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOption {
    /// The name in lower case.
    pub name: String,
    /// The value.
    pub value: OptionValue,
}

/// The value of an option; its parts are unparsed strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// `';'`, `true`, `1`.
    One(String),
    /// `['a', 'b']`.
    List(Vec<String>),
    /// `{'a': 'int', 'b': 'date'}`.
    Named(Vec<(String, String)>),
}

/// A table: the type of its tuples, its scan and its statistics.
#[derive(Debug, Clone)]
pub struct Table {
    /// The name, for messages.
    pub name: String,
    /// The type of its tuples, with all columns.
    pub tuple: Tuple,
    /// The sub-operator that scans it.
    pub operator: Arc<str>,
    /// The parameters of the scan, except `columns` and `filter`, which planning adds.
    pub params: Params,
    /// Whether the scan takes a `filter`.
    pub filters: bool,
    /// Statistics of its values.
    pub statistics: Statistics,
    /// A sample of its rows, if it is cheap to read.
    pub sample: Option<Arc<Sample>>,
}

/// Statistics of a table. They affect plans, never results.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// The number of rows.
    pub rows: Option<f64>,
    /// One entry per column of the table, or empty.
    pub columns: Vec<ColumnStatistics>,
}

/// Statistics of a column. They affect plans, never results.
#[derive(Debug, Clone, Default)]
pub struct ColumnStatistics {
    /// A lower bound of the values.
    pub min: Option<Scalar>,
    /// An upper bound of the values.
    pub max: Option<Scalar>,
    /// The fraction of NULLs, 0 to 1.
    pub null_fraction: Option<f64>,
    /// The number of distinct values.
    pub distinct: Option<f64>,
}
