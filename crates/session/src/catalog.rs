//! The table catalog of a session: files and folders of the database directory, external tables,
//! tables in memory, views, and quoted paths.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tessera_context::Compression;
use tessera_context::lock;
use tessera_formats::block::{self, Tables};
use tessera_operator::format::{ColumnTypes, Formats};
use tessera_optimizer::table::{FileOption, OptionValue, Table, TableCatalog};
use tessera_plan::FileFacts;
use tessera_sql::{CreateExternalTable, CreateTableAs};
use tessera_types::{Error, Result, SqlState, did_you_mean};

use crate::file_facts::{GLOB, glob};
use crate::memory_table::MemoryTable;
use crate::source::{Source, Stamps, TableSampler, format_of_path, named, read_options};
use crate::storage::Storage;

/// Schema names that refer to the database directory.
const SCHEMAS: [&str; 2] = ["main", "public"];

/// The maximum number of cached table descriptions.
const CACHED_TABLES_MAX: usize = 1_024;

/// The tables of a session. Each statement lists the database directory again, so it sees files
/// that other processes have added. The description of a file is cached until its size or
/// modification time changes.
#[derive(Debug)]
pub(crate) struct FileCatalog {
    storage: Storage,
    /// A directory or an object store prefix.
    database: Option<String>,
    external: BTreeMap<String, Source>,
    views: BTreeMap<String, Arc<str>>,
    memory: BTreeMap<String, MemoryTable>,
    /// The rows of the tables in memory.
    tables: Tables,
    cache: Mutex<HashMap<String, CachedTable>>,
    /// Samples tables for estimates. `None` if `statistics` is `metadata`.
    sampler: Option<TableSampler>,
    /// The catalogs of extensions, searched last.
    extensions: Vec<Arc<dyn TableCatalog + Send>>,
}

/// The description of a table and the versions of the files it was read from.
#[derive(Debug)]
struct CachedTable {
    source: Source,
    stamps: Stamps,
    table: Arc<Table>,
}

impl FileCatalog {
    /// Creates the catalog of a database directory or object store prefix.
    ///
    /// # Errors
    /// The database is neither a directory nor a prefix with objects.
    pub(crate) fn new(
        database: Option<PathBuf>,
        storage: Storage,
        extensions: Vec<Arc<dyn TableCatalog + Send>>,
    ) -> Result<FileCatalog> {
        let text = |path: PathBuf| {
            path.into_os_string().into_string().map_err(|path| {
                Error::io(format!(
                    "the name of the database {} is not UTF-8; rename it",
                    path.display()
                ))
            })
        };
        let database = database.map(text).transpose()?;
        if let Some(database) = &database {
            storage.check_database(database)?;
        }
        Ok(FileCatalog {
            storage,
            database,
            external: BTreeMap::new(),
            views: BTreeMap::new(),
            memory: BTreeMap::new(),
            tables: Tables::default(),
            cache: Mutex::new(HashMap::new()),
            sampler: None,
            extensions,
        })
    }

    /// Enables or disables the sampling of tables.
    pub(crate) fn set_sampler(&mut self, sampler: Option<TableSampler>) {
        if sampler.is_some() != self.sampler.is_some() {
            self.cache.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
            self.sampler = sampler;
            for table in self.memory.values_mut() {
                table.set_sampler(self.sampler.as_ref());
            }
        }
    }

