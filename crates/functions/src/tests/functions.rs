use tessera_plan::Functions;

use crate::is_strict;

use super::*;

#[test]
fn datafusion_functions_by_name() {
    let text = |text: &str| Expr::string(text);
    for (expr, expected) in [
        (call("upper", [text("abc")]), "ABC: string"),
        (call("substr", [text("alphabet"), Expr::int64(3), Expr::int64(2)]), "ph: string"),
        (call("substring", [text("alphabet"), Expr::int64(3)]), "phabet: string"),
        (call("char_length", [text("äb")]), "2: int32"),
        (call("concat", [text("a"), null("string"), text("b")]), "ab: string"),
        (call("trim", [text(" a ")]), "a: string"),
        (call("replace", [text("abab"), text("b"), text("c")]), "acac: string"),
        (call("split_part", [text("a-b"), text("-"), Expr::int64(2)]), "b: string"),
        (call("strpos", [text("abc"), text("c")]), "3: int32"),
        (call("round", [value("float64", "2.567"), Expr::int64(1)]), "2.6: float64"),
        (call("sqrt", [value("float64", "16")]), "4: float64"),
        (call("sqrt", [value("decimal(4,2)", "16")]), "4: float64"),
        (call("power", [Expr::int64(2), Expr::int64(10)]), "1024: float64"),
        (call("floor", [value("float64", "-1.5")]), "-2: float64"),
        (call("date_part", [text("year"), value("date", "1995-03-15")]), "1995: decimal(18,0)"),
        (
            call("date_trunc", [text("month"), value("timestamp(us)", "1995-03-15 12:00")]),
            "1995-03-01 00:00:00: timestamp(us)",
        ),
        (call("nullif", [Expr::int64(1), Expr::int64(1)]), "NULL: int64"),
        (call("greatest", [Expr::int64(1), Expr::int64(5), Expr::int64(3)]), "5: int64"),
        (call("array_length", [call("make_array", [Expr::int64(1), Expr::int64(2)])]), "2: uint64"),
        (call("concat_op", [text("a"), text("b")]), "ab: string"),
        (call("concat_op", [text("a"), Expr::int64(1)]), "a1: string"),
        (call("concat_op", [text("a"), null("string")]), "NULL: string"),
        (call("md5", [text("")]), "d41d8cd98f00b204e9800998ecf8427e: string"),
        (call("regexp_replace", [text("abc"), text("b."), text("x")]), "ax: string"),
        (call("to_hex", [Expr::int64(255)]), "ff: string"),
        (call("sqrt", [value("float64", "-1")]), "Data"),
        (call("ln", [value("float64", "0")]), "Data"),
        (call("pow", [value("float64", "10"), Expr::int64(400)]), "Overflow"),
        (call("sqrt", [value("float64", "inf")]), "Infinity: float64"),
        (call("date_part", [text("QUARTER"), value("date", "1995-03-15")]), "1: decimal(18,0)"),
        (call("date_part", [text("day"), value("date", "1969-12-31")]), "31: decimal(18,0)"),
        (call("date_part", [text("month"), value("date", "2000-02-29")]), "2: decimal(18,0)"),
        (call("factorial", [Expr::int64(34)]), "Overflow"),
        (call("no_such_function", [text("")]), "Semantic"),
        (call("upper", [text("a"), text("b")]), "Semantic"),
    ] {
        assert_eq!(shown(&expr), expected, "{expr:?}");
    }
}

#[test]
fn strict_functions_of_null_are_null() {
    let (text, day) = (Expr::string("a"), value("date", "1995-03-15"));
    let numbers = || vec![Expr::int64(2), Expr::int64(1)];
    let texts = || vec![text.clone(), text.clone()];
    let calls = [
        ("eq", numbers()),
        ("not_eq", numbers()),
        ("lt", numbers()),
        ("gt_eq", numbers()),
        ("add", numbers()),
        ("sub", numbers()),
        ("mul", numbers()),
        ("div", numbers()),
        ("mod", numbers()),
        ("neg", vec![Expr::int64(1)]),
        ("like", texts()),
        ("ilike", texts()),
        ("regex", texts()),
        ("iregex", texts()),
        ("similar", texts()),
        ("concat_op", texts()),
        ("lower", vec![text.clone()]),
        ("upper", vec![text.clone()]),
        ("substr", vec![text.clone(), Expr::int64(1), Expr::int64(1)]),
        ("date_part", vec![Expr::string("year"), day.clone()]),
        ("extract", vec![Expr::string("year"), day]),
    ];
    for (function, args) in calls {
        assert!(is_strict(function), "{function}");
        // The part of a date is a constant.
        let first = usize::from(matches!(function, "date_part" | "extract"));
        for position in first..args.len() {
            let mut args = args.clone();
            let (Expr::Constant(_, atom) | Expr::Cast { to: atom, .. }) = &args[position] else {
                panic!("{args:?}")
            };
            args[position] = Expr::null(atom.clone());
            let found = shown(&call(function, args));
            assert!(found.starts_with("NULL: "), "{function} {position}: {found}");
        }
    }
    for function in ["is_distinct", "is_not_distinct", "concat", "greatest"] {
        assert!(!is_strict(function), "{function}");
    }
}

