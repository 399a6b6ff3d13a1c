//! The state that all queries share: the in-memory cache of pieces, the compile thread, and the
//! time spent on compilation.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::Duration;

use inkwell::targets::FileType;
use tessera_context::lock;
use tessera_types::{Error, Result};

use super::Request;
use super::piece::{Piece, emit_piece};
use crate::code_cache::CodeCache;
use crate::lease;
use crate::linker::LoadedCode;
use crate::target::{Host, Processor};

/// The most pieces in the in-memory cache.
const CACHED_PIECES_MAX: usize = 256;
/// The expected compile time before one has been measured.
const COMPILE_NANOSECONDS: u64 = 10_000_000;
/// The niceness of the compile thread, so that query workers come first.
const NICE: i32 = 10;

/// An entry of the in-memory cache: a piece, and its code once compiled.
#[derive(Debug)]
pub(super) struct CacheEntry {
    pub(super) piece: Piece,
    /// The complete text of the piece: equal texts mean equal code.
    text: Arc<str>,
    /// Tuples processed so far without compiled code.
    pub(super) rows: AtomicU64,
    /// Whether the on-disk cache was searched.
    was_searched: AtomicBool,
    is_queued: AtomicBool,
    pub(super) code: OnceLock<Result<LoadedCode>>,
}

impl CacheEntry {
    pub(super) fn new(piece: Piece) -> CacheEntry {
        CacheEntry {
            text: format!("{piece:?}").into(),
            piece,
            rows: AtomicU64::new(0),
            was_searched: AtomicBool::new(false),
            is_queued: AtomicBool::new(false),
            code: OnceLock::new(),
        }
    }

    /// Returns the key of its code for a processor in the on-disk cache.
    pub(super) fn cache_key(&self, processor: &Processor) -> String {
        format!("{}\n{}", processor.describe(), self.text)
    }

    /// Loads its code from the on-disk cache.
    fn load_cached(&self, processor: &Processor, files: &CodeCache) -> Option<LoadedCode> {
        self.piece.load_object(&files.load(&self.cache_key(processor))?).ok()
    }
}

/// State shared by all queries of this process.
#[derive(Debug)]
pub(super) struct Shared {
    cache: Mutex<PieceCache>,
    queue: OnceLock<Option<Sender<Request>>>,
    compile_time: CompileTime,
}

/// The number of compiled pieces and the time they took.
#[derive(Debug, Default)]
pub(crate) struct CompileTime {
    pieces: AtomicU64,
    nanoseconds: AtomicU64,
}

impl CompileTime {
    /// Adds one piece.
    pub(crate) fn add(&self, nanoseconds: u64) {
        self.pieces.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Returns the number of pieces and their total time.
    pub(crate) fn get(&self) -> (usize, Duration) {
        let nanoseconds = Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed));
        (self.pieces.load(Ordering::Relaxed) as usize, nanoseconds)
    }
}

/// Compiled pieces by their text, each with the time of its last use.
#[derive(Debug, Default)]
struct PieceCache {
    entries: HashMap<Arc<str>, (Arc<CacheEntry>, u64)>,
    uses: u64,
}

pub(super) static SHARED: LazyLock<Shared> = LazyLock::new(|| Shared {
    cache: Mutex::default(),
    queue: OnceLock::new(),
    compile_time: CompileTime { pieces: AtomicU64::new(0), nanoseconds: AtomicU64::new(0) },
});

impl Shared {
    /// Returns the cached entry of a piece; a new one evicts the least recently used entry if the
    /// cache is full.
    pub(super) fn entry(&self, piece: Piece) -> Arc<CacheEntry> {
        let new = CacheEntry::new(piece);
        let mut cache = lock(&self.cache);
        cache.uses += 1;
        let now = cache.uses;
        if let Some((entry, used)) = cache.entries.get_mut(&new.text) {
            *used = now;
            return entry.clone();
        }
        if cache.entries.len() >= CACHED_PIECES_MAX {
            let oldest =
                cache.entries.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| cache.entries.remove(&oldest));
        }
        let entry = Arc::new(new);
        cache.entries.insert(entry.text.clone(), (entry.clone(), now));
        entry
    }

    /// Searches the on-disk cache once; returns whether code was found and linked.
    pub(super) fn search_cache(&self, request: &Request) -> bool {
        let (entry, Some(files)) = (&request.entry, &request.cache) else { return false };
        if entry.was_searched.swap(true, Ordering::Relaxed) {
            return false;
        }
        let _guard = lease::compilation_guard();
        let found =
            Processor::at_hand().ok().and_then(|processor| entry.load_cached(processor, files));
        found.is_some_and(|code| entry.code.set(Ok(code)).is_ok())
    }

    pub(super) fn compile(&self, request: &Request) {
        let entry = &request.entry;
        entry.code.get_or_init(|| {
            let started = thread_nanoseconds();
            let done = compile(entry, request.cache.as_deref());
            for compile_time in [&self.compile_time, &*request.compile_time] {
                compile_time.add(thread_nanoseconds().saturating_sub(started));
            }
            done
        });
    }

    /// Returns the average compile time so far.
    pub(super) fn compile_nanoseconds(&self) -> u64 {
        let (pieces, total) = self.compile_time.get();
        (total.as_nanos() as u64).checked_div(pieces as u64).unwrap_or(COMPILE_NANOSECONDS)
    }

    /// Queues a piece for the background compile thread, which starts on first use.
    pub(super) fn enqueue(&self, request: &Request) {
        let start = || {
            let (sender, receiver) = channel::<Request>();
            let work = move || {
                // On Linux this affects only the current thread.
                let _ = rustix::process::nice(NICE);
                for request in receiver {
                    let _guard = lease::compilation_guard();
                    match lease::has_lease() {
                        true => SHARED.compile(&request),
                        false => request.entry.is_queued.store(false, Ordering::Relaxed),
                    }
                }
            };
            // If no thread can be started, everything stays vectorized.
            std::thread::Builder::new()
                .name("tessera-jit".to_string())
                .spawn(work)
                .ok()
                .map(|_| sender)
        };
        if let Some(sender) = self.queue.get_or_init(start)
            && !request.entry.is_queued.swap(true, Ordering::Relaxed)
        {
            let _ = sender.send(request.clone());
        }
    }
}

/// Returns the CPU time of this thread in nanoseconds. Wall time would overstate the cost of a
/// thread that yields to others.
pub(crate) fn thread_nanoseconds() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn compile(entry: &CacheEntry, cache: Option<&CodeCache>) -> Result<LoadedCode> {
    let processor = Processor::at_hand()?;
    // Code that cannot be linked is compiled again.
    if let Some(code) = cache.and_then(|files| entry.load_cached(processor, files)) {
        return Ok(code);
    }
    thread_local! {
        /// Creating it takes about as long as compiling a short function.
        static HOST: OnceCell<Result<Host<'static>>> = const { OnceCell::new() };
    }
    let object = HOST.with(|host| {
        let host = host.get_or_init(|| Host::new(processor)).as_ref().map_err(Error::clone)?;
        emit_piece(host, &entry.piece, FileType::Object)
    })?;
    if let Some(files) = cache {
        files.save(&entry.cache_key(processor), &object);
    }
    entry.piece.load_object(&object)
}
