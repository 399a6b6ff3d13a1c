//! An answer on its way: its bytes are taken as they come, and are asked for again where it breaks
//! off.
//!
//! Records are passed on before the whole answer has come, so that it need not fit into memory. An
//! answer that breaks off (a reset, a body that ends early, a wrong checksum, silence) is asked for
//! again from its start; what was passed on already is skipped, after it has been compared by its
//! checksum. Only an `End` ends it, and a look at the object that shows that it is still the
//! version that the statement sees.

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

use super::client::{Refused, SelectClient, innermost, not_selected};
use super::event::{Decoder, Event, crc32_more};
use crate::error::store_error;
use crate::io::{self, TOTALS, Transfer};
use crate::object::Object;
use crate::store::pause;

/// Bytes of records that have come and nobody has taken, at most and about: then the store waits.
const WINDOW_BYTES: usize = 8 << 20;
/// Errors within an answer that pass.
const PASSING: [&str; 6] =
    ["InternalError", "SlowDown", "Busy", "ServiceUnavailable", "RequestTimeout", "Throttling"];

/// What an answer has cost.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) requests: u64,
    /// Bytes that the store has read.
    pub(crate) scanned: u64,
    /// Bytes of records that it has sent.
    pub(crate) returned: u64,
    pub(crate) wait: Duration,
}

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<Bytes>,
    held_bytes: usize,
    /// How it ended.
    end: Option<Result<()>>,
    /// Who waits for more.
    token: Option<Token>,
    cost: Cost,
}

/// What an [`Answer`] gives next.
pub(crate) enum Piece {
    Bytes(Bytes),
    Blocked(Token),
    /// It is whole.
    End,
}

const QUEUED: u8 = 0;
const CLAIMED: u8 = 1;
const ENDED: u8 = 2;

/// An answer that was asked for. Who asked must [`Answer::end`] it.
#[derive(Debug)]
pub(crate) struct Answer {
    client: Arc<SelectClient>,
    object: Arc<Object>,
    body: Arc<str>,
    stage: AtomicU8,
    abort: Mutex<Option<AbortHandle>>,
    state: Mutex<State>,
    /// Wakes the receiver when there is room.
    room: AtomicWaker,
    /// Bytes of records that were passed on, and their checksum.
    passed_bytes: AtomicU64,
    passed_sum: AtomicU32,
}

/// How far one request came.
enum Broken {
    /// It may come further the next time.
    ForNow(String),
    ForGood(Error),
}

impl Answer {
    /// Asks for it.
    ///
    /// # Errors
    /// There is no I/O thread.
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

    /// What comes next.
    ///
    /// # Errors
    /// How it failed; once.
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

    /// Nobody wants it any more.
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
                Err(Broken::ForGood(error)) => return Err(error),
                Err(Broken::ForNow(why)) => why,
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

    /// One request, to the end of its answer.
    async fn attempt(&self) -> std::result::Result<(), Broken> {
        let sent = self.client.send(&self.object.address, &self.object.path, &self.body);
        let answer = match sent.await {
            Ok(answer) => answer,
            Err(Refused::ForNow(why)) => return Err(Broken::ForNow(why)),
            Err(Refused::ForGood(error)) => return Err(Broken::ForGood(error)),
        };
        self.receive(answer).await
    }

    async fn receive(&self, answer: HttpResponse) -> std::result::Result<(), Broken> {
        let mut body = answer.into_body().bytes_stream();
        let mut decoder = Decoder::default();
        let mut known = Known { left: self.passed_bytes.load(Ordering::Relaxed), sum: 0 };
        loop {
            // A store that has sent nothing for a while has stopped: working ones say every few
            // seconds that they are alive.
            let piece = match body.next().await {
                Some(Ok(piece)) => piece,
                Some(Err(error)) => return Err(Broken::ForNow(innermost(&error))),
                None => return Err(Broken::ForNow("the answer ends before its end".to_string())),
            };
            TOTALS.add_bytes(piece.len() as u64);
            decoder.push(&piece);
            while let Some(event) = decoder.next().map_err(Broken::ForNow)? {
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
                        return Err(Broken::ForNow(format!("the store answers {code}: {message}")));
                    }
                    Event::Error { code, message } => {
                        let why = format!("the store answers {code}: {message}");
                        return Err(Broken::ForGood(not_selected(&self.object.address, &why)));
                    }
                    Event::Alive => {}
                }
            }
        }
    }

    /// Passes on what has not been, when there is room.
    async fn pass_on(
        &self,
        mut records: Bytes,
        known: &mut Known,
    ) -> std::result::Result<(), Broken> {
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

    fn differs(&self) -> Broken {
        let address = &self.object.address;
        Broken::ForGood(Error::io(format!(
            "cannot select from '{address}': an answer broke off, and the store gave another one when it was asked again; run the \
             query again, or SET smart_storage = off"
        )))
    }

    /// A request to select cannot demand a version: the object must be the same before and after.
    async fn check_version(&self) -> Result<()> {
        let meta = self.object.store.head(&self.object.path).await;
        let meta = meta.map_err(|error| store_error("open", &self.object.address, error))?;
        if self.object.is(&meta) { Ok(()) } else { Err(self.object.changed()) }
    }
}

/// What of an answer that is asked for again was passed on before: bytes that are still to be
/// skipped, and the checksum of those that were.
struct Known {
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
