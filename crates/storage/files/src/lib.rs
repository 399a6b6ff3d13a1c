//! Local files: opening, listing and writing them, and what their names say.
//!
//! A table is a file, a glob pattern, or a directory of files. [`expand`] turns any of these into a
//! sorted list of paths; [`FileFormat`] tells the format from an extension; [`Partitions`] reads
//! `year=2024/` folders as columns; [`open`] gives a [`RangeReader`](tessera_context::RangeReader)
//! that scans read by ranges; [`AtomicFile`] writes a file whole or not at all, [`create`] whatever
//! a path leads to; [`InputStream`] is what can be read only once; [`write_own`] writes what is for
//! this user alone; [`ScratchFile`] keeps what does not fit into memory; [`decompress`] unpacks
//! files that are compressed as a whole.
//!
//! ```
//! use tessera_files::{FileFormat, Partitions, expand};
//! let folder = std::env::temp_dir().join(format!("tessera-files-doc-{}", std::process::id()));
//! std::fs::create_dir_all(folder.join("year=2024")).unwrap();
//! std::fs::write(folder.join("year=2024/a.csv"), "x\n1\n").unwrap();
//! let paths = expand(folder.to_str().unwrap()).unwrap();
//! assert_eq!(FileFormat::of_path(&paths[0]).unwrap(), FileFormat::Csv);
//! let partitions = Partitions::discover(&paths).unwrap();
//! assert_eq!(&*partitions.fields[0].name, "year");
//! std::fs::remove_dir_all(&folder).unwrap();
//! ```

mod atomic;
mod compressed;
mod descriptor;
mod format;
mod listing;
mod own;
mod partitions;
mod reader;
mod scratch;
mod stream;
mod target;

pub use atomic::AtomicFile;
pub use compressed::{Compression, decompress};
pub use format::FileFormat;
pub use listing::{expand, is_pattern, list};
pub use own::{read_own, write_own};
pub use partitions::{HIVE_NULL, Partitions};
pub use reader::{FileReader, FileVersion, open, open_version};
pub use scratch::ScratchFile;
pub use stream::{InputStream, create, is_standard_output_closed};
pub use target::is_standard_output;

use std::io;

use tessera_types::{Error, io_cause};

/// An input or output error as Tessera's: what was being done to which path, and why it failed.
fn io_error(doing: &str, path: &str, error: io::Error) -> Error {
    Error::io(format!("cannot {doing} '{path}': {}", io_cause(&error))).caused_by(error)
}
