//! Objects that appear completely or not at all: a small one by one request, a larger one by a
//! multipart upload.

use std::fmt;
use std::io::{self, Write};
use std::pin::pin;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::{Either, select};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt};
use tessera_context::{Interrupt, Output, lock};
use tessera_types::{Error, Result};
use tokio::task::JoinHandle;

use crate::error::store_error;
use crate::io::{handle, interrupted, wait};

/// The bytes of a part: with the 10,000 parts that S3 permits, an object may have 156 GiB.
const PART_BYTES: usize = 16 << 20;
/// The most parts in flight; a writer waits for the oldest one.
const PARTS_MAX: usize = 4;
/// The timeout for aborting an upload.
const ABORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Uploads whose abort was requested. Only the end of the session waits for them.
#[derive(Debug, Clone, Default)]
pub(crate) struct PendingAborts(Arc<Mutex<Vec<Receiver<()>>>>);

impl PendingAborts {
    fn add(&self, forgotten: Receiver<()>) {
        let mut all = lock(&self.0);
        all.retain(|forgotten| forgotten.try_recv() == Err(TryRecvError::Empty));
        all.push(forgotten);
    }

    /// Waits until the uploads are aborted or time out.
    pub(crate) fn wait(&self) {
        let all = std::mem::take(&mut *lock(&self.0));
        for forgotten in all {
            let _ = forgotten.recv_timeout(ABORT_TIMEOUT);
        }
    }
}

/// An object being written. Dropping it before the commit leaves nothing.
pub(crate) struct ObjectOutput {
    address: String,
    store: Arc<dyn ObjectStore>,
    path: Path,
    interrupt: Arc<Interrupt>,
    pending_aborts: PendingAborts,
    buffer: BytesMut,
    upload: Option<Box<dyn MultipartUpload>>,
    parts: std::collections::VecDeque<JoinHandle<object_store::Result<()>>>,
}

impl fmt::Debug for ObjectOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectOutput").field("address", &self.address).finish_non_exhaustive()
    }
}

impl ObjectOutput {
    pub(crate) fn new(
        address: String,
        store: Arc<dyn ObjectStore>,
        path: Path,
        interrupt: Arc<Interrupt>,
        pending_aborts: PendingAborts,
    ) -> ObjectOutput {
        let (buffer, parts) = (BytesMut::new(), std::collections::VecDeque::new());
        ObjectOutput {
            address,
            store,
            path,
            interrupt,
            pending_aborts,
            buffer,
            upload: None,
            parts,
        }
    }

    /// Sends a part, waiting if too many are in flight.
    fn send(&mut self, part: Bytes) -> Result<()> {
        if self.upload.is_none() {
            let (store, path, address) =
                (self.store.clone(), self.path.clone(), self.address.clone());
            self.upload = Some(wait(&self.interrupt, async move {
                let upload = store.put_multipart(&path).await;
                upload.map_err(|error| store_error("write", &address, error))
            })?);
        }
        while self.parts.len() >= PARTS_MAX {
            self.wait_for_oldest()?;
        }
        if let Some(upload) = &mut self.upload {
            self.parts.push_back(handle()?.spawn(upload.put_part(part.into())));
        }
        Ok(())
    }

    fn wait_for_oldest(&mut self) -> Result<()> {
        let Some(mut part) = self.parts.pop_front() else { return Ok(()) };
        let address = self.address.clone();
        let abort = part.abort_handle();
        wait(&self.interrupt, async move {
            match (&mut part).await {
                Ok(sent) => sent.map_err(|error| store_error("write", &address, error)),
                Err(_) => Err(Error::internal("the upload of a part was aborted")),
            }
        })
        .inspect_err(|_| abort.abort())
    }

    fn complete(&mut self) -> Result<()> {
        let (path, address) = (self.path.clone(), self.address.clone());
        let last = self.buffer.split().freeze();
        if self.upload.is_none() {
            let store = self.store.clone();
            return wait(&self.interrupt, async move {
                let put = store.put(&path, last.into()).await;
                put.map(drop).map_err(|error| store_error("write", &address, error))
            });
        }
        if !last.is_empty() {
            self.send(last)?;
        }
        self.settle()?;
        let Some(upload) = self.upload.take() else { return Ok(()) };
        // The upload is returned in any case, so that it can still be aborted.
        let interrupt = self.interrupt.clone();
        let (upload, done) =
            wait(&Interrupt::default(), async move { Ok(complete(upload, &interrupt).await) })?;
        let done =
            done.and_then(|done| done.map_err(|error| store_error("write", &self.address, error)));
        done.inspect_err(|_| self.upload = Some(upload))
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Sends what is left as the last part, also of a small object.
    pub(crate) fn send_last(&mut self) -> Result<()> {
        let last = self.buffer.split().freeze();
        if last.is_empty() && self.upload.is_some() {
            return Ok(());
        }
        self.send(last)
    }

    /// Waits until all parts have arrived.
    pub(crate) fn settle(&mut self) -> Result<()> {
        while !self.parts.is_empty() {
            self.wait_for_oldest()?;
        }
        Ok(())
    }

    /// Takes the upload, which the caller completes or returns.
    pub(crate) fn take_upload(&mut self) -> Option<Box<dyn MultipartUpload>> {
        self.upload.take()
    }

    /// Returns an upload that was not completed; it is aborted when `self` is dropped.
    pub(crate) fn return_upload(&mut self, upload: Box<dyn MultipartUpload>) {
        self.upload = Some(upload);
    }
}

/// Sends the request that makes an object visible; an outer error is an interrupt.
pub(crate) async fn complete(
    mut upload: Box<dyn MultipartUpload>,
    interrupt: &Interrupt,
) -> (Box<dyn MultipartUpload>, Result<object_store::Result<()>>) {
    let done = match select(upload.complete(), pin!(interrupted(interrupt))).await {
        Either::Left((done, _)) => Ok(done.map(drop)),
        Either::Right((cancelled, _)) => Err(cancelled),
    };
    (upload, done)
}

impl Write for ObjectOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PART_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        if self.buffer.len() == PART_BYTES {
            let part = self.buffer.split().freeze();
            self.send(part).map_err(io::Error::other)?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for ObjectOutput {
    fn commit(mut self: Box<Self>) -> Result<()> {
        self.complete()
    }
}

impl Drop for ObjectOutput {
    fn drop(&mut self) {
        let Some(mut upload) = self.upload.take() else { return };
        let parts = std::mem::take(&mut self.parts);
        // Parts that arrive after the abort would remain and be billed.
        let end_parts = async move {
            for part in parts {
                part.abort();
                drop(part.await);
            }
            Ok(())
        };
        drop(wait(&Interrupt::default(), end_parts));
        let Ok(handle) = handle() else { return };
        let (sender, forgotten) = channel();
        handle.spawn(async move {
            drop(tokio::time::timeout(ABORT_TIMEOUT, upload.abort()).await);
            drop(sender);
        });
        self.pending_aborts.add(forgotten);
    }
}
