//! The stores and objects of a session.

mod expand;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use object_store::{
    Error as StoreError, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt,
};
use tessera_context::{FolderMode, Interrupt, Output, OutputFolder, RangeReader, lock};
use tessera_types::{Error, Result};

use crate::error::store_error;
use crate::fetch::{Cost, Fetch};
use crate::folder::ObjectFolder;
use crate::io::{self, TOTALS, Totals};
use crate::location::{Kind, Location};
use crate::object::{EDGE_BYTES, Object, Stamp};
use crate::output::{ObjectOutput, PendingAborts};
use crate::reader::ObjectReader;
use crate::select::{Answer, Clients, Dialect, SELECT_AS, SelectClient};
use crate::store::{self, Server};
use crate::timeouts::{SharedTimeouts, Timeouts};

/// The concurrent requests of planning.
const REQUESTS_MAX: usize = 64;
/// The most objects whose versions are cached.
const CACHED_MAX: usize = 1 << 20;
/// The most objects that one address may expand to.
const OBJECTS_MAX: usize = 1_000_000;

/// The objects that an address expands to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectList {
    /// The sorted addresses of the objects.
    pub addresses: Vec<String>,
    /// The common part of the addresses, which contains no partitions.
    pub root: String,
}

/// The edges of an object to read together with its version, because they are needed first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Edges {
    /// The first bytes, such as a header.
    pub head: bool,
    /// The last bytes, such as a footer.
    pub tail: bool,
}

/// The stores and objects of a session. Lookups wait for the store, on the session's own thread;
/// readers never block.
pub struct Objects {
    settings: Vec<(String, String)>,
    timeouts: SharedTimeouts,
    interrupt: Arc<Interrupt>,
    stores: Mutex<HashMap<String, (Arc<dyn ObjectStore>, Server)>>,
    /// Clients for select requests.
    selecting: Mutex<Clients>,
    /// Objects by address, and the statement that looked each one up.
    known: Mutex<HashMap<String, (u64, Arc<Object>)>>,
    /// The entries directly below a prefix, as this statement saw them.
    folders: Mutex<HashMap<String, Arc<[String]>>>,
    statement: Mutex<u64>,
    /// The totals of the process when the statement began.
    before: Mutex<Totals>,
    pending_aborts: PendingAborts,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").finish_non_exhaustive()
    }
}

impl Objects {
    /// Creates an empty session. Settings have the names of environment variables and override
    /// them.
    pub fn new(settings: Vec<(String, String)>) -> Objects {
        Objects {
            settings,
            timeouts: SharedTimeouts::default(),
            interrupt: Arc::default(),
            stores: Mutex::default(),
            selecting: Mutex::default(),
            known: Mutex::default(),
            folders: Mutex::default(),
            statement: Mutex::default(),
            before: Mutex::default(),
            pending_aborts: PendingAborts::default(),
        }
    }

    /// Begins a statement: objects and folders are looked up again, and a former cancellation is
    /// cleared.
    pub fn begin(&self, deadline: Option<Duration>) {
        self.interrupt.begin(deadline);
        lock(&self.folders).clear();
        *lock(&self.statement) += 1;
        *lock(&self.before) = io::totals();
    }

    /// Sets the timeouts of later requests.
    pub fn set_timeouts(&self, timeouts: Timeouts) {
        let before = std::mem::replace(&mut *lock(&self.timeouts), timeouts);
        if before.connect != timeouts.connect {
            // A client reads its timeouts when it is created.
            lock(&self.stores).clear();
            lock(&self.selecting).clear();
            lock(&self.known).clear();
        }
    }

    /// Returns the requests and bytes of the process since the statement began.
    pub fn spent(&self) -> Totals {
        io::totals().since(*lock(&self.before))
    }

    /// The interrupt of the statement, which also ends lookups and writes.
    pub fn interrupt(&self) -> Arc<Interrupt> {
        self.interrupt.clone()
    }

