//! The Star Schema Benchmark: TPC-H's data remodeled as one fact table and four dimensions.
//!
//! Source: P. O'Neil, E. O'Neil, X. Chen, "The Star Schema Benchmark" (revision 3, 2009). Tables,
//! columns, cardinalities and value domains follow it; where it is silent (random ranges, sparse
//! order keys, customers without orders), the code follows the published data generator. It
//! corrects three defects of that generator: weekday names are a day off, two month names are
//! misspelled, and `d_lastdayinmonthfl` is inverted.
//!
//! | table | rows at scale factor `s` |
//! |---|---|
//! | lineorder | 1,500,000 s orders of 1 to 7 lines: about 6,000,000 s |
//! | customer | 30,000 s |
//! | supplier | 2,000 s |
//! | part | 200,000 ⌊1 + log₂ s⌋, below one 200,000 s |
//! | date | 2,556: 1992-01-01 to 1998-12-30 |
//!
//! Amounts are integers in cents. Each row has its own random stream, seeded by (seed, table, row),
//! so rows do not depend on chunks or threads.

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

/// The default seed. With it, all 13 queries return rows at scale factors 0.1 and 1.
pub const DEFAULT_SEED: u64 = 42;

/// The row counts that keys of other tables depend on.
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

/// Returns the five tables, the fact table first, so that the last chunks are small.
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

/// Builds a table with chunks of consecutive `units` (rows, or orders of several rows), numbered
/// from 1.
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

/// Builds a schema of columns without NULLs.
fn schema<const N: usize>(columns: [(&str, DataType); N]) -> SchemaRef {
    let fields = columns.map(|(name, kind)| Field::new(name, kind, false));
    Arc::new(Schema::new(fields.to_vec()))
}

/// A nation with its region and the country code of its telephone numbers.
struct Nation {
    name: &'static str,
    region: &'static str,
    code: usize,
}

/// The 25 nations of TPC-H, which SSB shares.
static NATIONS: LazyLock<Vec<Nation>> = LazyLock::new(|| {
    let words = Distributions::static_default();
    let (nations, regions) = (words.nations(), words.regions().get_values());
    nations
        .get_values()
        .iter()
        .enumerate()
        .map(|(at, &name)| Nation {
            name,
            // The cumulated weights of the nations are the indices of their regions.
            region: regions[nations.get_weight(at) as usize],
            code: 10 + at,
        })
        .collect()
});

/// The address of a customer or supplier. Its nation is drawn first.
struct Address {
    street: String,
    city: String,
    nation: &'static Nation,
    phone: String,
}

impl Address {
    fn draw(random: &mut random::Random) -> Self {
        let nation = random.pick(NATIONS.as_slice());
        Address {
            street: random.text(10, 25),
            // Ten cities per nation: nine characters of its name, padded, and a digit.
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
