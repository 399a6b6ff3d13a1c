//! Where files lie: on this machine, or as objects in a store.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tessera_context::{Interrupt, RangeReader, Read, ReadBuffer, file_changed, lock};
use tessera_engine::{FileCreator, FileOpener, Pass, Phase, Setup};
use tessera_files::{Compression, FileFormat, FileVersion, InputStream, decompress};
use tessera_objects::{
    Edges, Objects, SelectRequest, SmartStorage, Timeouts, Totals, is_object, push_selects,
};
use tessera_plan::{Catalogue, Plan, Rule, Rules, Value};
use tessera_types::{Error, Result};

/// Of a stream, so much is looked at to tell its format.
const SNIFFED_BYTES: u64 = 4 << 10;

/// Files and objects by path.
#[derive(Debug, Clone)]
pub(crate) struct Storage {
    objects: Arc<Objects>,
    unpacked: Arc<Unpacked>,
    /// When stores are asked to filter objects themselves.
    smart: Arc<Mutex<SmartStorage>>,
}

/// What the statement reads from files without a name, as it cannot be read by ranges where it
/// lies.
#[derive(Debug)]
struct Unpacked {
    directory: Mutex<PathBuf>,
    /// Files that are compressed as a whole.
    files: Mutex<HashMap<String, (Option<Stamp>, Arc<dyn RangeReader>)>>,
    streams: Mutex<Spooled>,
    /// Files that the statement has opened, as they were then.
    versions: Mutex<HashMap<String, FileVersion>>,
    /// Who may read streams.
    allowed: Streams,
    /// Whether the statement has written to a stream.
    has_streamed: AtomicBool,
}

/// Streams that have been read.
#[derive(Debug, Default)]
struct Spooled {
    /// By this statement.
    readers: HashMap<String, Arc<dyn RangeReader>>,
    /// By any statement, those that have nothing more to give.
    ended: HashSet<String>,
}

/// Whether statements may read streams: `/dev/stdin`, FIFOs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Streams {
    Read,
    /// All but the standard input, from which the statements come.
    SqlFromStdin,
    /// None on this platform: its processes would each read a part.
    Refused(String),
}

/// What a path, pattern or folder stands for.
#[derive(Debug)]
pub(crate) struct Expanded {
    /// The files, sorted.
    pub(crate) paths: Vec<String>,
    /// The part of the paths that tells nothing about partitions.
    pub(crate) root: String,
}

/// What tells one version of a file from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stamp {
    File(u64, SystemTime),
    Object(tessera_objects::Stamp),
}

impl Storage {
    /// Settings of stores have the names of environment variables, and come before these.
    pub(crate) fn new(settings: Vec<(String, String)>, streams: Streams) -> Storage {
        let unpacked = Unpacked {
            directory: Mutex::new(std::env::temp_dir()),
            files: Mutex::default(),
            streams: Mutex::default(),
            versions: Mutex::default(),
            allowed: streams,
            has_streamed: AtomicBool::new(false),
        };
        Storage {
            objects: Arc::new(Objects::new(settings)),
            unpacked: Arc::new(unpacked),
            smart: Arc::new(Mutex::new(SmartStorage::Off)),
        }
    }

    /// A statement begins: what it unpacks goes to this directory.
    pub(crate) fn begin(
        &self,
        deadline: Option<Duration>,
        timeouts: Timeouts,
        temp_directory: &Path,
    ) {
        self.objects.begin(deadline);
        self.objects.set_timeouts(timeouts);
        *lock(&self.unpacked.directory) = temp_directory.to_path_buf();
        lock(&self.unpacked.files).clear();
        lock(&self.unpacked.versions).clear();
        lock(&self.unpacked.streams).readers.clear();
        self.unpacked.has_streamed.store(false, Ordering::Relaxed);
    }

    /// Whether the statement has written to a stream, so that it cannot be run once more.
    pub(crate) fn has_streamed(&self) -> bool {
        self.unpacked.has_streamed.load(Ordering::Relaxed)
    }

    /// What stores were asked for since the statement began.
    pub(crate) fn spent(&self) -> Totals {
        self.objects.spent()
    }

    /// Adds the sub-operator that asks stores to select, and the pass that puts it into plans.
    ///
    /// # Errors
    /// Their names are taken.
    pub(crate) fn install(&self, setup: &mut Setup) -> Result<()> {
        setup.operator(SelectRequest::new(self.objects.clone()))?;
        let (objects, smart) = (self.objects.clone(), self.smart.clone());
        let rewrite = move |plan: Plan, catalogue: &Catalogue, rules: Rules| match rules
            .has(Rule::SelectInStore)
        {
            true => push_selects(&plan, catalogue, &objects, *lock(&smart)),
            false => Ok(plan),
        };
        setup.pass(Pass {
            name: "select_in_store",
            phase: Phase::Optimized,
            after: None,
            rewrite: Arc::new(rewrite),
        })
    }

