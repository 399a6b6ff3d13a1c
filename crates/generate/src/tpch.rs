//! TPC-H: rows of the `tpchgen` crates, split into chunks.

use arrow::datatypes::SchemaRef;
use tpchgen::generators as rows;
use tpchgen_arrow as batches;

use crate::table::{BATCH_ROWS, Batches, Table, chunks_for};

/// Defines a table by the Arrow reader over a row generator of `tpchgen`, with one part per chunk.
macro_rules! table {
    ($name:literal, $scale:expr, $rows:expr, $generator:ident, $arrow:ident) => {{
        let scale: f64 = $scale;
        let rows_expected: u64 = $rows;
        let chunks = chunks_for(rows_expected);
        Table {
            name: $name,
            schema: SchemaRef::clone(&batches::$arrow::schema_ref()),
            chunks,
            rows_expected,
            batches: Box::new(move |chunk| -> Batches {
                // Parts count from one. Both numbers fit, because the scale factor is bounded.
                let (part, parts) = (chunk as i32 + 1, chunks as i32);
                let generator = rows::$generator::new(scale, part, parts);
                Box::new(batches::$arrow::new(generator).with_batch_size(BATCH_ROWS))
            }),
        }
    }};
}

/// Returns the eight tables at scale factor `scale`, largest first, so that the last chunks are
/// small.
pub(crate) fn tables(scale: f64) -> Vec<Table> {
    let scaled = |rows: u64| (rows as f64 * scale) as u64;
    vec![
        // An order has one to seven lines, four on average.
        table!("lineitem", scale, scaled(6_000_000), LineItemGenerator, LineItemArrow),
        table!("orders", scale, scaled(1_500_000), OrderGenerator, OrderArrow),
        table!("partsupp", scale, scaled(800_000), PartSuppGenerator, PartSuppArrow),
        table!("part", scale, scaled(200_000), PartGenerator, PartArrow),
        table!("customer", scale, scaled(150_000), CustomerGenerator, CustomerArrow),
        table!("supplier", scale, scaled(10_000), SupplierGenerator, SupplierArrow),
        table!("nation", scale, 25, NationGenerator, NationArrow),
        table!("region", scale, 5, RegionGenerator, RegionArrow),
    ]
}
