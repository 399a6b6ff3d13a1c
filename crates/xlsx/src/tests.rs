//! Workbooks that are damaged, or larger than they look.

use std::io::Write as _;

use tessera_context::testing::TestContext;
use tessera_plan::{Params, Value};
use tessera_types::Code;

use super::*;
use crate::sheet::Content;
use crate::testing::{archive, workbook};

const ROWS: &str = "<row r='1'><c r='A1' t='s'><v>0</v></c><c t='inlineStr'><is><r><t>b&amp;</t></r>\
    <rPh><t>no</t></rPh><r><t xml:space='preserve'> c</t></r></is></c></row>\
    <row><c r='A2'><v>1</v></c><c r='B2' s='1'><f>A2</f><v>45000</v></c><c r='C2'/></row>";

fn options(pairs: &[(&str, &str)]) -> Options {
    let params = pairs
        .iter()
        .fold(Params::new(), |params, (name, value)| params.with(*name, Value::string(*value)));
    Options::new(&params).unwrap()
}

fn opened(bytes: Vec<u8>) -> Result<(Book, Table)> {
    table_of("x.xlsx", Bytes::from(bytes), &options(&[]), None)
}

#[test]
fn a_table_of_a_sheet() {
    let (book, table) = opened(workbook(ROWS, &["a_x0041_"])).unwrap();
    assert_eq!(table.names, ["aA", "b& c"]);
    assert_eq!(table.types, [Atom::Float64, Atom::Date]);
    let mut rows = TableRows::new(&book, &table, &options(&[])).unwrap();
    let (number, row) = rows.next(&book, &table).unwrap().unwrap();
    assert_eq!((number, row.len()), (2, 2));
    assert_eq!(cell(&row, 0), Some(&Content::Number("1".into(), book::Meaning::Number)));
    assert!(rows.next(&book, &table).unwrap().is_none());
    assert!(rows.next(&book, &table).unwrap().is_none(), "again");
}

#[test]
fn sheets_that_contradict_themselves() {
    for rows in [
        "<row r='2'/><row r='2'/>",
        "<row r='0'/>",
        "<row r='1048577'/>",
        "<row r='1'><c r='B1'><v>1</v></c><c r='A1'><v>1</v></c></row>",
        "<row r='1'><c r='XFE1'><v>1</v></c></row>",
        "<row r='1'><c r='A1' t='s'><v>7</v></c></row>",
        "<row r='1'><c r='A1'><v>1</v></row>",
        "<row r='1'><c r='A1' t='inlineStr'><is><t>&nosuch;</t></is></c></row>",
    ] {
        let error = opened(workbook(rows, &["x"])).unwrap_err();
        assert!(
            error.to_string().contains("x.xlsx") && error.to_string().contains("damaged"),
            "{rows}: {error}"
        );
    }
}

#[test]
fn archives_that_are_none() {
    let whole = workbook(ROWS, &["x"]);
    for len in [0, 3, 21, 22, 100, whole.len() - 1] {
        assert!(opened(whole[..len].to_vec()).is_err(), "{len}");
    }
    let behind = [&whole[..], &[0; 100]].concat();
    assert!(opened(behind).is_ok(), "bytes behind the directory");
    let error = opened(archive(&[("a.txt", b"x")])).unwrap_err();
    assert!(error.to_string().contains("it has no list of sheets"), "{error}");
    let mut encrypted = whole.clone();
    let place = whole.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    encrypted[place + 8] = 1;
    assert!(opened(encrypted).unwrap_err().to_string().contains("without a password"));
    let mut other = whole;
    let place = other.windows(4).position(|bytes| bytes == b"<t>x").unwrap();
    other[place + 3] = b'y';
    assert!(opened(other).unwrap_err().to_string().contains("checksum"));
}

/// A workbook whose part of shared texts is replaced by these bytes, deflated, with this length.
fn with_texts(text: &[u8], len: u32) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    let packed = encoder.finish().unwrap();
    // Its place in the archive has as many bytes as a text of that length.
    let filler = "x".repeat(packed.len() - "<sst><si><t></t></si></sst>".len());
    let mut bytes = workbook("<row><c t='s'><v>0</v></c></row>", &[&filler]);
    let place =
        |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).position(|at| at == what).unwrap();
    let start = place(&bytes, b"<sst>");
    bytes[start..start + packed.len()].copy_from_slice(&packed);
    let name = bytes.windows(13).rposition(|at| at == b"xl/shared.xml").unwrap();
    let entry = name - 46;
    bytes[entry + 10] = 8;
    bytes[entry + 16..entry + 20].copy_from_slice(&crc32fast::hash(text).to_le_bytes());
    bytes[entry + 24..entry + 28].copy_from_slice(&len.to_le_bytes());
    bytes
}

#[test]
fn small_files_that_stand_for_large_ones() {
    let item = "<si><t>0123456789abcdefghijklmnopqrstuvwxyz</t></si>";
    let texts = format!("<sst>{}</sst>", item.repeat(200_000));
    let bytes = with_texts(texts.as_bytes(), texts.len() as u32);
    assert!(bytes.len() < 1 << 20);
    let within = |budget: usize| {
        let context: Arc<dyn Context> = TestContext::with_budget(7, 1, budget);
        table_of("x.xlsx", Bytes::from(bytes.clone()), &options(&[]), Some(&context)).map(drop)
    };
    within(64 << 20).unwrap();
    let error = within(8 << 20).unwrap_err();
    assert_eq!(error.code(), Code::Limit);
    assert!(error.to_string().contains("x.xlsx"), "{error}");
    // Lengths that are not true.
    let short = with_texts(texts.as_bytes(), 1_000);
    assert!(opened(short).unwrap_err().to_string().contains("longer than it says"));
    let long = with_texts(b"<sst><si><t>abcdefghijklmnopqrstuvw</t></si></sst>", u32::MAX - 1);
    assert!(opened(long).unwrap_err().to_string().contains("not complete"));
    // One text of any length.
    let texts = format!("<sst><si><t>{}</t></si></sst>", "x".repeat(40 << 20));
    let huge = with_texts(texts.as_bytes(), texts.len() as u32);
    assert!(opened(huge).unwrap_err().to_string().contains("TOKEN_BYTES_MAX"));
}

#[test]
fn xlsx_conforms() {
    let head = "<row r='1'><c t='s'><v>0</v></c><c t='s'><v>1</v></c></row>";
    let row = |row: usize| {
        let number =
            (!row.is_multiple_of(3)).then(|| format!("<c r='A{row}'><v>{}</v></c>", row % 50));
        let text = format!("<c r='B{row}' t='inlineStr'><is><t>text {}</t></is></c>", row % 7);
        format!("<row r='{row}'>{}{text}</row>", number.unwrap_or_default())
    };
    let rows: String = (2..900).map(row).collect();
    let one = workbook(&format!("{head}{rows}"), &["number", "text"]);
    let other = workbook(&format!("{head}{}", row(2)), &["number", "text"]);
    tessera_formats::conformance::files(&Xlsx, &[("one.xlsx", &one), ("other.xlsx", &other)], None);
}
