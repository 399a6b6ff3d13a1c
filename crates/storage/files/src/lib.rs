//! Local files: opening, listing, writing, and file names.
//!
//! A table is a file, a glob pattern, or a directory of files. [`expand`] turns any of these into a
//! sorted list of paths; [`Partitions`] reads `year=2024/` folders as columns; [`open`] returns a
//! [`RangeReader`](tessera_context::RangeReader) for scans; [`AtomicFile`] writes a file completely
//! or not at all, [`StagedFolder`] a folder of files, [`create`] writes to any kind of path;
//! [`InputStream`] is an input that can be read only once; [`write_private`] writes files for this
//! user alone; [`ScratchFile`] stores spilled data; [`decompress`] unpacks files that are
//! compressed as a whole.
//!
//! The module `descriptor` has `unsafe` code.
//!
//! ```
//! use tessera_files::{Partitions, expand};
//! let folder = std::env::temp_dir().join(format!("tessera-files-doc-{}", std::process::id()));
//! std::fs::create_dir_all(folder.join("year=2024")).unwrap();
//! std::fs::write(folder.join("year=2024/a.csv"), "x\n1\n").unwrap();
//! let paths = expand(folder.to_str().unwrap(), &|path| path.ends_with(".csv")).unwrap();
//! assert_eq!(paths.len(), 1);
//! let partitions = Partitions::discover(&paths, false).unwrap();
//! assert_eq!(&*partitions.fields[0].name, "year");
//! std::fs::remove_dir_all(&folder).unwrap();
//! ```

mod atomic;
mod compressed;
#[cfg(test)]
mod conformance;
mod descriptor;
mod folder;
mod listing;
mod partitions;
mod private_file;
mod reader;
mod scratch;
mod stream;
mod target;

pub use atomic::AtomicFile;
pub use compressed::decompress;
pub use folder::StagedFolder;
pub use listing::{expand, glob, is_pattern, list};
pub use partitions::{HIVE_NULL, Partitions};
pub use private_file::{read_private, write_private};
pub use reader::{FileReader, FileVersion, open, open_version};
pub use scratch::ScratchFile;
pub use stream::{InputStream, create, is_standard_output_closed};
pub use target::is_standard_output;

use std::io;

use tessera_types::{Error, io_cause};

/// Creates an input or output error: the action, the path and the cause.
fn io_error(doing: &str, path: &str, error: io::Error) -> Error {
    Error::io(format!("cannot {doing} '{path}': {}", io_cause(&error))).caused_by(error)
}
