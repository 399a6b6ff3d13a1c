//! The services that the program provides to the platform: stores, an I/O thread, settings.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;

use bytes::Bytes;
use futures_util::future::ready;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::AwsCredentialProvider;
use object_store::path::Path;
use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutPayload, Result as StoreResult,
};
use tessera_types::{Error, Result};
use tokio::runtime::Handle;

use crate::result::{self, ResultParts};

/// The maximum number of attempts at a request, on top of the client's own retries of transient
/// errors.
const ATTEMPTS_MAX: usize = 5;

/// Requests and bytes that a process has used of object stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreUsage {
    /// Numbers of requests: get, head, list, put, delete.
    pub requests: [u64; 5],
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes that stores have scanned to select records.
    pub scanned_bytes: u64,
    /// Bytes of the selected records.
    pub selected_bytes: u64,
}

/// Opens the store of an address; returns its client and the path within it.
type Connect = dyn Fn(&str) -> Result<(Arc<dyn ObjectStore>, Path)> + Send + Sync;

/// Returns AWS credentials and the region.
type Aws = dyn Fn() -> Result<(AwsCredentialProvider, String)> + Send + Sync;

/// The services that the program provides to the platform.
pub struct Cloud {
    /// Opens the store of an address.
    pub connect: Box<Connect>,
    /// Returns AWS credentials and the region.
    pub aws: Box<Aws>,
    /// The runtime of the I/O thread, on which all requests are made.
    pub io: Handle,
    /// Returns what the process has used of stores so far.
    pub store_usage: fn() -> StoreUsage,
    /// Settings, named like environment variables, which they override.
    pub settings: Vec<(String, String)>,
}

impl std::fmt::Debug for Cloud {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cloud").finish_non_exhaustive()
    }
}

impl Cloud {
    /// Returns a setting, or the environment variable of that name.
    pub(crate) fn setting(&self, name: &str) -> Option<String> {
        let set =
            self.settings.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        set.or_else(|| std::env::var(name).ok()).filter(|value| !value.is_empty())
    }

    /// Runs a future on the I/O thread and blocks until it ends; not for worker threads.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = channel();
        self.io.spawn(async move { drop(sender.send(work.await)) });
        receiver.recv().unwrap_or_else(|_| Err(Error::internal("request ended without an answer")))
    }
}

/// The objects of one query, below its prefix.
#[derive(Debug, Clone)]
pub(crate) struct Space {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) prefix: Path,
    /// Bytes received from these objects.
    pub(crate) received_bytes: Arc<AtomicU64>,
}

/// The name of the object that exists while the query is wanted.
const OPEN: &str = "open";
/// The name of the object with the error of the query: a worker may be lost before it can answer.
const REASON: &str = "reason";

impl Space {
    pub(crate) fn new((store, prefix): (Arc<dyn ObjectStore>, Path)) -> Space {
        Space { store, prefix, received_bytes: Arc::default() }
    }

    /// Counts received bytes.
    pub(crate) fn received(&self, bytes: &Bytes) {
        self.received_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }

    pub(crate) fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    fn store_error(&self, action: &str, name: &str, error: StoreError) -> Error {
        Error::io(format!(
            "cannot {action} the object '{}' of this query: {error}",
            self.path(name)
        ))
        .caused_by(error)
    }

    /// Writes an object unless it exists; returns whether it was written.
    pub(crate) async fn put_new(&self, name: &str, payload: PutPayload) -> Result<bool> {
        let mut attempt = 0;
        loop {
            match self
                .store
                .put_opts(&self.path(name), payload.clone(), PutMode::Create.into())
                .await
            {
                Ok(_) => return Ok(true),
                Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => {
                    return Ok(false);
                }
                Err(error) if attempt + 1 == ATTEMPTS_MAX => {
                    return Err(self.store_error("write", name, error));
                }
                Err(_) => tokio::time::sleep(crate::invoke::pause(attempt)).await,
            }
            attempt += 1;
        }
    }

    /// Reads a whole object.
    pub(crate) async fn get(&self, name: &str) -> Result<Bytes> {
        let mut attempt = 0;
        loop {
            let got = match self.store.get(&self.path(name)).await {
                Ok(answer) => answer.bytes().await,
                Err(error @ StoreError::NotFound { .. }) => {
                    return Err(self.store_error("read", name, error));
                }
                Err(error) => Err(error),
            };
            match got {
                Ok(bytes) => {
                    self.received(&bytes);
                    return Ok(bytes);
                }
                Err(error) if attempt + 1 == ATTEMPTS_MAX => {
                    return Err(self.store_error("read", name, error));
                }
                Err(_) => tokio::time::sleep(crate::invoke::pause(attempt)).await,
            }
            attempt += 1;
        }
    }

    /// Marks the query as wanted.
    pub(crate) async fn open(&self) -> Result<()> {
        self.put_new(OPEN, PutPayload::new()).await.map(drop)
    }

    /// Whether the query is still wanted; `true` if the store cannot be reached.
    pub(crate) async fn is_open(&self) -> bool {
        !matches!(self.store.head(&self.path(OPEN)).await, Err(StoreError::NotFound { .. }))
    }

