//! The stores and objects that a session knows.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use object_store::{
    Error as StoreError, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt,
};
use tessera_context::{Interrupt, Output, RangeReader, lock};
use tessera_types::{Code, Error, Result};

use crate::error::store_error;
use crate::fetch::{Cost, Fetch};
use crate::io::{self, TOTALS, Totals};
use crate::listing::{Pattern, is_data};
use crate::location::{Kind, Location};
use crate::object::{EDGE_BYTES, Object, Stamp};
use crate::output::{GivenUp, ObjectOutput};
use crate::reader::ObjectReader;
use crate::select::{Answer, Clients, Dialect, SELECT_AS, SelectClient};
use crate::store::{self, Server};
use crate::timeouts::{Shared, Timeouts};

/// Requests that planning has under way at once.
const LOOKS_MAX: usize = 64;
/// The most objects whose versions are remembered.
const KNOWN_MAX: usize = 1 << 20;
/// The most objects that one address may stand for.
const OBJECTS_MAX: usize = 1_000_000;

/// What an address stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    /// The addresses of the objects, sorted.
    pub addresses: Vec<String>,
    /// The part of the addresses that says nothing of partitions.
    pub root: String,
}

/// Which bytes of an object are wanted with its version, because they will be read first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Edges {
    /// The first ones: a header.
    pub head: bool,
    /// The last ones: a footer.
    pub tail: bool,
}

/// The stores and objects that a session knows. Looking waits for the store, and is done by the
/// session's own thread; readers never wait.
pub struct Objects {
    settings: Vec<(String, String)>,
    timeouts: Shared,
    interrupt: Arc<Interrupt>,
    stores: Mutex<HashMap<String, (Arc<dyn ObjectStore>, Server)>>,
    /// What asks the stores to select.
    selecting: Mutex<Clients>,
    /// Objects by address, and the statement in which each was looked at.
    known: Mutex<HashMap<String, (u64, Arc<Object>)>>,
    /// What lies directly below a prefix, as this statement saw it.
    folders: Mutex<HashMap<String, Arc<[String]>>>,
    statement: Mutex<u64>,
    /// What the process had asked of stores when the statement began.
    before: Mutex<Totals>,
    given_up: GivenUp,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").finish_non_exhaustive()
    }
}

impl Objects {
    /// Knows nothing yet. Settings have the names of environment variables, and come before these.
    pub fn new(settings: Vec<(String, String)>) -> Objects {
        Objects {
            settings,
            timeouts: Shared::default(),
            interrupt: Arc::default(),
            stores: Mutex::default(),
            selecting: Mutex::default(),
            known: Mutex::default(),
            folders: Mutex::default(),
            statement: Mutex::default(),
            before: Mutex::default(),
            given_up: GivenUp::default(),
        }
    }

    /// A statement begins: objects and folders are looked at again, and nothing has been cancelled.
    pub fn begin(&self, deadline: Option<Duration>) {
        self.interrupt.begin(deadline);
        lock(&self.folders).clear();
        *lock(&self.statement) += 1;
        *lock(&self.before) = io::totals();
    }

    /// How long later requests wait.
    pub fn set_timeouts(&self, timeouts: Timeouts) {
        let before = std::mem::replace(&mut *lock(&self.timeouts), timeouts);
        if before.connect != timeouts.connect {
            // A client knows it from its beginning.
            lock(&self.stores).clear();
            lock(&self.selecting).clear();
            lock(&self.known).clear();
        }
    }

    /// What the process has asked of stores since the statement began.
    pub fn spent(&self) -> Totals {
        io::totals().since(*lock(&self.before))
    }

    /// What ends the statement, and with it looking and writing.
    pub fn interrupt(&self) -> Arc<Interrupt> {
        self.interrupt.clone()
    }

