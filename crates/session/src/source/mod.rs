//! Table sources: columns and statistics of files, for binding and estimates.

mod inference;
mod options;
mod parquet;
mod sample_file;
mod sampler;
mod stamp;

use std::sync::Arc;

use tessera_files::{FileFormat, Partitions};
use tessera_optimizer::table::{ColumnStatistics, Statistics, Table};
use tessera_plan::Params;
use tessera_types::{Error, Field, Result, Tuple};

use crate::storage::{FileSet, Storage};

pub(crate) use options::{Direction, ReadOptions, Types, params_of_options, read_options};
#[cfg(any(test, fuzzing))]
pub use sample_file::sample_bytes;
#[cfg(test)]
pub(crate) use sample_file::sample_seed;
pub(crate) use sampler::TableSampler;
pub(crate) use stamp::Stamps;

/// The files of one table and how to read them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Source {
    /// The table name, for messages.
    pub(crate) name: String,
    pub(crate) format: FileFormat,
    /// The files, sorted.
    pub(crate) paths: Vec<String>,
    /// The common prefix of the paths, before any partition folders.
    pub(crate) root: String,
    /// The columns of a table with declared columns.
    pub(crate) declared: Option<Vec<Field>>,
    /// Column types from options.
    pub(crate) types: Types,
    /// The format options of the scan.
    pub(crate) options: Params,
}

impl Source {
    /// The source of the files at `location`: a path, pattern or folder.
    ///
    /// # Errors
    /// No file exists there, or the files have an unknown format or several formats.
    pub(crate) fn at(storage: &Storage, name: &str, location: &str) -> Result<Source> {
        let FileSet { paths, root } = storage.expand(location)?;
        let format = match paths.as_slice() {
            [path] => {
                storage.format_of_stream(path)?.map_or_else(|| FileFormat::of_path(path), Ok)?
            }
            paths => common_format(paths)?,
        };
        let options = params_of_options(format, Direction::Read, &[])?;
        let types = Types::Inferred;
        Ok(Source { name: name.to_string(), format, paths, root, declared: None, types, options })
    }

    /// Like [`Source::at`], with a given format, which overrides the extensions of the files.
    ///
    /// # Errors
    /// No file exists there.
    pub(crate) fn with_format(
        storage: &Storage,
        name: &str,
        location: &str,
        format: FileFormat,
        options: ReadOptions,
    ) -> Result<Source> {
        let FileSet { paths, root } = storage.expand(location)?;
        let ReadOptions { params: options, columns: declared, types } = options;
        Ok(Source { name: name.to_string(), format, paths, root, declared, types, options })
    }

    /// Reads the columns and statistics of the table, for planning.
    ///
    /// # Errors
    /// A file cannot be read, or the files have incompatible columns.
    pub(crate) fn describe(&self, storage: &Storage) -> Result<Table> {
        let (columns, mut statistics, options) = match self.format {
            FileFormat::Parquet => {
                let (tuple, statistics) = parquet::describe(storage, &self.paths)?;
                (tuple, statistics, self.options.clone())
            }
            _ => inference::describe(storage, self)?,
        };
        let columns = match &self.declared {
            Some(fields) => self.apply_declared(fields, &columns, &mut statistics)?,
            None => self.types.apply(&columns, &self.paths[0])?,
        };
        let partitions = self.partitions()?;
        let tuple = with_partitions(columns, &partitions, &mut statistics);
        let paths = self.paths.iter().map(|path| tessera_plan::Value::string(path.as_str()));
        let mut params = Params::new().with("paths", paths.collect::<Vec<_>>());
        for (name, value) in options.iter() {
            params.set(name.clone(), value.clone());
        }
        if !partitions.fields.is_empty() {
            params.set("partitions", partitions.to_value());
        }
        Ok(Table {
            name: self.name.clone(),
            tuple,
            operator: Arc::from(self.format.scan()),
            params,
            filters: true,
            statistics,
            sample: None,
        })
    }

    /// Applies declared columns. Files of a binary format must have them, with the same types.
    fn apply_declared(
        &self,
        fields: &[Field],
        found: &Tuple,
        statistics: &mut Statistics,
    ) -> Result<Tuple> {
        let text = matches!(self.format, FileFormat::Csv | FileFormat::Tsv | FileFormat::Json);
        let mut columns = Vec::new();
        for field in fields {
            let position = found.index_of(&field.name);
            match position.map(|position| &found.fields()[position]) {
                Some(other) if !text && other.item != field.item => {
                    return Err(Error::semantic(format!(
                        "column {} of table {} is declared as {} but is {} in '{}'",
                        field.name, self.name, field.item, other.item, self.paths[0]
                    )));
                }
                Some(_) => {}
                None if text => {}
                None => {
                    return Err(Error::semantic(format!(
                        "column {} of table {} is not in '{}'",
                        field.name, self.name, self.paths[0]
                    )));
                }
            }
            let known = position.and_then(|position| statistics.columns.get(position).cloned());
            columns.push(known.unwrap_or_default());
        }
        statistics.columns = columns;
        Ok(Tuple::new(fields.to_vec()))
    }

    /// The partition columns from `name=value` folders below the root.
    fn partitions(&self) -> Result<Partitions> {
        let below = |path: &String| path.strip_prefix(&self.root).unwrap_or(path).to_string();
        Partitions::discover(&self.paths.iter().map(below).collect::<Vec<_>>())
            .map_err(|error| error.context(format!("table {}", self.name)))
    }
}

/// Appends the partition columns to the columns of the files. They replace columns of the same
/// name.
fn with_partitions(columns: Tuple, partitions: &Partitions, statistics: &mut Statistics) -> Tuple {
    if partitions.fields.is_empty() {
        return columns;
    }
    let in_path = |name: &str| partitions.fields.iter().any(|field| &*field.name == name);
    let mut fields = Vec::new();
    let mut known = Vec::new();
    for (position, field) in columns.fields().iter().enumerate() {
        if !in_path(&field.name) {
            fields.push(field.clone());
            known.push(statistics.columns.get(position).cloned().unwrap_or_default());
        }
    }
    for field in &partitions.fields {
        fields.push(field.clone());
        known.push(ColumnStatistics::default());
    }
    statistics.columns = known;
    Tuple::new(fields)
}

/// The format that all files have.
///
/// # Errors
/// The files have several formats or an unknown one.
fn common_format(paths: &[String]) -> Result<FileFormat> {
    let Some(first) = paths.first() else {
        return Err(Error::internal("a table source has no files"));
    };
    let format = FileFormat::of_path(first)?;
    for path in paths {
        if FileFormat::of_path(path)? != format {
            return Err(Error::semantic(format!(
                "'{first}' and '{path}' have different formats and cannot form one table; query them separately"
            )));
        }
    }
    Ok(format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_format_per_table() {
        let paths = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(common_format(&paths(&["a.csv", "b.csv"])).unwrap(), FileFormat::Csv);
        let error = common_format(&paths(&["a.csv", "b.parquet"])).unwrap_err();
        assert!(error.message().contains("have different formats"), "{error}");
    }
}
