//! A conformance suite for rooms of storage, as a function that a test calls. It panics if a store
//! breaks a rule.
//!
//! A store implements [`Store`] by its own functions that open, write and list, and a test calls
//! [`store`]. `crates/storage/files/src/conformance.rs` does so for local files.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tessera_types::{Code, Result};

use crate::testing::Numbers;
use crate::{Output, RangeReader, Read, ReadBuffer};

/// A store under test. It is empty when the suite begins.
pub trait Store: Sync {
    /// The address of an object by its name, which may have folders.
    fn address(&self, name: &str) -> String;

    /// Begins a statement. A store may keep what it has looked up until the next one begins.
    fn begin(&self) {}

    /// Opens an object.
    ///
    /// # Errors
    /// It does not exist.
    fn open(&self, address: &str) -> Result<Arc<dyn RangeReader>>;

    /// Starts to write an object.
    ///
    /// # Errors
    /// It cannot be written.
    fn create(&self, address: &str) -> Result<Box<dyn Output>>;

    /// The addresses of all objects below a folder, sorted.
    ///
    /// # Errors
    /// There is no such folder, or it is empty.
    fn list(&self, folder: &str) -> Result<Vec<String>>;
}

/// Bytes of the largest object of the suite: several requests of a remote store.
const LARGE_BYTES: usize = 3 << 20;
/// The time after which a read counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);
/// Names with characters that mean something in an address, a shell or a header.
const ODD_NAMES: [&str; 10] = [
    "a b.bin",
    "ü-😀-字.bin",
    "it's \"quoted\".bin",
    "100%.bin",
    "%2F%20.bin",
    "a+b&c=d.bin",
    "#hash.bin",
    "~a;b,c@d!$.bin",
    "(x){y}.bin",
    "year=2024/m=ä ö/x.bin",
];

/// Checks a store.
///
/// # Panics
/// The store breaks a rule.
pub fn store(store: &dyn Store) {
    missing_objects(store);
    an_object_appears_whole_or_not_at_all(store);
    empty_objects(store);
    ranges(store);
    odd_names(store);
    listings(store);
    concurrent_reads(store);
    a_replaced_object_is_not_mixed(store);
}