    /// The objects behind an address: itself, the matches of a pattern (`*`, `**`, `?`, `[…]`), or
    /// all below a prefix. Of the object itself, `edges` are read with its version.
    ///
    /// # Errors
    /// Nothing is there, nothing matches, or the store refuses.
    pub fn expand(&self, address: &str, edges: Edges) -> Result<Expanded> {
        let location = Location::parse(address)?;
        if location.kind == Kind::Web {
            return self.web_object(&location, edges);
        }
        if let Some(pattern) = Pattern::new(&location)? {
            let found = self.list(&location, pattern.prefix(), |key| pattern.matches(key))?;
            if found.is_empty() {
                return Err(Error::io(format!("no object matches '{address}'")));
            }
            return Ok(Expanded {
                addresses: found,
                root: format!("{}{}", location.root, pattern.prefix()),
            });
        }
        let named = location.key.rsplit('/').next().unwrap_or_default();
        if named.contains('.') {
            match self.look(&location, edges) {
                Err(error) if is_missing(&error) => {}
                looked => {
                    looked?;
                    let root = address[..address.len() - named.len()].to_string();
                    return Ok(Expanded { addresses: vec![address.to_string()], root });
                }
            }
        }
        let key = location.key.trim_end_matches('/');
        let prefix = if key.is_empty() { String::new() } else { format!("{key}/") };
        let addresses = self.list(&location, &prefix, |key| is_data(&key[prefix.len()..]))?;
        if addresses.is_empty() {
            return Err(Error::io(format!(
                "cannot open '{address}': there is no such object or prefix"
            )));
        }
        Ok(Expanded { addresses, root: format!("{}{prefix}", location.root) })
    }

    fn web_object(&self, location: &Location, edges: Edges) -> Result<Expanded> {
        let address = location.address();
        if location.key.is_empty()
            || location.key.ends_with('/')
            || location.key.contains(['*', '?', '['])
        {
            return Err(Error::unsupported(format!(
                "'{address}': a web server has no listing, so patterns, folders and query strings cannot be read; name one file"
            )));
        }
        self.look(location, edges)?;
        let root = address.rfind('/').map_or("", |slash| &address[..=slash]).to_string();
        Ok(Expanded { addresses: vec![address], root })
    }

    /// Names of what lies directly below a prefix; those of prefixes end in `/`.
    ///
    /// # Errors
    /// The store refuses, or has no listing.
    pub fn entries(&self, address: &str) -> Result<Arc<[String]>> {
        if let Some(entries) = lock(&self.folders).get(address) {
            return Ok(entries.clone());
        }
        let location = Location::parse(address)?;
        if location.kind == Kind::Web {
            return Err(Error::unsupported(format!(
                "'{address}' can be no database: a web server has no listing; name its files with FROM 'https://…'"
            )));
        }
        let key = location.key.trim_end_matches('/');
        let start = if key.is_empty() { 0 } else { key.len() + 1 };
        let path = (!key.is_empty()).then(|| location.path()).transpose()?;
        let store = self.store(&location)?;
        let shown = address.to_string();
        let retries = store::retries(&self.settings)?;
        let found = io::wait(&self.interrupt, async move {
            let mut attempt = 0;
            let listed = loop {
                match store.list_with_delimiter(path.as_ref()).await {
                    Err(error) if store::again(&error, attempt, retries).await => attempt += 1,
                    listed => break listed,
                }
            };
            listed.map_err(|error| store_error("list", &shown, error))
        })?;
        let mut names: Vec<String> = Vec::new();
        for prefix in &found.common_prefixes {
            names.push(format!("{}/", prefix.as_ref().get(start..).unwrap_or_default()));
        }
        for meta in found.objects {
            names.push(meta.location.as_ref().get(start..).unwrap_or_default().to_string());
            self.remember(&location, meta)?;
        }
        names.retain(|name| !name.is_empty() && name != "/");
        names.sort();
        let names: Arc<[String]> = names.into();
        lock(&self.folders).insert(address.to_string(), names.clone());
        Ok(names)
    }

