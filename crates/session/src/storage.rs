//! Access to local files, streams and objects of stores.

mod rejects;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tessera_context::{
    Compression, Interrupt, RangeReader, Read, ReadBuffer, Rejects, file_changed, lock,
};
use tessera_engine::{FileCreator, FileOpener, FolderCreator, Pass, Phase, Setup};
use tessera_files::{FileVersion, InputStream, StagedFolder, decompress};
use tessera_objects::{
    Edges, Objects, SelectRequest, SmartStorage, Timeouts, Totals, is_object, push_selects,
};
use tessera_operator::format::{FirstRead, Format, Formats, compression_of};
use tessera_plan::{OperatorCatalog, Params, Plan, Rule, Rules, Value};
use tessera_types::{Error, Result};

use crate::source::format_of_path;

/// The number of bytes at the start of a stream that its format is detected from.
const SNIFFED_BYTES: u64 = 4 << 10;

/// Opens and creates files and objects by path.
#[derive(Debug, Clone)]
pub(crate) struct Storage {
    objects: Arc<Objects>,
    files: Arc<StatementFiles>,
    formats: Formats,
    /// When stores filter objects themselves.
    smart: Arc<Mutex<SmartStorage>>,
}

/// The files of the running statement: decompressed files and spooled streams, which cannot be read
/// by ranges in place, and the versions of opened files.
#[derive(Debug)]
struct StatementFiles {
    directory: Mutex<PathBuf>,
    /// The decompressed contents of compressed files.
    files: Mutex<HashMap<(String, Compression), (Option<Stamp>, Arc<dyn RangeReader>)>>,
    streams: Mutex<SpooledStreams>,
    /// The versions of files when the statement first opened them.
    versions: Mutex<HashMap<String, FileVersion>>,
    /// The streams that statements may read.
    allowed: StreamAccess,
    /// Whether the statement has written to a stream.
    has_streamed: AtomicBool,
    /// The records that scans of the last run have skipped.
    rejects: Mutex<Arc<Rejects>>,
}

/// Spooled streams, by key.
#[derive(Debug, Default)]
struct SpooledStreams {
    /// The contents of streams that this statement has read.
    readers: HashMap<String, Arc<dyn RangeReader>>,
    /// Streams that any statement has read to their end.
    ended: HashSet<String>,
}

/// The streams that statements may read: `/dev/stdin`, FIFOs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StreamAccess {
    /// All streams.
    All,
    /// All but the standard input, because the SQL is read from it.
    NotStandardInput,
    /// No stream on this platform: each of its processes would read a part.
    Refused(String),
}

/// The files of a path, pattern or folder.
#[derive(Debug)]
pub(crate) struct FileSet {
    /// The files, sorted.
    pub(crate) paths: Vec<String>,
    /// The common prefix of the paths, before any partition folders.
    pub(crate) root: String,
}

/// The version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// The size and modification time of a local file.
    File(u64, SystemTime),
    Object(tessera_objects::Stamp),
}

impl Storage {
    /// Creates the storage of a session. `settings` override the environment variables of the same
    /// names.
    pub(crate) fn new(
        settings: Vec<(String, String)>,
        streams: StreamAccess,
        formats: Formats,
    ) -> Storage {
        let files = StatementFiles {
            directory: Mutex::new(std::env::temp_dir()),
            files: Mutex::default(),
            streams: Mutex::default(),
            versions: Mutex::default(),
            allowed: streams,
            has_streamed: AtomicBool::new(false),
            rejects: Mutex::default(),
        };
        Storage {
            objects: Arc::new(Objects::new(settings)),
            files: Arc::new(files),
            formats,
            smart: Arc::new(Mutex::new(SmartStorage::Off)),
        }
    }

    /// Begins a statement, whose temporary files go to `temp_directory`.
    pub(crate) fn begin(
        &self,
        deadline: Option<Duration>,
        timeouts: Timeouts,
        temp_directory: &Path,
    ) {
        self.objects.begin(deadline);
        self.objects.set_timeouts(timeouts);
        *lock(&self.files.directory) = temp_directory.to_path_buf();
        lock(&self.files.files).clear();
        lock(&self.files.versions).clear();
        lock(&self.files.streams).readers.clear();
        self.files.has_streamed.store(false, Ordering::Relaxed);
    }

