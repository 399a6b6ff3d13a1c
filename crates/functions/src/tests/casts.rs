use super::*;

#[test]
fn conversions() {
    for (from, text, to, expected) in [
        ("float64", "2.5", "int32", "2: int32"),
        ("float64", "3.5", "int32", "4: int32"),
        ("float64", "-2.5", "int8", "-2: int8"),
        ("float64", "127.4", "int8", "127: int8"),
        ("float64", "128", "int8", "Overflow"),
        ("float64", "9223372036854775808", "int64", "Overflow"),
        ("float64", "nan", "int64", "Overflow"),
        ("float64", "-0.4", "uint8", "0: uint8"),
        ("float64", "1e300", "float32", "Overflow"),
        ("float32", "2.5", "int32", "2: int32"),
        ("decimal(4,2)", "2.50", "int32", "3: int32"),
        ("decimal(4,2)", "-2.50", "int32", "-3: int32"),
        ("decimal(20,2)", "300.00", "int8", "Overflow"),
        ("decimal(4,2)", "1.25", "decimal(4,1)", "1.3: decimal(4,1)"),
        ("decimal(4,2)", "-1.25", "decimal(4,1)", "-1.3: decimal(4,1)"),
        ("decimal(4,2)", "99.95", "decimal(3,1)", "Overflow"),
        ("decimal(4,2)", "1.25", "decimal(38,10)", "1.2500000000: decimal(38,10)"),
        ("decimal(38,10)", "1.25", "decimal(4,2)", "1.25: decimal(4,2)"),
        ("decimal(4,2)", "1.25", "float64", "1.25: float64"),
        ("int64", "123", "decimal(5,2)", "123.00: decimal(5,2)"),
        ("int64", "1234", "decimal(5,2)", "Overflow"),
        ("int64", "300", "int8", "Overflow"),
        ("int64", "-1", "uint64", "Overflow"),
        ("int64", "5", "float64", "5: float64"),
        ("int64", "5", "boolean", "true: boolean"),
        ("boolean", "true", "int32", "1: int32"),
        ("boolean", "true", "decimal(3,1)", "1.0: decimal(3,1)"),
        ("float64", "1.005", "decimal(5,1)", "1.0: decimal(5,1)"),
        ("float64", "1e10", "decimal(5,1)", "Overflow"),
        ("date", "2024-02-29", "timestamp(us)", "2024-02-29 00:00:00: timestamp(us)"),
        ("timestamp(us)", "1969-12-31 23:59:59.5", "date", "1969-12-31: date"),
        ("timestamp(us)", "2024-02-29 01:02:03.25", "time(us)", "01:02:03.25: time(us)"),
        (
            "timestamp(us)",
            "2024-02-29 01:02:03.25",
            "timestamp(s)",
            "2024-02-29 01:02:03: timestamp(s)",
        ),
        (
            "timestamp(us)",
            "2024-07-01 12:00",
            "timestamp(us, \"Europe/Zurich\")",
            "2024-07-01 12:00:00+02: timestamp(us, \"Europe/Zurich\")",
        ),
        (
            "timestamp(us, \"Europe/Zurich\")",
            "2024-07-01 12:00Z",
            "timestamp(us)",
            "2024-07-01 14:00:00: timestamp(us)",
        ),
        (
            "timestamp(us, UTC)",
            "2024-07-01 12:00+02",
            "timestamp(us, UTC)",
            "2024-07-01 10:00:00+00: timestamp(us, UTC)",
        ),
        (
            "timestamp(us, \"Europe/Zurich\")",
            "2024-01-01 12:00",
            "timestamp(us, UTC)",
            "2024-01-01 11:00:00+00: timestamp(us, UTC)",
        ),
        ("string", " 42 ", "int32", "42: int32"),
        ("string", "+42", "uint8", "42: uint8"),
        ("string", "4.2", "int32", "Data"),
        ("string", "", "int32", "Data"),
        ("string", "99999999999999999999999999999999999999999999", "int32", "Overflow"),
        ("string", "yes", "boolean", "true: boolean"),
        ("string", "maybe", "boolean", "Data"),
        ("string", "1e400", "float64", "Overflow"),
        ("string", "Infinity", "float64", "Infinity: float64"),
        ("string", "2024-02-30", "date", "Overflow"),
        ("string", "24:00", "time(us)", "24:00:00: time(us)"),
        (
            "string",
            "1 year 2 months 3 days 04:05:06",
            "interval",
            "1 year 2 mons 3 days 04:05:06: interval",
        ),
        ("string", "soon", "interval", "Data"),
        ("string", "\\x6162", "bytes", "\\x6162: bytes"),
        ("bytes", "ab", "string", "\\x6162: string"),
        ("date", "2024-01-01", "int32", "Semantic"),
        ("boolean", "true", "date", "Semantic"),
        ("float64", "0.5", "boolean", "true: boolean"),
        ("interval", "1 day", "int32", "Semantic"),
    ] {
        let expr = value(from, text).cast(to.parse().unwrap());
        assert_eq!(shown(&expr), expected, "{from} '{text}' to {to}");
        let safe =
            Expr::Cast { input: Box::new(value(from, text)), to: to.parse().unwrap(), safe: true };
        match expected {
            "Overflow" | "Data" => {
                assert_eq!(constant(&safe).unwrap(), Scalar::Null, "{from} '{text}' to {to}")
            }
            _ => assert_eq!(shown(&safe), expected),
        }
        if expected != "Semantic" {
            assert_eq!(constant(&null(from).cast(to.parse().unwrap())).unwrap(), Scalar::Null);
        }
    }
}

