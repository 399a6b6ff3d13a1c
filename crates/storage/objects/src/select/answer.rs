//! A streaming response to a select request, which is requested again if it breaks off.
//!
//! Records are passed on before the whole response has arrived, so that it need not fit into
//! memory. A response that breaks off (a reset, a body that ends early, a wrong checksum, a stall)
//! is requested again from its start; the records that were already passed on are skipped after
//! their checksum was compared. A response is complete only after an `End` message and a check that
//! the object still has the version that the statement sees.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use futures_util::task::AtomicWaker;
use object_store::ObjectStoreExt;
use object_store::client::HttpResponse;
use tessera_context::{Token, lock};
use tessera_types::{Error, Result};
use tokio::task::AbortHandle;

use super::client::{SelectClient, SendError, innermost, select_failed};
use super::event::{Decoder, Event, crc32_more};
use crate::error::store_error;
use crate::io::{self, TOTALS, Transfer};
use crate::object::Object;
use crate::store::pause;

/// The approximate limit of received bytes of records that were not taken; the store then waits.
const WINDOW_BYTES: usize = 8 << 20;
/// The transient errors within a response.
const PASSING: [&str; 6] =
    ["InternalError", "SlowDown", "Busy", "ServiceUnavailable", "RequestTimeout", "Throttling"];

/// The cost of a response.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) requests: u64,
    /// The bytes that the store scanned.
    pub(crate) scanned: u64,
    /// The bytes of records that the store sent.
    pub(crate) returned: u64,
    pub(crate) wait: Duration,
}

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<Bytes>,
    held_bytes: usize,
    /// The result at the end.
    end: Option<Result<()>>,
    /// The token of a reader that waits for more.
    token: Option<Token>,
    cost: Cost,
}

/// The next part of an [`Answer`].
pub(crate) enum Piece {
    Bytes(Bytes),
    Blocked(Token),
    /// The response is complete.
    End,
}

const QUEUED: u8 = 0;
const CLAIMED: u8 = 1;
const ENDED: u8 = 2;

/// A requested response. Its reader must [`Answer::end`] it.
#[derive(Debug)]
pub(crate) struct Answer {
    client: Arc<SelectClient>,
    object: Arc<Object>,
    body: Arc<str>,
    stage: AtomicU8,
    abort: Mutex<Option<AbortHandle>>,
    state: Mutex<State>,
    /// Wakes the receiver when there is space.
    room: AtomicWaker,
    /// The number of bytes of records that were passed on, and their checksum.
    passed_bytes: AtomicU64,
    passed_sum: AtomicU32,
}

/// The failure of one request.
enum AttemptError {
    /// Another attempt may succeed.
    Transient(String),
    Permanent(Error),
}

impl Answer {
    /// Sends the request.
    ///
    /// # Errors
    /// The I/O thread cannot be started.
    pub(crate) fn start(
        client: Arc<SelectClient>,
        object: Arc<Object>,
        body: Arc<str>,
    ) -> Result<Arc<Answer>> {
        let answer = Arc::new(Answer {
            client,
            object,
            body,
            stage: AtomicU8::new(QUEUED),
            abort: Mutex::default(),
            state: Mutex::default(),
            room: AtomicWaker::new(),
            passed_bytes: AtomicU64::new(0),
            passed_sum: AtomicU32::new(0),
        });
        io::submit(answer.clone())?;
        Ok(answer)
    }

    /// Returns the next part.
    ///
    /// # Errors
    /// The error of the response; it is returned once.
    pub(crate) fn next(&self) -> Result<Piece> {
        let mut state = lock(&self.state);
        if let Some(piece) = state.pieces.pop_front() {
            state.held_bytes -= piece.len();
            drop(state);
            self.room.wake();
            return Ok(Piece::Bytes(piece));
        }
        match &state.end {
            Some(Ok(())) => Ok(Piece::End),
            Some(Err(error)) => Err(error.clone()),
            None => Ok(Piece::Blocked(state.token.get_or_insert_with(Token::new).clone())),
        }
    }

    pub(crate) fn cost(&self) -> Cost {
        lock(&self.state).cost
    }

    /// Cancels the response, which is no longer needed.
    pub(crate) fn end(&self) {
        if self.stage.swap(ENDED, Ordering::AcqRel) == CLAIMED {
            if let Some(abort) = lock(&self.abort).take() {
                abort.abort();
            }
            io::release(self.bytes());
        }
        lock(&self.state).pieces.clear();
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        change(state);
        if let Some(token) =
            state.token.take_if(|_| !state.pieces.is_empty() || state.end.is_some())
        {
            token.set_ready();
        }
    }

