//! The formats of this crate.

use super::*;
use crate::{content, csv, ipc, json, parquet};

#[test]
fn parquet_conforms() {
    assert_eq!(format(&parquet::Parquet, &[]).len(), 21);
}

#[test]
fn csv_conforms() {
    // It writes intervals as SQL prints them, and does not read that form.
    assert!(format(&csv::Csv, &[Atom::Interval]).len() > 15);
    assert!(format(&csv::Tsv, &[Atom::Interval]).len() > 15);
}

#[test]
fn json_conforms() {
    // It writes bytes as hexadecimal digits, and reads a string as its own bytes. JSON has no NaN
    // and no infinities, so they are written as null.
    let lost = [Atom::Bytes, Atom::Float32, Atom::Float64];
    assert!(format(&json::Json, &lost).len() > 13);
}

#[test]
fn arrow_conforms() {
    assert_eq!(format(&ipc::Ipc, &[]).len(), 21);
}

#[test]
fn text_and_blob_conform() {
    let long = "a text that is longer than a view. ".repeat(1_000);
    let given: [(&str, &[u8]); 4] =
        [("a.txt", b"short"), ("empty", b""), ("b.txt", long.as_bytes()), ("ä", "ä€".as_bytes())];
    files(&content::Text, &given, None);
    files(&content::Blob, &given, None);
    files(&content::Blob, &[("bytes", &[0, 0xff, 0x80])], None);
}