    /// Whether the statement has written to a stream and therefore cannot be retried.
    pub(crate) fn has_streamed(&self) -> bool {
        self.files.has_streamed.load(Ordering::Relaxed)
    }

    /// The store requests since the statement began.
    pub(crate) fn totals(&self) -> Totals {
        self.objects.spent()
    }

    /// Registers the sub-operator `select_request` and the pass that adds it to plans.
    ///
    /// # Errors
    /// A name is taken.
    pub(crate) fn install(&self, setup: &mut Setup) -> Result<()> {
        setup.operator(SelectRequest::new(self.objects.clone()))?;
        let (objects, smart) = (self.objects.clone(), self.smart.clone());
        let rewrite = move |plan: Plan, catalog: &OperatorCatalog, rules: Rules| match rules
            .has(Rule::SelectInStore)
        {
            true => push_selects(&plan, catalog, &objects, *lock(&smart)),
            false => Ok(plan),
        };
        setup.pass(Pass {
            name: "select_in_store",
            phase: Phase::Optimized,
            after: None,
            rewrite: Arc::new(rewrite),
        })
    }

    /// Sets when stores filter objects themselves.
    pub(crate) fn set_smart(&self, smart: SmartStorage) {
        *lock(&self.smart) = smart;
    }

    /// The interrupt of the running statement.
    pub(crate) fn interrupt(&self) -> Arc<Interrupt> {
        self.objects.interrupt()
    }

    /// The known file formats.
    pub(crate) fn formats(&self) -> &Formats {
        &self.formats
    }

    /// The files of a path, pattern or folder. If files of a folder have a known extension and
    /// `by_extension` is set, the others are not data.
    ///
    /// # Errors
    /// The path does not exist, or no file matches.
    pub(crate) fn expand(&self, location: &str, by_extension: bool) -> Result<FileSet> {
        let is_data = |path: &str| !by_extension || format_of_path(&self.formats, path).is_ok();
        if !is_object(location) {
            let paths = tessera_files::expand(location, &is_data)?;
            return Ok(FileSet { paths, root: root(location) });
        }
        let format = format_of_path(&self.formats, location);
        let edges = format.map_or(Edges::default(), |format| edges(format.entry().first_read));
        let expanded = self.objects.expand(location, edges)?;
        let mut paths = expanded.addresses;
        // As in a local folder.
        if !location.contains(['*', '?', '[']) && paths.iter().any(|path| is_data(path)) {
            paths.retain(|path| is_data(path));
        }
        Ok(FileSet { paths, root: expanded.root })
    }

    /// Checks that a database can be listed.
    ///
    /// # Errors
    /// The path is not a directory, or no object has the prefix.
    pub(crate) fn check_database(&self, database: &str) -> Result<()> {
        if is_object(database) {
            return match self.objects.entries(database)?.is_empty() {
                false => Ok(()),
                true => Err(Error::io(format!(
                    "cannot open the database '{database}': no object has this prefix"
                ))),
            };
        }
        let metadata = std::fs::metadata(database).map_err(|_| {
            Error::io(format!("cannot open the database '{database}': no such directory"))
        })?;
        match metadata.is_dir() {
            true => Ok(()),
            false => Err(Error::io(format!(
                "cannot open the database '{database}': it is a file; give its directory, or query it with \
                 FROM '{database}'"
            ))),
        }
    }