    /// Returns the version of an object that this statement saw first, looking it up if necessary.
    fn look(&self, location: &Location, edges: Edges) -> Result<Arc<Object>> {
        let address = location.address();
        if let Some(object) = self.seen(&address) {
            return Ok(object);
        }
        let store = self.store(location)?;
        let path = location.path()?;
        // One request returns version and footer, if the store supports suffix ranges.
        let at_once = edges.tail && matches!(location.kind, Kind::S3 | Kind::Google);
        let shown = address.clone();
        let (meta, tail) = io::wait(&self.interrupt, async move {
            if at_once {
                let options = GetOptions::new().with_range(Some(GetRange::Suffix(EDGE_BYTES)));
                match store.get_opts(&path, options).await {
                    Ok(answer) => {
                        let (meta, range) = (answer.meta.clone(), answer.range.clone());
                        let bytes = answer
                            .bytes()
                            .await
                            .map_err(|error| store_error("read", &shown, error))?;
                        TOTALS.add_bytes(bytes.len() as u64);
                        let whole = bytes.len() as u64 == range.end - range.start;
                        return Ok((meta, whole.then_some((range, bytes))));
                    }
                    Err(
                        error @ (StoreError::NotFound { .. } | StoreError::PermissionDenied { .. }),
                    ) => {
                        return Err(store_error("open", &shown, error));
                    }
                    // An empty object has no last bytes; any other error recurs in the next
                    // request.
                    Err(_) => {}
                }
            }
            let meta =
                store.head(&path).await.map_err(|error| store_error("open", &shown, error))?;
            Ok((meta, None))
        })?;
        let object = self.remember(location, meta)?;
        if let Some((range, bytes)) = tail {
            object.keep_edge(&range, &bytes);
        }
        Ok(object)
    }

