//! What can go wrong while data is generated.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use crate::{SCALE_MAX, SCALE_MIN, Suite};

/// Why data was not written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name of a suite that does not exist.
    #[error("cannot generate '{0}': there is no such suite; use tpch or ssb")]
    UnknownSuite(String),

    /// A scale factor that is not a number or out of range.
    #[error(
        "cannot generate {suite} at scale factor {scale}: use a number from {SCALE_MIN} to {SCALE_MAX} \
         (1 is about 6 million rows in the largest table)"
    )]
    Scale {
        /// The suite asked for.
        suite: Suite,
        /// The scale factor given.
        scale: f64,
    },

    /// A table of that name is already there.
    #[error(
        "cannot write '{}': the file is already there; remove it, choose another directory, or ask to overwrite",
        .0.display()
    )]
    Exists(PathBuf),

    /// The medium has no room left.
    #[error(
        "cannot write '{}': the disk is full; free some space, choose another directory, or use a smaller \
         scale factor. Nothing was kept",
        path.display()
    )]
    DiskFull {
        /// The file that was being written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// What the file's name leads to is not to be written.
    #[error("{0}")]
    Refused(String),

    /// The file system refused.
    #[error("cannot write '{}': {source}", path.display())]
    Write {
        /// The file or directory that was being written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// Rows could not be encoded, which is a defect of the generator.
    #[error("cannot encode table '{table}' as Parquet: {source}")]
    Encode {
        /// The table.
        table: &'static str,
        /// What the encoder said.
        source: ParquetError,
    },

    /// The caller asked to stop.
    #[error("generation was cancelled; nothing was kept")]
    Cancelled,
}

impl Error {
    /// An error of the file system at `path`.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Error::DiskFull { path, source }
            }
            _ => Error::Write { path, source },
        }
    }

    /// An error of the Parquet writer: the file system's where one stands behind it.
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
