//! Table sources: columns and statistics of files, for binding and estimates.

mod format;
mod options;
mod path_columns;
mod sample_file;
mod sample_reader;
mod sampler;
mod stamp;

use std::sync::Arc;

use tessera_files::Partitions;
use tessera_operator::format::{
    ColumnTypes, Format, Formats, PathOptions, ReadOptions, TableDescription, TableFiles,
};
use tessera_optimizer::table::{RowNumbers, Table};
use tessera_plan::{ColumnStatistics, Params, Statistics};
use tessera_types::{Error, Field, Result, Tuple};

use crate::storage::{FileSet, Storage};

pub(crate) use format::{alternatives, format_of_path, named};
pub(crate) use options::{flag, read_options, write_options};
#[cfg(any(test, fuzzing))]
pub use sample_file::sample_bytes;
#[cfg(test)]
pub(crate) use sample_file::sample_seed;
pub(crate) use sampler::TableSampler;
pub(crate) use stamp::Stamps;

/// The option of formats whose scans number the rows of a file.
const ROW_NUMBER: &str = "file_row_number";

/// The files of one table and how to read them.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// The table name, for messages.
    pub(crate) name: String,
    pub(crate) format: Arc<dyn Format>,
    /// The files, in the order of their rows.
    pub(crate) paths: Vec<String>,
    /// The common prefix of the paths, before any partition folders.
    pub(crate) root: String,
    /// The columns of a table with declared columns.
    pub(crate) declared: Option<Vec<Field>>,
    /// Column types from options.
    pub(crate) types: ColumnTypes,
    /// The format options of the scan.
    pub(crate) options: Params,
    /// The options of paths.
    pub(crate) of_paths: PathOptions,
}

impl PartialEq for Source {
    fn eq(&self, other: &Source) -> bool {
        let Source { name, format, paths, root, declared, types, options, of_paths } = other;
        *self.format == **format
            && (&self.name, &self.paths, &self.root) == (name, paths, root)
            && (&self.declared, &self.types, &self.options) == (declared, types, options)
            && self.of_paths == *of_paths
    }
}

impl Source {
    /// The source of the files at `location`: a path, pattern or folder.
    ///
    /// # Errors
    /// No file exists there, or the files have an unknown format or several formats.
    pub(crate) fn at(storage: &Storage, name: &str, location: &str) -> Result<Source> {
        let FileSet { paths, root } = storage.expand(location, true)?;
        let format = match paths.as_slice() {
            [path] => {
                let of_stream = storage.format_of_stream(path)?;
                of_stream.map_or_else(|| format_of_path(storage.formats(), path), Ok)?
            }
            paths => common_format(storage.formats(), paths)?,
        };
        let options = read_options(&**format, &[])?;
        Ok(Source::new(name, FileSet { paths, root }, format, options))
    }

    /// The source of the files at several locations, in their order, with a given format, which
    /// overrides the extensions of the files.
    ///
    /// # Errors
    /// No file exists at a location.
    pub(crate) fn with_format(
        storage: &Storage,
        name: &str,
        locations: &[String],
        format: &Arc<dyn Format>,
        options: ReadOptions,
    ) -> Result<Source> {
        // A format without extensions reads all files of a folder.
        let by_extension = !format.entry().extensions.is_empty();
        let mut all = FileSet { paths: Vec::new(), root: String::new() };
        for location in locations {
            let FileSet { paths, root } = storage.expand(location, by_extension)?;
            all.paths.extend(paths);
            // Several locations may have no common folder; all folders then can be partitions.
            all.root = if locations.len() == 1 { root } else { String::new() };
        }
        Ok(Source::new(name, all, format, options))
    }

    fn new(name: &str, files: FileSet, format: &Arc<dyn Format>, options: ReadOptions) -> Source {
        let FileSet { paths, root } = files;
        let ReadOptions { params: options, columns: declared, types, paths: of_paths } = options;
        let (name, format) = (name.to_string(), format.clone());
        Source { name, format, paths, root, declared, types, options, of_paths }
    }

    /// Reads the columns and statistics of the table, for planning.
    ///
    /// # Errors
    /// A file cannot be read, or the files have incompatible columns.
    pub(crate) fn describe(&self, storage: &Storage) -> Result<Table> {
        let TableDescription { columns, mut statistics, params: options } =
            self.format.describe(&TableFiles {
                paths: &self.paths,
                params: &self.options,
                declared: self.declared.as_deref(),
                open: &|paths| {
                    storage.open_all(paths, self.format.entry().first_read, &self.options)
                },
            })?;
        let columns = match &self.declared {
            Some(fields) => self.apply_declared(fields, &columns, &mut statistics)?,
            None => options::with_types(&self.types, &columns, &self.paths[0])?,
        };
        let partitions = path_columns::of(self, &columns)?;
        let tuple = with_partitions(columns, &partitions, &mut statistics);
        let paths = self.paths.iter().map(|path| tessera_plan::Value::string(path.as_str()));
        let mut params = Params::new().with("paths", paths.collect::<Vec<_>>());
        for (name, value) in options.iter() {
            params.set(name.clone(), value.clone());
        }
        if !partitions.fields.is_empty() {
            params.set("partitions", partitions.to_value());
        }
        if params.get("store_rejects").is_some() {
            storage.check_rejects()?;
        }
        // A record is skipped for any of its values, also those that a statement does not read.
        if params.get("ignore_errors").is_some() {
            params.set("checked", tuple.clone());
        }
        Ok(Table {
            name: self.name.clone(),
            tuple,
            operator: Arc::from(self.format.entry().scan),
            params,
            filters: storage.formats().takes_predicates(&*self.format),
            statistics,
            sample: None,
            row_numbers: self.row_numbers(),
        })
    }

    /// The numbers of rows that the format's scan can add.
    fn row_numbers(&self) -> Option<RowNumbers> {
        let mut known = self.format.entry().read_options.iter();
        known.find(|option| option.name == ROW_NUMBER)?;
        Some(RowNumbers { column: ROW_NUMBER.into(), are_unique: self.paths.len() == 1 })
    }

    /// Applies declared columns. Files of a binary format must have them, with the same types.
    fn apply_declared(
        &self,
        fields: &[Field],
        found: &Tuple,
        statistics: &mut Statistics,
    ) -> Result<Tuple> {
        let text = self.format.entry().declares_types;
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
fn common_format<'a>(formats: &'a Formats, paths: &[String]) -> Result<&'a Arc<dyn Format>> {
    let Some(first) = paths.first() else {
        return Err(Error::internal("a table source has no files"));
    };
    let format = format_of_path(formats, first)?;
    for path in paths {
        if format_of_path(formats, path)? != format {
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
        let registry = tessera_testing::standard_registry();
        let common = |names: &[&str]| common_format(registry.formats(), &paths(names)).cloned();
        assert_eq!(common(&["a.csv", "b.csv"]).unwrap().entry().name, "csv");
        let error = common(&["a.csv", "b.parquet"]).unwrap_err();
        assert!(error.message().contains("have different formats"), "{error}");
    }
}
