//! The Star Schema Benchmark: TPC-H's data remodelled as one fact table and four dimensions.
//!
//! Source: P. O'Neil, E. O'Neil, X. Chen, "The Star Schema Benchmark" (revision 3, 2009). Tables,
//! columns, cardinalities and value domains follow it; where it is silent (random ranges, sparse
//! order keys, customers without orders) the published data generator's behaviour is kept. Three of
//! that generator's slips are not: its weekday names are a day off, two month names are misspelt,
//! and `d_lastdayinmonthfl` is inverted.
//!
//! | table | rows at scale factor `s` |
//! |---|---|
//! | lineorder | 1,500,000 s orders of 1 to 7 lines: about 6,000,000 s |
//! | customer | 30,000 s |
//! | supplier | 2,000 s |
//! | part | 200,000 ⌊1 + log₂ s⌋, below one 200,000 s |
//! | date | 2,556: 1992-01-01 to 1998-12-30 |
//!
//! Money is in cents, as integers. Every row draws from a random stream of its own, seeded by
//! (seed, table, row), so a row is the same whatever chunk or thread makes it.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use tpchgen::distribution::Distributions;

use crate::table::{BATCH_ROWS, Batches, Table, chunks_for};

mod customer;
mod date;
mod lineorder;
mod part;
mod random;
mod supplier;

/// The seed used unless another is given. One with which all 13 queries have rows at scale factors
/// 0.1 and 1.
pub const DEFAULT_SEED: u64 = 42;

/// Rows of the tables that others refer to.
#[derive(Clone, Copy)]
struct Cardinality {
    orders: u64,
    customers: u64,
    suppliers: u64,
    parts: u64,
}

impl Cardinality {
    fn at(scale: f64) -> Self {
        let scaled = |rows: f64| ((rows * scale).round() as u64).max(1);
        let parts = match scale < 1.0 {
            true => scaled(200_000.0),
            false => 200_000 * (1 + scale.log2().floor() as u64),
        };
        Cardinality {
            orders: scaled(1_500_000.0),
            customers: scaled(30_000.0),
            suppliers: scaled(2_000.0),
            parts,
        }
    }
}

/// The five tables, the fact table first so that the last chunks to be made are small.
pub(crate) fn tables(scale: f64, seed: u64) -> Vec<Table> {
    let rows = Cardinality::at(scale);
    vec![
        lineorder::table(rows, seed),
        customer::table(rows, seed),
        supplier::table(rows, seed),
        part::table(rows, seed),
        date::table(),
    ]
}

/// A table whose chunks are runs of `units` (rows, or orders of several rows), numbered from 1.
fn table(
    name: &'static str,
    schema: SchemaRef,
    units: u64,
    rows_per_unit: u64,
    build: impl Fn(Range<u64>) -> Result<RecordBatch, ArrowError> + Send + Sync + 'static,
) -> Table {
    let build = Arc::new(build);
    let rows_expected = units * rows_per_unit;
    let chunks = chunks_for(rows_expected);
    let batch = BATCH_ROWS as u64 / rows_per_unit;
    Table {
        name,
        schema,
        chunks,
        rows_expected,
        batches: Box::new(move |chunk| -> Batches {
            let bound = |chunk: u32| 1 + units * u64::from(chunk) / u64::from(chunks);
            let (from, to) = (bound(chunk), bound(chunk + 1));
            let build = Arc::clone(&build);
            let starts = (from..to).step_by(batch as usize);
            Box::new(starts.map(move |start| build(start..to.min(start + batch))))
        }),
    }
}

/// A schema of columns that are never NULL.
fn schema<const N: usize>(columns: [(&str, DataType); N]) -> SchemaRef {
    let fields = columns.map(|(name, kind)| Field::new(name, kind, false));
    Arc::new(Schema::new(fields.to_vec()))
}

/// A nation, its region and its country code for telephone numbers.
struct Nation {
    name: &'static str,
    region: &'static str,
    code: usize,
}

/// The 25 nations of TPC-H, which SSB keeps.
static NATIONS: LazyLock<Vec<Nation>> = LazyLock::new(|| {
    let words = Distributions::static_default();
    let (nations, regions) = (words.nations(), words.regions().get_values());
    nations
        .get_values()
        .iter()
        .enumerate()
        .map(|(at, &name)| Nation {
            name,
            // The nations' weights, summed up, are the numbers of their regions.
            region: regions[nations.get_weight(at) as usize],
            code: 10 + at,
        })
        .collect()
});

/// Where a customer or supplier lives, drawn nation first.
struct Place {
    address: String,
    city: String,
    nation: &'static Nation,
    phone: String,
}

impl Place {
    fn draw(random: &mut random::Random) -> Self {
        let nation = random.pick(NATIONS.as_slice());
        Place {
            address: random.text(10, 25),
            // Ten cities a nation: nine characters of its name, padded, and a digit.
            city: format!("{:<9.9}{}", nation.name, random.between(0, 9)),
            phone: format!(
                "{}-{}-{}-{}",
                nation.code,
                random.between(100, 999),
                random.between(100, 999),
                random.between(1000, 9999)
            ),
            nation,
        }
    }
}
