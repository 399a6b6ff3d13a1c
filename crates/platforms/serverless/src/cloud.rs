//! What the program lends to the platform: stores, the thread for their requests, settings.

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

use crate::result::{self, Written};

/// How often a request that failed is made; the client itself has repeated some of those that
/// failed for a passing reason.
const ATTEMPTS_MAX: usize = 5;

/// What a process has asked of stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Requests: get, head, list, put, delete.
    pub requests: [u64; 5],
    /// Bytes that came.
    pub received_bytes: u64,
    /// Bytes that were sent.
    pub sent_bytes: u64,
    /// Bytes that stores have read to select from objects.
    pub scanned_bytes: u64,
    /// Bytes of records that they have selected.
    pub selected_bytes: u64,
}

/// Gives a client of the store of an address, and the place there.
type Connect = dyn Fn(&str) -> Result<(Arc<dyn ObjectStore>, Path)> + Send + Sync;

/// Gives credentials of AWS and the region.
type Aws = dyn Fn() -> Result<(AwsCredentialProvider, String)> + Send + Sync;

/// What the program lends to the platform.
pub struct Cloud {
    /// Opens stores.
    pub connect: Box<Connect>,
    /// Tells who asks AWS, and in which region.
    pub aws: Box<Aws>,
    /// The one thread on which all requests are made.
    pub io: Handle,
    /// What the process has asked of stores so far.
    pub spent: fn() -> Spent,
    /// Settings by the names of environment variables; they come before these.
    pub settings: Vec<(String, String)>,
}

impl std::fmt::Debug for Cloud {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cloud").finish_non_exhaustive()
    }
}

impl Cloud {
    /// A setting, or the environment variable of that name.
    pub(crate) fn setting(&self, name: &str) -> Option<String> {
        let set =
            self.settings.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        set.or_else(|| std::env::var(name).ok()).filter(|value| !value.is_empty())
    }

    /// Does something on the I/O thread and waits for it; for threads that are no workers.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = channel();
        self.io.spawn(async move { drop(sender.send(work.await)) });
        receiver
            .recv()
            .unwrap_or_else(|_| Err(Error::internal("a request ended without an answer")))
    }
}

/// The objects of one query.
#[derive(Debug, Clone)]
pub(crate) struct Space {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) prefix: Path,
    /// Bytes that came from there.
    pub(crate) received_bytes: Arc<AtomicU64>,
}

/// The object that is there for as long as the query is wanted.
const OPEN: &str = "open";
/// Why the query has failed, for the driver: a worker may be lost before it can tell.
const REASON: &str = "reason";

impl Space {
    pub(crate) fn new((store, prefix): (Arc<dyn ObjectStore>, Path)) -> Space {
        Space { store, prefix, received_bytes: Arc::default() }
    }

    /// Bytes have come from there.
    pub(crate) fn received(&self, bytes: &Bytes) {
        self.received_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }

    pub(crate) fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    fn failed(&self, doing: &str, name: &str, error: StoreError) -> Error {
        Error::io(format!("cannot {doing} the object '{}' of this query: {error}", self.path(name)))
            .caused_by(error)
    }

