//! Errors of data generation.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use crate::{SCALE_MAX, SCALE_MIN, Suite};

/// An error of data generation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name of the suite is unknown.
    #[error("unknown suite '{0}'; expected tpch or ssb")]
    UnknownSuite(String),

    /// The scale factor is not a number or out of range.
    #[error(
        "cannot generate {suite} at scale factor {scale}: use a number from {SCALE_MIN} to {SCALE_MAX} \
         (1 is about 6 million rows in the largest table)"
    )]
    Scale {
        /// The suite.
        suite: Suite,
        /// The scale factor.
        scale: f64,
    },

    /// The file of a table exists.
    #[error(
        "cannot write '{}': the file exists; remove it, choose another directory, or allow overwriting",
        .0.display()
    )]
    Exists(PathBuf),

    /// The disk is full.
    #[error(
        "cannot write '{}': the disk is full; free some space, choose another directory, or use a smaller \
         scale factor. No file was written",
        path.display()
    )]
    DiskFull {
        /// The file that was being written.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },

    /// The file name denotes something that must not be overwritten.
    #[error("{0}")]
    Refused(String),

    /// The file system returned an error.
    #[error("cannot write '{}': {source}", path.display())]
    Write {
        /// The file or directory that was being written.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },

    /// Rows could not be encoded: a defect of the generator.
    #[error("cannot encode table '{table}' as Parquet: {source}")]
    Encode {
        /// The table.
        table: &'static str,
        /// The error of the encoder.
        source: ParquetError,
    },

    /// The caller cancelled the run.
    #[error("generation was cancelled; no file was written")]
    Cancelled,
}

impl Error {
    /// Creates an error from a file system error at `path`.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Error::DiskFull { path, source }
            }
            _ => Error::Write { path, source },
        }
    }

    /// Creates an error from an error of the Parquet writer, or from the file system error behind
    /// it.
    pub(crate) fn parquet(table: &'static str, path: &Path, source: ParquetError) -> Self {
        match source {
            ParquetError::External(cause) => match cause.downcast::<io::Error>() {
                Ok(cause) => Error::io(path, *cause),
                Err(cause) => Error::Encode { table, source: ParquetError::External(cause) },
            },
            source => Error::Encode { table, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_apart_behind_the_parquet_writer() {
        let full = ParquetError::from(io::Error::from(io::ErrorKind::StorageFull));
        let error = Error::parquet("lineitem", Path::new("d/lineitem.parquet"), full);
        assert!(matches!(error, Error::DiskFull { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("d/lineitem.parquet") && text.contains("disk is full"), "{text}");
    }
}
