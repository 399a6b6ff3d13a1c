//! Fetches one range of an object, in parts that are requested in parallel.

use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use object_store::{Error as StoreError, GetOptions, GetRange};
use tessera_context::{Token, Traffic, lock};
use tessera_types::{Error, Result};
use tokio::task::AbortHandle;

use crate::error::{reason, store_error};
use crate::io::{self, TOTALS, Transfer};
use crate::object::Object;
use crate::store::pause;

/// The length of a part. One connection yields about 100 MB/s, and 8 to 16 MiB is the cheapest
/// request size (AnyBlob §2.5).
const PART_BYTES_MAX: u64 = 8 << 20;
/// How often a part is requested again after its body was cut.
const CUTS_MAX: usize = 6;

/// The cost of all reads of one reader.
#[derive(Debug, Default)]
pub(crate) struct Cost {
    requests: AtomicU64,
    bytes: AtomicU64,
    wait_nanoseconds: AtomicU64,
}

impl Cost {
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            requests: self.requests.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            wait_nanoseconds: self.wait_nanoseconds.load(Ordering::Relaxed),
        }
    }
}

const QUEUED: u8 = 0;
const CLAIMED: u8 = 1;
const ENDED: u8 = 2;

/// A requested range. Dropping its last reader must [`Fetch::end`] it.
#[derive(Debug)]
pub(crate) struct Fetch {
    object: Arc<Object>,
    pub(crate) range: Range<u64>,
    stage: AtomicU8,
    result: Mutex<Option<Result<Bytes>>>,
    abort: Mutex<Option<AbortHandle>>,
    pub(crate) token: Token,
    cost: Arc<Cost>,
    since: Instant,
}

impl Fetch {
    /// Requests a range.
    ///
    /// # Errors
    /// The I/O thread cannot be started.
    pub(crate) fn start(
        object: Arc<Object>,
        range: Range<u64>,
        cost: Arc<Cost>,
    ) -> Result<Arc<Fetch>> {
        let fetch = Arc::new(Fetch {
            object,
            range,
            stage: AtomicU8::new(QUEUED),
            result: Mutex::default(),
            abort: Mutex::default(),
            token: Token::new(),
            cost,
            since: Instant::now(),
        });
        io::submit(fetch.clone())?;
        Ok(fetch)
    }

    /// Returns the result once it is available.
    pub(crate) fn result(&self) -> Option<Result<Bytes>> {
        lock(&self.result).clone()
    }

    /// Cancels the fetch, whose result is no longer needed.
    pub(crate) fn end(&self) {
        if self.stage.swap(ENDED, Ordering::AcqRel) == CLAIMED {
            if let Some(abort) = lock(&self.abort).take() {
                abort.abort();
            }
            io::release(self.bytes());
        }
        lock(&self.result).take();
    }
}

impl Transfer for Fetch {
    fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn claim(&self) -> bool {
        self.stage.compare_exchange(QUEUED, CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn run(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let result = range(&self.object, self.range.clone(), &self.cost).await;
            let waited = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.cost.wait_nanoseconds.fetch_add(waited, Ordering::Relaxed);
            *lock(&self.result) = Some(result);
            self.token.set_ready();
        })
    }

    fn started(&self, abort: AbortHandle) {
        *lock(&self.abort) = Some(abort);
        if self.stage.load(Ordering::Acquire) == ENDED
            && let Some(abort) = lock(&self.abort).take()
        {
            abort.abort();
        }
    }
}

/// Returns all bytes of a range, or an error.
async fn range(object: &Object, range: Range<u64>, cost: &Cost) -> Result<Bytes> {
    let len = range.end - range.start;
    let parts = len.div_ceil(PART_BYTES_MAX).max(1);
    let part_len = len.div_ceil(parts);
    // Parts are received into one buffer next to each other and joined without copying.
    let mut rest = BytesMut::with_capacity(len as usize);
    let mut wanted = Vec::with_capacity(parts as usize);
    let mut start = range.start;
    while start < range.end {
        let end = (start + part_len).min(range.end);
        let after = rest.split_off((end - start) as usize);
        wanted.push(part(object, start..end, std::mem::replace(&mut rest, after), cost));
        start = end;
    }
    let mut received = try_join_all(wanted).await?.into_iter();
    let mut whole = received.next().unwrap_or_default();
    received.for_each(|part| whole.unsplit(part));
    Ok(whole.freeze())
}

/// Receives a part. After a cut body, requests the rest.
async fn part(
    object: &Object,
    range: Range<u64>,
    mut buffer: BytesMut,
    cost: &Cost,
) -> Result<BytesMut> {
    let len = (range.end - range.start) as usize;
    let mut cuts = 0;
    loop {
        let missing = range.start + buffer.len() as u64..range.end;
        let cut = match receive(object, missing, len, &mut buffer, cost).await? {
            None if buffer.len() == len => return Ok(buffer),
            None => "the body ends early".to_string(),
            Some(error) => reason(&error),
        };
        if cuts == CUTS_MAX.min(object.retries) {
            return Err(Error::io(format!(
                "cannot read '{}': received {} of {len} bytes from byte {} on in {} attempts: {cut}; try again, and check the \
                 network and the store",
                object.address,
                buffer.len(),
                range.start,
                cuts + 1
            )));
        }
        tokio::time::sleep(pause(cuts)).await;
        cuts += 1;
    }
}

/// Makes one request and returns why its body was cut, if so. Errors of the request itself were
/// already retried.
async fn receive(
    object: &Object,
    range: Range<u64>,
    len: usize,
    buffer: &mut BytesMut,
    cost: &Cost,
) -> Result<Option<StoreError>> {
    cost.requests.fetch_add(1, Ordering::Relaxed);
    let options = GetOptions::new()
        .with_range(Some(GetRange::Bounded(range)))
        .with_if_match(object.strong_tag());
    let failed = |error| store_error("read", &object.address, error);
    let answer = object.store.get_opts(&object.path, options).await.map_err(failed)?;
    if !object.is(&answer.meta) {
        return Err(object.changed());
    }
    let mut body = answer.into_stream();
    while let Some(piece) = body.next().await {
        let piece = match piece {
            Ok(piece) => piece,
            Err(StoreError::Precondition { .. }) => return Err(object.changed()),
            Err(error) => return Ok(Some(error)),
        };
        if buffer.len() + piece.len() > len {
            return Err(Error::io(format!(
                "cannot read '{}': the server sent more bytes than requested; check the store",
                object.address
            )));
        }
        cost.bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
        TOTALS.add_bytes(piece.len() as u64);
        buffer.extend_from_slice(&piece);
    }
    Ok(None)
}