    /// Says when stores are asked to select.
    pub(crate) fn set_smart(&self, smart: SmartStorage) {
        *lock(&self.smart) = smart;
    }

    /// What ends the statement.
    pub(crate) fn interrupt(&self) -> Arc<Interrupt> {
        self.objects.interrupt()
    }

    /// The files behind a path.
    ///
    /// # Errors
    /// Nothing is there, or nothing matches.
    pub(crate) fn expand(&self, location: &str) -> Result<Expanded> {
        if !is_object(location) {
            return Ok(Expanded { paths: tessera_files::expand(location)?, root: root(location) });
        }
        let expanded = self.objects.expand(location, edges_of_path(location))?;
        let mut paths = expanded.addresses;
        // As for a local folder: where some files have an extension of a known format, the others
        // are no data.
        let is_data = |path: &String| FileFormat::of_path(path).is_ok();
        if !location.contains(['*', '?', '[']) && paths.iter().any(is_data) {
            paths.retain(is_data);
        }
        Ok(Expanded { paths, root: expanded.root })
    }

    /// Checks that a database can be looked into.
    ///
    /// # Errors
    /// It is no directory, or there is nothing below the prefix.
    pub(crate) fn check_database(&self, database: &str) -> Result<()> {
        if is_object(database) {
            return match self.objects.entries(database)?.is_empty() {
                false => Ok(()),
                true => Err(Error::io(format!(
                    "cannot open the database '{database}': there is nothing below this prefix"
                ))),
            };
        }
        let metadata = std::fs::metadata(database).map_err(|_| {
            Error::io(format!("cannot open the database '{database}': there is no such directory"))
        })?;
        match metadata.is_dir() {
            true => Ok(()),
            false => Err(Error::io(format!(
                "cannot open the database '{database}': it is a file; give the directory it stands in, or query it with \
                 FROM '{database}'"
            ))),
        }
    }

    /// Names and paths of what lies directly in a database, and whether each is a folder. A
    /// directory that cannot be listed holds nothing.
    ///
    /// # Errors
    /// The store refuses.
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

    /// The version of each file; none for one that cannot be looked at.
    pub(crate) fn stamps(&self, paths: &[String]) -> Vec<Option<Stamp>> {
        let objects = paths
            .iter()
            .filter(|path| is_object(path))
            .map(|path| (path.as_str(), Edges::default()));
        // Many at once; one that fails says so again below.
        drop(self.objects.prepare(objects));
        let stamp = |path: &String| {
            if is_object(path) {
                return self.objects.stamp(path).ok().map(Stamp::Object);
            }
            // Nothing tells what a stream will give.
            let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
            Some(Stamp::File(metadata.len(), metadata.modified().ok()?))
        };
        paths.iter().map(stamp).collect()
    }

    /// Opens a file, decompressed where its name tells that it is compressed as a whole.
    ///
    /// # Errors
    /// It is not there, may not be read, or cannot be decompressed.
    pub(crate) fn open(&self, path: &str) -> Result<Arc<dyn RangeReader>> {
        let open = || {
            if is_object(path) {
                return self.objects.open(path);
            }
            match InputStream::at(path) {
                Some(stream) => self.spooled(path, &stream),
                None => self.open_file(path),
            }
        };
        let Some(compression) = Compression::of_path(path) else { return open() };
        let stamp = self.stamps(&[path.to_string()]).pop().flatten();
        // The lock is held while the file is decompressed: a second reader of the file waits and
        // then uses the result.
        let mut files = lock(&self.unpacked.files);
        if let Some((known, reader)) = files.get(path)
            && *known == stamp
        {
            return Ok(reader.clone());
        }
        let directory = self.directory();
        let interrupt = self.interrupt();
        let reader = decompress(open()?, compression, &directory, &|| interrupt.check())?;
        files.insert(path.to_string(), (stamp, reader.clone()));
        Ok(reader)
    }

    /// Opens a local file, which is the same each time a statement does so: its morsels are read
    /// one by one.
    fn open_file(&self, path: &str) -> Result<Arc<dyn RangeReader>> {
        let (reader, version) = tessera_files::open_version(path)?;
        let mut versions = lock(&self.unpacked.versions);
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
        lock(&self.unpacked.directory).clone()
    }

    /// What a stream gives, read once for the statement.
    fn spooled(&self, path: &str, stream: &InputStream) -> Result<Arc<dyn RangeReader>> {
        match &self.unpacked.allowed {
            Streams::SqlFromStdin if stream.is_standard_input() => {
                return Err(Error::unsupported(format!(
                    "cannot read '{path}': the statements come from there; give them with -c or -f"
                )));
            }
            Streams::Refused(platform) => {
                return Err(Error::unsupported(format!(
                    "cannot read '{path}' on platform {platform}, whose processes cannot share a stream; write it to a file first"
                )));
            }
            _ => {}
        }
        let key = stream.key();
        // The lock is held while it is read: a second reader waits and then uses the result.
        let mut streams = lock(&self.unpacked.streams);
        if let Some(reader) = streams.readers.get(&key) {
            return Ok(reader.clone());
        }
        if streams.ended.contains(&key) {
            return Err(Error::io(format!(
                "cannot read '{path}': an earlier statement has read it to its end; keep its rows with CREATE TEMP TABLE t AS SELECT … \
                 and read that"
            )));
        }
        if stream.is_read_once() {
            streams.ended.insert(key.clone());
        }
        let reader = stream.spool(&self.directory(), &self.interrupt())?;
        streams.readers.insert(key, reader.clone());
        Ok(reader)
    }

