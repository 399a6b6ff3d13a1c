//! Ranking functions: they depend on the borders of partitions and peers only.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int32Array, Int64Array};
use arrow::datatypes::Int64Type;
use tessera_types::{Error, Result, SqlState};

use super::batch::{Batch, spans};

/// Returns the result of a ranking function; `None` for other functions.
pub(super) fn rank(function: &str, batch: &Batch, args: &[ArrayRef]) -> Result<Option<ArrayRef>> {
    Ok(Some(match function {
        "row_number" => {
            let mut numbers = Vec::with_capacity(batch.rows());
            batch.partition_spans().for_each(|span| {
                numbers.extend(1..=i64::from(span.end - span.start));
            });
            Arc::new(Int64Array::from(numbers))
        }
        "rank" => by_peers(batch, |partition, _, peers| i64::from(peers.0 - partition.0) + 1),
        "dense_rank" => by_peers(batch, |_, number, _| number as i64 + 1),
        "percent_rank" => fractions(batch, |partition, peers| {
            let others = f64::from(partition.1 - partition.0 - 1);
            if others == 0.0 { 0.0 } else { f64::from(peers.0 - partition.0) / others }
        }),
        "cume_dist" => fractions(batch, |partition, peers| {
            f64::from(peers.1 - partition.0) / f64::from(partition.1 - partition.0)
        }),
        "ntile" => ntile(batch, args)?,
        _ => return Ok(None),
    }))
}

/// Computes a number for each group of peers from the borders of its partition, its number in the
/// partition, and its own borders.
fn by_peers(batch: &Batch, value: impl Fn((u32, u32), usize, (u32, u32)) -> i64) -> ArrayRef {
    let mut values: Vec<i64> = Vec::with_capacity(batch.rows());
    for (partition, borders) in batch.partitions_with_peers() {
        for (number, peers) in spans(borders).enumerate() {
            let value = value((partition.start, partition.end), number, (peers.start, peers.end));
            values.resize(peers.end as usize, value);
        }
    }
    Arc::new(Int64Array::from(values))
}

fn fractions(batch: &Batch, value: impl Fn((u32, u32), (u32, u32)) -> f64) -> ArrayRef {
    let mut values: Vec<f64> = Vec::with_capacity(batch.rows());
    for (partition, borders) in batch.partitions_with_peers() {
        for peers in spans(borders) {
            let value = value((partition.start, partition.end), (peers.start, peers.end));
            values.resize(peers.end as usize, value);
        }
    }
    Arc::new(Float64Array::from(values))
}

/// `ntile`: the first rows of a partition decide the number of buckets, as in PostgreSQL. The first
/// buckets have one row more if the rows cannot be divided evenly.
fn ntile(batch: &Batch, args: &[ArrayRef]) -> Result<ArrayRef> {
    let counts = args.first().ok_or_else(|| Error::internal("ntile without an argument"))?;
    let counts = arrow::compute::cast(counts, &arrow::datatypes::DataType::Int64)?;
    let counts = counts.as_primitive::<Int64Type>();
    let mut values: Vec<Option<i32>> = Vec::with_capacity(batch.rows());
    for partition in batch.partition_spans() {
        let rows = i64::from(partition.end - partition.start);
        if counts.is_null(partition.start as usize) {
            values.resize(partition.end as usize, None);
            continue;
        }
        let buckets = counts.value(partition.start as usize);
        if buckets < 1 {
            let message = format!("argument of ntile must be greater than zero, it is {buckets}");
            return Err(Error::data(message).with_state(SqlState::INVALID_ARGUMENT_FOR_NTILE));
        }
        let (size, larger) = (rows / buckets, rows % buckets);
        values.extend((0..rows).map(|row| {
            let in_larger = larger * (size + 1);
            let bucket = if row < in_larger {
                row / (size + 1)
            } else {
                larger + (row - in_larger) / size.max(1)
            };
            Some(bucket as i32 + 1)
        }));
    }
    Ok(Arc::new(Int32Array::from(values)))
}
