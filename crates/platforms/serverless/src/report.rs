//! The usage of a query and its cost.

use std::sync::atomic::Ordering;

use serde_json::{Map, Value as Json};
use tessera_context::Counters;
use tessera_types::{Error, Result};

use crate::cloud::{Space, StoreUsage};

/// The names of the figures, in order, which are also those of the profile's counters.
const NAMES: [&str; 12] = [
    "get_requests",
    "head_requests",
    "list_requests",
    "put_requests",
    "delete_requests",
    "received_bytes",
    "stored_bytes",
    "invocations",
    "repeated_invocations",
    "worker_mebibyte_milliseconds",
    "scanned_bytes",
    "selected_bytes",
];
const RECEIVED: usize = 5;
const STORED: usize = 6;
const INVOCATIONS: usize = 7;
const REPEATED: usize = 8;
const WORKED: usize = 9;
const SCANNED: usize = 10;
const SELECTED: usize = 11;

/// Bytes per gigabyte, as stores bill them.
const GIGABYTE: f64 = 1e9;

/// The usage of a query: requests, bytes, invocations, memory by time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    figures: [u64; NAMES.len()],
}

impl Usage {
    pub(crate) fn add(&mut self, other: &Usage) {
        // A worker's answer is not trusted, so additions saturate.
        self.figures
            .iter_mut()
            .zip(other.figures)
            .for_each(|(sum, figure)| *sum = sum.saturating_add(figure));
    }

    pub(crate) fn add_requests(&mut self, requests: [u64; 5]) {
        self.figures.iter_mut().zip(requests).for_each(|(sum, figure)| *sum += figure);
    }

    /// Adds what a process has used of stores between two readings.
    pub(crate) fn add_store_usage(&mut self, before: StoreUsage, after: StoreUsage) {
        self.add_requests(std::array::from_fn(|kind| after.requests[kind] - before.requests[kind]));
        self.figures[RECEIVED] += after.received_bytes - before.received_bytes;
        self.figures[STORED] += after.sent_bytes - before.sent_bytes;
        self.figures[SCANNED] += after.scanned_bytes - before.scanned_bytes;
        self.figures[SELECTED] += after.selected_bytes - before.selected_bytes;
    }

    /// Adds the bytes received from a query's own objects.
    pub(crate) fn add_received(&mut self, space: &Space) {
        self.figures[RECEIVED] += space.received_bytes.load(Ordering::Relaxed);
    }

    pub(crate) fn add_invocations(&mut self, all: u64, repeated: u64) {
        self.figures[INVOCATIONS] += all;
        self.figures[REPEATED] += repeated;
    }

    pub(crate) fn add_work(&mut self, mebibytes: u64, milliseconds: u64) {
        self.figures[WORKED] += mebibytes * milliseconds;
    }

    /// Replaces the counted invocations by what the service will bill.
    pub(crate) fn set_billed(&mut self, invocations: u64, mebibyte_milliseconds: u64) {
        self.figures[INVOCATIONS] = invocations;
        self.figures[WORKED] = mebibyte_milliseconds;
    }

    pub(crate) fn to_json(self) -> Json {
        let entries =
            NAMES.iter().zip(self.figures).map(|(name, figure)| (name.to_string(), figure.into()));
        Json::Object(entries.collect::<Map<_, _>>())
    }

    pub(crate) fn from_json(json: &Json) -> Usage {
        Usage { figures: NAMES.map(|name| json[name].as_u64().unwrap_or(0)) }
    }

    /// Returns the memory by time in GB-seconds, as it is billed.
    pub fn gigabyte_seconds(&self) -> f64 {
        self.figures[WORKED] as f64 / 1024.0 / 1e3
    }

    pub(crate) fn count(&self, counters: &Counters, prices: &Prices) {
        for (name, figure) in NAMES.iter().zip(self.figures).filter(|(_, figure)| *figure > 0) {
            counters.add(name, figure);
        }
        counters.add("cost_nanodollars", (self.dollars(prices) * 1e9).round() as u64);
    }

    /// Returns the cost in dollars.
    pub fn dollars(&self, prices: &Prices) -> f64 {
        let [get, head, list, put, ..] = self.figures.map(|figure| figure as f64);
        // Delete requests are free.
        (get + head) * prices.get_request
            + (put + list) * prices.put_request
            + self.figures[INVOCATIONS] as f64 * prices.invocation
            + self.gigabyte_seconds() * prices.gigabyte_second
            + self.figures[SCANNED] as f64 / GIGABYTE * prices.scanned_gigabyte
            + self.figures[SELECTED] as f64 / GIGABYTE * prices.selected_gigabyte
    }