    async fn receive_all(&self) -> Result<()> {
        let mut attempt = 0;
        loop {
            lock(&self.state).cost.requests += 1;
            let why = match self.attempt().await {
                Ok(()) => return self.check_version().await,
                Err(AttemptError::Permanent(error)) => return Err(error),
                Err(AttemptError::Transient(why)) => why,
            };
            if attempt >= self.object.retries {
                let address = &self.object.address;
                return Err(Error::io(format!(
                    "cannot select from '{address}' in {} attempts: {why}; try again, and check the network and the store",
                    attempt + 1
                )));
            }
            tokio::time::sleep(pause(attempt)).await;
            attempt += 1;
        }
    }

    /// Makes one request and receives its response to the end.
    async fn attempt(&self) -> std::result::Result<(), AttemptError> {
        let sent = self.client.send(&self.object.address, &self.object.path, &self.body);
        let answer = match sent.await {
            Ok(answer) => answer,
            Err(SendError::Transient(why)) => return Err(AttemptError::Transient(why)),
            Err(SendError::Permanent(error)) => return Err(AttemptError::Permanent(error)),
        };
        self.receive(answer).await
    }

    async fn receive(&self, answer: HttpResponse) -> std::result::Result<(), AttemptError> {
        let mut body = answer.into_body().bytes_stream();
        let mut decoder = Decoder::default();
        let mut known = SkippedRecords { left: self.passed_bytes.load(Ordering::Relaxed), sum: 0 };
        loop {
            // A store that has sent nothing for a while has stopped: working stores send a message
            // every few seconds.
            let piece = match body.next().await {
                Some(Ok(piece)) => piece,
                Some(Err(error)) => return Err(AttemptError::Transient(innermost(&error))),
                None => return Err(AttemptError::Transient("the response ends early".to_string())),
            };
            TOTALS.add_bytes(piece.len() as u64);
            decoder.push(&piece);
            while let Some(event) = decoder.next().map_err(AttemptError::Transient)? {
                match event {
                    Event::Records(records) => self.pass_on(records, &mut known).await?,
                    Event::Stats { scanned, returned } => {
                        TOTALS.add_selected(scanned, returned);
                        let mut state = lock(&self.state);
                        state.cost.scanned += scanned;
                        state.cost.returned += returned;
                    }
                    Event::End if known.left > 0 => return Err(self.differs()),
                    Event::End => return Ok(()),
                    Event::Error { code, message } if PASSING.contains(&code.as_str()) => {
                        return Err(AttemptError::Transient(format!(
                            "the store answers {code}: {message}"
                        )));
                    }
                    Event::Error { code, message } => {
                        let why = format!("the store answers {code}: {message}");
                        return Err(AttemptError::Permanent(select_failed(
                            &self.object.address,
                            &why,
                        )));
                    }
                    Event::Alive => {}
                }
            }
        }
    }

    /// Passes on the bytes that were not passed on before, when there is space.
    async fn pass_on(
        &self,
        mut records: Bytes,
        known: &mut SkippedRecords,
    ) -> std::result::Result<(), AttemptError> {
        if known.left > 0 {
            let len = usize::try_from(known.left).unwrap_or(usize::MAX).min(records.len());
            known.sum = crc32_more(known.sum, &records[..len]);
            known.left -= len as u64;
            records.advance(len);
            if known.left == 0 && known.sum != self.passed_sum.load(Ordering::Relaxed) {
                return Err(self.differs());
            }
        }
        if records.is_empty() {
            return Ok(());
        }
        poll_fn(|context| {
            self.room.register(context.waker());
            if lock(&self.state).held_bytes < WINDOW_BYTES {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        let sum = crc32_more(self.passed_sum.load(Ordering::Relaxed), &records);
        self.passed_sum.store(sum, Ordering::Relaxed);
        self.passed_bytes.fetch_add(records.len() as u64, Ordering::Relaxed);
        self.change(|state| {
            state.held_bytes += records.len();
            state.pieces.push_back(records);
        });
        Ok(())
    }

    fn differs(&self) -> AttemptError {
        let address = &self.object.address;
        AttemptError::Permanent(Error::io(format!(
            "cannot select from '{address}': a response broke off, and the store returned a different one to the retry; run the \
             query again, or SET smart_storage = off"
        )))
    }

    /// A select request cannot require a version, so the object must be the same before and after.
    async fn check_version(&self) -> Result<()> {
        let meta = self.object.store.head(&self.object.path).await;
        let meta = meta.map_err(|error| store_error("open", &self.object.address, error))?;
        if self.object.is(&meta) { Ok(()) } else { Err(self.object.changed()) }
    }
}

/// The state of skipping records that an earlier attempt passed on: the bytes still to skip, and
/// the checksum of those skipped.
struct SkippedRecords {
    left: u64,
    sum: u32,
}

impl Transfer for Answer {
    fn bytes(&self) -> u64 {
        WINDOW_BYTES as u64
    }

    fn claim(&self) -> bool {
        self.stage.compare_exchange(QUEUED, CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn run(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let since = Instant::now();
            let result = self.receive_all().await;
            self.change(|state| {
                state.cost.wait = since.elapsed();
                state.end = Some(result);
            });
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
