//! `parquet_materialize`: writes tuples to a Parquet file with page index and statistics, by
//! default compressed with Snappy.

use std::fmt;
use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use tessera_context::{Reservation, Run, lock};
use tessera_operator::{Lowering, Operator, ReorderBuffer, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role, Value};
use tessera_types::{Error, Result, suggest};

use super::intervals::WriterSchema;
use crate::output::{self, Encoder, FileWriter, Group, Part, PendingPart, TrackedOutput};

/// A row group ends when it reaches either limit. This size is usual; each worker holds a row group
/// in memory.
const GROUP_ROWS_MAX: usize = 1 << 20;
const GROUP_BYTES_MAX: usize = 32 << 20;
/// The divisor of the memory budget for the row groups of all workers.
const GROUP_SHARE: usize = 8;

/// The option of the most rows of a row group.
pub(super) const ROW_GROUP_SIZE: &str = "row_group_size";
/// The option of how hard a codec tries.
pub(super) const COMPRESSION_LEVEL: &str = "compression_level";

/// The sub-operator `parquet_materialize`.
#[derive(Debug)]
pub struct ParquetMaterialize;

impl Descriptor for ParquetMaterialize {
    tessera_operator::describe!(
        "parquet_materialize",
        "Writes tuples to a Parquet file.",
        ["path", "partitions", "compression", "compression_level", "row_group_size"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        compression(node)?;
        group_rows_max(node)?;
        output::derive(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for ParquetMaterialize {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        output::lower(node, lowering, |tuple| {
            Ok(ParquetEncoder {
                written: WriterSchema::of_tuple(tuple)?,
                compression: compression(node)?,
                group_rows_max: group_rows_max(node)?,
            })
        })
    }
}

/// The rows of a row group, if it does not reach the most bytes before.
fn group_rows_max(node: &Node) -> Result<usize> {
    let rows = whole_number(node, ROW_GROUP_SIZE)?;
    match rows.map(usize::try_from) {
        None => Ok(GROUP_ROWS_MAX),
        Some(Ok(rows)) if rows > 0 => Ok(rows),
        Some(_) => Err(Error::semantic(format!("option {ROW_GROUP_SIZE} must be at least 1"))),
    }
}

/// Reads a whole number, or its text.
fn whole_number(node: &Node, name: &str) -> Result<Option<i64>> {
    let found = match node.params.get(name) {
        None => return Ok(None),
        Some(Value::Integer(number)) => Some(*number),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(_) => None,
    };
    let wrong = || Error::semantic(format!("option {name} must be a whole number"));
    found.map(Some).ok_or_else(wrong)
}

fn compression(node: &Node) -> Result<Compression> {
    let level = whole_number(node, COMPRESSION_LEVEL)?;
    let name = match node.params.get("compression") {
        None => "snappy".to_string(),
        Some(_) => node.params.string("compression")?.to_ascii_lowercase(),
    };
    if let Some(level) = level {
        let out_of_range = |range: &str| {
            Error::semantic(format!(
                "option {COMPRESSION_LEVEL} of {name} must be {range}, not {level}"
            ))
        };
        return match name.as_str() {
            "zstd" => i32::try_from(level)
                .ok()
                .and_then(|level| ZstdLevel::try_new(level).ok())
                .map(Compression::ZSTD)
                .ok_or_else(|| out_of_range("1 to 22")),
            "gzip" => u32::try_from(level)
                .ok()
                .and_then(|level| GzipLevel::try_new(level).ok())
                .map(Compression::GZIP)
                .ok_or_else(|| out_of_range("0 to 9")),
            _ => Err(Error::semantic(format!(
                "option {COMPRESSION_LEVEL} has no meaning for compression '{name}'; expected zstd or gzip"
            ))),
        };
    }
    match name.as_str() {
        "none" | "uncompressed" => Ok(Compression::UNCOMPRESSED),
        "snappy" => Ok(Compression::SNAPPY),
        "zstd" => Ok(Compression::ZSTD(Default::default())),
        "lz4" | "lz4_raw" => Ok(Compression::LZ4_RAW),
        "gzip" => Ok(Compression::GZIP(Default::default())),
        other => {
            let hint = suggest(other, "expected", &["none", "snappy", "zstd", "lz4", "gzip"]);
            Err(Error::semantic(format!("unknown compression '{other}'{hint}")))
        }
    }
}

#[derive(Debug)]
struct ParquetEncoder {
    written: WriterSchema,
    compression: Compression,
    group_rows_max: usize,
}

impl Encoder for ParquetEncoder {
    fn part(&self, batch: RecordBatch) -> Result<Part> {
        self.written.batch(batch).map(Part::Batch)
    }

    fn begin(&self, out: TrackedOutput, run: &Run) -> Result<Box<dyn FileWriter>> {
        let properties = WriterProperties::builder().set_compression(self.compression).build();
        let options = self.written.options()?.with_properties(properties);
        let schema = self.written.schema();
        let writer =
            ArrowWriter::try_new_with_options(out, schema.clone(), options).map_err(failed)?;
        let (writer, columns) = writer.into_serialized_writer().map_err(failed)?;
        let share = run.context.memory_bytes() / GROUP_SHARE / run.context.workers().max(1);
        Ok(Box::new(ParquetFile {
            schema: schema.clone(),
            columns,
            group_bytes_max: share.min(GROUP_BYTES_MAX),
            group_rows_max: self.group_rows_max,
            run: run.clone(),
            group: Mutex::default(),
            encoded: ReorderBuffer::default(),
            writer: Mutex::new(writer),
        }))
    }
}

fn failed(error: ParquetError) -> Error {
    Error::io(format!("cannot write Parquet: {error}"))
}

/// A file whose row groups are encoded by all workers in parallel and written in order.
struct ParquetFile {
    schema: Arc<Schema>,
    columns: ArrowRowGroupWriterFactory,
    group_bytes_max: usize,
    group_rows_max: usize,
    run: Run,
    /// The next row group.
    group: Mutex<Group>,
    /// Encoded row groups by their number.
    encoded: ReorderBuffer<(Vec<ArrowColumnChunk>, Reservation)>,
    writer: Mutex<SerializedFileWriter<TrackedOutput>>,
}

impl fmt::Debug for ParquetFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetFile").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl FileWriter for ParquetFile {
    fn take(&self, parts: Vec<PendingPart>) -> Result<Vec<Group>> {
        let (mut group, mut full) = (lock(&self.group), Vec::new());
        for part in parts {
            for part in self.split(&group, part)? {
                group.push(part)?;
                if group.bytes >= self.group_bytes_max || group.rows >= self.group_rows_max {
                    full.extend(group.take());
                }
            }
        }
        Ok(full)
    }

    fn write(&self, group: Group) -> Result<()> {
        let number = group.number;
        let (columns, memory) = self.encode(group)?;
        let bytes = memory.bytes();
        self.encoded.put(number, (columns, memory), bytes);
        self.encoded.end(number);
        let append = |encoded: Vec<(Vec<ArrowColumnChunk>, Reservation)>| {
            encoded.into_iter().try_for_each(|(columns, _memory)| self.append(columns))
        };
        while let Some(written) = self.encoded.next(append) {
            written?;
        }
        Ok(())
    }

    fn close(&self) -> Result<()> {
        let last = lock(&self.group).take();
        last.map_or(Ok(()), |group| self.write(group))?;
        lock(&self.writer).finish().map(drop).map_err(failed)
    }
}

impl ParquetFile {
    /// Cuts a batch where a row group has its most rows.
    fn split(&self, group: &Group, part: PendingPart) -> Result<Vec<PendingPart>> {
        let (Part::Batch(batch), memory) = part else { return Ok(vec![part]) };
        let rows = batch.num_rows();
        let mut left = self.group_rows_max.saturating_sub(group.rows);
        if rows <= left {
            return Ok(vec![(Part::Batch(batch), memory)]);
        }
        let share = memory.bytes() / rows.max(1);
        drop(memory);
        let (mut start, mut pieces) = (0, Vec::new());
        while start < rows {
            let count = left.min(rows - start);
            let mut memory = Reservation::new(self.run.context.clone());
            memory.grow(count * share)?;
            pieces.push((Part::Batch(batch.slice(start, count)), memory));
            start += count;
            left = self.group_rows_max;
        }
        Ok(pieces)
    }

    fn encode(&self, group: Group) -> Result<(Vec<ArrowColumnChunk>, Reservation)> {
        let mut writers =
            self.columns.create_column_writers(group.number as usize).map_err(failed)?;
        let mut memory = Reservation::new(self.run.context.clone());
        for (batch, _memory) in group.batches {
            self.run.context.check()?;
            let mut leaves = writers.iter_mut();
            for (field, array) in self.schema.fields().iter().zip(batch.columns()) {
                for (leaf, writer) in
                    compute_leaves(field, array).map_err(failed)?.iter().zip(&mut leaves)
                {
                    writer.write(leaf).map_err(failed)?;
                }
            }
            memory.resize(writers.iter().map(ArrowColumnWriter::memory_size).sum())?;
        }
        let columns: Vec<_> = writers
            .into_iter()
            .map(ArrowColumnWriter::close)
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        let bytes: u64 = columns.iter().map(|column| column.close().bytes_written).sum();
        memory.resize(bytes as usize)?;
        Ok((columns, memory))
    }

    fn append(&self, columns: Vec<ArrowColumnChunk>) -> Result<()> {
        let mut writer = lock(&self.writer);
        let mut row_group = writer.next_row_group().map_err(failed)?;
        for column in columns {
            self.run.context.check()?;
            column.append_to_row_group(&mut row_group).map_err(failed)?;
        }
        row_group.close().map(drop).map_err(failed)
    }
}