    /// Looks up objects that this statement has not seen, and reads their edges that are not
    /// cached, concurrently.
    ///
    /// # Errors
    /// An object does not exist, or the store refuses.
    pub fn prepare<'a>(&self, addresses: impl Iterator<Item = (&'a str, Edges)>) -> Result<()> {
        let mut unseen = Vec::new();
        let mut objects = Vec::new();
        for (address, edges) in addresses {
            match self.seen(address) {
                Some(object) => objects.push((object, edges)),
                None => {
                    let location = Location::parse(address)?;
                    unseen.push((self.store(&location)?, location.path()?, location, edges));
                }
            }
        }
        let heads = unseen.into_iter().map(|(store, path, location, edges)| async move {
            let meta = store.head(&path).await;
            meta.map(|meta| (meta, edges, location.clone()))
                .map_err(|error| store_error("open", &location.address(), error))
        });
        let heads = futures_util::stream::iter(heads).buffered(REQUESTS_MAX);
        for (meta, edges, location) in io::wait(&self.interrupt, heads.try_collect::<Vec<_>>())? {
            objects.push((self.remember(&location, meta)?, edges));
        }
        let cost: Arc<Cost> = Arc::default();
        let mut wanted = Vec::new();
        for (object, edges) in objects {
            for (tail, wants) in [(false, edges.head), (true, edges.tail)] {
                let range = object.edge_range(tail);
                if wants && !range.is_empty() && object.edge(&range).is_none() {
                    wanted.push((object.clone(), range));
                }
            }
        }
        // The cache is bounded, so edges are read in groups; a scan reads the others when it
        // starts.
        for some in wanted.chunks(REQUESTS_MAX) {
            if !Object::has_room() {
                break;
            }
            let started: Result<Vec<_>> = some
                .iter()
                .map(|(object, range)| {
                    let fetch = Fetch::start(object.clone(), range.clone(), cost.clone())?;
                    Ok(CancelOnDrop(object.clone(), fetch))
                })
                .collect();
            for CancelOnDrop(object, fetch) in &started? {
                let bytes = loop {
                    if let Some(result) = fetch.result() {
                        break result?;
                    }
                    self.interrupt.check()?;
                    fetch.token.wait(Duration::from_millis(50));
                };
                object.keep_edge(&fetch.range, &bytes);
            }
        }
        Ok(())
    }

    /// Returns the version of an object that this statement sees.
    ///
    /// # Errors
    /// The object does not exist, or the store refuses.
    pub fn stamp(&self, address: &str) -> Result<Stamp> {
        Ok(self.look(&Location::parse(address)?, Edges::default())?.stamp())
    }

    /// Opens an object in the version last looked up.
    ///
    /// # Errors
    /// The object was never looked up, and does not exist or the store refuses.
    pub fn open(&self, address: &str) -> Result<Arc<dyn RangeReader>> {
        let object = self.known(&Location::parse(address)?)?;
        Ok(Arc::new(ObjectReader::new(object, self.interrupt.clone())))
    }

    /// Returns an object in the version last looked up, or its current version.
    fn known(&self, location: &Location) -> Result<Arc<Object>> {
        let known = lock(&self.known).get(&location.address()).map(|(_, object)| object.clone());
        match known {
            Some(object) => Ok(object),
            None => self.look(location, Edges::default()),
        }
    }

    /// Starts writing an object, which appears when it is complete.
    ///
    /// # Errors
    /// The address names no object, or its store is read-only.
    pub fn create(&self, address: &str) -> Result<Box<dyn Output>> {
        Ok(Box::new(self.output(address)?))
    }

    /// Starts writing the objects below a prefix, which appear when all are complete.
    ///
    /// # Errors
    /// The store is read-only, or has objects there and the mode is [`FolderMode::New`].
    pub fn create_folder(
        self: &Arc<Self>,
        address: &str,
        mode: FolderMode,
        is_data: Box<dyn Fn(&str) -> bool + Send>,
    ) -> Result<Box<dyn OutputFolder>> {
        Ok(Box::new(ObjectFolder::create(self.clone(), address, mode, is_data)?))
    }

    pub(crate) fn output(&self, address: &str) -> Result<ObjectOutput> {
        let location = Location::parse(address)?;
        if location.kind == Kind::Web {
            return Err(Error::unsupported(format!(
                "cannot write '{address}': web servers are read-only; write to s3://, gs:// or az://"
            )));
        }
        if location.key.is_empty() || location.key.ends_with('/') {
            return Err(Error::io(format!(
                "cannot write '{address}': the object name is missing; write a path after the bucket"
            )));
        }
        Ok(ObjectOutput::new(
            address.to_string(),
            self.store(&location)?,
            location.path()?,
            self.interrupt.clone(),
            self.pending_aborts.clone(),
        ))
    }

    /// Waits until stores have aborted uncommitted uploads, at most some seconds. Dropping `self`
    /// does the same.
    pub fn settle(&self) {
        self.pending_aborts.wait();
    }

    /// Sends a select request for an object in the version last looked up.
    pub(crate) fn select(&self, address: &str, body: Arc<str>) -> Result<Arc<Answer>> {
        let location = Location::parse(address)?;
        let object = self.known(&location)?;
        let client = {
            let mut clients = lock(&self.selecting);
            match clients.get(&location.root) {
                Some(client) => client.clone(),
                None => {
                    let _runtime = io::handle()?.enter();
                    let client = Arc::new(SelectClient::new(
                        &location,
                        &self.settings,
                        self.timeouts.clone(),
                    )?);
                    clients.insert(location.root.clone(), client.clone());
                    client
                }
            }
        };
        Answer::start(client, object, body)
    }

    /// Returns the dialect of an address's store, if it reports a supported one.
    pub(crate) fn dialect(&self, address: &str) -> Option<Dialect> {
        let location =
            Location::parse(address).ok().filter(|location| location.kind == Kind::S3)?;
        let named = |(name, value): &(String, String)| (name == SELECT_AS).then(|| value.clone());
        let named =
            self.settings.iter().rev().find_map(named).or_else(|| std::env::var(SELECT_AS).ok());
        if let Some(name) = named {
            return Dialect::of_server(&name);
        }
        let stores = lock(&self.stores);
        stores.get(&location.root).and_then(|(_, server)| Dialect::of_server(server.get()?))
    }

    pub(crate) fn store(&self, location: &Location) -> Result<Arc<dyn ObjectStore>> {
        let mut stores = lock(&self.stores);
        if let Some((store, _)) = stores.get(&location.root) {
            return Ok(store.clone());
        }
        // Building a client may start timers of the runtime.
        let _runtime = io::handle()?.enter();
        let (store, server) = store::build(location, &self.settings, self.timeouts.clone())?;
        stores.insert(location.root.clone(), (store.clone(), server));
        Ok(store)
    }

    fn seen(&self, address: &str) -> Option<Arc<Object>> {
        let statement = *lock(&self.statement);
        let known = lock(&self.known);
        known.get(address).filter(|(seen, _)| *seen == statement).map(|(_, object)| object.clone())
    }

    /// Caches the metadata of an object; cached edges of the same version are kept.
    fn remember(&self, location: &Location, meta: ObjectMeta) -> Result<Arc<Object>> {
        let address = match location.kind {
            Kind::Web => location.address(),
            _ => location.sibling(&meta.location),
        };
        let retries = store::retries(&self.settings)?;
        let object = Object::new(address.clone(), self.store(location)?, meta, retries);
        let statement = *lock(&self.statement);
        let mut known = lock(&self.known);
        if known.len() >= CACHED_MAX {
            known.retain(|_, (seen, _)| *seen == statement);
        }
        let object = match known.get(&address) {
            Some((_, before)) if before.stamp() == object.stamp() => before.clone(),
            _ => Arc::new(object),
        };
        known.insert(address, (statement, object.clone()));
        Ok(object)
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        self.settle();
    }
}

/// Cancels a fetch when dropped.
struct CancelOnDrop(Arc<Object>, Arc<Fetch>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.1.end();
    }
}
