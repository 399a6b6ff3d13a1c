//! `lineorder`: the lines of all orders, each with the columns of its order.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Int32Array, Int64Array, StringArray};
use arrow::datatypes::DataType::{Int32, Int64, Utf8};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use tpchgen::distribution::Distributions;

use super::random::{Random, Stream};
use super::{Cardinality, date, schema};
use crate::table::Table;

/// The mean number of lines per order, which is uniform in 1 to 7.
const LINES_MEAN: u64 = 4;
/// The last order date in days after 1992-01-01: 1998-08-02, as in TPC-H, so that every commit date
/// has a row in `date`.
const ORDER_DAY_MAX: u64 = 2405;

pub(super) fn table(rows: Cardinality, seed: u64) -> Table {
    let schema = schema([
        ("lo_orderkey", Int64),
        ("lo_linenumber", Int32),
        ("lo_custkey", Int32),
        ("lo_partkey", Int32),
        ("lo_suppkey", Int32),
        ("lo_orderdate", Int32),
        ("lo_orderpriority", Utf8),
        ("lo_shippriority", Utf8),
        ("lo_quantity", Int32),
        ("lo_extendedprice", Int32),
        ("lo_ordtotalprice", Int32),
        ("lo_discount", Int32),
        ("lo_revenue", Int32),
        ("lo_supplycost", Int32),
        ("lo_tax", Int32),
        ("lo_commitdate", Int32),
        ("lo_shipmode", Utf8),
    ]);
    let columns = SchemaRef::clone(&schema);
    super::table("lineorder", schema, rows.orders, LINES_MEAN, move |orders| {
        batch(&columns, rows, seed, orders)
    })
}

/// An order: the columns that its lines share.
struct Order {
    key: i64,
    customer: i32,
    day: u64,
    priority: &'static str,
    total: i32,
}

/// A line without the columns of its order.
struct Line {
    number: i32,
    part: i32,
    supplier: i32,
    quantity: i32,
    discount: i32,
    tax: i32,
    price: i32,
    commit_day: u64,
    ship_mode: &'static str,
}

impl Line {
    fn draw(random: &mut Random, rows: Cardinality, order_day: u64, number: i32) -> Self {
        let part = random.int(1, rows.parts);
        Line {
            number,
            part,
            supplier: random.int(1, rows.suppliers),
            quantity: random.int(1, 50),
            discount: random.int(0, 10),
            tax: random.int(0, 8),
            price: retail_price(part),
            commit_day: order_day + random.between(30, 90),
            ship_mode: random.word(Distributions::static_default().ship_modes().get_values()),
        }
    }

    fn extended_price(&self) -> i32 {
        self.price * self.quantity
    }

    fn revenue(&self) -> i32 {
        self.extended_price() / 100 * (100 - self.discount)
            + self.extended_price() % 100 * (100 - self.discount) / 100
    }

    /// Returns the price with discount and tax. It needs 64 bits, because the product before the
    /// division exceeds 32.
    fn charge(&self) -> i64 {
        i64::from(self.revenue()) * i64::from(100 + self.tax) / 100
    }

    /// Returns 60 % of the retail price.
    fn supply_cost(&self) -> i32 {
        6 * self.price / 10
    }
}

/// Returns the retail price of a part in cents: 900 to 2,099 dollars, as in TPC-H.
fn retail_price(part: i32) -> i32 {
    90_000 + (part / 10) % 20_001 + (part % 1_000) * 100
}

/// Draws a customer. Every third key moves to a neighbor, so a third of the customers has no
/// orders.
fn customer(random: &mut Random, customers: u64) -> i32 {
    let key = random.int(1, customers);
    match key % 3 {
        0 if (key as u64) < customers => key + 1,
        0 => key - 1,
        _ => key,
    }
}

/// Returns the key of an order; eight of every 32 keys are used.
fn sparse_key(order: u64) -> i64 {
    ((order >> 3 << 5) | (order & 7)) as i64
}

/// Draws an order and its lines.
fn draw(seed: u64, rows: Cardinality, number: u64) -> (Order, Vec<Line>) {
    let mut random = Random::row(seed, Stream::Lineorder, number);
    let mut order = Order {
        key: sparse_key(number),
        customer: customer(&mut random, rows.customers),
        day: random.between(0, ORDER_DAY_MAX),
        priority: random.word(Distributions::static_default().order_priority().get_values()),
        total: 0,
    };
    let count = random.int(1, 7);
    let lines: Vec<Line> =
        (1..=count).map(|number| Line::draw(&mut random, rows, order.day, number)).collect();
    // At most seven lines of 11 million cents each.
    order.total = lines.iter().map(Line::charge).sum::<i64>() as i32;
    (order, lines)
}

fn batch(
    schema: &SchemaRef,
    rows: Cardinality,
    seed: u64,
    orders: Range<u64>,
) -> Result<RecordBatch, ArrowError> {
    let orders: Vec<(Order, Vec<Line>)> = orders.map(|number| draw(seed, rows, number)).collect();
    let lines: Vec<(&Order, &Line)> = orders
        .iter()
        .flat_map(|(order, lines)| lines.iter().map(move |line| (order, line)))
        .collect();
    let int = |value: fn(&Order, &Line) -> i32| {
        Arc::new(Int32Array::from_iter_values(lines.iter().map(|(order, line)| value(order, line))))
    };
    let text = |value: fn(&Order, &Line) -> &'static str| {
        Arc::new(StringArray::from_iter_values(
            lines.iter().map(|(order, line)| value(order, line)),
        ))
    };
    let keys = lines.iter().map(|(order, _)| order.key);
    RecordBatch::try_new(
        SchemaRef::clone(schema),
        vec![
            Arc::new(Int64Array::from_iter_values(keys)),
            int(|_, line| line.number),
            int(|order, _| order.customer),
            int(|_, line| line.part),
            int(|_, line| line.supplier),
            int(|order, _| date::key(order.day)),
            text(|order, _| order.priority),
            text(|_, _| "0"),
            int(|_, line| line.quantity),
            int(|_, line| line.extended_price()),
            int(|order, _| order.total),
            int(|_, line| line.discount),
            int(|_, line| line.revenue()),
            int(|_, line| line.supply_cost()),
            int(|_, line| line.tax),
            int(|_, line| date::key(line.commit_day)),
            text(|_, line| line.ship_mode),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_follow_the_formula() {
        assert_eq!(retail_price(1), 90_100);
        assert_eq!(retail_price(1_999_999), 90_000 + 19_990 + 99_900);
    }

    #[test]
    fn revenue_is_the_discounted_price_rounded_down() {
        let mut random = Random::row(1, Stream::Lineorder, 1);
        let rows = Cardinality::at(1.0);
        for number in 0..1_000 {
            let line = Line::draw(&mut random, rows, 0, number);
            let exact = i64::from(line.extended_price()) * i64::from(100 - line.discount) / 100;
            assert_eq!(i64::from(line.revenue()), exact);
        }
    }

    #[test]
    fn order_keys_are_sparse() {
        assert_eq!([1, 7, 8, 15, 16].map(sparse_key), [1, 7, 32, 39, 64]);
    }
}