#[test]
fn nested_values_convert_and_print() {
    let list = call("make_array", [Expr::int64(1), Expr::null(Atom::Int64), Expr::int64(300)]);
    assert_eq!(shown(&list), "[1, NULL, 300]: list<int64?>");
    assert_eq!(
        shown(&list.clone().cast("list<string?>".parse().unwrap())),
        "[1, NULL, 300]: list<string?>"
    );
    assert_eq!(shown(&list.clone().cast("list<int8?>".parse().unwrap())), "Overflow");
    let safe = Expr::Cast { input: Box::new(list), to: "list<int8?>".parse().unwrap(), safe: true };
    assert_eq!(shown(&safe), "[1, NULL, NULL]: list<int8?>");
    let named = call(
        "named_struct",
        [Expr::string("a"), Expr::int64(1), Expr::string("b"), Expr::string("x")],
    );
    assert!(shown(&named).starts_with("{'a': 1, 'b': x}: struct<"), "{}", shown(&named));
}

#[test]
fn the_row_that_does_not_convert_is_named() {
    let texts = strings(&[Some("1"), None, Some("x"), Some("y")]);
    let expr = Expr::field("a").cast(Atom::Int64);
    let error = evaluate(&expr, "<a: string?>", vec![texts.clone()]).unwrap_err();
    assert_eq!(error.message(), "invalid input for type int64: 'x'");
    let bound = bind(&expr, "<a: string?>").unwrap();
    let found = bound.evaluate(&selected(vec![texts], &[0, 1]), &run()).unwrap();
    assert_eq!(values(&found), [Scalar::Integer(1), Scalar::Null]);
}

#[test]
fn other_arrow_forms_become_plain() {
    use arrow::array::{Date64Array, Float16Array, LargeStringArray, StringArray};
    use arrow::compute::cast;
    use arrow::datatypes::DataType;
    let forms: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec![Some("a"), None])),
        Arc::new(LargeStringArray::from(vec![Some("a"), None])),
        cast(
            &StringArray::from(vec![Some("a"), None]),
            &DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)),
        )
        .unwrap(),
        Arc::new(Date64Array::from(vec![Some(86_400_000), None])),
        Arc::new(Float16Array::from(vec![None, None])),
        cast(&arrow::array::Int32Array::from(vec![Some(1), None]), &DataType::Decimal128(10, 2))
            .unwrap(),
        cast(&arrow::array::Int32Array::from(vec![Some(1), None]), &DataType::Decimal256(38, 2))
            .unwrap(),
        Arc::new(
            arrow::array::FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                [Some([1u8, 2]), None].into_iter(),
                2,
            )
            .unwrap(),
        ),
    ];
    for form in forms {
        let atom = Atom::from_arrow(form.data_type()).unwrap();
        let plain = tessera_values::plain::to_plain(form.clone(), &atom).unwrap();
        assert_eq!(plain.data_type(), &atom.arrow());
        assert_eq!(plain.len(), 2);
        assert!(plain.is_null(1));
        assert_eq!(plain.is_valid(0), form.logical_nulls().is_none_or(|nulls| nulls.is_valid(0)));
    }
}
