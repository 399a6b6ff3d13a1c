//! Names to tables: files and folders of the database directory, external tables, views, and paths
//! in quotes.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tessera_context::lock;
use tessera_files::{Compression, FileFormat};
use tessera_formats::block::{self, Tables};
use tessera_optimizer::table::{Catalog, FileOption, OptionValue, Table};
use tessera_sql::{CreateExternalTable, CreateTableAs};
use tessera_types::{Error, Result, SqlState};

use crate::memory_table::MemoryTable;
use crate::source::{Sampler, Source, Stamps, Types, read_options};
use crate::storage::Storage;

/// Schemas that mean the database directory.
const SCHEMAS: [&str; 2] = ["main", "public"];

/// The most tables whose descriptions are remembered.
const CACHED_TABLES_MAX: usize = 1_024;

/// The tables of a session. The directory is looked at again for each statement, so that what
/// others put there is seen; what a file says of itself is remembered until its size or time of
/// change differs.
#[derive(Debug)]
pub(crate) struct FileCatalog {
    storage: Storage,
    /// A directory, or a prefix of a store.
    database: Option<String>,
    external: BTreeMap<String, Source>,
    views: BTreeMap<String, Arc<str>>,
    memory: BTreeMap<String, MemoryTable>,
    /// What scans read of the tables in memory.
    tables: Tables,
    described: Mutex<HashMap<String, Described>>,
    /// What reads a few rows of each table for estimates; none when that is switched off.
    sampler: Option<Sampler>,
    /// Tables of extensions, for names that are not found here.
    others: Vec<Arc<dyn Catalog + Send>>,
}

#[derive(Debug)]
struct Described {
    source: Source,
    stamps: Stamps,
    table: Arc<Table>,
}