    /// The direct entries of a database: name, path, and whether the entry is a folder. A local
    /// directory that cannot be listed has none.
    ///
    /// # Errors
    /// The store rejects the request.
    pub(crate) fn entries(&self, database: &str) -> Result<Vec<(String, String, bool)>> {
        if is_object(database) {
            let entry = |name: &String| {
                let folder = name.ends_with('/');
                let path = format!("{}/{name}", database.trim_end_matches('/'));
                (name.trim_end_matches('/').to_string(), path, folder)
            };
            return Ok(self.objects.entries(database)?.iter().map(entry).collect());
        }
        let Ok(entries) = std::fs::read_dir(database) else { return Ok(Vec::new()) };
        let entry = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?.to_string();
            Some((name, path.to_str()?.to_string(), path.is_dir()))
        };
        Ok(entries.filter_map(entry).collect())
    }

    /// The version of each file. `None` for streams and inaccessible files.
    pub(crate) fn stamps(&self, paths: &[String]) -> Vec<Option<Stamp>> {
        let objects = paths
            .iter()
            .filter(|path| is_object(path))
            .map(|path| (path.as_str(), Edges::default()));
        // Fetches many at once. A request that fails here fails again below.
        drop(self.objects.prepare(objects));
        let stamp = |path: &String| {
            if is_object(path) {
                return self.objects.stamp(path).ok().map(Stamp::Object);
            }
            // The content of a stream has no version.
            let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
            Some(Stamp::File(metadata.len(), metadata.modified().ok()?))
        };
        paths.iter().map(stamp).collect()
    }

    /// Opens a file. Decompresses it if its name has the extension of a compressed file.
    ///
    /// # Errors
    /// The file does not exist, cannot be read, or cannot be decompressed.
    pub(crate) fn open(&self, path: &str) -> Result<Arc<dyn RangeReader>> {
        self.open_as(path, Compression::of_path(path))
    }

    /// Opens a file with this compression, whatever its name ends in.
    ///
    /// # Errors
    /// The file does not exist, cannot be read, or cannot be decompressed.
    pub(crate) fn open_as(
        &self,
        path: &str,
        compression: Option<Compression>,
    ) -> Result<Arc<dyn RangeReader>> {
        let open = || {
            if is_object(path) {
                return self.objects.open(path);
            }
            match InputStream::at(path) {
                Some(stream) => self.spool(path, &stream),
                None => self.open_file(path),
            }
        };
        let Some(compression) = compression else { return open() };
        let stamp = self.stamps(&[path.to_string()]).pop().flatten();
        // The lock is held while the file is decompressed: a second reader of the file waits and
        // then uses the result.
        let mut files = lock(&self.files.files);
        let key = (path.to_string(), compression);
        if let Some((known, reader)) = files.get(&key)
            && *known == stamp
        {
            return Ok(reader.clone());
        }
        let directory = self.directory();
        let interrupt = self.interrupt();
        let reader = decompress(open()?, compression, &directory, &|| interrupt.check())?;
        files.insert(key, (stamp, reader.clone()));
        Ok(reader)
    }

    /// Opens a local file. A statement opens it once per morsel, and fails if it has changed in
    /// between.
    fn open_file(&self, path: &str) -> Result<Arc<dyn RangeReader>> {
        let (reader, version) = tessera_files::open_version(path)?;
        let mut versions = lock(&self.files.versions);
        match versions.get(path) {
            Some(known) if *known != version => Err(file_changed(path)),
            Some(_) => Ok(reader),
            None => {
                versions.insert(path.to_string(), version);
                Ok(reader)
            }
        }
    }

    fn directory(&self) -> PathBuf {
        lock(&self.files.directory).clone()
    }

    /// The contents of a stream, read once per statement.
    fn spool(&self, path: &str, stream: &InputStream) -> Result<Arc<dyn RangeReader>> {
        match &self.files.allowed {
            StreamAccess::NotStandardInput if stream.is_standard_input() => {
                return Err(Error::unsupported(format!(
                    "cannot read '{path}': the SQL statements are read from it; pass them with -c or -f"
                )));
            }
            StreamAccess::Refused(platform) => {
                return Err(Error::unsupported(format!(
                    "cannot read '{path}' on platform {platform}, whose processes cannot share a stream; write it to a file first"
                )));
            }
            _ => {}
        }
        let key = stream.key();
        // The lock is held while the stream is read: a second reader waits and uses the result.
        let mut streams = lock(&self.files.streams);
        if let Some(reader) = streams.readers.get(&key) {
            return Ok(reader.clone());
        }
        if streams.ended.contains(&key) {
            return Err(Error::io(format!(
                "cannot read '{path}': an earlier statement has read it to its end; store its rows with CREATE TEMP TABLE t AS SELECT … \
                 and query that table"
            )));
        }
        if stream.is_read_once() {
            streams.ended.insert(key.clone());
        }
        let reader = stream.spool(&self.directory(), &self.interrupt())?;
        streams.readers.insert(key, reader.clone());
        Ok(reader)
    }

    /// Detects the format of a stream from its first bytes. `None` for files, and for streams whose
    /// name has a known extension.
    ///
    /// # Errors
    /// The stream cannot be read.
    pub(crate) fn format_of_stream(&self, path: &str) -> Result<Option<&Arc<dyn Format>>> {
        let is_known = || format_of_path(&self.formats, path).is_ok();
        if is_object(path) || is_known() || InputStream::at(path).is_none() {
            return Ok(None);
        }
        let reader = self.open(path)?;
        match reader.read_into(0..reader.len().min(SNIFFED_BYTES), ReadBuffer::default())? {
            Read::Ready(start) => Ok(self.formats.of_start(&start)),
            Read::Blocked(_) => Err(Error::internal("a read from a local file is blocked")),
        }
    }

    /// Opens files of one format. The parts of objects that are read first are fetched
    /// concurrently.
    ///
    /// # Errors
    /// A file does not exist or cannot be read.
    pub(crate) fn open_all(
        &self,
        paths: &[String],
        first: FirstRead,
        options: &Params,
    ) -> Result<Vec<Arc<dyn RangeReader>>> {
        let objects = paths.iter().filter(|path| is_object(path));
        self.objects.prepare(objects.map(|path| (path.as_str(), edges(first))))?;
        let open = |path: &String| self.open_as(path, compression_of(options, path)?);
        paths.iter().map(open).collect()
    }

    /// Prefetches versions, headers and footers of the objects that a plan scans, so that workers
    /// do not wait for them.
    ///
    /// # Errors
    /// An object does not exist, or the store rejects the request.
    pub(crate) fn prepare(&self, plan: &Plan) -> Result<()> {
        let mut wanted = Vec::new();
        collect_objects(plan, &self.formats, &mut wanted);
        self.objects.prepare(wanted.into_iter())
    }

    /// The function with which a query opens files.
    pub(crate) fn opener(&self) -> FileOpener {
        let storage = self.clone();
        Arc::new(move |path, compression| storage.open_as(path, compression))
    }

    /// The function with which a query creates files.
    pub(crate) fn creator(&self) -> FileCreator {
        let storage = self.clone();
        Arc::new(move |path| match is_object(path) {
            true => storage.objects.create(path),
            false => {
                let output = tessera_files::create(path, &storage.interrupt())?;
                storage.files.has_streamed.fetch_or(output.is_stream(), Ordering::Relaxed);
                Ok(output)
            }
        })
    }
}

