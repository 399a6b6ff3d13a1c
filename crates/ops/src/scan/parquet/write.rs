//! `parquet_materialize`: tuples as a Parquet file, with page index and statistics, compressed with Snappy.

use std::sync::Arc;

use arrow::datatypes::Schema;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_types::{Error, Result};

use crate::operator::{Lowering, Operator, SubOperator};
use crate::scan::output::{self, Encoder, FileSink, Piece, Watched};

/// The sub-operator.
#[derive(Debug)]
pub struct ParquetMaterialize;

impl Descriptor for ParquetMaterialize {
    crate::describe!(
        "parquet_materialize",
        "Writes tuples to a Parquet file.",
        ["path", "compression"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        compression(node)?;
        output::derive(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for ParquetMaterialize {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let (path, tuple) = (node.params.string("path")?.clone(), lowering.inputs[0].tuple.clone());
        let encoder =
            ParquetEncoder { schema: Arc::new(tuple.arrow_schema()?), compression: compression(node)? };
        Ok(Operator::Sink(Arc::new(FileSink { path, tuple, encoder: Arc::new(encoder) })))
    }
}

fn compression(node: &Node) -> Result<Compression> {
    if node.params.get("compression").is_none() {
        return Ok(Compression::SNAPPY);
    }
    match node.params.string("compression")?.to_ascii_lowercase().as_str() {
        "none" | "uncompressed" => Ok(Compression::UNCOMPRESSED),
        "snappy" => Ok(Compression::SNAPPY),
        "zstd" => Ok(Compression::ZSTD(Default::default())),
        "lz4" | "lz4_raw" => Ok(Compression::LZ4_RAW),
        "gzip" => Ok(Compression::GZIP(Default::default())),
        other => Err(Error::semantic(format!(
            "option compression cannot be '{other}'; there are none, snappy, zstd, lz4 and gzip"
        ))),
    }
}

#[derive(Debug)]
struct ParquetEncoder {
    schema: Arc<Schema>,
    compression: Compression,
}

impl Encoder for ParquetEncoder {
    fn is_text(&self) -> bool {
        false
    }

    fn write(&self, out: &mut Watched<'_>, pieces: Vec<Piece>) -> Result<()> {
        let failed =
            |error: parquet::errors::ParquetError| Error::io(format!("cannot write Parquet: {error}"));
        let properties = WriterProperties::builder().set_compression(self.compression).build();
        let mut writer = ArrowWriter::try_new(out, self.schema.clone(), Some(properties)).map_err(failed)?;
        for batch in pieces.into_iter().flat_map(|piece| piece.batches) {
            writer.write(&batch).map_err(failed)?;
        }
        writer.close().map_err(failed)?;
        Ok(())
    }
}