#[test]
fn functions_run_on_columns() {
    let texts = strings(&[Some("x"), None, Some("a string of more than twelve bytes"), Some("yy")])
        .slice(1, 3);
    let expr = call("upper", [Expr::field("a")]);
    let found = evaluate(&expr, "<a: string?>", vec![texts.clone()]).unwrap();
    let text = |text: &str| Scalar::String(text.into());
    assert_eq!(
        values(&found),
        [Scalar::Null, text("A STRING OF MORE THAN TWELVE BYTES"), text("YY")]
    );
    let expr = call("substr", [Expr::field("a"), Expr::int64(1), Expr::int64(2)]);
    assert_eq!(
        values(&evaluate(&expr, "<a: string?>", vec![texts]).unwrap()),
        [Scalar::Null, text("a "), text("YY".to_lowercase().as_str())]
    );
}

#[test]
fn patterns() {
    let texts = strings(&[Some("PROMO BRUSHED"), None, Some("STANDARD"), Some("promo x")]);
    let f = |function: &str, pattern: Expr| {
        let expr = call(function, [Expr::field("a"), pattern]);
        values(&evaluate(&expr, "<a: string?>", vec![texts.clone()]).unwrap())
    };
    let b = Scalar::Boolean;
    assert_eq!(f("like", Expr::string("PROMO%")), [b(true), Scalar::Null, b(false), b(false)]);
    assert_eq!(f("ilike", Expr::string("PROMO%")), [b(true), Scalar::Null, b(false), b(true)]);
    assert_eq!(f("regex", Expr::string("^P.*D$")), [b(true), Scalar::Null, b(false), b(false)]);
    assert_eq!(f("iregex", Expr::string("^p")), [b(true), Scalar::Null, b(false), b(true)]);
    assert_eq!(f("like", Expr::field("a")), [b(true), Scalar::Null, b(true), b(true)]);
    assert_eq!(f("like", Expr::null(Atom::String)), vec![Scalar::Null; 4]);
    let escaped = call("like", [Expr::string("50%"), Expr::string("50!%"), Expr::string("!")]);
    assert_eq!(constant(&escaped).unwrap(), b(true));
    assert_eq!(
        code(constant(&call("like", [Expr::string("ab"), Expr::string("a\\")]))),
        Code::Data
    );
    assert_eq!(
        constant(&call("like", [Expr::string("a"), Expr::string("a\\")])).unwrap(),
        b(false)
    );
    assert_eq!(code(constant(&call("regex", [Expr::string("a"), Expr::string("(")]))), Code::Data);
}

#[test]
fn volatile_functions_differ_per_row() {
    let bound = bind(&call("random", []), "<>").unwrap();
    let found = values(&bound.evaluate(&Chunk::new(Vec::new(), 8), &run()).unwrap());
    assert_eq!(found.len(), 8);
    assert!(found.windows(2).any(|pair| pair[0] != pair[1]));
}

#[test]
fn aggregates_have_types() {
    let library = library();
    for (name, arg, expected) in [
        ("count", "string", "int64"),
        ("sum", "int32", "int64"),
        ("sum", "uint32", "int64"),
        ("sum", "int64", "decimal(38,0)"),
        ("sum", "decimal(15,2)", "decimal(38,2)"),
        ("sum", "float32", "float64"),
        ("avg", "decimal(15,2)", "float64"),
        ("avg", "int8", "float64"),
        ("min", "string", "string"),
        ("max", "date", "date"),
        ("bool_and", "boolean", "boolean"),
        ("stddev", "int64", "float64"),
        ("var_pop", "decimal(15,2)", "float64"),
        ("array_agg", "int64", "list<int64?>"),
        ("median", "float64", "float64"),
    ] {
        let (atom, nullable) =
            library.aggregate(name, &[(arg.parse().unwrap(), true)], false).unwrap();
        assert_eq!(atom.to_string(), expected, "{name}({arg})");
        assert_eq!(nullable, name != "count");
    }
    assert!(library.aggregate("sum", &[(Atom::String, true)], false).is_err());
    assert!(library.aggregate("no_such", &[(Atom::String, true)], false).is_err());
    assert!(library.aggregate_udf("stddev").is_some());
}
