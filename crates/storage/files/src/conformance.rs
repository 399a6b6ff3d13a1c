//! The conformance suite of stores, on local files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tessera_context::conformance::{self, Store};
use tessera_context::{Interrupt, Output, RangeReader};
use tessera_types::Result;

struct Folder(PathBuf);

impl Store for Folder {
    fn address(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_string()
    }

    fn open(&self, address: &str) -> Result<Arc<dyn RangeReader>> {
        crate::open(address)
    }

    /// Makes the folder first: a store has none.
    fn create(&self, address: &str) -> Result<Box<dyn Output>> {
        std::fs::create_dir_all(Path::new(address).parent().unwrap()).unwrap();
        crate::create(address, &Interrupt::default().into())
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        crate::list(folder, &|_| true)
    }
}

#[test]
fn local_files_conform() {
    let folder = tempfile::tempdir().unwrap();
    conformance::store(&Folder(folder.path().to_path_buf()));
}
