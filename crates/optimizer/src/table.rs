//! Tables as the binder and the optimizer see them: scans and statistics.

use std::sync::Arc;

use tessera_plan::{FileFacts, Params, Plan, Statistics};
use tessera_types::{Error, Result, Tuple};

use crate::sample::Sample;

/// The tables and views of a session, by name.
pub trait TableCatalog: Sync + std::fmt::Debug {
    /// Returns the table with this name, or `None`. A reference is the parts of the name (`schema`,
    /// `name`), or a single part with the text of a quoted path: `'dir/*.parquet'`.
    ///
    /// # Errors
    /// The table exists but cannot be read.
    fn table(&self, reference: &[&str]) -> Result<Option<Arc<Table>>>;

    /// Returns the table functions that read files, each with the name of the format that it reads:
    /// `read_csv` and `csv`.
    fn file_functions(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// Returns the files at these paths and patterns as a table, read in the format of this name
    /// with these options, regardless of their names. The files keep the order of the paths.
    ///
    /// # Errors
    /// The files cannot be read in this format, or the format has no such option.
    fn files(
        &self,
        _paths: &[String],
        _format: &str,
        _options: &[FileOption],
    ) -> Result<Option<Arc<Table>>> {
        Ok(None)
    }

    /// Returns the functions of FROM that say something about files, such as `glob`.
    fn fact_functions(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Returns what one of these functions says about the files at these paths and patterns.
    ///
    /// # Errors
    /// A file cannot be read, or an option is unknown.
    fn facts(
        &self,
        function: &str,
        _paths: &[String],
        _options: &[FileOption],
    ) -> Result<FileFacts> {
        Err(Error::internal(format!("the function {function} is not known")))
    }

    /// Returns the query text of a view, or `None`.
    ///
    /// # Errors
    /// The view exists but cannot be read.
    fn view(&self, _reference: &[&str]) -> Result<Option<Arc<str>>> {
        Ok(None)
    }

    /// Runs a plan whose only column is text, and returns its values: PIVOT makes columns of them,
    /// CREATE TYPE the labels of an enum.
    ///
    /// # Errors
    /// The plan fails, or this catalog cannot run plans.
    fn texts(&self, _plan: &Plan) -> Result<Vec<Option<Arc<str>>>> {
        Err(Error::unsupported(
            "the statement needs the values of a query, and none can be run here; write the values",
        ))
    }

    /// Returns the names of all tables, for messages.
    fn table_names(&self) -> Vec<String>;

    /// Returns the names of all tables and views, sorted, and what each is: `table`, `view`,
    /// `temporary table`, ….
    fn table_kinds(&self) -> Vec<(String, &'static str)> {
        self.table_names().into_iter().map(|name| (name, "table")).collect()
    }
}

/// An option of a function that reads files: `header = true`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileOption {
    /// The name in lower case.
    pub name: String,
    /// The value.
    pub value: OptionValue,
}

/// The value of an option; its parts are unparsed strings.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
    /// The numbers of its rows, if the scan knows them.
    pub row_numbers: Option<RowNumbers>,
}

/// The numbers of rows that a scan can add as a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowNumbers {
    /// The parameter of the scan, which is `true` for the column, and the column's name.
    pub column: Arc<str>,
    /// Whether they tell all rows of the table apart: there is one file, or none.
    pub are_unique: bool,
}
