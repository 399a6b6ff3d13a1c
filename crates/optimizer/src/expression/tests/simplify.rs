//! Simplified expressions have the same values as the originals, on random rows with NULLs, NaN and
//! errors.

use arrow::array::{
    BooleanArray, Date32Array, Decimal64Array, Float64Array, Int32Array, Int64Array,
};
use proptest::prelude::*;
use tessera_plan::{Scope, type_of};
use tessera_types::TimeUnit;

use super::*;
use crate::expression::{Simplifier, TypeContext};

const TUPLE: &str = "<a: int32?, b: int64?, x: float64?, m: decimal(10,2)?, s: string?, d: date?, p: boolean?, q: boolean?>";
const DAY: i128 = 86_400_000_000;

/// The types of expressions over the test tuple.
struct Typed {
    tuple: Tuple,
    library: Arc<Library>,
}

impl TypeContext for &Typed {
    fn atom(&self, expr: &Expr) -> Option<Atom> {
        type_of(expr, self.scope()).ok().map(|(atom, _)| atom)
    }

    fn must_stay(&self, expr: &Expr) -> bool {
        tessera_plan::rewrite::can_raise(expr, self.scope())
    }
}

impl Typed {
    fn new() -> Typed {
        Typed { tuple: TUPLE.parse().unwrap(), library: library() }
    }

    fn scope(&self) -> Scope<'_> {
        Scope { tuple: &self.tuple, parameters: &self.tuple, functions: &*self.library }
    }
}

fn simplified(expr: Expr) -> Expr {
    let typed = Typed::new();
    Simplifier::new(&typed.library, &typed).tree(expr)
}

type Row = (
    Option<i32>,
    Option<i64>,
    Option<f64>,
    Option<i64>,
    Option<String>,
    Option<i32>,
    [Option<bool>; 2],
);

fn columns(row: &Row) -> Vec<ArrayRef> {
    let (a, b, x, m, s, d, [p, q]) = row;
    vec![
        Arc::new(Int32Array::from(vec![*a])),
        Arc::new(Int64Array::from(vec![*b])),
        Arc::new(Float64Array::from(vec![*x])),
        Arc::new(Decimal64Array::from(vec![*m]).with_precision_and_scale(10, 2).unwrap()),
        strings(&[s.as_deref()]),
        Arc::new(Date32Array::from(vec![*d])),
        Arc::new(BooleanArray::from(vec![*p])),
        Arc::new(BooleanArray::from(vec![*q])),
    ]
}

fn on_row(expr: &Expr, row: &Row) -> std::result::Result<Scalar, Code> {
    let column = evaluate(expr, TUPLE, columns(row)).map_err(|error| error.code())?;
    Ok(values(&column).remove(0))
}

fn rows() -> impl Strategy<Value = Row> {
    let floats = prop::sample::select(vec![0.0, -0.0, 1.0, -1.5, f64::NAN, f64::INFINITY, 1e300]);
    let texts = prop::sample::select(vec!["", "a", "ab", "a%", "b"]).prop_map(String::from);
    let ints = prop::sample::select(vec![-1, 0, 1, 2, i32::MAX]);
    let longs = prop::sample::select(vec![0_i64, 1, 2, -3, i64::MAX]);
    let cents = prop::sample::select(vec![0_i64, 100, 150, -250]);
    let days = prop::sample::select(vec![-1, 0, 1, 20_000]);
    (
        prop::option::of(ints),
        prop::option::of(longs),
        prop::option::of(floats),
        prop::option::of(cents),
        prop::option::of(texts),
        prop::option::of(days),
        [prop::option::of(any::<bool>()), prop::option::of(any::<bool>())],
    )
}

fn comparison() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "eq",
        "not_eq",
        "lt",
        "lt_eq",
        "gt",
        "gt_eq",
        "is_distinct",
        "is_not_distinct",
    ])
}

