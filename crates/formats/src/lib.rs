//! Sub-operators that read and write physical formats, one pair per format (rule R2).
//!
//! The modules `parquet::unpack`, `parquet::flat::values` and `text::cells` have `unsafe` code.

mod arrow_table;
mod arrow_to_collection;
mod batch;
mod batch_materialize;
mod batch_scan;
pub mod block;
mod collection_scan;
pub mod conformance;
pub mod content;
pub mod csv;
pub mod display;
pub mod file;
pub mod ipc;
pub mod json;
mod output;
pub mod parquet;
pub(crate) mod prune;
mod records;
mod rows_materialize;
mod rows_scan;
pub mod table;
pub mod text;

pub use arrow_table::ArrowTable;
pub use arrow_to_collection::ArrowToCollection;
pub use batch::Batch;
pub use batch_materialize::BatchMaterialize;
pub use batch_scan::BatchScan;
pub use records::{RecordDecoder, RecordFormat};
pub use rows_materialize::RowsMaterialize;
pub use rows_scan::RowsScan;
pub use text::count_lines;

use tessera_operator::Registry;

/// Registers the sub-operators of this crate, and its file formats: a new one is one line here.
pub fn register(registry: &mut Registry) {
    registry.register(BatchMaterialize);
    registry.register(BatchScan);
    registry.register(block::BlockMaterialize);
    registry.register(block::BlockScan::default());
    registry.register(ArrowToCollection);
    registry.register(RowsMaterialize);
    registry.register(RowsScan);
    registry.register_format(parquet::Parquet);
    registry.register_format(csv::Csv);
    registry.register_format(csv::Tsv);
    registry.register_format(json::Json);
    registry.register_format(ipc::Ipc);
    registry.register_format(content::Text);
    registry.register_format(content::Blob);
}
