//! Records of files that scans have skipped, kept for the user.

use std::sync::{Arc, Mutex};

use tessera_types::Result;

use crate::compression::Compression;
use crate::context::{Reservation, lock};

/// Why a record was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectKind {
    /// A value is not of its column's type.
    Cast,
    /// The record has too few fields.
    MissingColumns,
    /// The record has too many fields.
    TooManyColumns,
    /// A quoted field has text after its closing quote, or no closing quote.
    UnquotedValue,
    /// The record is longer than records may be.
    LineSize,
    /// The record is not UTF-8.
    Encoding,
    /// Anything else.
    State,
}

impl RejectKind {
    /// The name of the kind, as DuckDB calls it.
    pub fn name(self) -> &'static str {
        match self {
            RejectKind::Cast => "CAST",
            RejectKind::MissingColumns => "MISSING COLUMNS",
            RejectKind::TooManyColumns => "TOO MANY COLUMNS",
            RejectKind::UnquotedValue => "UNQUOTED VALUE",
            RejectKind::LineSize => "LINE SIZE OVER MAXIMUM",
            RejectKind::Encoding => "INVALID ENCODING",
            RejectKind::State => "INVALID STATE",
        }
    }
}

/// An error of a skipped record.
#[derive(Debug, Clone)]
pub struct Reject {
    /// The position of the file among those of its scan.
    pub file: usize,
    /// The line of the record, from 1; 0 until lines are counted.
    pub line: u64,
    /// The first byte of the record in the file, from 1.
    pub start: u64,
    /// The byte of the error, from 1.
    pub byte: u64,
    /// The number of the column, if the error is about one.
    pub column: Option<u64>,
    /// Its name.
    pub name: Option<Arc<str>>,
    /// The kind of the error.
    pub kind: RejectKind,
    /// The text of the record.
    pub record: String,
    /// What is wrong.
    pub what: String,
}

/// A file of a scan that keeps rejects, and how it was read.
#[derive(Debug, Clone)]
pub struct RejectFile {
    /// Its path.
    pub path: Arc<str>,
    /// How it is compressed.
    pub compression: Option<Compression>,
    /// Names and texts of the options of the scan, as the tables of rejects show them.
    pub options: Vec<(&'static str, Option<String>)>,
}

/// What one scan has skipped.
#[derive(Debug)]
pub struct RejectScan {
    /// The tables that get the rows, of scans and of errors.
    pub tables: [Arc<str>; 2],
    /// The files of the scan.
    pub files: Vec<RejectFile>,
    /// The most errors to keep; `None` for all.
    pub limit: Option<usize>,
    errors: Mutex<(Vec<Reject>, Option<Reservation>)>,
}

/// What the scans of a session have skipped.
#[derive(Debug, Default)]
pub struct Rejects(Mutex<Vec<Arc<RejectScan>>>);

impl RejectScan {
    /// Creates the list of a scan that has skipped nothing yet.
    pub fn new(
        tables: [Arc<str>; 2],
        files: Vec<RejectFile>,
        limit: Option<usize>,
    ) -> Arc<RejectScan> {
        Arc::new(RejectScan { tables, files, limit, errors: Mutex::default() })
    }

    /// Adds errors, whose bytes `memory` counts, and empties both.
    ///
    /// # Errors
    /// The budget is exhausted.
    pub fn add(&self, errors: &mut Vec<Reject>, memory: &mut Reservation) -> Result<()> {
        let mut kept = lock(&self.errors);
        let (all, counted) = &mut *kept;
        let counted = counted.get_or_insert_with(|| Reservation::new(memory.context()));
        let bytes = memory.bytes();
        memory.resize(0)?;
        counted.grow(bytes)?;
        all.append(errors);
        // More than the limit would only be dropped at the end.
        if let Some(limit) = self.limit
            && all.len() > limit.saturating_mul(2).max(LIMIT_SLACK)
        {
            sort(all, limit);
            counted.resize(all.iter().map(Reject::bytes).sum())?;
        }
        Ok(())
    }

    /// Takes the errors, in the order of files and records.
    pub fn take(&self) -> Vec<Reject> {
        let (mut all, memory) = std::mem::take(&mut *lock(&self.errors));
        sort(&mut all, self.limit.unwrap_or(usize::MAX));
        drop(memory);
        all
    }
}

/// The errors that a scan with a limit keeps at least before it drops some.
const LIMIT_SLACK: usize = 10_000;

/// Sorts errors by their place, and keeps the first ones.
fn sort(errors: &mut Vec<Reject>, limit: usize) {
    errors.sort_by_key(|error| (error.file, error.start, error.column));
    errors.truncate(limit);
}

impl Reject {
    /// The bytes that it takes.
    pub fn bytes(&self) -> usize {
        size_of::<Reject>() + self.record.capacity() + self.what.capacity()
    }
}

impl Rejects {
    /// Adds a scan that begins.
    pub fn begin(&self, scan: Arc<RejectScan>) {
        lock(&self.0).push(scan);
    }

    /// Takes all scans, in the order in which they began.
    pub fn take(&self) -> Vec<Arc<RejectScan>> {
        std::mem::take(&mut *lock(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;
    use crate::testing::TestContext;

    fn reject(file: usize, byte: u64) -> Reject {
        let (kind, what) = (RejectKind::Cast, String::new());
        let (line, column, name) = (0, None, None);
        Reject { file, line, start: byte, byte, column, name, kind, record: "x".into(), what }
    }

    #[test]
    fn errors_are_in_the_order_of_their_records_and_within_the_limit() {
        let context = TestContext::with_budget(7, 1, usize::MAX / 2);
        let scan = RejectScan::new(["s".into(), "e".into()], Vec::new(), Some(3));
        let mut memory = Reservation::new(context.clone() as Arc<dyn Context>);
        for byte in (0..30_000).rev() {
            let mut errors = vec![reject(1, byte), reject(0, byte)];
            memory.resize(errors.iter().map(Reject::bytes).sum()).unwrap();
            scan.add(&mut errors, &mut memory).unwrap();
            assert!(errors.is_empty() && memory.bytes() == 0);
        }
        assert!(context.used() < 40_000 * reject(0, 0).bytes());
        let places = scan.take().iter().map(|error| (error.file, error.start)).collect::<Vec<_>>();
        assert_eq!(places, [(0, 0), (0, 1), (0, 2)]);
        assert_eq!(context.used(), 0);
    }
}