    /// Writes an object, unless there is one of this name; whether it was written.
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
                    return Err(self.failed("write", name, error));
                }
                Err(_) => tokio::time::sleep(crate::invoke::pause(attempt)).await,
            }
            attempt += 1;
        }
    }

    /// The bytes of a whole object.
    pub(crate) async fn get(&self, name: &str) -> Result<Bytes> {
        let mut attempt = 0;
        loop {
            let got = match self.store.get(&self.path(name)).await {
                Ok(answer) => answer.bytes().await,
                Err(error @ StoreError::NotFound { .. }) => {
                    return Err(self.failed("read", name, error));
                }
                Err(error) => Err(error),
            };
            match got {
                Ok(bytes) => {
                    self.received(&bytes);
                    return Ok(bytes);
                }
                Err(error) if attempt + 1 == ATTEMPTS_MAX => {
                    return Err(self.failed("read", name, error));
                }
                Err(_) => tokio::time::sleep(crate::invoke::pause(attempt)).await,
            }
            attempt += 1;
        }
    }

    /// The query begins.
    pub(crate) async fn open(&self) -> Result<()> {
        self.put_new(OPEN, PutPayload::new()).await.map(drop)
    }

    /// Whether the query is still wanted; when the store does not say, it is.
    pub(crate) async fn is_open(&self) -> bool {
        !matches!(self.store.head(&self.path(OPEN)).await, Err(StoreError::NotFound { .. }))
    }

    /// The query has ended, well or not: its workers will stop.
    pub(crate) async fn close(&self) -> Result<()> {
        let mut attempt = 0;
        loop {
            match self.store.delete(&self.path(OPEN)).await {
                Ok(()) | Err(StoreError::NotFound { .. }) => return Ok(()),
                Err(error) if attempt + 1 == ATTEMPTS_MAX => {
                    return Err(self.failed("delete", OPEN, error));
                }
                Err(_) => tokio::time::sleep(crate::invoke::pause(attempt)).await,
            }
            attempt += 1;
        }
    }

    /// The query has failed: notes why, and ends it.
    pub(crate) async fn fail(&self, reason: Vec<u8>) {
        let noted = self.put_new(REASON, reason.into()).await;
        // Where the query has ended meanwhile, what it has left may be cleared already.
        if noted.is_ok_and(|is_first| is_first) && !self.is_open().await {
            drop(self.store.delete(&self.path(REASON)).await);
        }
        drop(self.close().await);
    }

    /// Why the query has failed, where that was noted.
    pub(crate) async fn reason(&self) -> Option<Bytes> {
        self.get(REASON).await.ok()
    }

    /// Deletes what is there. After [`Space::close`] nothing stays that comes later: whoever wrote
    /// it looks for `open` afterwards, and clears again.
    pub(crate) async fn clear(&self) -> Result<()> {
        self.clear_but(|_| false).await
    }

    /// Deletes all but the result, when it has been written.
    pub(crate) async fn clear_others(&self, written: &Written) -> Result<()> {
        let result = self.path(&written.folder());
        self.clear_but(move |path| path.prefix_matches(&result)).await
    }

    /// Deletes what workers have written, but for why the query has failed, and for results of
    /// other attempts than this one: the driver may be reading one.
    pub(crate) async fn clear_late(&self, attempt: u64) -> Result<()> {
        let (reason, results) = (self.path(REASON), self.path(result::FOLDER));
        let own = self.path(&Written { attempt, parts: 0 }.folder());
        self.clear_but(move |path| {
            *path == reason || (path.prefix_matches(&results) && !path.prefix_matches(&own))
        })
        .await
    }

    async fn clear_but(
        &self,
        keeps: impl Fn(&Path) -> bool + Clone + Send + 'static,
    ) -> Result<()> {
        self.delete(|| {
            let (listed, keeps) = (self.store.list(Some(&self.prefix)), keeps.clone());
            let listed = listed.map_ok(|meta| meta.location);
            listed.try_filter(move |path| ready(!keeps(path))).boxed()
        })
        .await
    }

    /// Deletes a result that has been read.
    pub(crate) async fn remove(&self, written: &Written) -> Result<()> {
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
            // Another may clear, too.
            let deleted = deleted
                .filter(|deleted| ready(!matches!(deleted, Err(StoreError::NotFound { .. }))));
            match deleted.try_for_each(|_| ready(Ok(()))).await {
                Ok(()) => return Ok(()),
                Err(error) if attempt + 1 == ATTEMPTS_MAX => {
                    return Err(self.failed("delete", "", error));
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
        work.now_or_never().expect("a store in memory makes nothing wait")
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
        // One that fails because of the first notes nothing and takes nothing away.
        done(space.fail(b"second".to_vec()));
        done(space.clear_late(7)).unwrap();
        assert_eq!(names(&space), ["query/reason"]);
        assert_eq!(done(space.reason()).unwrap(), "first");
        done(space.clear()).unwrap();
        assert!(done(space.reason()).is_none());
        // The driver has ended the query and cleared its objects: nothing stays.
        done(space.fail(b"late".to_vec()));
        assert_eq!(names(&space), Vec::<String>::new());
    }
}