impl FileCatalog {
    /// # Errors
    /// The database is no directory and no prefix of a store.
    pub(crate) fn new(
        database: Option<PathBuf>,
        storage: Storage,
        others: Vec<Arc<dyn Catalog + Send>>,
    ) -> Result<FileCatalog> {
        let text = |path: PathBuf| {
            path.into_os_string().into_string().map_err(|path| {
                Error::io(format!("the database's name {} is not UTF-8; rename it", path.display()))
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
            described: Mutex::new(HashMap::new()),
            sampler: None,
            others,
        })
    }

    /// Lets tables be sampled for estimates, or no longer.
    pub(crate) fn sample(&mut self, sampler: Option<Sampler>) {
        if sampler.is_some() != self.sampler.is_some() {
            self.described.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
            self.sampler = sampler;
            for table in self.memory.values_mut() {
                table.sample(self.sampler.as_ref());
            }
        }
    }

    /// The tables in memory, for their scan.
    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The name under which a table in memory can be made, or none where there is one that is to
    /// stay.
    ///
    /// # Errors
    /// The name is taken.
    pub(crate) fn free_name<'a>(&self, create: &'a CreateTableAs) -> Result<Option<&'a str>> {
        let name = simple_name(&create.name)?;
        match self.taken(name) {
            true if create.if_not_exists => Ok(None),
            true if !create.or_replace || !self.memory.contains_key(name) => Err(already(name)),
            _ => Ok(Some(name)),
        }
    }

    /// Remembers a table in memory, in the place of one of that name.
    pub(crate) fn insert_in_memory(
        &mut self,
        name: &str,
        mut table: MemoryTable,
        tuples: block::Table,
    ) {
        self.tables.insert(name, tuples);
        table.sample(self.sampler.as_ref());
        self.memory.insert(name.to_string(), table);
    }

    /// Whether this session has given a name away.
    fn taken(&self, name: &str) -> bool {
        self.external.contains_key(name)
            || self.views.contains_key(name)
            || self.memory.contains_key(name)
    }

    /// Remembers files under a name.
    ///
    /// # Errors
    /// The name is taken, or the files cannot be read.
    pub(crate) fn create_external(&mut self, create: &CreateExternalTable) -> Result<()> {
        let name = simple_name(&create.name)?;
        let taken = self.taken(name);
        if taken && create.if_not_exists {
            return Ok(());
        }
        if taken && !(create.or_replace && self.external.contains_key(name)) {
            return Err(already(name));
        }
        let [location] = create.locations.as_slice() else {
            return Err(Error::unsupported(format!(
                "CREATE EXTERNAL TABLE with {} locations; give one path, pattern or folder",
                create.locations.len()
            )));
        };
        let format = FileFormat::called(&create.format).ok_or_else(|| {
            Error::unsupported(format!(
                "STORED AS {}; there are parquet, csv, tsv, json and arrow",
                create.format
            ))
        })?;
        let option = |(name, value): &(String, String)| FileOption {
            name: name.clone(),
            value: OptionValue::One(value.clone()),
        };
        let options = read_options(format, &create.options.iter().map(option).collect::<Vec<_>>())?;
        if create.columns.is_some() && options.types != Types::Inferred {
            let message = "option all_varchar beside declared columns, which have types; leave one of them out";
            return Err(Error::semantic(message));
        }
        let mut source = Source::of_format(&self.storage, name, location, format, options)?;
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

    /// Remembers a query under a name.
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
        if self.taken(name) && !(or_replace && self.views.contains_key(name)) {
            return Err(already(name));
        }
        self.views.insert(name.to_string(), query.into());
        Ok(())
    }

    /// Forgets a table or view that was created in this session; files stay.
    ///
    /// # Errors
    /// There is none of this name, or it is a file of the database.
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
        if !view && self.in_database(name)?.is_some() {
            return Err(Error::unsupported(format!(
                "DROP TABLE {name}: it is a file of the database directory; remove the file instead"
            )));
        }
        Err(Error::semantic(format!("there is no {kind} called {name} in this session"))
            .with_state(SqlState::UNDEFINED_TABLE))
    }

    /// The names of tables and views, and what each is.
    pub(crate) fn list(&self) -> Vec<(String, &'static str)> {
        let mut names: BTreeMap<String, &'static str> = self
            .entries()
            .unwrap_or_default()
            .into_iter()
            .map(|(name, _)| (name, "file"))
            .collect();
        for table in self.others.iter().flat_map(|other| other.table_names()) {
            names.entry(table).or_insert("table");
        }
        names.extend(self.external.keys().map(|name| (name.clone(), "external table")));
        names.extend(self.memory.keys().map(|name| (name.clone(), "temporary table")));
        names.extend(self.views.keys().map(|name| (name.clone(), "view")));
        names.into_iter().collect()
    }

    /// The table that the first extension with one of this name offers.
    fn in_extension(&self, reference: &[&str]) -> Result<Option<Arc<Table>>> {
        for other in &self.others {
            if let Some(table) = other.table(reference)? {
                return Ok(Some(table));
            }
        }
        Ok(None)
    }

    /// Table names and paths of the database.
    fn entries(&self) -> Result<Vec<(String, String)>> {
        let Some(database) = &self.database else { return Ok(Vec::new()) };
        let entries = self.storage.entries(database)?.into_iter();
        let table =
            |(name, path, folder): (String, String, bool)| Some((table_name(&name, folder)?, path));
        let mut found: Vec<_> = entries.filter_map(table).collect();
        found.sort();
        Ok(found)
    }

    /// The file or folder of the database directory that a name means: spelt the same, else but for
    /// upper and lower case.
    fn in_database(&self, name: &str) -> Result<Option<String>> {
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
                "table {name} may be '{first}' or '{second}'; name one of them with FROM 'path'"
            ))),
        }
    }

    fn described(&self, source: Source) -> Result<Arc<Table>> {
        let key = format!("{}\n{}", source.name, source.root);
        let stamps = Stamps::of(&self.storage, &source.paths);
        let mut described = lock(&self.described);
        if let Some(known) = described.get(&key)
            && known.source == source
            && known.stamps.unchanged(&stamps)
        {
            return Ok(known.table.clone());
        }
        let mut table = source.describe(&self.storage)?;
        table.sample = self.sampler.as_ref().and_then(|sampler| sampler.sample(&table, &stamps));
        let table = Arc::new(table);
        if described.len() >= CACHED_TABLES_MAX {
            described.clear();
        }
        described.insert(key, Described { source, stamps, table: table.clone() });
        Ok(table)
    }
}

