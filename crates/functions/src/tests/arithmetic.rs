use arrow::array::{Int8Array, Int64Array};
use arrow::datatypes::i256;
use proptest::prelude::*;

use super::*;

#[test]
fn result_types_and_values() {
    for (function, a, b, expected) in [
        ("add", ("int32", "1"), ("int64", "2"), "3: int64"),
        ("add", ("int8", "100"), ("int8", "27"), "127: int8"),
        ("add", ("int8", "100"), ("int8", "28"), "Overflow"),
        ("sub", ("uint8", "1"), ("uint8", "2"), "Overflow"),
        ("add", ("uint32", "1"), ("int32", "-2"), "-1: int64"),
        ("mul", ("int64", "9223372036854775807"), ("int64", "2"), "Overflow"),
        ("div", ("int64", "7"), ("int64", "-2"), "-3: int64"),
        ("div", ("int64", "-9223372036854775808"), ("int64", "-1"), "Overflow"),
        ("mod", ("int64", "-9223372036854775808"), ("int64", "-1"), "0: int64"),
        ("mod", ("int64", "-7"), ("int64", "3"), "-1: int64"),
        ("div", ("int64", "1"), ("int64", "0"), "DivisionByZero"),
        ("mod", ("int64", "1"), ("int64", "0"), "DivisionByZero"),
        ("div", ("float64", "1"), ("float64", "0"), "DivisionByZero"),
        ("mod", ("float64", "5.5"), ("float64", "2"), "1.5: float64"),
        ("mul", ("float64", "1e300"), ("float64", "1e300"), "Overflow"),
        ("mul", ("float64", "1e-300"), ("float64", "1e-300"), "Overflow"),
        ("div", ("float64", "1e-300"), ("float64", "1e300"), "Overflow"),
        ("div", ("float64", "1"), ("float64", "inf"), "0: float64"),
        ("mul", ("float64", "1e-300"), ("float64", "0"), "0: float64"),
        ("add", ("float64", "inf"), ("float64", "1"), "Infinity: float64"),
        ("add", ("float32", "1.5"), ("int32", "1"), "2.5: float64"),
        ("add", ("decimal(4,2)", "1.25"), ("decimal(5,3)", "0.125"), "1.375: decimal(6,3)"),
        ("sub", ("decimal(4,2)", "1.25"), ("int32", "1"), "0.25: decimal(13,2)"),
        ("mul", ("decimal(15,2)", "1.25"), ("decimal(15,2)", "-0.10"), "-0.1250: decimal(30,4)"),
        (
            "mul",
            ("decimal(38,0)", "99999999999999999999999999999999999999"),
            ("decimal(1,0)", "2"),
            "Overflow",
        ),
        ("mul", ("decimal(38,4)", "1.5"), ("decimal(16,2)", "1.5"), "2.250000: decimal(38,6)"),
        (
            "mul",
            ("decimal(38,4)", "-99999999999999999999.0"),
            ("decimal(16,2)", "100"),
            "-9999999999999999999900.000000: decimal(38,6)",
        ),
        (
            "mul",
            ("decimal(38,20)", "1.5"),
            ("decimal(38,20)", "2"),
            "3.00000000000000000000: decimal(38,20)",
        ),
        (
            "mul",
            ("decimal(38,20)", "0.00000000000000000001"),
            ("decimal(38,20)", "0.1"),
            "Overflow",
        ),
        (
            "mod",
            ("decimal(38,0)", "99999999999999999999999999999999999999"),
            ("decimal(2,1)", "0.7"),
            "0.3: decimal(38,1)",
        ),
        (
            "add",
            ("decimal(38,0)", "99999999999999999999999999999999999999"),
            ("decimal(38,0)", "1"),
            "Overflow",
        ),
        ("div", ("decimal(4,2)", "1.00"), ("decimal(4,2)", "8.00"), "0.125: float64"),
        ("div", ("decimal(4,2)", "1.00"), ("decimal(4,2)", "0.00"), "DivisionByZero"),
        ("mod", ("decimal(4,2)", "7.50"), ("decimal(4,1)", "2.0"), "1.50: decimal(5,2)"),
        ("mod", ("decimal(4,2)", "7.50"), ("decimal(4,1)", "0"), "DivisionByZero"),
        ("add", ("string", "a"), ("int32", "1"), "Semantic"),
        ("add", ("date", "2024-02-28"), ("int32", "2"), "2024-03-01: date"),
        ("add", ("int32", "2"), ("date", "2024-02-28"), "2024-03-01: date"),
        ("sub", ("date", "2024-03-01"), ("date", "2024-02-28"), "2: int64"),
        (
            "add",
            ("date", "2024-01-31"),
            ("interval", "1 month"),
            "2024-02-29 00:00:00: timestamp(us)",
        ),
        (
            "add",
            ("interval", "1 month"),
            ("date", "2024-01-31"),
            "2024-02-29 00:00:00: timestamp(us)",
        ),
        (
            "sub",
            ("date", "1998-12-01"),
            ("interval", "90 days"),
            "1998-09-02 00:00:00: timestamp(us)",
        ),
        (
            "add",
            ("date", "2024-01-31"),
            ("time(us)", "01:02:03"),
            "2024-01-31 01:02:03: timestamp(us)",
        ),
        (
            "sub",
            ("timestamp(s)", "2024-01-01 00:00:00"),
            ("interval", "1.5 seconds"),
            "2023-12-31 23:59:58.5: timestamp(us)",
        ),
        (
            "sub",
            ("timestamp(us)", "2024-01-03 01:00"),
            ("timestamp(us)", "2024-01-01"),
            "2 days 01:00:00: interval",
        ),
        (
            "sub",
            ("timestamp(us)", "2024-01-03 01:00"),
            ("date", "2024-01-01"),
            "2 days 01:00:00: interval",
        ),
        ("add", ("time(us)", "23:00:00"), ("interval", "2 hours"), "01:00:00: time(us)"),
        ("sub", ("time(us)", "23:00:00"), ("time(us)", "22:30:00"), "00:30:00: interval"),
        ("add", ("interval", "1 month"), ("interval", "2 days"), "1 mon 2 days: interval"),
        ("mul", ("interval", "1 month 1 day"), ("int32", "3"), "3 mons 3 days: interval"),
        ("mul", ("int32", "3"), ("interval", "1 day"), "3 days: interval"),
        ("div", ("interval", "1 day"), ("int32", "2"), "12:00:00: interval"),
        ("div", ("interval", "1 day"), ("int32", "0"), "DivisionByZero"),
        ("bit_and", ("int32", "12"), ("int32", "10"), "8: int32"),
        ("bit_xor", ("int32", "12"), ("int64", "10"), "6: int64"),
        ("shift_left", ("int32", "1"), ("int32", "4"), "16: int32"),
        ("shift_left", ("int32", "1"), ("int32", "32"), "Overflow"),
    ] {
        let expr = call(function, [value(a.0, a.1), value(b.0, b.1)]);
        assert_eq!(shown(&expr), expected, "{function}({} '{}', {} '{}')", a.0, a.1, b.0, b.1);
        // NULL in either operand gives NULL, for any other operand.
        if !expected.ends_with("Semantic") && !expected.starts_with("Div") {
            assert_eq!(
                constant(&call(function, [null(a.0), value(b.0, b.1)])).unwrap(),
                Scalar::Null
            );
            assert_eq!(
                constant(&call(function, [value(a.0, a.1), null(b.0)])).unwrap(),
                Scalar::Null
            );
        }
    }
}