    /// The rows of the tables in memory.
    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Returns the name for a new table in memory, or `None` if `IF NOT EXISTS` keeps an existing
    /// one.
    ///
    /// # Errors
    /// The name is taken.
    pub(crate) fn available_name<'a>(&self, create: &'a CreateTableAs) -> Result<Option<&'a str>> {
        let name = simple_name(&create.name)?;
        match self.is_taken(name) {
            true if create.if_not_exists => Ok(None),
            true if !create.or_replace || !self.memory.contains_key(name) => {
                Err(already_exists(name))
            }
            _ => Ok(Some(name)),
        }
    }

    /// Adds a table in memory. It replaces a table in memory of the same name.
    pub(crate) fn insert_in_memory(
        &mut self,
        name: &str,
        mut table: MemoryTable,
        tuples: block::Table,
    ) {
        self.tables.insert(name, tuples);
        table.set_sampler(self.sampler.as_ref());
        self.memory.insert(name.to_string(), table);
    }

    /// Whether this session has created a table or view of this name.
    pub(crate) fn is_taken(&self, name: &str) -> bool {
        self.external.contains_key(name)
            || self.views.contains_key(name)
            || self.memory.contains_key(name)
    }

    /// Adds an external table.
    ///
    /// # Errors
    /// The name is taken, an option is invalid, or the files cannot be read.
    pub(crate) fn create_external(&mut self, create: &CreateExternalTable) -> Result<()> {
        let name = simple_name(&create.name)?;
        let exists = self.is_taken(name);
        if exists && create.if_not_exists {
            return Ok(());
        }
        if exists && !(create.or_replace && self.external.contains_key(name)) {
            return Err(already_exists(name));
        }
        let [location] = create.locations.as_slice() else {
            return Err(Error::unsupported(format!(
                "CREATE EXTERNAL TABLE has {} locations; expected one path, pattern or folder",
                create.locations.len()
            )));
        };
        let format = named(self.storage.formats(), &create.format, false)?;
        let option = |(name, value): &(String, String)| FileOption {
            name: name.clone(),
            value: OptionValue::One(value.clone()),
        };
        let options = create.options.iter().map(option).collect::<Vec<_>>();
        let options = read_options(&**format, &options)?;
        if create.columns.is_some() && options.types != ColumnTypes::Inferred {
            let message = "option all_varchar conflicts with the types of the declared columns; remove one of them";
            return Err(Error::semantic(message));
        }
        let mut source =
            Source::with_format(&self.storage, name, &create.locations, format, options)?;
        source.declared = create.columns.clone();
        let table = source.describe(&self.storage)?;
        if let Some(missing) =
            create.partitions.iter().find(|name| table.tuple.field(name).is_none())
        {
            return Err(Error::semantic(format!(
                "PARTITIONED BY ({missing}): the paths below '{location}' have no folder {missing}=…"
            )));
        }
        self.external.insert(name.to_string(), source);
        Ok(())
    }

    /// Adds a view.
    ///
    /// # Errors
    /// The name is taken.
    pub(crate) fn create_view(
        &mut self,
        name: &[String],
        query: &str,
        or_replace: bool,
    ) -> Result<()> {
        let name = simple_name(name)?;
        if self.is_taken(name) && !(or_replace && self.views.contains_key(name)) {
            return Err(already_exists(name));
        }
        self.views.insert(name.to_string(), query.into());
        Ok(())
    }

    /// Drops a table or view of this session. The files of an external table stay.
    ///
    /// # Errors
    /// No table or view has this name, it is of the other kind, or it is a file of the database.
    pub(crate) fn drop(&mut self, name: &[String], view: bool, if_exists: bool) -> Result<()> {
        let name = simple_name(name)?;
        let found = match view {
            true => self.views.remove(name).is_some(),
            false => {
                self.tables.remove(name);
                self.memory.remove(name).is_some() || self.external.remove(name).is_some()
            }
        };
        if found || if_exists {
            return Ok(());
        }
        let kind = if view { "view" } else { "table" };
        let other = match view {
            true => self.memory.contains_key(name) || self.external.contains_key(name),
            false => self.views.contains_key(name),
        };
        if other {
            let is = if view { "table; write DROP TABLE" } else { "view; write DROP VIEW" };
            return Err(Error::semantic(format!("{name} is a {is}"))
                .with_state(SqlState::WRONG_OBJECT_TYPE));
        }
        if !view && self.database_path(name)?.is_some() {
            return Err(Error::unsupported(format!(
                "cannot drop table {name}: it is a file of the database directory; remove the file instead"
            )));
        }
        let known = self.list();
        let hint = did_you_mean(name, known.iter().map(|(known, _)| known.as_str()));
        Err(Error::semantic(format!(
            "unknown {kind} '{name}'{hint}; SHOW TABLES lists the tables and views of this session"
        ))
        .with_state(SqlState::UNDEFINED_TABLE))
    }

    /// The name and kind of each table and view, sorted by name.
    pub(crate) fn list(&self) -> Vec<(String, &'static str)> {
        let mut names: BTreeMap<String, &'static str> = self
            .entries()
            .unwrap_or_default()
            .into_iter()
            .map(|(name, _)| (name, "file"))
            .collect();
        for table in self.extensions.iter().flat_map(|catalog| catalog.table_names()) {
            names.entry(table).or_insert("table");
        }
        names.extend(self.external.keys().map(|name| (name.clone(), "external table")));
        names.extend(self.memory.keys().map(|name| (name.clone(), "temporary table")));
        names.extend(self.views.keys().map(|name| (name.clone(), "view")));
        names.into_iter().collect()
    }

    /// The table from the first extension that has this name.
    fn extension_table(&self, reference: &[&str]) -> Result<Option<Arc<Table>>> {
        for catalog in &self.extensions {
            if let Some(table) = catalog.table(reference)? {
                return Ok(Some(table));
            }
        }
        Ok(None)
    }

    /// The tables of the database directory: names and paths, sorted.
    fn entries(&self) -> Result<Vec<(String, String)>> {
        let Some(database) = &self.database else { return Ok(Vec::new()) };
        let formats = self.storage.formats();
        let entries = self.storage.entries(database)?.into_iter();
        let table = |(name, path, folder): (String, String, bool)| {
            Some((table_name(formats, &name, folder)?, path))
        };
        let mut found: Vec<_> = entries.filter_map(table).collect();
        found.sort();
        Ok(found)
    }

    /// The path of the file or folder of this table name in the database directory. An exact match
    /// wins over one that differs in case.
    fn database_path(&self, name: &str) -> Result<Option<String>> {
        let entries = self.entries()?;
        let mut matches: Vec<_> = entries.iter().filter(|(entry, _)| entry == name).collect();
        if matches.is_empty() {
            matches = entries
                .iter()
                .filter(|(entry, _)| entry.to_lowercase() == name.to_lowercase())
                .collect();
        }
        match matches.as_slice() {
            [] => Ok(None),
            [(_, path)] => Ok(Some(path.clone())),
            [(_, first), (_, second), ..] => Err(Error::semantic(format!(
                "table {name} is ambiguous: it can be '{first}' or '{second}'; name one of them with FROM 'path'"
            ))),
        }
    }

    /// The table of a source, described from its files unless a current description is cached.
    fn describe(&self, source: Source) -> Result<Arc<Table>> {
        let key = format!("{}\n{}", source.name, source.root);
        let stamps = Stamps::of(&self.storage, &source.paths);
        let mut cache = lock(&self.cache);
        if let Some(known) = cache.get(&key)
            && known.source == source
            && known.stamps.unchanged(&stamps)
        {
            return Ok(known.table.clone());
        }
        let mut table = source.describe(&self.storage)?;
        table.sample = self.sampler.as_ref().and_then(|sampler| sampler.sample(&table, &stamps));
        let table = Arc::new(table);
        if cache.len() >= CACHED_TABLES_MAX {
            cache.clear();
        }
        cache.insert(key, CachedTable { source, stamps, table: table.clone() });
        Ok(table)
    }
}

