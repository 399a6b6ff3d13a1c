//! `part`: a hierarchy of manufacturer, category and brand; the other columns use the words of
//! TPC-H.

use std::sync::Arc;

use arrow::array::{Int32Array, StringArray};
use arrow::datatypes::DataType::{Int32, Utf8};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use tpchgen::distribution::Distributions;

use super::random::{Random, Stream};
use super::{Cardinality, schema};
use crate::table::Table;

/// A part. There are five manufacturers with five categories each and forty brands per category;
/// each name is a prefix of the next.
struct Part {
    name: String,
    manufacturer: String,
    category: String,
    brand: String,
    color: &'static str,
    kind: &'static str,
    size: i32,
    container: &'static str,
}

impl Part {
    fn draw(random: &mut Random) -> Self {
        let words = Distributions::static_default();
        let colors = words.part_colors().get_values();
        let color = random.word(colors);
        // Two further colors; all three differ.
        let first = pick_other(random, colors, &[color]);
        let second = pick_other(random, colors, &[color, first]);
        let manufacturer = format!("MFGR#{}", random.between(1, 5));
        let category = format!("{manufacturer}{}", random.between(1, 5));
        Part {
            name: format!("{first} {second}"),
            brand: format!("{category}{}", random.between(1, 40)),
            manufacturer,
            category,
            color,
            kind: random.word(words.part_types().get_values()),
            size: random.int(1, 50),
            container: random.word(words.part_containers().get_values()),
        }
    }
}

fn pick_other(
    random: &mut Random,
    values: &[&'static str],
    taken: &[&'static str],
) -> &'static str {
    loop {
        let value = random.word(values);
        if !taken.contains(&value) {
            return value;
        }
    }
}

pub(super) fn table(rows: Cardinality, seed: u64) -> Table {
    let schema = schema([
        ("p_partkey", Int32),
        ("p_name", Utf8),
        ("p_mfgr", Utf8),
        ("p_category", Utf8),
        ("p_brand1", Utf8),
        ("p_color", Utf8),
        ("p_type", Utf8),
        ("p_size", Int32),
        ("p_container", Utf8),
    ]);
    let columns = SchemaRef::clone(&schema);
    super::table("part", schema, rows.parts, 1, move |keys| {
        let parts: Vec<Part> =
            keys.clone().map(|key| Part::draw(&mut Random::row(seed, Stream::Part, key))).collect();
        let text = |value: fn(&Part) -> &str| {
            Arc::new(StringArray::from_iter_values(parts.iter().map(value)))
        };
        RecordBatch::try_new(
            SchemaRef::clone(&columns),
            vec![
                Arc::new(Int32Array::from_iter_values(keys.clone().map(|key| key as i32))),
                text(|part| &part.name),
                text(|part| &part.manufacturer),
                text(|part| &part.category),
                text(|part| &part.brand),
                text(|part| part.color),
                text(|part| part.kind),
                Arc::new(Int32Array::from_iter_values(parts.iter().map(|part| part.size))),
                text(|part| part.container),
            ],
        )
    })
}