#[test]
fn negation_and_absolute_value() {
    for (function, atom, text, expected) in [
        ("neg", "int8", "-128", "Overflow"),
        ("abs", "int8", "-128", "Overflow"),
        ("abs", "int8", "-127", "127: int8"),
        ("neg", "uint8", "200", "-200: int16"),
        ("neg", "decimal(4,2)", "1.25", "-1.25: decimal(4,2)"),
        ("abs", "decimal(20,2)", "-1.25", "1.25: decimal(20,2)"),
        ("abs", "float64", "-1.5", "1.5: float64"),
        ("neg", "interval", "1 month", "-1 mons: interval"),
        ("bit_not", "int32", "0", "-1: int32"),
        ("abs", "string", "x", "Semantic"),
    ] {
        assert_eq!(
            shown(&call(function, [value(atom, text)])),
            expected,
            "{function} {atom} '{text}'"
        );
    }
}

#[test]
fn values_under_null_do_not_raise() {
    let validity = arrow::buffer::NullBuffer::from(vec![true, false, true]);
    let a: ArrayRef = Arc::new(Int64Array::new(vec![1, i64::MAX, 3].into(), Some(validity)));
    let found =
        evaluate(&call("mul", [Expr::field("a"), Expr::int64(4)]), "<a: int64?>", vec![a.clone()])
            .unwrap();
    assert_eq!(values(&found), [Scalar::Integer(4), Scalar::Null, Scalar::Integer(12)]);
    let by_zero = call("div", [Expr::int64(4), Expr::field("a")]);
    let zero: ArrayRef = Arc::new(Int64Array::new(vec![0].into(), Some(vec![false].into())));
    assert_eq!(values(&evaluate(&by_zero, "<a: int64?>", vec![zero]).unwrap()), [Scalar::Null]);
}

#[test]
fn errors_say_what_and_where() {
    let a: ArrayRef = Arc::new(Int8Array::from(vec![1, 100]));
    let error = evaluate(&call("add", [Expr::field("a"), Expr::field("a")]), "<a: int8>", vec![a])
        .unwrap_err();
    assert_eq!(
        error.message(),
        "100 + 100 is out of range for type int8; cast to a wider type first"
    );
    let text = Expr::string("abc").cast(Atom::Int32);
    assert_eq!(constant(&text).unwrap_err().message(), "invalid input for type int32: 'abc'");
}

