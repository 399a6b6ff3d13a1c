//! `ipc_materialize`: writes tuples to an Arrow IPC file, compressed with LZ4. To a stream it
//! writes the stream format, which a reader can follow.

use std::fmt;
use std::sync::{Arc, Mutex};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::compute::concat_batches;
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter as IpcFileWriter, IpcWriteOptions, StreamWriter};

use tessera_context::{Run, lock};
use tessera_operator::{Lowering, Operator, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_types::Result;

use crate::file::uuids::written_schema;
use crate::output::{self, Encoder, FileWriter, Group, Part, PendingPart, TrackedOutput};
use crate::parquet::stored;

/// A record batch ends when it reaches either limit; one batch per chunk would be too many.
const BATCH_ROWS_MAX: usize = 65_536;
const BATCH_BYTES_MAX: usize = 32 << 20;
/// The divisor of the memory budget for the batch under construction.
const BATCH_SHARE: usize = 16;

/// The sub-operator `ipc_materialize`: the file format, or the stream format for streams,
/// compressed with LZ4.
#[derive(Debug)]
pub struct IpcMaterialize;

impl Descriptor for IpcMaterialize {
    tessera_operator::describe!(
        "ipc_materialize",
        "Writes tuples to an Arrow IPC file.",
        ["path", "partitions"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        output::derive(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for IpcMaterialize {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        output::lower(node, lowering, |tuple| Ok(IpcEncoder { schema: written_schema(tuple)? }))
    }
}

#[derive(Debug)]
struct IpcEncoder {
    schema: Arc<Schema>,
}

impl Encoder for IpcEncoder {
    fn part(&self, batch: RecordBatch) -> Result<Part> {
        if batch.schema_ref() == &self.schema {
            return Ok(Part::Batch(batch));
        }
        let columns = batch.columns().iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| stored(column, field.data_type()));
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
        Ok(Part::Batch(batch))
    }

    fn begin(&self, out: TrackedOutput, run: &Run) -> Result<Box<dyn FileWriter>> {
        let options =
            IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME))?;
        let writer = match out.is_stream() {
            true => {
                IpcWriter::Stream(StreamWriter::try_new_with_options(out, &self.schema, options)?)
            }
            false => {
                IpcWriter::File(IpcFileWriter::try_new_with_options(out, &self.schema, options)?)
            }
        };
        let bytes_max = (run.context.memory_bytes() / BATCH_SHARE).min(BATCH_BYTES_MAX);
        let open = Mutex::new((Group::default(), writer));
        Ok(Box::new(IpcFile { schema: self.schema.clone(), bytes_max, open }))
    }
}

/// A writer of either format.
enum IpcWriter {
    File(IpcFileWriter<TrackedOutput>),
    Stream(StreamWriter<TrackedOutput>),
}

impl IpcWriter {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match self {
            IpcWriter::File(writer) => writer.write(batch),
            IpcWriter::Stream(writer) => writer.write(batch),
        }
    }

    fn finish(&mut self) -> Result<(), ArrowError> {
        match self {
            IpcWriter::File(writer) => writer.finish(),
            IpcWriter::Stream(writer) => writer.finish(),
        }
    }
}

struct IpcFile {
    schema: Arc<Schema>,
    bytes_max: usize,
    /// The next record batch, and its writer.
    open: Mutex<(Group, IpcWriter)>,
}

impl fmt::Debug for IpcFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IpcFile").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl FileWriter for IpcFile {
    fn take(&self, parts: Vec<PendingPart>) -> Result<Vec<Group>> {
        let mut open = lock(&self.open);
        let (group, writer) = &mut *open;
        for part in parts {
            group.push(part)?;
            if group.rows >= BATCH_ROWS_MAX || group.bytes >= self.bytes_max {
                self.write_batch(writer, group)?;
            }
        }
        Ok(Vec::new())
    }

    fn close(&self) -> Result<()> {
        let mut open = lock(&self.open);
        let (group, writer) = &mut *open;
        self.write_batch(writer, group)?;
        Ok(writer.finish()?)
    }
}

impl IpcFile {
    fn write_batch(&self, writer: &mut IpcWriter, group: &mut Group) -> Result<()> {
        let Some(group) = group.take() else { return Ok(()) };
        let batches = group.batches.iter().map(|(batch, _)| batch);
        Ok(writer.write(&concat_batches(&self.schema, batches)?)?)
    }
}
