//! Sub-operators that read and write physical formats, one pair per format (rule R2).

pub mod file;
pub mod parquet;
mod prune;

use crate::Registry;

/// Registers the sub-operators of this folder.
pub fn register(registry: &mut Registry) {
    registry.register(parquet::ParquetScan);
}