    /// Formats the usage as two lines of text.
    pub fn text(&self, prices: &Prices) -> String {
        let [
            get,
            head,
            list,
            put,
            delete,
            received,
            stored,
            invocations,
            repeated,
            _,
            scanned,
            selected,
        ] = self.figures;
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let of_select = match scanned {
            0 => String::new(),
            _ => format!(
                ", {:.1} MiB selected from {:.1} MiB",
                mebibytes(selected),
                mebibytes(scanned)
            ),
        };
        let repeated = if repeated > 0 { format!(" ({repeated} repeated)") } else { String::new() };
        format!(
            "Requests: {put} PUT, {get} GET, {list} LIST, {head} HEAD, {delete} DELETE; {:.1} MiB written, {:.1} MiB read{of_select}\n\
             Workers: {invocations} invocations{repeated}, {:.3} GB-seconds; ${:.6} ({} {})",
            mebibytes(stored),
            mebibytes(received),
            self.gigabyte_seconds(),
            self.dollars(prices),
            prices.region,
            prices.date,
        )
    }
}

/// Prices in dollars.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    region: String,
    date: String,
    put_request: f64,
    get_request: f64,
    invocation: f64,
    gigabyte_second: f64,
    scanned_gigabyte: f64,
    selected_gigabyte: f64,
}

/// The prices that come with the program.
const DEFAULT: &str = include_str!("../../../../deploy/prices.toml");

impl Prices {
    /// The prices that come with the program.
    ///
    /// # Errors
    /// Never in a program that passed its tests.
    pub fn standard() -> Result<Prices> {
        Prices::parse(DEFAULT)
    }

    /// Parses prices from lines `name = value`, as in `deploy/prices.toml`.
    ///
    /// # Errors
    /// A price is missing, invalid or unknown.
    pub fn parse(text: &str) -> Result<Prices> {
        let mut prices = Prices {
            region: String::new(),
            date: String::new(),
            put_request: f64::NAN,
            get_request: f64::NAN,
            invocation: f64::NAN,
            gigabyte_second: f64::NAN,
            // Optional: not every store can select.
            scanned_gigabyte: 0.0,
            selected_gigabyte: 0.0,
        };
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let bad = |what: &str| {
                Error::data(format!(
                    "prices, line {}: {what}; see deploy/prices.toml for an example",
                    number + 1
                ))
            };
            let (name, value) = line.split_once('=').ok_or_else(|| bad("expected name = value"))?;
            let (name, value) = (name.trim(), value.trim());
            let price = |per: f64| {
                let price =
                    value.replace('_', "").parse::<f64>().ok().filter(|price| *price >= 0.0);
                price.map(|price| price / per).ok_or_else(|| bad("expected a price in dollars"))
            };
            match name {
                "region" => prices.region = value.trim_matches('"').to_string(),
                "date" => prices.date = value.trim_matches('"').to_string(),
                "put_requests_per_1000" => prices.put_request = price(1e3)?,
                "get_requests_per_1000" => prices.get_request = price(1e3)?,
                "invocations_per_million" => prices.invocation = price(1e6)?,
                "gigabyte_second" => prices.gigabyte_second = price(1.0)?,
                "select_scanned_gigabyte" => prices.scanned_gigabyte = price(1.0)?,
                "select_returned_gigabyte" => prices.selected_gigabyte = price(1.0)?,
                _ => return Err(bad("unknown price")),
            }
        }
        let all =
            [prices.put_request, prices.get_request, prices.invocation, prices.gigabyte_second];
        if all.iter().any(|price| price.is_nan())
            || prices.region.is_empty()
            || prices.date.is_empty()
        {
            return Err(Error::data(
                "prices: missing one of region, date, put_requests_per_1000, get_requests_per_1000, invocations_per_million and \
                 gigabyte_second",
            ));
        }
        Ok(prices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_a_price() {
        let prices = Prices::parse(
            "region = \"here\" # comment\ndate = \"2026-01-01\"\nput_requests_per_1000 = 0.005\nget_requests_per_1000 = 0.0004\n\
             invocations_per_million = 0.20\ngigabyte_second = 0.0000166667\n",
        )
        .unwrap();
        let mut usage = Usage::default();
        usage.add_requests([1_000, 0, 0, 1_000, 7]);
        usage.add_invocations(10, 1);
        usage.add_work(2_048, 30_000);
        assert!((usage.gigabyte_seconds() - 60.0).abs() < 1e-9);
        assert!(
            (usage.dollars(&prices) - (0.0004 + 0.005 + 0.000_002 + 0.001_000_002)).abs() < 1e-9
        );
        let text = usage.text(&prices);
        assert!(text.contains("1000 PUT, 1000 GET, 0 LIST, 0 HEAD, 7 DELETE"), "{text}");
        assert!(
            text.contains(
                "10 invocations (1 repeated), 60.000 GB-seconds; $0.006402 (here 2026-01-01)"
            ),
            "{text}"
        );
    }

    #[test]
    fn price_files_are_checked() {
        Prices::standard().unwrap();
        for wrong in ["", "region", "gigabyte_second = much", "gold = 1"] {
            assert!(Prices::parse(wrong).is_err(), "{wrong}");
        }
    }
}
