//! A [`Context`] for unit tests of other crates.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;

use tessera_types::{Code, Error, Result, Tuple};

use crate::{Context, Place, RangeReader, Run, Scratch, lock};

/// A context with a memory budget and without files.
#[derive(Debug)]
pub struct TestContext {
    chunk_rows: usize,
    workers: usize,
    budget: usize,
    used: AtomicUsize,
    pub cancelled: AtomicBool,
    /// The limit on the memory of all spillable state.
    state_budget: usize,
    /// All scratch files, concatenated.
    scratch: Arc<Mutex<Vec<u8>>>,
}

impl TestContext {
    pub fn new(chunk_rows: usize, workers: usize) -> Arc<Self> {
        Self::with_budget(chunk_rows, workers, usize::MAX / 2)
    }

    pub fn with_budget(chunk_rows: usize, workers: usize, budget: usize) -> Arc<Self> {
        Arc::new(Self::make(chunk_rows, workers, budget, usize::MAX))
    }

    /// Creates a context in which all spillable state is limited to this many bytes in total.
    pub fn with_state_budget(chunk_rows: usize, workers: usize, state_budget: usize) -> Arc<Self> {
        Arc::new(Self::make(chunk_rows, workers, usize::MAX / 2, state_budget))
    }

    fn make(chunk_rows: usize, workers: usize, budget: usize, state_budget: usize) -> Self {
        let (used, cancelled) = (AtomicUsize::new(0), AtomicBool::new(false));
        TestContext {
            chunk_rows,
            workers,
            budget,
            used,
            cancelled,
            state_budget,
            scratch: Arc::default(),
        }
    }

    /// Bytes spilled so far.
    pub fn spilled(&self) -> usize {
        lock(&self.scratch).len()
    }

    /// Inverts a spilled byte.
    pub fn damage(&self, at: usize) {
        lock(&self.scratch)[at] ^= 0xff;
    }

    /// Bytes that are currently reserved.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::SeqCst)
    }
}

impl Context for TestContext {
    fn grow(&self, _place: Place, bytes: usize) -> Result<()> {
        let used = self.used.fetch_add(bytes, Ordering::SeqCst) + bytes;
        if used > self.budget {
            self.shrink(Place::Host, bytes);
            return Err(Error::new(Code::Limit, "out of memory in a test"));
        }
        Ok(())
    }

    fn shrink(&self, _place: Place, bytes: usize) {
        let before = self.used.fetch_sub(bytes, Ordering::SeqCst);
        assert!(before >= bytes, "more memory given back than was held");
    }

    fn check(&self) -> Result<()> {
        match self.cancelled.load(Ordering::SeqCst) {
            true => Err(Error::new(Code::Cancelled, "cancelled")),
            false => Ok(()),
        }
    }

    fn chunk_rows(&self) -> usize {
        self.chunk_rows
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn memory_bytes(&self) -> usize {
        self.state_budget
    }

    fn may_hold(&self, _held: usize, more: usize) -> bool {
        self.used() + more <= self.state_budget
    }

    fn scratch(&self) -> Result<Arc<dyn Scratch>> {
        Ok(Arc::new(TestScratch(self.scratch.clone())))
    }

    fn open(&self, path: &str) -> Result<Arc<dyn RangeReader>> {
        Err(Error::io(format!("{path} does not exist in a test")))
    }
}

/// A view of all scratch files, concatenated in memory.
#[derive(Debug)]
struct TestScratch(Arc<Mutex<Vec<u8>>>);

impl Scratch for TestScratch {
    fn append(&self, bytes: &[u8]) -> Result<u64> {
        let mut all = lock(&self.0);
        all.extend(bytes);
        Ok((all.len() - bytes.len()) as u64)
    }

    fn read(&self, start: u64, len: usize) -> Result<Vec<u8>> {
        Ok(lock(&self.0)[start as usize..start as usize + len].to_vec())
    }
}

/// Creates a run of a node without parameters.
pub fn run_in(context: &Arc<TestContext>) -> Run {
    Run::new(context.clone())
}

/// Parses a batch of type `tuple`: `|` separates tuples, a space separates values, `NULL` is NULL.
pub fn batch(tuple: &str, text: &str) -> RecordBatch {
    let tuple: Tuple = tuple.parse().unwrap();
    let schema = Arc::new(tuple.arrow_schema().unwrap());
    let lines: Vec<Vec<&str>> = match text {
        "" => Vec::new(),
        _ => text.split('|').map(|line| line.split(' ').collect()).collect(),
    };
    let arrays = schema.fields().iter().enumerate().map(|(i, field)| {
        let texts: arrow::array::StringArray =
            lines.iter().map(|line| Some(line[i]).filter(|value| *value != "NULL")).collect();
        arrow::compute::cast(&texts, field.data_type()).unwrap()
    });
    let arrays: Vec<_> = arrays.collect();
    RecordBatch::try_new(schema.clone(), arrays).unwrap()
}

/// Formats the tuples as text, in the format of [`batch`].
pub fn rows(batch: &RecordBatch) -> Vec<String> {
    use arrow::util::display::{ArrayFormatter, FormatOptions};
    let options = FormatOptions::new().with_null("NULL");
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
        .collect();
    let row = |row| columns.iter().map(|c| c.value(row).to_string()).collect::<Vec<_>>().join(" ");
    (0..batch.num_rows()).map(row).collect()
}

/// Asserts the type and the tuples of a batch, in order.
pub fn same(found: &RecordBatch, tuple: &str, text: &str) {
    assert_eq!(Tuple::from_arrow_schema(&found.schema()).unwrap().to_string(), tuple);
    let expected: Vec<&str> = if text.is_empty() { Vec::new() } else { text.split('|').collect() };
    assert_eq!(rows(found), expected);
}

/// Deterministic pseudo-random numbers (SplitMix64).
#[derive(Debug)]
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Numbers(seed)
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// Returns an index into a list of this length; 0 if it is empty.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len.max(1) as u64) as usize
    }
}
