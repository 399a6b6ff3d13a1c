use arrow::array::AsArray;

use super::*;

#[test]
fn decimals_keep_every_digit() {
    assert_eq!(parse_decimal("12.30", 7, 2), Some(1230));
    assert_eq!(parse_decimal("-0.5", 7, 2), Some(-50));
    assert_eq!(parse_decimal("12.300", 7, 2), Some(1230));
    assert_eq!(parse_decimal("12.301", 7, 2), None, "a digit would be lost");
    assert_eq!(parse_decimal("1e3", 7, 2), Some(100_000));
    assert_eq!(parse_decimal("100000", 7, 2), None, "too large");
    assert_eq!(parse_decimal("", 7, 2), None);
    assert_eq!(parse_decimal(".", 7, 2), None);
    assert_eq!(parse_decimal("0e99999", 7, 2), Some(0));
}

#[test]
fn dates() {
    assert_eq!(parse_date("1970-01-01"), Some(0));
    assert_eq!(parse_date("2000-02-29"), Some(11_016));
    assert_eq!(parse_date("2001-02-29"), None);
    assert_eq!(parse_date("2001-2-9-1"), None);
    assert_eq!(parse_date("+12345-01-01"), Some(3_789_391));
    assert_eq!(parse_date("0002-11-28 (BC)"), parse_date("-0001-11-28"));
    assert_eq!(parse_date("0001-01-01 BC"), parse_date("0000-01-01"));
}

#[test]
fn numbers_beyond_the_range_of_a_float_are_none() {
    let fits = |text: &str, atom: &Atom| {
        let mut cells = Cells::default();
        cells.push(text.as_bytes());
        cells.to_array(atom).is_ok()
    };
    assert!(
        fits("1e308", &Atom::Float64)
            && fits("-Infinity", &Atom::Float64)
            && fits("nan", &Atom::Float32)
    );
    assert!(!fits("1e400", &Atom::Float64) && !fits("-1e39", &Atom::Float32));
}

/// Decoding in parts gives the same result as decoding at once.
#[test]
fn long_lists_of_json() {
    let list = |atom: Atom| Atom::List(Box::new(Slot { atom, nullable: true }));
    let decoded = |cells: &[&str], atom: &Atom| {
        let mut all = Cells::default();
        cells.iter().for_each(|cell| all.push(cell.as_bytes()));
        all.push_null();
        all.to_array(atom)
    };
    let short = ["[1, null,2]", " [] ", "null", "[\t-3]"];
    let many = format!("[{}7]", "5,".repeat(SPAN_BYTES));
    let long = decoded(&[&short[..], &[&many]].concat(), &list(Atom::Int64)).unwrap();
    assert_eq!(&long.slice(0, 4), &decoded(&short, &list(Atom::Int64)).unwrap().slice(0, 4));
    assert_eq!((long.len(), long.null_count()), (6, 2));
    let last = long.as_list::<i32>().value(4);
    let last = last.as_primitive::<Int64Type>().values();
    assert!(
        last.len() == SPAN_BYTES + 1
            && last[SPAN_BYTES] == 7
            && last[..SPAN_BYTES].iter().all(|x| *x == 5)
    );
    let texts = format!("[{}null]", "\"a\\\"]\",".repeat(SPAN_BYTES / 4));
    let found = decoded(&[&format!("[{texts},[\"x\"]]")], &list(list(Atom::String))).unwrap();
    let found = found.as_list::<i32>().value(0);
    assert_eq!(found.as_list::<i32>().value_length(0) as usize, SPAN_BYTES / 4 + 1);
    let inner = found.as_list::<i32>().value(0);
    let inner = inner.as_string_view();
    assert!(inner.value(SPAN_BYTES / 4 - 1) == "a\"]" && inner.is_null(SPAN_BYTES / 4));
    for wrong in [" x", "]", "\"", "[1,\"x\"]"] {
        let error = decoded(&[&format!("{many}{wrong}"), "[1]"], &list(Atom::Int64)).unwrap_err();
        assert_eq!(error.row, 0, "{wrong}");
    }
    let wrong = many.replacen("5,", "5,x,", 1);
    assert_eq!(decoded(&["[1]", &wrong], &list(Atom::Int64)).unwrap_err().row, 1);
}

#[test]
fn a_bad_cell_is_named() {
    let mut cells = Cells::default();
    cells.push(b"1");
    cells.push_null();
    cells.push(b"x");
    let error = cells.to_array(&Atom::Int64).unwrap_err();
    assert_eq!((error.row, error.what.as_str()), (2, "'x' is not a value of type int64"));
    cells.push(b"\xff");
    assert!(cells.to_array(&Atom::String).unwrap_err().what.contains("UTF-8"));
}
