//! Sub-operators that read and write physical formats, one pair per format (rule R2).

pub mod csv;
mod display;
pub mod file;
pub mod ipc;
pub mod json;
mod output;
pub mod parquet;
mod prune;
mod text;

use crate::Registry;

/// Registers the sub-operators of this folder.
pub fn register(registry: &mut Registry) {
    registry.register(parquet::ParquetScan);
    registry.register(parquet::ParquetMaterialize);
    registry.register(csv::CsvScan);
    registry.register(csv::CsvMaterialize);
    registry.register(json::JsonScan);
    registry.register(json::JsonMaterialize);
    registry.register(ipc::IpcScan);
    registry.register(ipc::IpcMaterialize);
}