impl TableCatalog for FileCatalog {
    fn table(&self, reference: &[&str]) -> Result<Option<Arc<Table>>> {
        let name = match reference {
            [name] => *name,
            [schema, name] if SCHEMAS.contains(schema) => *name,
            _ => return self.extension_table(reference),
        };
        if let Some(table) = self.memory.get(name) {
            return Ok(Some(table.table.clone()));
        }
        if let Some(source) = self.external.get(name) {
            return self.describe(source.clone()).map(Some);
        }
        if let Some(path) = self.database_path(name)? {
            return self.describe(Source::at(&self.storage, name, &path)?).map(Some);
        }
        if reference.len() == 1 && is_path(self.storage.formats(), name) {
            return self.describe(Source::at(&self.storage, name, name)?).map(Some);
        }
        self.extension_table(reference)
    }

    fn file_functions(&self) -> Vec<(&'static str, &'static str)> {
        let entries = self.storage.formats().iter().map(|format| format.entry());
        let functions = entries
            .flat_map(|entry| entry.functions.iter().map(|function| (*function, entry.name)));
        functions.collect()
    }

    fn files(
        &self,
        paths: &[String],
        format: &str,
        options: &[FileOption],
    ) -> Result<Option<Arc<Table>>> {
        let format = named(self.storage.formats(), format, false)?;
        let options = read_options(&**format, options)?;
        let name = paths.join(", ");
        self.describe(Source::with_format(&self.storage, &name, paths, format, options)?).map(Some)
    }