    /// Marks the query as ended, so that its workers stop.
    pub(crate) async fn close(&self) -> Result<()> {
        let mut attempt = 0;
        loop {
            match self.store.delete(&self.path(OPEN)).await {
                Ok(()) | Err(StoreError::NotFound { .. }) => return Ok(()),
                Err(error) if attempt + 1 == ATTEMPTS_MAX => {
                    return Err(self.store_error("delete", OPEN, error));
                }
                Err(_) => tokio::time::sleep(crate::invoke::pause(attempt)).await,
            }
            attempt += 1;
        }
    }

    /// Stores the error of the query and ends it.
    pub(crate) async fn fail(&self, reason: Vec<u8>) {
        let noted = self.put_new(REASON, reason.into()).await;
        // If the query ended meanwhile, its objects may have been deleted already.
        if noted.is_ok_and(|is_first| is_first) && !self.is_open().await {
            drop(self.store.delete(&self.path(REASON)).await);
        }
        drop(self.close().await);
    }

    /// Returns the stored error of the query, if any.
    pub(crate) async fn reason(&self) -> Option<Bytes> {
        self.get(REASON).await.ok()
    }

    /// Deletes all objects. After [`Space::close`] no later object stays: its writer checks `open`
    /// afterwards and clears again.
    pub(crate) async fn clear(&self) -> Result<()> {
        self.clear_except(|_| false).await
    }

    /// Deletes all objects except a finished result.
    pub(crate) async fn clear_others(&self, written: &ResultParts) -> Result<()> {
        let result = self.path(&written.folder());
        self.clear_except(move |path| path.prefix_matches(&result)).await
    }

    /// Deletes what workers have written, except the query's error and results of other attempts,
    /// which the driver may be reading.
    pub(crate) async fn clear_late(&self, attempt: u64) -> Result<()> {
        let (reason, results) = (self.path(REASON), self.path(result::FOLDER));
        let own = self.path(&ResultParts { attempt, parts: 0 }.folder());
        self.clear_except(move |path| {
            *path == reason || (path.prefix_matches(&results) && !path.prefix_matches(&own))
        })
        .await
    }

    async fn clear_except(
        &self,
        is_kept: impl Fn(&Path) -> bool + Clone + Send + 'static,
    ) -> Result<()> {
        self.delete(|| {
            let (listed, is_kept) = (self.store.list(Some(&self.prefix)), is_kept.clone());
            let listed = listed.map_ok(|meta| meta.location);
            listed.try_filter(move |path| ready(!is_kept(path))).boxed()
        })
        .await
    }

    /// Deletes a result after it was read.
    pub(crate) async fn remove(&self, written: &ResultParts) -> Result<()> {
        if written.parts == 0 {
            return Ok(());
        }
        self.delete(|| {
            let (space, written) = (self.clone(), *written);
            stream::iter((0..written.parts).map(move |part| Ok(space.path(&written.name(part)))))
                .boxed()
        })
        .await
    }

    async fn delete(
        &self,
        paths: impl Fn() -> BoxStream<'static, StoreResult<Path>>,
    ) -> Result<()> {
        let mut attempt = 0;
        loop {
            let deleted = self.store.delete_stream(paths());
            // Another process may delete objects too.
            let deleted = deleted
                .filter(|deleted| ready(!matches!(deleted, Err(StoreError::NotFound { .. }))));
            match deleted.try_for_each(|_| ready(Ok(()))).await {
                Ok(()) => return Ok(()),
                Err(error) if attempt + 1 == ATTEMPTS_MAX => {
                    return Err(self.store_error("delete", "", error));
                }
                Err(_) => tokio::time::sleep(crate::invoke::pause(attempt)).await,
            }
            attempt += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use object_store::memory::InMemory;

    use super::*;

    fn done<T>(work: impl Future<Output = T>) -> T {
        work.now_or_never().expect("a store in memory is always ready")
    }

    fn names(space: &Space) -> Vec<String> {
        let listed = space.store.list(None).map_ok(|meta| meta.location.to_string());
        done(listed.try_collect()).unwrap()
    }

    #[test]
    fn why_a_query_has_failed_outlives_the_worker_and_not_the_query() {
        let space = Space::new((Arc::new(InMemory::new()), Path::from("query")));
        done(space.open()).unwrap();
        done(space.put_new("a/part", vec![1u8].into())).unwrap();
        done(space.fail(b"first".to_vec()));
        assert!(!done(space.is_open()));
        // A worker that fails because of the first stores and deletes nothing.
        done(space.fail(b"second".to_vec()));
        done(space.clear_late(7)).unwrap();
        assert_eq!(names(&space), ["query/reason"]);
        assert_eq!(done(space.reason()).unwrap(), "first");
        done(space.clear()).unwrap();
        assert!(done(space.reason()).is_none());
        // The driver has ended the query and deleted its objects: no object stays.
        done(space.fail(b"late".to_vec()));
        assert_eq!(names(&space), Vec::<String>::new());
    }
}