fn decimal(value: i128, scale: i8) -> Expr {
    Expr::Constant(Scalar::Integer(value), Atom::Decimal(12, scale))
}

fn timestamp(value: i128) -> Expr {
    Expr::Constant(Scalar::Integer(value), Atom::Timestamp(TimeUnit::Microsecond, None))
}

fn whole(value: i64) -> Expr {
    Expr::int64(value)
}

fn longs() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        Just(Expr::field("b")),
        Just(Expr::field("a").cast(Atom::Int64)),
        (-3_i64..3).prop_map(whole),
        Just(whole(i64::MAX)),
        Just(Expr::null(Atom::Int64)),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        let pair = (prop::sample::select(vec!["add", "sub", "div"]), inner.clone(), inner.clone());
        prop_oneof![
            pair.prop_map(|(name, a, b)| call(name, [a, b])),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Expr::Coalesce(vec![a, b])),
            inner.prop_map(|a| call("neg", [a])),
        ]
    })
}

fn compared() -> impl Strategy<Value = Expr> {
    let floats = prop::sample::select(vec![0.0, -0.0, 1.0, f64::NAN, f64::INFINITY]);
    let float = |value| Expr::Constant(Scalar::Float(value), Atom::Float64);
    let hours = (-30_i128..30).prop_map(|hours| timestamp(hours * DAY / 24));
    let pairs = prop_oneof![
        (longs(), longs()),
        ((-2_i64..3).prop_map(whole), Just(Expr::field("a").cast(Atom::Int64))),
        (Just(Expr::field("x")), floats.prop_map(float)),
        (
            Just(Expr::field("m").cast(Atom::Decimal(12, 3))),
            (-2_500_i128..2_500).prop_map(|v| decimal(v, 3))
        ),
        (
            Just(Expr::field("a").cast(Atom::Decimal(12, 1))),
            (-20_i128..20).prop_map(|v| decimal(v, 1))
        ),
        (Just(Expr::field("a").cast(Atom::Float64)), Just(float(1.0))),
        (Just(Expr::field("d").cast(Atom::Timestamp(TimeUnit::Microsecond, None))), hours),
        (Just(Expr::field("p")), prop::option::of(any::<bool>()).prop_map(truth)),
    ];
    (comparison(), pairs, any::<bool>()).prop_map(|(name, (left, right), turned)| match turned {
        true => call(name, [right, left]),
        false => call(name, [left, right]),
    })
}

fn truth(value: Option<bool>) -> Expr {
    value.map_or_else(|| Expr::null(Atom::Boolean), Expr::boolean)
}

fn predicates() -> impl Strategy<Value = Expr> {
    let patterns = prop::sample::select(vec!["", "a", "ab", "a%", "a\\%", "_b"]);
    let sets = prop::collection::vec(prop::option::of(-1_i64..3), 1..4).prop_map(|list| {
        let null = || Expr::null(Atom::Int64);
        let equal =
            |value: Option<i64>| call("eq", [Expr::field("b"), value.map_or_else(null, whole)]);
        Expr::Or(list.into_iter().map(equal).collect())
    });
    let leaf = prop_oneof![
        4 => compared(),
        1 => Just(Expr::field("p")),
        1 => Just(Expr::field("q")),
        1 => prop::option::of(any::<bool>()).prop_map(truth),
        1 => patterns.prop_map(|pattern| call("like", [Expr::field("s"), Expr::string(pattern)])),
        1 => sets,
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let list = || prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            list().prop_map(Expr::And),
            list().prop_map(Expr::Or),
            list().prop_map(Expr::Coalesce),
            inner.clone().prop_map(|inner| Expr::Not(Box::new(inner))),
            inner.clone().prop_map(|inner| Expr::IsNull(Box::new(inner))),
            (list(), list(), prop::option::of(inner.clone())).prop_map(
                |(when, then, otherwise)| {
                    Expr::Case {
                        branches: when.into_iter().zip(then).collect(),
                        otherwise: otherwise.map(Box::new),
                    }
                }
            ),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn what_is_simplified_means_the_same(expr in predicates(), rows in prop::collection::vec(rows(), 1..6)) {
        let simple = simplified(expr.clone());
        for row in &rows {
            let (written, found) = (on_row(&expr, row), on_row(&simple, row));
            // Operands beside a literal NULL are not evaluated.
            if written.is_err() && holds_null(&expr) {
                continue;
            }
            prop_assert_eq!(written, found, "{:?} as {:?} on {:?}", expr, simple, row);
        }
    }
}

fn holds_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Constant(Scalar::Null, _))
        || expr.children().iter().any(|child| holds_null(child))
}