impl Catalog for FileCatalog {
    fn table(&self, reference: &[&str]) -> Result<Option<Arc<Table>>> {
        let name = match reference {
            [name] => *name,
            [schema, name] if SCHEMAS.contains(schema) => *name,
            _ => return self.in_extension(reference),
        };
        if let Some(table) = self.memory.get(name) {
            return Ok(Some(table.table.clone()));
        }
        if let Some(source) = self.external.get(name) {
            return self.described(source.clone()).map(Some);
        }
        if let Some(path) = self.in_database(name)? {
            return self.described(Source::at(&self.storage, name, &path)?).map(Some);
        }
        if reference.len() == 1 && is_path(name) {
            return self.described(Source::at(&self.storage, name, name)?).map(Some);
        }
        self.in_extension(reference)
    }

    fn files(
        &self,
        path: &str,
        format: &str,
        options: &[FileOption],
    ) -> Result<Option<Arc<Table>>> {
        let format = FileFormat::called(format)
            .ok_or_else(|| Error::internal(format!("a format called {format}")))?;
        let options = read_options(format, options)?;
        self.described(Source::of_format(&self.storage, path, path, format, options)?).map(Some)
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
}

/// The table a file or folder of the database directory is: its name without a known extension.
/// Other files are none.
fn table_name(name: &str, folder: bool) -> Option<String> {
    if name.starts_with(['.', '_']) || name.ends_with(".tmp") {
        return None;
    }
    let plain = Compression::strip(name);
    let stem = FileFormat::of_path(name)
        .is_ok()
        .then(|| plain.rsplit_once('.').map_or(plain, |(stem, _)| stem));
    match stem {
        Some(stem) => Some(stem.to_string()),
        None => folder.then(|| name.to_string()),
    }
}

/// Whether a reference that is no table's name can only have been meant as a path.
fn is_path(name: &str) -> bool {
    name.contains(['/', '*', '?']) || FileFormat::of_path(name).is_ok() || Path::new(name).exists()
}

fn simple_name(parts: &[String]) -> Result<&str> {
    match parts {
        [name] => Ok(name),
        [schema, name] if SCHEMAS.contains(&schema.as_str()) => Ok(name),
        _ => Err(Error::unsupported(format!("schemas: {}; name it without one", parts.join(".")))),
    }
}

fn already(name: &str) -> Error {
    Error::semantic(format!("there is a table or view called {name} already; drop it first"))
        .with_state(SqlState::DUPLICATE_TABLE)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            Storage::new(Vec::new(), crate::storage::Streams::Read),
            Vec::new(),
        )
        .unwrap();
        assert_eq!(catalog.table_names(), ["Orders", "events", "lineitem", "log"]);
        assert!(catalog.in_database("orders").unwrap().is_some());
        assert!(catalog.in_database("readme").unwrap().is_none());
        std::fs::write(folder.path().join("lineitem.csv"), "").unwrap();
        let error = catalog.table(&["lineitem"]).unwrap_err();
        assert!(error.message().contains("lineitem.csv' or"), "{error}");
    }

    #[test]
    fn paths_are_told_from_names() {
        for path in ["a/b", "*.csv", "x.parquet"] {
            assert!(is_path(path), "{path}");
        }
        assert!(!is_path("no_such_table"));
    }

    #[test]
    fn a_database_must_be_a_directory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let refused = |path: &Path| {
            let catalog = FileCatalog::new(
                Some(path.to_path_buf()),
                Storage::new(Vec::new(), crate::storage::Streams::Read),
                Vec::new(),
            );
            catalog.unwrap_err().message().to_string()
        };
        assert!(refused(file.path()).contains("it is a file"));
        assert!(refused(Path::new("/no/such")).contains("no such directory"));
        assert!(refused(Path::new("https://example.org/x")).contains("no listing"));
    }
}
