//! `customer`: name, address and market segment.

use std::sync::Arc;

use arrow::array::{Int32Array, StringArray};
use arrow::datatypes::DataType::{Int32, Utf8};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use tpchgen::distribution::Distributions;

use super::random::{Random, Stream};
use super::{Address, Cardinality, schema};
use crate::table::Table;

struct Customer {
    address: Address,
    segment: &'static str,
}

pub(super) fn table(rows: Cardinality, seed: u64) -> Table {
    let schema = schema([
        ("c_custkey", Int32),
        ("c_name", Utf8),
        ("c_address", Utf8),
        ("c_city", Utf8),
        ("c_nation", Utf8),
        ("c_region", Utf8),
        ("c_phone", Utf8),
        ("c_mktsegment", Utf8),
    ]);
    let columns = SchemaRef::clone(&schema);
    super::table("customer", schema, rows.customers, 1, move |keys| {
        let segments = Distributions::static_default().market_segments().get_values();
        let customers: Vec<Customer> = keys
            .clone()
            .map(|key| {
                let mut random = Random::row(seed, Stream::Customer, key);
                Customer { address: Address::draw(&mut random), segment: random.word(segments) }
            })
            .collect();
        let text = |value: fn(&Customer) -> &str| {
            Arc::new(StringArray::from_iter_values(customers.iter().map(value)))
        };
        let names = keys.clone().map(|key| format!("Customer#{key:09}"));
        RecordBatch::try_new(
            SchemaRef::clone(&columns),
            vec![
                Arc::new(Int32Array::from_iter_values(keys.clone().map(|key| key as i32))),
                Arc::new(StringArray::from_iter_values(names)),
                text(|customer| &customer.address.street),
                text(|customer| &customer.address.city),
                text(|customer| customer.address.nation.name),
                text(|customer| customer.address.nation.region),
                text(|customer| &customer.address.phone),
                text(|customer| customer.segment),
            ],
        )
    })
}
