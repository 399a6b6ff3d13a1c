//! `supplier`: name and address.

use std::sync::Arc;

use arrow::array::{Int32Array, StringArray};
use arrow::datatypes::DataType::{Int32, Utf8};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;

use super::random::{Random, Stream};
use super::{Address, Cardinality, schema};
use crate::table::Table;

pub(super) fn table(rows: Cardinality, seed: u64) -> Table {
    let schema = schema([
        ("s_suppkey", Int32),
        ("s_name", Utf8),
        ("s_address", Utf8),
        ("s_city", Utf8),
        ("s_nation", Utf8),
        ("s_region", Utf8),
        ("s_phone", Utf8),
    ]);
    let columns = SchemaRef::clone(&schema);
    super::table("supplier", schema, rows.suppliers, 1, move |keys| {
        let addresses: Vec<Address> = keys
            .clone()
            .map(|key| Address::draw(&mut Random::row(seed, Stream::Supplier, key)))
            .collect();
        let text = |value: fn(&Address) -> &str| {
            Arc::new(StringArray::from_iter_values(addresses.iter().map(value)))
        };
        let names = keys.clone().map(|key| format!("Supplier#{key:09}"));
        RecordBatch::try_new(
            SchemaRef::clone(&columns),
            vec![
                Arc::new(Int32Array::from_iter_values(keys.clone().map(|key| key as i32))),
                Arc::new(StringArray::from_iter_values(names)),
                text(|address| &address.street),
                text(|address| &address.city),
                text(|address| address.nation.name),
                text(|address| address.nation.region),
                text(|address| &address.phone),
            ],
        )
    })
}
