//! Texts and blobs in a context without a disk.

use std::sync::atomic::Ordering;

use tessera_context::testing::rows;
use tessera_context::{Context, Place};
use tessera_operator::testing::TestPlan;
use tessera_plan::{Expr, Params, Value};

use super::*;

/// A context with one file of `len` bytes, the last of which is `last`.
#[derive(Debug)]
struct Long {
    len: u64,
    last: u8,
    context: Arc<tessera_context::testing::TestContext>,
    /// The times that the file was opened.
    opened: std::sync::atomic::AtomicUsize,
    /// Whether a read of the file cancels the statement.
    cancels: bool,
}

#[derive(Debug)]
struct LongFile {
    len: u64,
    last: u8,
    cancelled: Option<Arc<tessera_context::testing::TestContext>>,
}

impl RangeReader for LongFile {
    fn path(&self) -> &str {
        "long.txt"
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn modified(&self) -> Option<SystemTime> {
        Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1_500))
    }

    fn read_into(&self, range: std::ops::Range<u64>, mut buffer: ReadBuffer) -> Result<Read> {
        let bytes = buffer.reserve((range.end - range.start) as usize);
        bytes.extend((range.start..range.end).map(|at| b'a' + (at % 7) as u8));
        if let Some(last) = bytes.last_mut().filter(|_| range.end == self.len) {
            *last = self.last;
        }
        if let Some(context) = &self.cancelled {
            context.cancelled.store(true, Ordering::SeqCst);
        }
        Ok(Read::Ready(buffer))
    }
}

impl Context for Long {
    fn grow(&self, place: Place, bytes: usize) -> Result<()> {
        self.context.grow(place, bytes)
    }

    fn shrink(&self, place: Place, bytes: usize) {
        self.context.shrink(place, bytes);
    }

    fn check(&self) -> Result<()> {
        self.context.check()
    }

    fn chunk_rows(&self) -> usize {
        self.context.chunk_rows()
    }

    fn workers(&self) -> usize {
        self.context.workers()
    }

    fn open(&self, path: &str) -> Result<Arc<dyn RangeReader>> {
        assert_eq!(path, "long.txt");
        self.opened.fetch_add(1, Ordering::SeqCst);
        let cancelled = self.cancels.then(|| self.context.clone());
        Ok(Arc::new(LongFile { len: self.len, last: self.last, cancelled }))
    }
}

fn long(len: u64, last: u8, budget: usize) -> Long {
    let context = tessera_context::testing::TestContext::with_budget(7, 1, budget);
    Long { len, last, context, opened: Default::default(), cancels: false }
}

/// Reads some columns, `<filename: string, …>`.
fn read(
    context: &Arc<Long>,
    columns: &str,
    filter: Option<Expr>,
) -> Result<arrow::array::RecordBatch> {
    let mut plan = TestPlan::new(|registry| registry.register(ContentScan));
    let columns: Tuple = columns.parse().unwrap();
    let mut params =
        Params::new().with("paths", vec![Value::string("long.txt")]).with("columns", columns);
    if let Some(filter) = filter {
        params.set("filter", filter);
    }
    let scan = plan.add("content_scan", &[], params);
    plan.run_in(scan, context.clone())
}

const TEXT: &str = "<content: string, size: int64>";

#[test]
fn long_files_are_read_in_pieces() {
    let len = 2 * PIECE_BYTES + 5;
    let context = Arc::new(long(len, b'z', usize::MAX / 2));
    let batch = read(&context, TEXT, None).unwrap();
    let text = arrow::array::AsArray::as_string_view(batch.column(0)).value(0).to_string();
    assert_eq!(text.len() as u64, len);
    let expected = |at: usize| if at as u64 + 1 == len { b'z' } else { b'a' + (at % 7) as u8 };
    assert!(text.bytes().enumerate().all(|(at, byte)| byte == expected(at)));
    assert_eq!(context.context.used(), 0);
}

#[test]
fn what_is_not_utf8_is_an_error_that_names_the_file() {
    let context = Arc::new(long(100, 0xff, usize::MAX / 2));
    let error = read(&context, TEXT, None).unwrap_err();
    assert_eq!(
        error.message(),
        "cannot read 'long.txt' as text: byte 100 is not UTF-8; read it with read_blob('long.txt')"
    );
    let bytes = read(&context, "<content: bytes>", None).unwrap();
    assert_eq!(arrow::array::AsArray::as_binary_view(bytes.column(0)).value(0)[99], 0xff);
}

#[test]
fn a_file_beyond_the_budget_or_a_values_size_is_an_error() {
    let error = read(&Arc::new(long(1 << 20, b'a', 1 << 19)), TEXT, None).unwrap_err();
    assert_eq!(error.code(), Code::Limit);
    assert!(error.to_string().contains("long.txt"), "{error}");
    let huge = Arc::new(long(CONTENT_BYTES_MAX + 1, b'a', usize::MAX / 2));
    let error = read(&huge, TEXT, None).unwrap_err();
    assert!(error.message().contains("'long.txt' has 2147483648 bytes"), "{error}");
    let batch = read(&huge, "<size: int64>", None).unwrap();
    assert_eq!(rows(&batch), ["2147483648"]);
}

#[test]
fn a_statement_is_cancelled_between_pieces() {
    let context = Long { cancels: true, ..long(3 * PIECE_BYTES, b'a', usize::MAX / 2) };
    let error = read(&Arc::new(context), TEXT, None).unwrap_err();
    assert_eq!(error.code(), Code::Cancelled);
}

#[test]
fn a_file_that_a_predicate_rejects_is_not_read() {
    // Its content cannot be read.
    let huge = Arc::new(long(CONTENT_BYTES_MAX + 1, b'a', usize::MAX / 2));
    let small = Expr::call("lt", vec![Expr::field("size"), Expr::int64(10)]);
    let none = Expr::call("eq", vec![Expr::field("content"), Expr::string("x")]);
    let both = Expr::all(vec![none, small]);
    assert_eq!(read(&huge, TEXT, Some(both)).unwrap().num_rows(), 0);
    assert_eq!(huge.opened.load(Ordering::SeqCst), 1);
    assert_eq!(rows(&read(&huge, "<filename: string>", None).unwrap()), ["long.txt"]);
    assert_eq!(huge.opened.load(Ordering::SeqCst), 1, "its name is known without it");
}

#[test]
fn the_time_of_the_last_change() {
    let context = Arc::new(long(1, b'a', usize::MAX / 2));
    let batch = read(&context, "<last_modified: timestamp(us, UTC)?>", None).unwrap();
    assert_eq!(rows(&batch), ["1970-01-01T00:00:01.500Z"]);
}

#[test]
fn other_columns_are_refused() {
    let context = Arc::new(long(1, b'a', usize::MAX / 2));
    for columns in ["<content: int64>", "<name: string>", "<last_modified: string?>"] {
        let error = read(&context, columns, None).unwrap_err();
        assert!(error.message().contains("content_scan has no column"), "{error}");
    }
}
