//! Expands addresses to objects, through listings.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use object_store::{Error as StoreError, ObjectMeta};
use tessera_context::lock;
use tessera_types::{Code, Error, Result};

use super::{Edges, OBJECTS_MAX, ObjectList, Objects};
use crate::error::store_error;
use crate::io;
use crate::listing::{Pattern, is_data};
use crate::location::{Kind, Location};
use crate::store;

impl Objects {
    /// Returns the objects of an address: itself, the matches of a pattern (`*`, `**`, `?`, `[…]`),
    /// or all objects below a prefix. For the object itself, `edges` are read with its version.
    ///
    /// # Errors
    /// Nothing exists there, nothing matches, or the store refuses.
    pub fn expand(&self, address: &str, edges: Edges) -> Result<ObjectList> {
        let location = Location::parse(address)?;
        if location.kind == Kind::Web {
            return self.web_object(&location, edges);
        }
        if let Some(pattern) = Pattern::new(&location)? {
            let found = self.list(&location, pattern.prefix(), |key| pattern.matches(key))?;
            if found.is_empty() {
                return Err(Error::io(format!("no object matches '{address}'")));
            }
            return Ok(ObjectList {
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
                    return Ok(ObjectList { addresses: vec![address.to_string()], root });
                }
            }
        }
        let key = location.key.trim_end_matches('/');
        let prefix = if key.is_empty() { String::new() } else { format!("{key}/") };
        let addresses = self.list(&location, &prefix, |key| is_data(&key[prefix.len()..]))?;
        if addresses.is_empty() {
            return Err(Error::io(format!(
                "cannot open '{address}': the object or prefix does not exist; check its spelling"
            )));
        }
        Ok(ObjectList { addresses, root: format!("{}{prefix}", location.root) })
    }

    fn web_object(&self, location: &Location, edges: Edges) -> Result<ObjectList> {
        let address = location.address();
        if location.key.is_empty()
            || location.key.ends_with('/')
            || location.key.contains(['*', '?', '['])
        {
            return Err(Error::unsupported(format!(
                "cannot list '{address}': a web server has no listing, so patterns, folders and query strings are not supported; name one file"
            )));
        }
        self.look(location, edges)?;
        let root = address.rfind('/').map_or("", |slash| &address[..=slash]).to_string();
        Ok(ObjectList { addresses: vec![address], root })
    }

    /// Returns the names directly below a prefix; names of prefixes end in `/`.
    ///
    /// # Errors
    /// The store refuses or does not support listing.
    pub fn entries(&self, address: &str) -> Result<Arc<[String]>> {
        if let Some(entries) = lock(&self.folders).get(address) {
            return Ok(entries.clone());
        }
        let location = Location::parse(address)?;
        if location.kind == Kind::Web {
            return Err(Error::unsupported(format!(
                "'{address}' cannot be a database: a web server has no listing; name its files with FROM 'https://…'"
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
                    Err(error) if store::should_retry(&error, attempt, retries).await => {
                        attempt += 1
                    }
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

    /// Returns the sorted addresses below a location's key, which ends in a slash unless it is
    /// empty, whose paths below it pass `wanted`.
    pub(crate) fn below(
        &self,
        location: &Location,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>> {
        let prefix = &location.key;
        self.list(location, prefix, |key| wanted(key.get(prefix.len()..).unwrap_or_default()))
    }

    /// Returns the sorted addresses below a prefix whose keys pass `wanted`.
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
                    Err(error) if store::should_retry(&error, attempt, retries).await => {
                        attempt += 1
                    }
                    listed => break listed.map_err(|error| store_error("list", &shown, error))?,
                }
            };
            if found.len() > OBJECTS_MAX { Err(too_many(&shown)) } else { Ok(found) }
        })?;
        let mut addresses = Vec::new();
        for meta in found {
            // Some stores have an empty object as the marker of a folder.
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
}

fn is_missing(error: &Error) -> bool {
    use std::error::Error as _;
    let source = error.source().and_then(|source| source.downcast_ref::<StoreError>());
    matches!(source, Some(StoreError::NotFound { .. }))
}

fn too_many(address: &str) -> Error {
    Error::new(
        Code::Limit,
        format!("'{address}' matches more than {OBJECTS_MAX} objects; use a longer prefix"),
    )
}
