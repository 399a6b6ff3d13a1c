//! Writes benchmark data as Parquet: the eight tables of TPC-H and the five of the Star Schema
//! Benchmark.
//!
//! The decision behind this crate: **a table is a list of chunks, a chunk is one row group**. What
//! a chunk holds depends on the scale factor and the seed alone, so chunks are generated and
//! encoded on as many threads as there are, appended in their order, and every file is the same to
//! the byte whatever the number of threads. TPC-H rows come from the `tpchgen` crates; SSB is ours
//! (see [`ssb`]).
//!
//! Files appear under their final names only when all of them are complete: until then they are
//! temporary files of the same directory, removed when something fails or the caller asks to stop.
//!
//! ```
//! use tessera_generate::{Options, Suite, generate};
//!
//! let directory = tempfile::tempdir()?;
//! let report = generate(Suite::Ssb, 0.001, directory.path(), &Options::default())?;
//! let names: Vec<&str> = report.tables.iter().map(|table| table.name).collect();
//! assert_eq!(names, ["lineorder", "customer", "supplier", "part", "date"]);
//! assert_eq!(report.tables[1].rows, 30);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Parts: [`Suite`] and [`generate`] are the whole of it for a caller; `tpch` and [`ssb`] make
//! rows, `files` turns chunks into Parquet files. Not for: dirty data, skew, updates, formats other
//! than Parquet.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

mod error;
mod files;
pub mod ssb;
mod table;
mod tpch;

pub use error::Error;

/// The smallest scale factor. Below it TPC-H has fewer suppliers than the four each part needs.
pub const SCALE_MIN: f64 = 0.001;

/// The largest scale factor: 60 billion lines. Above it SSB's keys would leave 32 bits.
pub const SCALE_MAX: f64 = 10_000.0;

/// A benchmark whose tables can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// TPC-H: lineitem, orders, partsupp, part, customer, supplier, nation, region.
    Tpch,
    /// Star Schema Benchmark: lineorder, customer, supplier, part, date.
    Ssb,
}

impl fmt::Display for Suite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Suite::Tpch => "tpch",
            Suite::Ssb => "ssb",
        })
    }
}

impl FromStr for Suite {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "tpch" => Ok(Suite::Tpch),
            "ssb" => Ok(Suite::Ssb),
            _ => Err(Error::UnknownSuite(text.to_owned())),
        }
    }
}

/// How to write: threads, seed, and what the caller wants to hear and say meanwhile.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Threads that generate and encode. Memory grows with it: a few row groups for each.
    pub threads: NonZeroUsize,
    /// Replace tables that are already there; without it they are an error.
    pub overwrite: bool,
    /// Declare every column NOT NULL. Without it columns may be NULL, as in files of pandas, Spark,
    /// Polars or DuckDB; none is.
    pub not_null: bool,
    /// Seed of SSB's random numbers. TPC-H has none: its rows are fixed by the specification.
    pub seed: u64,
    /// Called from any thread after each row group: table, rows written, rows expected. What is
    /// expected of `lineitem` and `lineorder` is an estimate until their last call, in which both
    /// numbers agree.
    pub progress: &'a (dyn Fn(&str, u64, u64) + Sync),
    /// Asked often; `true` stops the work, leaves nothing behind and returns [`Error::Cancelled`].
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            overwrite: false,
            not_null: false,
            seed: ssb::DEFAULT_SEED,
            progress: &|_, _, _| {},
            cancelled: &|| false,
        }
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Options")
            .field("threads", &self.threads)
            .field("overwrite", &self.overwrite)
            .field("not_null", &self.not_null)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// One entry a table, in the suite's order.
    pub tables: Vec<TableReport>,
}

/// One table that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableReport {
    /// The table's name, which is the file's without `.parquet`.
    pub name: &'static str,
    /// Where the file is.
    pub path: PathBuf,
    /// Rows in it.
    pub rows: u64,
    /// Size of the file.
    pub bytes: u64,
}

/// Writes all tables of `suite` at scale factor `scale` into the directory `out`, which is created
/// if needed.
///
/// # Errors
///
/// [`Error::Scale`] for a scale factor outside [`SCALE_MIN`]..=[`SCALE_MAX`], [`Error::Exists`] for
/// a table that is already there, [`Error::DiskFull`] and [`Error::Write`] from the file system,
/// [`Error::Cancelled`] when `options.cancelled` said so. After any of them the directory is as it
/// was; only a rename refused while overwriting can leave some tables new and some old.
pub fn generate(
    suite: Suite,
    scale: f64,
    out: &Path,
    options: &Options<'_>,
) -> Result<Report, Error> {
    // Written so that NaN is refused too.
    if !(SCALE_MIN..=SCALE_MAX).contains(&scale) {
        return Err(Error::Scale { suite, scale });
    }
    let mut tables = match suite {
        Suite::Tpch => tpch::tables(scale),
        Suite::Ssb => ssb::tables(scale, options.seed),
    };
    for table in &mut tables {
        table.declare(!options.not_null);
    }
    files::write(&tables, out, options)
}
