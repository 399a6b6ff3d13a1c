//! The format Arrow IPC, as the rooms above see it.

use std::sync::Arc;

use tessera_context::RangeReader;
use tessera_operator::Registry;
use tessera_operator::format::{FirstRead, Format, FormatEntry, TableDescription, TableFiles};
use tessera_types::Result;

use super::{IpcMaterialize, IpcScan, discover};
use crate::file::merge_tuples;
use crate::table::sampled;

/// Arrow IPC, file or stream.
#[derive(Debug, Clone, Copy)]
pub struct Ipc;

static ENTRY: FormatEntry = FormatEntry {
    name: "arrow",
    label: "Arrow",
    summary: "Arrow IPC, in the file format or the stream format.",
    extensions: &["arrow", "ipc", "feather"],
    aliases: &["arrows"],
    functions: &["read_arrow"],
    scan: "ipc_scan",
    materialize: Some("ipc_materialize"),
    // The second is the start of a message of a stream.
    magic: &[b"ARROW1", &[0xff; 4]],
    first_read: FirstRead { head: true, tail: true },
    declares_types: false,
    counts_rows: false,
    read_options: &[],
    write_options: &[],
};

impl Format for Ipc {
    fn entry(&self) -> &'static FormatEntry {
        &ENTRY
    }

    fn register(&self, registry: &mut Registry) {
        registry.register(IpcScan);
        registry.register(IpcMaterialize);
    }

    fn describe(&self, files: &TableFiles<'_>) -> Result<TableDescription> {
        let (readers, statistics) = sampled(files, false)?;
        let describe =
            |reader: Arc<dyn RangeReader>| Ok((reader.path().to_string(), discover(reader)?));
        let tuples = readers.into_iter().map(describe).collect::<Result<Vec<_>>>()?;
        let (columns, params) = (merge_tuples(&tuples, false)?, files.params.clone());
        Ok(TableDescription { columns, statistics, params })
    }
}