    /// The format of a stream whose name does not tell it, from how it begins; none of a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn format_of_stream(&self, path: &str) -> Result<Option<FileFormat>> {
        if is_object(path) || FileFormat::of_path(path).is_ok() || InputStream::at(path).is_none() {
            return Ok(None);
        }
        let reader = self.open(path)?;
        match reader.read_into(0..reader.len().min(SNIFFED_BYTES), ReadBuffer::default())? {
            Read::Ready(start) => Ok(FileFormat::of_start(&start)),
            Read::Blocked(_) => Err(Error::internal("a local file is waited for")),
        }
    }

    /// Opens files of one format that will be looked into; what lies in a store is fetched for many
    /// at once.
    ///
    /// # Errors
    /// One is not there or may not be read.
    pub(crate) fn open_all(&self, paths: &[String]) -> Result<Vec<Arc<dyn RangeReader>>> {
        let objects = paths.iter().filter(|path| is_object(path));
        self.objects.prepare(objects.map(|path| (path.as_str(), edges_of_path(path))))?;
        paths.iter().map(|path| self.open(path)).collect()
    }

    /// Looks at the objects that a plan scans, so that no worker has to wait for their versions,
    /// headers and footers.
    ///
    /// # Errors
    /// One is not there, or the store refuses.
    pub(crate) fn prepare(&self, plan: &Plan) -> Result<()> {
        let mut wanted = Vec::new();
        scanned(plan, &mut wanted);
        self.objects.prepare(wanted.into_iter())
    }

    /// What opens files for a query.
    pub(crate) fn opener(&self) -> FileOpener {
        let storage = self.clone();
        Arc::new(move |path| storage.open(path))
    }

    /// What writes files for a query.
    pub(crate) fn creator(&self) -> FileCreator {
        let storage = self.clone();
        Arc::new(move |path| match is_object(path) {
            true => storage.objects.create(path),
            false => {
                let output = tessera_files::create(path, &storage.interrupt())?;
                storage.unpacked.has_streamed.fetch_or(output.is_stream(), Ordering::Relaxed);
                Ok(output)
            }
        })
    }
}

/// The objects that the scans of a plan name, at any depth, and what they read first.
fn scanned<'a>(plan: &'a Plan, wanted: &mut Vec<(&'a str, Edges)>) {
    for node in &plan.nodes {
        if let Some(Value::List(paths)) = node.params.get("paths") {
            let edges = edges_of_scan(&node.operator);
            let objects = paths.iter().filter_map(|path| match path {
                Value::String(path) if is_object(path) => Some((&**path, edges)),
                _ => None,
            });
            wanted.extend(objects);
        }
        node.nested.iter().for_each(|nested| scanned(nested, wanted));
    }
}

/// What a scan reads first: Parquet its footer, text its header, Arrow both; a request to select
/// nothing.
fn edges_of_scan(operator: &str) -> Edges {
    if operator == "select_request" {
        return Edges::default();
    }
    Edges { head: operator != "parquet_scan", tail: !matches!(operator, "csv_scan" | "json_scan") }
}

fn edges_of_path(path: &str) -> Edges {
    FileFormat::of_path(path).map_or(Edges::default(), |format| edges_of_scan(format.scan()))
}

/// The part of a local path that tells nothing about partitions: of a folder, itself; of a pattern,
/// the folder before the first wildcard; of a file, the folder it stands in.
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
mod tests {
    use super::*;

    #[test]
    fn streams_are_refused_where_processes_cannot_share_them() {
        let refused = Storage::new(Vec::new(), Streams::Refused("far".to_string()));
        for path in ["/dev/null", "/dev/stdin", "/dev/fd/0"] {
            let message = refused.open(path).unwrap_err().message().to_string();
            assert!(message.contains(path) && message.contains("platform far"), "{message}");
        }
        let storage = Storage::new(Vec::new(), Streams::SqlFromStdin);
        assert_eq!(storage.open("/dev/null").unwrap().len(), 0);
        let message = storage.open("/proc/self/fd/0").unwrap_err().message().to_string();
        assert!(message.contains("statements come from there"), "{message}");
    }

    #[test]
    fn roots() {
        assert_eq!(root("/d=1/x.csv"), "/d=1/");
        assert_eq!(root("x.csv"), "");
        assert_eq!(root("/d/year=*/x.csv"), "/d/");
        let folder = std::env::temp_dir();
        assert!(root(folder.to_str().unwrap()).ends_with('/'));
    }
}