    /// The addresses below a prefix whose keys are wanted, sorted.
    fn list(
        &self,
        location: &Location,
        prefix: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>> {
        let folder = prefix.trim_end_matches('/');
        let within = Location { key: folder.to_string(), ..location.clone() };
        let path = (!folder.is_empty()).then(|| within.path()).transpose()?;
        let store = self.store(location)?;
        let shown = location.address();
        let retries = store::retries(&self.settings)?;
        let found: Vec<ObjectMeta> = io::wait(&self.interrupt, async move {
            let mut attempt = 0;
            let found = loop {
                let listed = store.list(path.as_ref()).take(OBJECTS_MAX + 1);
                match listed.try_collect::<Vec<_>>().await {
                    Err(error) if store::again(&error, attempt, retries).await => attempt += 1,
                    listed => break listed.map_err(|error| store_error("list", &shown, error))?,
                }
            };
            if found.len() > OBJECTS_MAX { Err(too_many(&shown)) } else { Ok(found) }
        })?;
        let mut addresses = Vec::new();
        for meta in found {
            // Some stores keep an empty object as the mark of a folder.
            let is_mark = meta.size == 0 && meta.location.as_ref() == folder;
            if !is_mark
                && meta.location.as_ref().starts_with(prefix)
                && wanted(meta.location.as_ref())
            {
                addresses.push(self.remember(location, meta)?.address.clone());
            }
        }
        addresses.sort();
        Ok(addresses)
    }

    /// The version of an object, as this statement saw it first.
    fn look(&self, location: &Location, edges: Edges) -> Result<Arc<Object>> {
        let address = location.address();
        if let Some(object) = self.seen(&address) {
            return Ok(object);
        }
        let store = self.store(location)?;
        let path = location.path()?;
        // One request brings version and footer, where the store can count from the end.
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
                    // An empty object has no last bytes; whatever else is wrong shows again.
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

    /// Looks at objects that this statement has not seen, and reads those edges of all of them that
    /// are not kept yet; many at once.
    ///
    /// # Errors
    /// One is not there, or the store refuses.
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
        let heads = futures_util::stream::iter(heads).buffered(LOOKS_MAX);
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
        // What is kept is bounded, so it is read some at a time; a scan reads the rest when it
        // starts.
        for some in wanted.chunks(LOOKS_MAX) {
            if !Object::has_room() {
                break;
            }
            let started: Result<Vec<_>> = some
                .iter()
                .map(|(object, range)| {
                    let fetch = Fetch::start(object.clone(), range.clone(), cost.clone())?;
                    Ok(Ending(object.clone(), fetch))
                })
                .collect();
            for Ending(object, fetch) in &started? {
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

    /// The version of an object that this statement sees.
    ///
    /// # Errors
    /// It is not there, or the store refuses.
    pub fn stamp(&self, address: &str) -> Result<Stamp> {
        Ok(self.look(&Location::parse(address)?, Edges::default())?.stamp())
    }

    /// Opens an object as it was last looked at.
    ///
    /// # Errors
    /// It was never looked at, and is not there or the store refuses.
    pub fn open(&self, address: &str) -> Result<Arc<dyn RangeReader>> {
        let object = self.known(&Location::parse(address)?)?;
        Ok(Arc::new(ObjectReader::new(object, self.interrupt.clone())))
    }

    /// An object as it was last looked at, or is now.
    fn known(&self, location: &Location) -> Result<Arc<Object>> {
        let known = lock(&self.known).get(&location.address()).map(|(_, object)| object.clone());
        match known {
            Some(object) => Ok(object),
            None => self.look(location, Edges::default()),
        }
    }

    /// Starts an object that appears when it is complete.
    ///
    /// # Errors
    /// The address names no object, or its store cannot be written to.
    pub fn create(&self, address: &str) -> Result<Box<dyn Output>> {
        let location = Location::parse(address)?;
        if location.kind == Kind::Web {
            return Err(Error::unsupported(format!(
                "cannot write '{address}': web servers are only read; write to s3://, gs:// or az://"
            )));
        }
        if location.key.is_empty() || location.key.ends_with('/') {
            return Err(Error::io(format!("cannot write '{address}': it names no object")));
        }
        let output = ObjectOutput::new(
            address.to_string(),
            self.store(&location)?,
            location.path()?,
            self.interrupt.clone(),
            self.given_up.clone(),
        );
        Ok(Box::new(output))
    }

    /// Waits until stores have forgotten what was written and not committed, some seconds at most.
    /// Dropping this does, too.
    pub fn settle(&self) {
        self.given_up.wait();
    }

    /// Asks the store to select from an object as it was last looked at.
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

    /// What the store of an address is, where it says so and what it selects can be relied on.
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

    fn store(&self, location: &Location) -> Result<Arc<dyn ObjectStore>> {
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

    /// Remembers what the store says of an object; what was kept of the same version stays.
    fn remember(&self, location: &Location, meta: ObjectMeta) -> Result<Arc<Object>> {
        let address = match location.kind {
            Kind::Web => location.address(),
            _ => location.sibling(&meta.location),
        };
        let retries = store::retries(&self.settings)?;
        let object = Object::new(address.clone(), self.store(location)?, meta, retries);
        let statement = *lock(&self.statement);
        let mut known = lock(&self.known);
        if known.len() >= KNOWN_MAX {
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

/// A fetch that is given up when nobody looks at it any more.
struct Ending(Arc<Object>, Arc<Fetch>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.1.end();
    }
}

fn is_missing(error: &Error) -> bool {
    use std::error::Error as _;
    let source = error.source().and_then(|source| source.downcast_ref::<StoreError>());
    matches!(source, Some(StoreError::NotFound { .. }))
}

fn too_many(address: &str) -> Error {
    Error::new(
        Code::Limit,
        format!(
            "'{address}' stands for more than {OBJECTS_MAX} objects; name fewer with a longer prefix"
        ),
    )
}
