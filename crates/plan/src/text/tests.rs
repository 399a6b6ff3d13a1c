use std::sync::Arc;

use proptest::prelude::*;
use tessera_types::{Atom, Code, Field, Slot, TimeUnit, Tuple};

use super::{parse, print};
use crate::{Builder, Expr, Node, NodeId, Params, Plan, Scalar, Value};

fn with_value(value: impl Into<Value>) -> Plan {
    let mut plan = Builder::new(Tuple::empty());
    let id = plan.add("values", &[], Params::new().with("v", value));
    plan.finish(id)
}

fn round_trip(plan: &Plan) {
    let text = print(plan);
    match parse(&text) {
        Ok(back) => assert_eq!(&back, plan, "{text}"),
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// Parses and prints an expression.
fn again(expr: &str) -> String {
    let plan = parse(&format!("plan {{ %0 = f() {{p = ({expr})}} return %0 }}")).unwrap();
    match plan.nodes[0].param("p") {
        Some(Value::Expr(expr)) => super::print_expr(expr),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_plan_reads_as_it_is_written() {
    let text = "\
plan {
  %0 = parquet_scan() {paths = ['lineitem.parquet'], columns = <l_quantity: decimal(15,2), l_shipdate: date?>}
  %1: <l_quantity: decimal(15,2), l_shipdate: date?> = filter(%0) {
    predicate = l_shipdate <= '1998-09-02'::date AND l_quantity < 24.00::decimal(15,2)
  }
  %2 = nested_map(%1) plan <l_quantity: decimal(15,2), l_shipdate: date?> {
    %0 = parameter_lookup()
    %1 = map(%0) {exprs = {twice = $l_quantity + l_quantity, one = 1::int64}}
    return %1
  }
  %3 = probe(%2, %1) {keys = [twice], join = :inner, limit = 5, mark = 'm', null_aware = true}
  return %3
}
";
    assert_eq!(print(&parse(text).unwrap()), text);
}

#[test]
fn expressions_print_with_the_fewest_parentheses() {
    for (written, printed) in [
        ("((a + b)) + c", "a + b + c"),
        ("a + (b + c)", "a + (b + c)"),
        (
            "list_transform(l, LAMBDA(<x: int64?>, (x + 1)), a)",
            "list_transform(l, LAMBDA(<x: int64?>, x + 1), a)",
        ),
        ("(a + b) * c % d", "(a + b) * c % d"),
        ("a AND (b OR c) AND NOT (d = 1)", "a AND (b OR c) AND NOT d = 1"),
        ("(a AND b) AND c", "(a AND b) AND c"),
        ("(a = b) = c", "(a = b) = c"),
        ("a = b IS NULL", "(a = b) IS NULL"),
        ("NOT (a IS NULL)", "a IS NOT NULL"),
        ("a IS NOT DISTINCT FROM -5", "a IS NOT DISTINCT FROM -5"),
        ("- (5) - -x", "-(5) - -x"),
        ("neg(neg(x))", "-(-x)"),
        ("add(a, 1)", "a + 1"),
        ("AND(a)", "AND(a)"),
        ("CASE WHEN a LIKE 'x%' THEN 1 ELSE 2 END", "CASE WHEN a LIKE 'x%' THEN 1 ELSE 2 END"),
        ("TRY(CAST(a AS int64) > 5)", "TRY(CAST(a AS int64) > 5)"),
        ("COALESCE(a, $p, \"two words\")", "COALESCE(a, $p, \"two words\")"),
        ("\"AND\"(\"NULL\")", "\"AND\"(\"NULL\")"),
        ("1.5::decimal(10,2)", "1.50::decimal(10,2)"),
        ("1::float64", "1.0"),
        ("'2024-02-29 12:00:00.5'::timestamp(ms)", "'2024-02-29 12:00:00.500'::timestamp(ms)"),
        ("'23:59:59'::time(s)", "'23:59:59'::time(s)"),
        ("ITEMS[1, NULL]::list<int64?>", "ITEMS[1, NULL]::list<int64?>"),
        ("e'line\\n\\u{7}'", "e'line\\n\\u{7}'"),
        ("a -- note\n + b", "a + b"),
    ] {
        assert_eq!(again(written), printed, "{written}");
        assert_eq!(again(printed), printed);
    }
}

#[test]
fn escapes_name_a_character_in_braces() {
    let with = |escape: &str| parse(&format!("plan {{ %0 = f() {{a = e'{escape}z'}} return %0 }}"));
    let text = |text: &str| Some(Value::String(text.into()));
    for (escape, expected) in [("\\u{1f600}", "\u{1f600}z"), ("\\u{00004A}x", "Jxz")] {
        let plan = with(escape).unwrap();
        assert_eq!(plan.nodes[0].params.get("a").cloned(), text(expected), "{escape}");
    }
    for escape in ["\\u1f}", "\\u{{1f}", "\\u{+1f}", "\\u{}", "\\u{1f", "\\u{0000041}", "\\u{d800}"]
    {
        let error = with(escape).unwrap_err();
        assert!(error.message().contains("hexadecimal code"), "{escape}: {error}");
    }
}

#[test]
fn errors_tell_the_place() {
    for (text, place, message) in [
        ("", (1, 1), "expected `plan`, found the end of the text"),
        ("plan {\n  %0 = f(%1)\n  return %0 }", (2, 10), "unknown node %1"),
        ("plan { %0 = f() {a = 1 b = 2} return %0 }", (1, 24), "expected `,`"),
        ("plan { %0 = f() {a = x +} return %0 }", (1, 25), "expected an expression, found `}`"),
        ("plan { %0 = f() {a = 'x} return %0 }", (1, 22), "missing closing `'`"),
        ("plan { %0 = f() {a = '2024-02-30'::date} return %0 }", (1, 22), "invalid date"),
        ("plan { %0 = f() {a = 1.234::decimal(5,2)} return %0 }", (1, 22), "more than 2 digits"),
        ("plan { %0 = f() {c = <a: int65>} return %0 }", (1, 30), "type"),
        ("plan { %0 = f() %0 = f() return %0 }", (1, 17), "duplicate node"),
        ("plan { %0 = f() {a = ~} return %0 } x", (1, 22), "expected an expression"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.message().contains(message), "{text}: {error}");
        let span = error.span().unwrap_or_else(|| panic!("{text}: {error}"));
        assert!(span.line == place.0 && span.column.abs_diff(place.1) <= 4, "{text}: {error}");
    }
}

#[test]
fn depth_has_a_named_limit_and_length_has_none() {
    let nested = |n: usize| {
        format!("plan {{ %0 = f() {{a = {}x{}}} return %0 }}", "(".repeat(n), ")".repeat(n))
    };
    parse(&nested(200)).unwrap();
    for text in [
        nested(5_000),
        format!("plan {{ %0 = f() {{a = {}}} return %0 }}", "[".repeat(100_000)),
        format!("plan {{ %0 = f() {{a = {}x}} return %0 }}", "NOT ".repeat(100_000)),
        format!("plan {{ %0 = f() {{a = x{}}} return %0 }}", " + 1".repeat(100_000)),
        format!("plan {{ %0 = f() {{a = x{}}} return %0 }}", " IS NULL".repeat(100_000)),
        format!("plan {{ %0 = f() {{a = {}}} return %0 }}", "ITEMS[".repeat(100_000)),
        "plan { %0 = f() ".repeat(5_000),
    ] {
        let error = parse(&text).unwrap_err();
        assert_eq!(error.code(), Code::Limit, "{error}");
        assert!(error.message().contains("_DEPTH_MAX"), "{error}");
    }
    let sum =
        (0..900).fold(Expr::field("x"), |sum, i| Expr::call("add", vec![sum, Expr::int64(i)]));
    round_trip(&with_value(sum));
    let all = Expr::And(
        (0..20_000).map(|i| Expr::call("not_eq", vec![Expr::field("x"), Expr::int64(i)])).collect(),
    );
    round_trip(&with_value(all));
}

#[test]
fn awkward_constants_round_trip() {
    let day = |days| (Scalar::Integer(days), Atom::Date);
    let constants = [
        (Scalar::Integer(i128::MIN), Atom::Int64),
        (Scalar::Integer(i128::MAX), Atom::Decimal(38, 38)),
        (Scalar::Integer(-5), Atom::Decimal(3, 2)),
        (Scalar::Integer(-5), Atom::Decimal(3, 0)),
        (Scalar::Integer(5), Atom::Float64),
        (Scalar::Float(5.0), Atom::Decimal(3, 2)),
        (Scalar::Float(-0.0), Atom::Float64),
        (Scalar::Float(f64::NAN), Atom::Float32),
        (Scalar::Float(f64::from_bits(0xfff8_0000_0000_0001)), Atom::Float64),
        (Scalar::Float(f64::NEG_INFINITY), Atom::Float64),
        (Scalar::Float(f64::MIN_POSITIVE), Atom::Float64),
        (Scalar::Float(1e300), Atom::Int8),
        day(0),
        day(-719_162),
        day(-719_163),
        day(2_932_896),
        day(2_932_897),
        (Scalar::Integer(-1), Atom::Timestamp(TimeUnit::Nanosecond, Some("Europe/Zurich".into()))),
        (Scalar::Integer(i64::MAX.into()), Atom::Timestamp(TimeUnit::Second, None)),
        (Scalar::Integer(86_400), Atom::Time(TimeUnit::Second)),
        (Scalar::String("it's \\ \"so\"\n".into()), Atom::String),
        (Scalar::String("1998-09-02".into()), Atom::Date),
        (Scalar::Bytes(Arc::from([0u8, 255])), Atom::Bytes),
        (Scalar::Interval { months: -1, days: i32::MIN, nanoseconds: i64::MIN }, Atom::Interval),
        (Scalar::Null, Atom::List(Box::new(Slot::nullable(Atom::Date)))),
        (
            Scalar::Nested(Arc::from([
                Scalar::Integer(1),
                Scalar::Null,
                Scalar::Nested(Arc::from([])),
            ])),
            Atom::List(Box::new(Slot::nullable(Atom::Decimal(10, 2)))),
        ),
        (
            Scalar::Nested(Arc::from([Scalar::String("x".into())])),
            Atom::List(Box::new(Slot::nullable(Atom::Date))),
        ),
    ];
    for (scalar, atom) in constants {
        let constant = Expr::Constant(scalar, atom);
        round_trip(&with_value(constant.clone()));
        round_trip(&with_value(Expr::call("neg", vec![constant.clone()])));
        round_trip(&with_value(Expr::call("sub", vec![constant.clone(), constant.clone()])));
        round_trip(&with_value(vec![
            Value::Expr(constant.clone()),
            Value::Boolean(true),
            Value::Integer(-1),
        ]));
        round_trip(&with_value(Expr::IsNull(Box::new(constant))));
    }
}

pub(crate) fn name() -> impl Strategy<Value = Arc<str>> {
    prop_oneof![
        4 => "[a-c][a-z_0-9$]{0,4}",
        1 => "\\PC{0,6}",
        1 => proptest::sample::select(super::lexer::KEYWORDS).prop_map(str::to_string),
        1 => proptest::sample::select(&["plan", "return", "e", "x", "", "\"", "eq", "neg", "add", "true", "like"][..])
            .prop_map(str::to_string),
    ]
    .prop_map(Arc::from)
}

pub(crate) fn atom() -> impl Strategy<Value = Atom> {
    let unit = || {
        proptest::sample::select(vec![
            TimeUnit::Second,
            TimeUnit::Millisecond,
            TimeUnit::Microsecond,
            TimeUnit::Nanosecond,
        ])
    };
    let zone = proptest::sample::select(vec!["UTC", "Europe/Zurich", "+02:00", "-11:30"])
        .prop_map(Arc::from);
    let leaf = prop_oneof![
        proptest::sample::select(vec![
            Atom::Null,
            Atom::Boolean,
            Atom::Int8,
            Atom::Int64,
            Atom::UInt64,
            Atom::Float32,
            Atom::Float64,
            Atom::String,
            Atom::Bytes,
            Atom::Date,
            Atom::Interval
        ]),
        (1u8..=38).prop_flat_map(|p| (Just(p), 0..=p)).prop_map(|(p, s)| Atom::Decimal(p, s as i8)),
        unit().prop_map(Atom::Time),
        unit().prop_map(Atom::Duration),
        (unit(), proptest::option::of(zone)).prop_map(|(unit, zone)| Atom::Timestamp(unit, zone)),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        let slot =
            (inner.clone(), any::<bool>()).prop_map(|(atom, nullable)| Slot { atom, nullable });
        prop_oneof![
            slot.clone().prop_map(|slot| Atom::List(Box::new(slot))),
            proptest::collection::vec((name(), slot.clone()), 0..3)
                .prop_filter_map("unique names", |slots| Atom::struct_of(slots).ok()),
            (inner, slot).prop_map(|(key, value)| Atom::Map(
                Box::new(Slot { atom: key, nullable: false }),
                Box::new(value)
            )),
        ]
    })
}

fn scalar() -> impl Strategy<Value = Scalar> {
    let leaf = prop_oneof![
        Just(Scalar::Null),
        any::<bool>().prop_map(Scalar::Boolean),
        any::<i128>().prop_map(Scalar::Integer),
        (-100_000i128..100_000).prop_map(Scalar::Integer),
        any::<u64>().prop_map(|bits| Scalar::Float(f64::from_bits(bits))),
        any::<f32>().prop_map(|value| Scalar::Float(value.into())),
        any::<String>().prop_map(|text| Scalar::String(text.into())),
        any::<Vec<u8>>().prop_map(|bytes| Scalar::Bytes(bytes.into())),
        any::<(i32, i32, i64)>().prop_map(|(months, days, nanoseconds)| Scalar::Interval {
            months,
            days,
            nanoseconds
        }),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        proptest::collection::vec(inner, 0..4).prop_map(|items| Scalar::Nested(items.into()))
    })
}

pub(crate) fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        name().prop_map(Expr::Field),
        name().prop_map(Expr::Parameter),
        (scalar(), atom()).prop_map(|(scalar, atom)| Expr::Constant(scalar, atom)),
        any::<i64>().prop_map(Expr::int64),
    ];
    let known: Vec<&str> =
        super::expression::INFIX.iter().map(|(name, ..)| *name).chain(["neg"]).collect();
    leaf.prop_recursive(5, 40, 4, move |inner| {
        let list = proptest::collection::vec(inner.clone(), 0..4);
        let infix = proptest::sample::select(known.clone());
        prop_oneof![
            3 => (infix, inner.clone(), inner.clone())
                .prop_map(|(f, a, b)| Expr::call(f, if f == "neg" { vec![a] } else { vec![a, b] })),
            1 => (name(), list.clone()).prop_map(|(f, args)| Expr::call(f, args)),
            1 => (inner.clone(), atom(), any::<bool>())
                .prop_map(|(input, to, safe)| Expr::Cast { input: Box::new(input), to, safe }),
            1 => (proptest::collection::vec((inner.clone(), inner.clone()), 0..3), proptest::option::of(inner.clone()))
                .prop_map(|(branches, otherwise)| Expr::Case { branches, otherwise: otherwise.map(Box::new) }),
            2 => list.clone().prop_map(Expr::And),
            2 => list.clone().prop_map(Expr::Or),
            1 => list.prop_map(Expr::Coalesce),
            2 => inner.clone().prop_map(|e| Expr::Not(Box::new(e))),
            2 => inner.clone().prop_map(|e| Expr::IsNull(Box::new(e))),
            1 => inner.clone().prop_map(|e| Expr::Try(Box::new(e))),
            1 => (tuple(), inner).prop_map(|(parameters, body)| {
                Expr::Lambda(Arc::new(crate::Lambda { parameters, body }))
            }),
        ]
    })
}

