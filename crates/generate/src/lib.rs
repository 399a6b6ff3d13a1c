//! Generates benchmark data as Parquet files: the eight tables of TPC-H and the five of the Star
//! Schema Benchmark.
//!
//! **A table is a list of chunks, and a chunk is one row group.** The contents of a chunk depend
//! only on the scale factor and the seed. So chunks are generated and encoded on all threads and
//! appended in order, and each file is identical byte for byte for any number of threads. TPC-H
//! rows come from the `tpchgen` crates; [`ssb`] generates its own rows.
//!
//! Files get their final names only when all of them are complete. Until then they are temporary
//! files in the same directory, which are removed if the run fails or the caller cancels it.
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
//! Callers need only [`Suite`] and [`generate`]. `tpch` and [`ssb`] generate rows, and `files`
//! writes chunks as Parquet files. Non-goals: dirty data, skew, updates, other file formats.

#![forbid(unsafe_code)]

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

/// The smallest scale factor. Below it, TPC-H has fewer suppliers than the four that each part
/// needs.
pub const SCALE_MIN: f64 = 0.001;

/// The largest scale factor: 60 billion lines. Above it, the keys of SSB exceed 32 bits.
pub const SCALE_MAX: f64 = 10_000.0;

/// A benchmark suite.
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

/// Options of a generator run.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// The number of threads that generate and encode. Memory grows with it, by a few row groups
    /// per thread.
    pub threads: NonZeroUsize,
    /// Whether to replace existing files; otherwise they are an error.
    pub overwrite: bool,
    /// Whether to declare every column NOT NULL. Otherwise columns are nullable, as in files of
    /// pandas, Spark, Polars or DuckDB; the data has no NULLs in either case.
    pub not_null: bool,
    /// The seed of SSB's random numbers. TPC-H ignores it: the specification fixes its rows.
    pub seed: u64,
    /// Called on any thread after each row group with the table, the rows written and the rows
    /// expected. The expected rows of `lineitem` and `lineorder` are an estimate until their last
    /// call, where both numbers agree.
    pub progress: &'a (dyn Fn(&str, u64, u64) + Sync),
    /// Polled often; `true` stops the run, which removes its files and returns
    /// [`Error::Cancelled`].
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

/// The result of a generator run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// One entry per table, in the order of the suite.
    pub tables: Vec<TableReport>,
}

/// A generated table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableReport {
    /// The name of the table: the file name without `.parquet`.
    pub name: &'static str,
    /// The path of the file.
    pub path: PathBuf,
    /// The number of rows.
    pub rows: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
}

/// Writes all tables of `suite` at scale factor `scale` into the directory `out`, which is created
/// if needed.
///
/// # Errors
///
/// [`Error::Scale`] for a scale factor outside [`SCALE_MIN`]..=[`SCALE_MAX`], [`Error::Exists`] for
/// an existing file, [`Error::DiskFull`] and [`Error::Write`] from the file system,
/// [`Error::Cancelled`] if `options.cancelled` returned `true`. An error leaves the directory
/// unchanged, with one exception: if a rename fails while overwriting, some tables may be new and
/// some old.
pub fn generate(
    suite: Suite,
    scale: f64,
    out: &Path,
    options: &Options<'_>,
) -> Result<Report, Error> {
    // This form also rejects NaN.
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
