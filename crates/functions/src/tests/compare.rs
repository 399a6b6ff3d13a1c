use arrow::array::{Float64Array, Int32Array};

use super::*;

const ALL: [&str; 8] =
    ["eq", "not_eq", "lt", "lt_eq", "gt", "gt_eq", "is_distinct", "is_not_distinct"];

/// The expected results of all comparisons, in the order of `ALL`, given the order of two values.
fn expected(ordering: Option<std::cmp::Ordering>) -> Vec<Scalar> {
    match ordering {
        None => {
            let mut all = vec![Scalar::Null; 6];
            all.extend([Scalar::Boolean(true), Scalar::Boolean(false)]);
            all
        }
        Some(o) => {
            [o.is_eq(), o.is_ne(), o.is_lt(), o.is_le(), o.is_gt(), o.is_ge(), o.is_ne(), o.is_eq()]
                .map(Scalar::Boolean)
                .to_vec()
        }
    }
}

#[test]
fn every_type_is_ordered() {
    use std::cmp::Ordering::{Equal, Greater, Less};
    for (a, b, ordering) in [
        (value("int8", "1"), value("int64", "2"), Less),
        (value("uint64", "18446744073709551615"), value("int64", "-1"), Greater),
        (value("decimal(4,2)", "1.50"), value("decimal(10,4)", "1.5"), Equal),
        (
            value("decimal(38,0)", "99999999999999999999999999999999999999"),
            value("int8", "1"),
            Greater,
        ),
        (value("float64", "nan"), value("float64", "inf"), Greater),
        (value("float64", "nan"), value("float64", "nan"), Equal),
        (value("float64", "-0.0"), value("float64", "0.0"), Equal),
        (value("float32", "1.5"), value("int32", "2"), Less),
        (value("string", "abc"), value("string", "abd"), Less),
        (
            value("string", "a long string of some length"),
            value("string", "a long string"),
            Greater,
        ),
        (value("bytes", "\\x00ff"), value("bytes", "\\x01"), Less),
        (Expr::boolean(false), Expr::boolean(true), Less),
        (value("date", "2024-01-01"), value("timestamp(us)", "2024-01-01 00:00:01"), Less),
        (value("timestamp(s)", "2024-01-01"), value("timestamp(ns)", "2024-01-01"), Equal),
        (value("interval", "1 month"), value("interval", "30 days"), Equal),
        (value("interval", "1 month"), value("interval", "31 days"), Less),
        (
            call("make_array", [Expr::int64(1), Expr::int64(2)]),
            call("make_array", [Expr::int64(1), Expr::null(Atom::Int64)]),
            Less,
        ),
        (call("make_array", [Expr::int64(1)]), call("make_array", [Expr::int64(1)]), Equal),
    ] {
        for (a, b, ordering) in [(&a, &b, ordering), (&b, &a, ordering.reverse())] {
            let found: Vec<_> = ALL
                .iter()
                .map(|function| constant(&call(function, [a.clone(), b.clone()])).unwrap())
                .collect();
            assert_eq!(found, expected(Some(ordering)), "{a:?} {b:?}");
        }
    }
}

#[test]
fn null_compares_to_nothing() {
    for atom in ["int8", "float64", "string", "interval", "decimal(20,2)", "list<int64?>"] {
        let one = match atom {
            "list<int64?>" => call("make_array", [Expr::int64(1)]),
            "interval" => value("interval", "1 day"),
            _ => value(atom, "1"),
        };
        let found: Vec<_> =
            ALL.iter().map(|f| constant(&call(f, [one.clone(), null(atom)])).unwrap()).collect();
        assert_eq!(found, expected(None), "{atom}");
        let both = |f| constant(&call(f, [null(atom), null(atom)])).unwrap();
        assert_eq!(
            [both("is_distinct"), both("is_not_distinct")],
            [false, true].map(Scalar::Boolean)
        );
    }
    assert_eq!(constant(&call("eq", [null("null"), null("null")])).unwrap(), Scalar::Null);
}

#[test]
fn columns_compare_with_columns_and_constants_also_sliced() {
    let a = Float64Array::from(vec![Some(9.0), Some(1.0), None, Some(f64::NAN), Some(-0.0)]);
    let a: ArrayRef = Arc::new(a.slice(1, 4));
    let b: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(1), None, Some(0)]));
    let tuple = "<a: float64?, b: int32?>";
    let b_as_float = || Expr::field("b").cast(Atom::Float64);
    let f = |function, other| {
        values(
            &evaluate(
                &call(function, [Expr::field("a"), other]),
                tuple,
                vec![a.clone(), b.clone()],
            )
            .unwrap(),
        )
    };
    let (t, n) = (Scalar::Boolean(true), Scalar::Null);
    let no = Scalar::Boolean(false);
    assert_eq!(f("eq", b_as_float()), [t.clone(), n.clone(), n.clone(), t.clone()]);
    assert_eq!(f("is_distinct", Expr::field("b")), [no.clone(), t.clone(), t.clone(), no.clone()]);
    assert_eq!(f("gt", Expr::int64(0)), [t.clone(), n.clone(), t.clone(), no.clone()]);
    assert_eq!(f("is_not_distinct", null("float64")), [no.clone(), t, no.clone(), no]);
}

#[test]
fn constants_take_the_type_of_the_column() {
    // Neither side is converted: the cast to a common type could fail but does not.
    let tuple = "<d: date, x: int8, p: decimal(15,2)>";
    for (field, other) in [
        ("d", call("add", [value("date", "1994-01-01"), value("interval", "1 year")])),
        ("x", Expr::int64(3)),
        ("p", Expr::int64(24)),
        ("p", value("decimal(20,4)", "0.0500")),
    ] {
        let bound = bind(&call("lt", [Expr::field(field), other]), tuple).unwrap();
        assert!(!format!("{:?}", bound.nodes).contains("Cast"), "{field}");
    }
}

#[test]
fn strings_do_not_compare_with_numbers() {
    let error = bind(&call("eq", [Expr::string("1"), Expr::int64(1)]), "<>").unwrap_err();
    assert_eq!(
        error.message(),
        "function eq does not take (string, int64); cast one to the type of the other"
    );
}