pub(crate) fn tuple() -> impl Strategy<Value = Tuple> {
    proptest::collection::vec((name(), atom(), any::<bool>(), any::<bool>()), 0..4).prop_map(
        |fields| {
            let mut seen = std::collections::HashSet::new();
            let fields = fields.into_iter().filter(|(name, ..)| seen.insert(name.clone()));
            let field = |(name, atom, nullable, collection): (Arc<str>, Atom, bool, bool)| {
                if collection {
                    Field::collection(name, "rows", Tuple::new(vec![Field::new("k", atom)]))
                } else {
                    Field::new(name, atom).with_nullable(nullable)
                }
            };
            Tuple::new(fields.map(field).collect::<Vec<_>>())
        },
    )
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => any::<bool>().prop_map(Value::Boolean),
        1 => any::<i64>().prop_map(Value::Integer),
        1 => name().prop_map(Value::Name),
        1 => any::<String>().prop_map(Value::string),
        1 => tuple().prop_map(Value::Tuple),
        4 => expr().prop_map(Value::Expr),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
            proptest::collection::vec((name(), inner), 0..4).prop_map(Value::Record),
        ]
    })
}

/// Generates plans with inputs before their consumers.
pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    let flat = || plan_of(Just(Vec::new()).boxed());
    let nested = flat().prop_recursive(2, 4, 2, |inner| {
        plan_of(
            prop_oneof![3 => Just(Vec::new()), 1 => proptest::collection::vec(inner, 1..3)].boxed(),
        )
    });
    prop_oneof![flat(), nested]
}