    fn fact_functions(&self) -> Vec<&'static str> {
        let formats = self.storage.formats().iter();
        let functions = formats.flat_map(|format| format.fact_functions().iter().copied());
        functions.chain([GLOB]).collect()
    }

    fn facts(&self, function: &str, paths: &[String], options: &[FileOption]) -> Result<FileFacts> {
        if function == GLOB {
            return glob(&self.storage, paths, options);
        }
        let format = self.storage.formats().of_fact_function(function);
        let format = format.ok_or_else(|| Error::internal("a function of files has no format"))?;
        let options = read_options(&**format, options)?;
        Source::with_format(&self.storage, function, paths, format, options)?
            .facts(function, &self.storage)
    }

    fn view(&self, reference: &[&str]) -> Result<Option<Arc<str>>> {
        Ok(match reference {
            [name] => self.views.get(*name).cloned(),
            [schema, name] if SCHEMAS.contains(schema) => self.views.get(*name).cloned(),
            _ => None,
        })
    }

    fn table_names(&self) -> Vec<String> {
        self.list().into_iter().map(|(name, _)| name).collect()
    }

    fn table_kinds(&self) -> Vec<(String, &'static str)> {
        self.list()
    }
}

/// The table name of a file or folder of the database directory: its name without a known
/// extension. `None` for hidden files, temporary files and files of unknown formats.
fn table_name(formats: &Formats, name: &str, folder: bool) -> Option<String> {
    if name.starts_with(['.', '_']) || name.ends_with(".tmp") {
        return None;
    }
    let plain = Compression::strip(name);
    let stem = format_of_path(formats, name)
        .is_ok()
        .then(|| plain.rsplit_once('.').map_or(plain, |(stem, _)| stem));
    match stem {
        Some(stem) => Some(stem.to_string()),
        None => folder.then(|| name.to_string()),
    }
}

/// Whether a name that no table has is a path.
fn is_path(formats: &Formats, name: &str) -> bool {
    name.contains(['/', '*', '?'])
        || format_of_path(formats, name).is_ok()
        || Path::new(name).exists()
}

fn simple_name(parts: &[String]) -> Result<&str> {
    match parts {
        [name] => Ok(name),
        [schema, name] if SCHEMAS.contains(&schema.as_str()) => Ok(name),
        _ => Err(Error::unsupported(format!(
            "unsupported schema in the name {}; remove the schema",
            parts.join(".")
        ))),
    }
}

pub(crate) fn already_exists(name: &str) -> Error {
    Error::semantic(format!("table or view {name} already exists; drop it first"))
        .with_state(SqlState::DUPLICATE_TABLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formats() -> Formats {
        tessera_testing::standard_registry().formats().clone()
    }

    #[test]
    fn names_of_tables() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "lineitem.parquet",
            "Orders.csv",
            "log.json.gz",
            "README.md",
            ".hidden.csv",
            "x.parquet.tmp",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        std::fs::create_dir(folder.path().join("events")).unwrap();
        let catalog = FileCatalog::new(
            Some(folder.path().to_path_buf()),
            Storage::new(Vec::new(), crate::storage::StreamAccess::All, formats()),
            Vec::new(),
        )
        .unwrap();
        assert_eq!(catalog.table_names(), ["Orders", "events", "lineitem", "log"]);
        assert!(catalog.database_path("orders").unwrap().is_some());
        assert!(catalog.database_path("readme").unwrap().is_none());
        std::fs::write(folder.path().join("lineitem.csv"), "").unwrap();
        let error = catalog.table(&["lineitem"]).unwrap_err();
        assert!(error.message().contains("lineitem.csv' or"), "{error}");
    }

    #[test]
    fn paths_are_told_from_names() {
        for path in ["a/b", "*.csv", "x.parquet"] {
            assert!(is_path(&formats(), path), "{path}");
        }
        assert!(!is_path(&formats(), "no_such_table"));
    }

    #[test]
    fn a_database_must_be_a_directory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let refused = |path: &Path| {
            let catalog = FileCatalog::new(
                Some(path.to_path_buf()),
                Storage::new(Vec::new(), crate::storage::StreamAccess::All, formats()),
                Vec::new(),
            );
            catalog.unwrap_err().message().to_string()
        };
        assert!(refused(file.path()).contains("it is a file"));
        assert!(refused(Path::new("/no/such")).contains("no such directory"));
        assert!(refused(Path::new("https://example.org/x")).contains("no listing"));
    }
}
