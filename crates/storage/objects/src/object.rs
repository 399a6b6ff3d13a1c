//! An object in the version that a statement saw first, and its first and last bytes.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};
use tessera_context::{file_changed, lock};
use tessera_types::Error;

/// The bytes at the start and at the end of an object that are read at once; most headers and
/// footers are shorter.
pub(crate) const EDGE_BYTES: u64 = 64 << 10;
/// The most bytes of cached edges in the whole process.
const EDGES_BYTES_MAX: u64 = 64 << 20;

static EDGES_BYTES: AtomicU64 = AtomicU64::new(0);

/// Identifies a version of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The length in bytes.
    pub len: u64,
    /// The store's tag of the content, if it has one.
    pub tag: Option<String>,
    /// The time of the last write.
    pub changed: SystemTime,
}

/// An object in a known version.
pub(crate) struct Object {
    pub(crate) address: String,
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) path: Path,
    pub(crate) len: u64,
    /// The tag of the content to read, in quotes as in headers; without one, the length must match.
    tag: Option<String>,
    pub(crate) changed: SystemTime,
    pub(crate) retries: usize,
    edges: Mutex<Edges>,
}

#[derive(Default)]
struct Edges {
    head: Option<Bytes>,
    tail: Option<Bytes>,
}

impl Object {
    pub(crate) fn new(
        address: String,
        store: Arc<dyn ObjectStore>,
        meta: ObjectMeta,
        retries: usize,
    ) -> Object {
        Object {
            address,
            store,
            path: meta.location,
            len: meta.size,
            tag: meta.e_tag.map(quoted),
            changed: meta.last_modified.into(),
            retries,
            edges: Mutex::default(),
        }
    }

    pub(crate) fn stamp(&self) -> Stamp {
        Stamp { len: self.len, tag: self.tag.clone(), changed: self.changed }
    }

    /// The tag for conditional requests. A weak tag (`W/"…"`) never matches in these.
    pub(crate) fn strong_tag(&self) -> Option<String> {
        self.tag.clone().filter(|tag| tag.starts_with('"'))
    }

    /// Whether a response describes this version. Some stores ignore the requested tag, and some
    /// web servers only report the time of the last write, in seconds.
    pub(crate) fn is(&self, meta: &ObjectMeta) -> bool {
        let seconds =
            |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let same = match (&self.tag, &meta.e_tag) {
            (Some(tag), Some(came)) => *tag == quoted(came.clone()),
            (None, None) => seconds(self.changed) == seconds(meta.last_modified.into()),
            _ => true,
        };
        meta.size == self.len && same
    }

    pub(crate) fn changed(&self) -> Error {
        file_changed(&self.address)
    }

    /// Returns the bytes of a range within a cached edge.
    pub(crate) fn edge(&self, range: &Range<u64>) -> Option<Bytes> {
        let edges = lock(&self.edges);
        let slice = |bytes: &Option<Bytes>, start: u64| {
            let bytes = bytes.as_ref()?;
            let inside = range.start >= start && range.end <= start + bytes.len() as u64;
            inside
                .then(|| bytes.slice((range.start - start) as usize..(range.end - start) as usize))
        };
        let tail_start = self.len - edges.tail.as_ref().map_or(0, |tail| tail.len() as u64);
        slice(&edges.head, 0).or_else(|| slice(&edges.tail, tail_start))
    }

    /// Returns the range of the first (or last) bytes.
    pub(crate) fn edge_range(&self, tail: bool) -> Range<u64> {
        let len = EDGE_BYTES.min(self.len);
        if tail { self.len - len..self.len } else { 0..len }
    }

    /// Whether the cache has space for more edges.
    pub(crate) fn has_room() -> bool {
        EDGES_BYTES.load(Ordering::Relaxed) < EDGES_BYTES_MAX
    }

    /// Caches the bytes of an edge, if there is space.
    pub(crate) fn keep_edge(&self, range: &Range<u64>, bytes: &Bytes) {
        let mut edges = lock(&self.edges);
        let edge = match range {
            range if *range == self.edge_range(true) => &mut edges.tail,
            range if *range == self.edge_range(false) => &mut edges.head,
            _ => return,
        };
        let len = bytes.len() as u64;
        if edge.is_some() || EDGES_BYTES.fetch_add(len, Ordering::Relaxed) + len > EDGES_BYTES_MAX {
            EDGES_BYTES.fetch_sub(if edge.is_some() { 0 } else { len }, Ordering::Relaxed);
            return;
        }
        *edge = Some(bytes.clone());
    }
}

/// Returns a tag with quotes as in headers; some listings (Azure's) have it without.
fn quoted(tag: String) -> String {
    if tag.ends_with('"') { tag } else { format!("\"{tag}\"") }
}

impl Drop for Object {
    fn drop(&mut self) {
        let edges = lock(&self.edges);
        let bytes =
            [&edges.head, &edges.tail].into_iter().flatten().map(|edge| edge.len() as u64).sum();
        EDGES_BYTES.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("address", &self.address)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