#[test]
fn tpch_products_are_exact_and_cannot_fail() {
    let tuple = "<price: decimal(15,2), discount: decimal(15,2), tax: decimal(15,2)>";
    let one = || Expr::int64(1);
    let net = call("mul", [Expr::field("price"), call("sub", [one(), Expr::field("discount")])]);
    let bound = bind(&net, tuple).unwrap();
    assert_eq!(bound.atom().0.to_string(), "decimal(31,4)");
    assert!(!bound.can_raise());
    let gross = call("mul", [net.clone(), call("add", [one(), Expr::field("tax")])]);
    assert_eq!(bind(&gross, tuple).unwrap().atom().0.to_string(), "decimal(38,6)");
    let column = |values: Vec<i64>| -> ArrayRef {
        let array = arrow::array::Decimal64Array::from(values);
        Arc::new(array.with_precision_and_scale(15, 2).unwrap())
    };
    let columns =
        vec![column(vec![10_000, 999_999_999_999_999]), column(vec![5, -99]), column(vec![8, 100])];
    let found = evaluate(&gross, tuple, columns).unwrap();
    assert_eq!(
        values(&found),
        [Scalar::Integer(10_000 * 95 * 108), Scalar::Integer(999_999_999_999_999 * 199 * 200)]
    );
}

fn any_decimal() -> impl Strategy<Value = (u8, i8, i128)> {
    (1u8..=38).prop_flat_map(|precision| {
        let limit = 10i128.pow(precision.into()) - 1;
        let near = prop_oneof![
            -limit..=limit,
            Just(limit),
            Just(-limit),
            -100i128.min(limit)..=100i128.min(limit)
        ];
        (Just(precision), 0..=precision as i8, near)
    })
}

proptest! {
    #[test]
    fn integers_agree_with_wide_arithmetic(a: i64, b: i64, small in -3i64..3) {
        for b in [b, small] {
            for (function, wide) in [
                ("add", Some(i128::from(a) + i128::from(b))),
                ("sub", Some(i128::from(a) - i128::from(b))),
                ("mul", Some(i128::from(a) * i128::from(b))),
                ("div", i128::from(a).checked_div(b.into())),
                ("mod", i128::from(a).checked_rem(b.into())),
            ] {
                let column: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![a])), Arc::new(Int64Array::from(vec![b]))];
                let expr = call(function, [Expr::field("a"), Expr::field("b")]);
                let found = evaluate(&expr, "<a: int64, b: int64>", column);
                match wide {
                    None => prop_assert_eq!(code(found), Code::DivisionByZero),
                    Some(wide) if i64::try_from(wide).is_err() => prop_assert_eq!(code(found), Code::Overflow),
                    Some(wide) => prop_assert_eq!(values(&found.unwrap()), [Scalar::Integer(wide)]),
                }
            }
        }
    }

    #[test]
    fn decimals_agree_with_wide_arithmetic(left in any_decimal(), right in any_decimal()) {
        let (p, s, a) = left;
        let (q, t, b) = right;
        let tuple = format!("<a: decimal({p},{s}), b: decimal({q},{t})>");
        let column = |(p, s, value): (u8, i8, i128)| scalar_to_array(&Scalar::Integer(value), &Atom::Decimal(p, s)).unwrap();
        let scale = s.max(t);
        let factor = |s: i8| 10i128.checked_pow((scale - s) as u32);
        let widened = |value: i128, s| factor(s).and_then(|factor| value.checked_mul(factor));
        let limit = 10u128.pow(38);
        for function in ["add", "sub", "mul"] {
            let expr = call(function, [Expr::field("a"), Expr::field("b")]);
            let bound = bind(&expr, &tuple).unwrap();
            let exact = match function {
                "add" => widened(a, s).zip(widened(b, t)).and_then(|(a, b)| a.checked_add(b)),
                "sub" => widened(a, s).zip(widened(b, t)).and_then(|(a, b)| a.checked_sub(b)),
                _ => {
                    // A long product has fewer fractional digits, and the dropped digits must be
                    // zeros.
                    let dropped = match bound.atom().0 {
                        Atom::Decimal(_, kept) => (s + t - kept) as u32,
                        _ => 0,
                    };
                    let product = i256::from_i128(a).wrapping_mul(i256::from_i128(b));
                    let power = i256::from_i128(10i128.pow(dropped));
                    let whole = product.wrapping_rem(power) == i256::ZERO;
                    product.wrapping_div(power).to_i128().filter(|_| whole)
                }
            };
            let chunk = Chunk::from_arrays(vec![column(left), column(right)]);
            let found = bound.evaluate(&chunk, &run());
            match exact.filter(|exact| exact.unsigned_abs() < limit) {
                Some(exact) => prop_assert_eq!(values(&found.unwrap()), [Scalar::Integer(exact)]),
                None => {
                    prop_assert!(bound.can_raise());
                    prop_assert_eq!(code(found), Code::Overflow);
                }
            }
        }
    }
}