fn print(expr: Expr) -> String {
    tessera_plan::text::print_expr(&simplified(expr))
}

#[test]
fn predicates_get_the_forms_that_scans_prune_by() {
    let field = Expr::field;
    let date = |expr: Expr| expr.cast(Atom::Timestamp(TimeUnit::Microsecond, None));
    let year = call("add", [value("date", "1994-01-01"), value("interval", "1 year")]);
    for (written, expected) in [
        (call("lt", [date(field("d")), year]), "d < '1995-01-01'::date"),
        (call("gt_eq", [whole(5), field("b")]), "b <= 5"),
        (call("eq", [field("a").cast(Atom::Int64), whole(7)]), "a = 7"),
        (call("eq", [field("m").cast(Atom::Decimal(12, 3)), decimal(1_500, 3)]), "m = 1.50"),
        (Expr::Not(Box::new(call("lt", [field("b"), whole(5)]))), "b >= 5"),
        (call("like", [field("s"), Expr::string("ab")]), "s = 'ab'"),
        (Expr::And(vec![field("p"), Expr::boolean(true), field("p")]), "p"),
        (Expr::And(vec![field("p"), Expr::boolean(false)]), "false"),
        (Expr::Coalesce(vec![Expr::null(Atom::Boolean), field("p")]), "p"),
    ] {
        let simple = simplified(written.clone());
        let shown = print(written);
        assert!(
            shown == expected || shown.contains(expected),
            "{shown} for {expected}: {simple:?}"
        );
    }
}

#[test]
fn what_raises_or_is_long_stays() {
    let by_zero = || call("div", [whole(1), whole(0)]);
    assert_eq!(simplified(by_zero()), by_zero());
    let cut = Expr::And(vec![Expr::boolean(false), call("eq", [by_zero(), whole(1)])]);
    assert_eq!(simplified(cut), Expr::boolean(false));
    let kept = Expr::And(vec![call("eq", [by_zero(), whole(1)]), Expr::boolean(false)]);
    assert_eq!(simplified(kept.clone()), kept);
    // An operand that guards one that raises an error stays too.
    let raises =
        call("eq", [call("div", [whole(1), Expr::field("a").cast(Atom::Int64)]), whole(1)]);
    let guarded = Expr::And(vec![Expr::field("p"), raises, Expr::field("q"), Expr::boolean(false)]);
    let Expr::And(list) = simplified(guarded.clone()) else { panic!("the guard is gone") };
    assert_eq!(list.first(), Some(&Expr::field("p")));
    assert_eq!(list.len(), 3, "{list:?}");
    // Operands beside a NULL are not evaluated.
    let beside = call("eq", [call("add", [by_zero(), Expr::null(Atom::Int64)]), Expr::field("b")]);
    assert_eq!(simplified(beside), Expr::null(Atom::Boolean));
    let taken = Expr::Case {
        branches: vec![(Expr::boolean(true), whole(1))],
        otherwise: Some(Box::new(by_zero())),
    };
    assert_eq!(simplified(taken), whole(1));
    let long = call("repeat", [Expr::string("abc"), whole(1 << 40)]);
    assert_eq!(simplified(long.clone()), long);
    let short = call("repeat", [Expr::string("ab"), whole(2)]);
    assert_eq!(simplified(short), Expr::string("abab"));
}