impl Storage {
    /// The function with which a query creates folders.
    pub(crate) fn folder_creator(&self) -> FolderCreator {
        let storage = self.clone();
        Arc::new(move |path, mode| {
            let formats = storage.formats.clone();
            let is_data = Box::new(move |path: &str| format_of_path(&formats, path).is_ok());
            match is_object(path) {
                true => storage.objects.create_folder(path, mode, is_data),
                false => Ok(Box::new(StagedFolder::create(path, mode, is_data)?) as _),
            }
        })
    }
}

/// Adds the objects that the scans of a plan read, with the parts they read first. Includes nested
/// plans.
fn collect_objects<'a>(plan: &'a Plan, formats: &Formats, wanted: &mut Vec<(&'a str, Edges)>) {
    for node in &plan.nodes {
        if let Some(Value::List(paths)) = node.params.get("paths") {
            let edges = edges_of_scan(&node.operator, formats);
            let objects = paths.iter().filter_map(|path| match path {
                Value::String(path) if is_object(path) => Some((&**path, edges)),
                _ => None,
            });
            wanted.extend(objects);
        }
        node.nested.iter().for_each(|nested| collect_objects(nested, formats, wanted));
    }
}

/// The parts of a file that a scan reads first: none for `select_request`, both ends for a scan of
/// an extension.
fn edges_of_scan(operator: &str, formats: &Formats) -> Edges {
    match formats.of_scan(operator) {
        _ if operator == "select_request" => Edges::default(),
        Some(format) => edges(format.entry().first_read),
        None => Edges { head: true, tail: true },
    }
}

fn edges(first: FirstRead) -> Edges {
    Edges { head: first.head, tail: first.tail }
}

/// The part of a local path before any partition folders: a folder itself, the folder before the
/// first wildcard of a pattern, or the folder of a file.
fn root(location: &str) -> String {
    let fixed = if tessera_files::is_pattern(location) {
        &location[..location.find(['*', '?', '[']).unwrap_or(location.len())]
    } else if Path::new(location).is_dir() {
        return format!("{}/", location.trim_end_matches('/'));
    } else {
        location
    };
    fixed.rfind('/').map_or(String::new(), |slash| fixed[..=slash].to_string())
}

#[cfg(test)]
mod tests;