fn plan_of(nested: BoxedStrategy<Vec<Plan>>) -> BoxedStrategy<Plan> {
    let node = (
        name(),
        proptest::collection::vec(any::<u32>(), 0..3),
        proptest::collection::vec((name(), value()), 0..3),
        nested,
        proptest::option::weighted(0.3, tuple()),
    );
    (tuple(), proptest::collection::vec(node, 1..5), any::<u32>())
        .prop_map(|(parameters, nodes, root)| {
            let count = nodes.len() as u32;
            let node = |(position, (operator, inputs, values, nested, expected))| {
                let inputs: Vec<u32> = inputs;
                let inputs = if position == 0 { Vec::new() } else { inputs };
                let mut params = Params::new();
                let values: Vec<(Arc<str>, Value)> = values;
                values.into_iter().for_each(|(name, value)| params.set(name, value));
                let inputs =
                    inputs.into_iter().map(|input| NodeId(input % position as u32)).collect();
                Node { operator, inputs, params, nested, expected, estimated_rows: None }
            };
            Plan {
                parameters,
                nodes: nodes.into_iter().enumerate().map(node).collect(),
                root: NodeId(root % count),
            }
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_round_trips(plan in plan()) {
        let text = print(&plan);
        let back = parse(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(&back, &plan, "{}", text);
        prop_assert_eq!(print(&back), text);
    }

    #[test]
    fn every_expression_round_trips(expr in expr()) {
        let plan = with_value(expr);
        prop_assert_eq!(&parse(&print(&plan)).unwrap(), &plan, "{}", print(&plan));
    }
}