/// Bytes that differ from place to place, and by `seed`.
fn bytes(len: usize, seed: u32) -> Vec<u8> {
    (0..len as u32).map(|i| ((i ^ seed).wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn read(reader: &dyn RangeReader, range: Range<u64>) -> Result<Vec<u8>> {
    let since = Instant::now();
    loop {
        match reader.read_into(range.clone(), ReadBuffer::default())? {
            Read::Ready(bytes) => return Ok(bytes.to_vec()),
            Read::Blocked(token) => token.wait(Duration::from_secs(1)),
        }
        assert!(since.elapsed() < PATIENCE, "{range:?} of {} does not come", reader.path());
    }
}

/// Starts an object and writes its bytes in pieces of odd lengths.
fn started(store: &dyn Store, address: &str, content: &[u8]) -> Box<dyn Output> {
    let output = store.create(address);
    let mut output = output.unwrap_or_else(|error| panic!("{address}: {error}"));
    assert!(!output.is_stream(), "{address}");
    for piece in content.chunks(77_777) {
        output.write_all(piece).unwrap_or_else(|error| panic!("{address}: {error}"));
    }
    output
}

fn write(store: &dyn Store, name: &str, content: &[u8]) -> String {
    let address = store.address(name);
    let output = started(store, &address, content);
    output.commit().unwrap_or_else(|error| panic!("{address}: {error}"));
    address
}

fn open(store: &dyn Store, address: &str) -> Arc<dyn RangeReader> {
    store.open(address).unwrap_or_else(|error| panic!("{address}: {error}"))
}

fn content(store: &dyn Store, address: &str) -> Vec<u8> {
    let reader = open(store, address);
    read(&*reader, 0..reader.len()).unwrap_or_else(|error| panic!("{address}: {error}"))
}

fn is_missing(store: &dyn Store, address: &str) {
    match store.open(address) {
        Ok(_) => panic!("{address} should not be there"),
        Err(error) => {
            assert_eq!(error.code(), Code::Io, "{address}: {error}");
            assert!(error.message().contains(address), "{address} is not named: {error}");
        }
    }
}

fn missing_objects(store: &dyn Store) {
    store.begin();
    is_missing(store, &store.address("missing.bin"));
    is_missing(store, &store.address("no/such/folder/missing.bin"));
    let listed = store.list(&store.address("no/such/folder"));
    assert!(listed.is_err(), "a folder that is not there lists {listed:?}");
}

fn an_object_appears_whole_or_not_at_all(store: &dyn Store) {
    let address = store.address("written/x.bin");
    let (first, second) = (bytes(200_000, 1), bytes(100_000, 2));
    let output = started(store, &address, &first);
    store.begin();
    is_missing(store, &address);
    drop(output);
    store.begin();
    is_missing(store, &address);
    assert!(store.list(&store.address("written")).is_err(), "a dropped output leaves something");
    write(store, "written/x.bin", &first);
    store.begin();
    assert!(content(store, &address) == first);
    // The object of before stays until the new one is complete.
    let output = started(store, &address, &second);
    store.begin();
    assert!(content(store, &address) == first);
    drop(started(store, &address, &bytes(10, 3)));
    output.commit().unwrap_or_else(|error| panic!("{address}: {error}"));
    store.begin();
    assert!(content(store, &address) == second);
    assert_eq!(listed(store, "written"), [address]);
}

fn empty_objects(store: &dyn Store) {
    let address = write(store, "empty/nothing.bin", b"");
    store.begin();
    let reader = open(store, &address);
    assert_eq!((reader.is_empty(), reader.len()), (true, 0));
    assert!(read(&*reader, 0..0).is_ok_and(|bytes| bytes.is_empty()));
    assert!(reader.prefetch(&[]).is_ok());
    is_outside(&*reader, 0..1);
}

/// Reading a range outside an object is an error that names the object.
fn is_outside(reader: &dyn RangeReader, range: Range<u64>) {
    match read(reader, range.clone()) {
        Ok(bytes) => panic!("{} bytes for {range:?} of {}", bytes.len(), reader.path()),
        Err(error) => assert!(error.message().contains(reader.path()), "{error}"),
    }
}

fn ranges(store: &dyn Store) {
    let expected = bytes(LARGE_BYTES, 4);
    let address = write(store, "ranges/x.bin", &expected);
    store.begin();
    let reader = open(store, &address);
    let len = reader.len();
    assert_eq!(len, expected.len() as u64);
    let ranges =
        [0..len, 0..1, len - 1..len, 0..0, len..len, 1_000_000..1_000_000, 70_000..2_900_000];
    for range in &ranges {
        let found = read(&*reader, range.clone()).unwrap_or_else(|error| panic!("{error}"));
        assert!(found == expected[range.start as usize..range.end as usize], "{range:?}");
    }
    // What was announced is read in any order, in parts, or not at all.
    let announced: Vec<_> = (1..9).map(|i| i * 300_000..i * 300_000 + 5_000).collect();
    let reader = open(store, &address);
    reader.prefetch(&announced).unwrap_or_else(|error| panic!("{error}"));
    for range in announced[2..].iter().rev() {
        let part = range.start + 10..range.end - 7;
        let found = read(&*reader, part.clone()).unwrap_or_else(|error| panic!("{error}"));
        assert!(found == expected[part.start as usize..part.end as usize], "{part:?}");
    }
    drop(reader);
    let reader = open(store, &address);
    #[expect(clippy::reversed_empty_ranges, reason = "a caller may compute such a range")]
    for range in [0..len + 1, len..len + 1, len + 1..len + 1, len - 1..u64::MAX, 5..4] {
        is_outside(&*reader, range);
    }
    assert!(read(&*reader, 5..9).is_ok_and(|found| found == expected[5..9]), "after an error");
}

fn odd_names(store: &dyn Store) {
    let name = |odd: &str| format!("odd/{odd}");
    for (seed, odd) in (0..).zip(ODD_NAMES) {
        write(store, &name(odd), &bytes(100, seed));
    }
    store.begin();
    for (seed, odd) in (0..).zip(ODD_NAMES) {
        assert!(content(store, &store.address(&name(odd))) == bytes(100, seed), "{odd}");
    }
    let mut expected: Vec<String> = ODD_NAMES.iter().map(|odd| store.address(&name(odd))).collect();
    expected.sort();
    let found = listed(store, "odd");
    assert_eq!(found, expected);
    // A listed address can be opened.
    assert!(found.iter().all(|address| open(store, address).len() == 100));
}

fn listed(store: &dyn Store, folder: &str) -> Vec<String> {
    let listed = store.list(&store.address(folder));
    listed.unwrap_or_else(|error| panic!("{folder}: {error}"))
}

fn listings(store: &dyn Store) {
    let names = ["list/b.bin", "list/a.bin", "list/deep/er/c.bin", "list2/d.bin", "list.bin"];
    let addresses = names.map(|name| write(store, name, b"x"));
    store.begin();
    let mut below = addresses[..3].to_vec();
    below.sort();
    assert_eq!(listed(store, "list"), below);
    assert_eq!(listed(store, "list/deep"), addresses[2..3]);
}

fn concurrent_reads(store: &dyn Store) {
    let expected = bytes(LARGE_BYTES, 5);
    let address = write(store, "concurrent/x.bin", &expected);
    store.begin();
    let shared = open(store, &address);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (shared, address, expected) = (shared.clone(), &address, &expected);
            scope.spawn(move || {
                let mut numbers = Numbers::new(seed);
                let own = open(store, address);
                for turn in 0..20 {
                    let start = numbers.below(LARGE_BYTES as u64);
                    let end = start + numbers.below((LARGE_BYTES as u64 - start).min(200_000) + 1);
                    let reader = if turn % 2 == 0 { &shared } else { &own };
                    let found = read(&**reader, start..end);
                    let found = found.unwrap_or_else(|error| panic!("{start}..{end}: {error}"));
                    assert!(found == expected[start as usize..end as usize], "{start}..{end}");
                }
            });
        }
    });
}

/// A reader of a replaced object fails, or goes on with the version that it has opened.
fn a_replaced_object_is_not_mixed(store: &dyn Store) {
    let (before, after) = (bytes(LARGE_BYTES, 6), bytes(LARGE_BYTES, 7));
    let address = write(store, "replaced/x.bin", &before);
    store.begin();
    let reader = open(store, &address);
    assert!(
        read(&*reader, 1_000_000..1_000_100).is_ok_and(|found| found == before[1_000_000..][..100])
    );
    write(store, "replaced/x.bin", &after);
    for range in [2_000_000..2_000_100, 0..100, 500_000..LARGE_BYTES as u64] {
        match read(&*reader, range.clone()) {
            Ok(found) => {
                assert!(found == before[range.start as usize..range.end as usize], "{range:?}");
            }
            Err(error) => {
                let message = error.message();
                assert!(message.contains("changed while it was read"), "{range:?}: {message}");
            }
        }
    }
    store.begin();
    assert!(content(store, &address) == after, "{address} is still the old one");
}
