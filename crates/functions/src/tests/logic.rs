use arrow::array::{BooleanArray, Int64Array};

use super::*;

fn ints(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

/// Fails for `a` = 0.
fn risky() -> Expr {
    call("gt", [call("div", [Expr::int64(10), Expr::field("a")]), Expr::int64(2)])
}

fn not_zero() -> Expr {
    call("not_eq", [Expr::field("a"), Expr::int64(0)])
}

#[test]
fn three_valued_logic() {
    let all = [Some(true), Some(false), None];
    let truth = |v: Option<bool>| v.map_or(Scalar::Null, Scalar::Boolean);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for x in all {
        for y in all {
            a.push(x);
            b.push(y);
        }
    }
    let and: Vec<_> = a
        .iter()
        .zip(&b)
        .map(|(a, b)| match (a, b) {
            (Some(false), _) | (_, Some(false)) => truth(Some(false)),
            (Some(true), Some(true)) => truth(Some(true)),
            _ => Scalar::Null,
        })
        .collect();
    let or: Vec<_> = a
        .iter()
        .zip(&b)
        .map(|(a, b)| match (a, b) {
            (Some(true), _) | (_, Some(true)) => truth(Some(true)),
            (Some(false), Some(false)) => truth(Some(false)),
            _ => Scalar::Null,
        })
        .collect();
    let columns: Vec<ArrayRef> =
        vec![Arc::new(BooleanArray::from(a.clone())), Arc::new(BooleanArray::from(b.clone()))];
    let fields = || vec![Expr::field("a"), Expr::field("b")];
    let tuple = "<a: boolean?, b: boolean?>";
    let f = |expr| values(&evaluate(&expr, tuple, columns.clone()).unwrap());
    assert_eq!(f(Expr::And(fields())), and);
    assert_eq!(f(Expr::Or(fields())), or);
    // An expensive second operand is evaluated on a narrowed view.
    let dear = || {
        let text = Expr::Cast {
            input: Box::new(Expr::field("b").cast(Atom::String)),
            to: Atom::Boolean,
            safe: false,
        };
        vec![Expr::field("a"), text]
    };
    assert_eq!(f(Expr::And(dear())), and);
    assert_eq!(f(Expr::Or(dear())), or);
    for (x, y) in a.iter().zip(&b) {
        let constant_of = |v: Option<bool>| v.map_or(Expr::null(Atom::Boolean), Expr::boolean);
        let mixed = |list: Vec<Expr>, expr: fn(Vec<Expr>) -> Expr| f(expr(list));
        let row = a.iter().zip(&b).position(|pair| pair == (x, y)).unwrap();
        assert_eq!(mixed(vec![constant_of(*x), Expr::field("b")], Expr::And)[row], and[row]);
        assert_eq!(mixed(vec![Expr::field("a"), constant_of(*y)], Expr::Or)[row], or[row]);
    }
    assert_eq!(f(Expr::Not(Box::new(Expr::field("a"))))[0], Scalar::Boolean(false));
    assert_eq!(f(Expr::IsNull(Box::new(Expr::field("a"))))[8], Scalar::Boolean(true));
}

#[test]
fn rejected_rows_do_not_raise() {
    let a = || vec![ints(&[0, 1, 5, 0, 3])];
    let guarded = Expr::And(vec![not_zero(), risky()]);
    let bound = bind(&guarded, "<a: int64>").unwrap();
    assert!(bound.can_raise());
    assert_eq!(positions(&bound.select(Chunk::from_arrays(a()), &run()).unwrap()), [1, 4]);
    let found = values(&bound.evaluate(&Chunk::from_arrays(a()), &run()).unwrap());
    assert_eq!(found, [false, true, false, false, true].map(Scalar::Boolean));
    let zero = call("eq", [Expr::field("a"), Expr::int64(0)]);
    let found = values(&evaluate(&Expr::Or(vec![zero, risky()]), "<a: int64>", a()).unwrap());
    assert_eq!(found, [true, true, false, true, true].map(Scalar::Boolean));
    // With the operands swapped, it fails.
    assert_eq!(
        code(evaluate(&Expr::And(vec![risky(), not_zero()]), "<a: int64>", a())),
        Code::DivisionByZero
    );
}

#[test]
fn unselected_rows_do_not_raise() {
    let bound = bind(&risky(), "<a: int64>").unwrap();
    let chunk = selected(vec![ints(&[0, 1, 5, 0])], &[1, 2]);
    assert_eq!(
        values(&bound.evaluate(&chunk, &run()).unwrap()),
        [true, false].map(Scalar::Boolean)
    );
    assert_eq!(positions(&bound.select(chunk, &run()).unwrap()), [1]);
    let none = selected(vec![ints(&[0])], &[]);
    assert!(bound.evaluate(&none, &run()).unwrap().is_empty());
    let constant = bind(&call("div", [Expr::int64(1), Expr::int64(0)]), "<a: int64>").unwrap();
    assert!(constant.evaluate(&none, &run()).unwrap().is_empty());
    assert_eq!(
        code(constant.evaluate(&selected(vec![ints(&[0])], &[0]), &run())),
        Code::DivisionByZero
    );
}

#[test]
fn selections_narrow_whatever_their_share() {
    let stored: Vec<i64> = (0..100).collect();
    let below = |limit| call("lt", [Expr::field("a"), Expr::int64(limit)]);
    let odd = call("eq", [call("mod", [Expr::field("a"), Expr::int64(2)]), Expr::int64(1)]);
    let bound = bind(&Expr::And(vec![below(50), odd, below(20)]), "<a: int64>").unwrap();
    for share in [1, 2, 3, 10, 50] {
        let counting: Vec<u32> = (0..100).filter(|i| i % share == 0).collect();
        let expected: Vec<u32> =
            counting.iter().copied().filter(|i| i % 2 == 1 && *i < 20).collect();
        let found = bound.select(selected(vec![ints(&stored)], &counting), &run()).unwrap();
        assert_eq!(positions(&found), expected);
    }
    let all = bind(&Expr::And(vec![]), "<a: int64>").unwrap();
    assert!(
        all.select(Chunk::from_arrays(vec![ints(&stored)]), &run()).unwrap().selection().is_none()
    );
}

#[test]
fn branches_not_taken_do_not_raise() {
    let quotient = call("div", [Expr::int64(10), Expr::field("a")]);
    let zero = call("eq", [Expr::field("a"), Expr::int64(0)]);
    let guarded = |otherwise: Option<Expr>| Expr::Case {
        branches: vec![
            (zero.clone(), Expr::int64(-1)),
            (call("gt", [Expr::field("a"), Expr::int64(4)]), Expr::field("a")),
        ],
        otherwise: otherwise.map(Box::new),
    };
    let a = || vec![ints(&[0, 1, 5, 0, 3])];
    let found = evaluate(&guarded(Some(quotient)), "<a: int64>", a()).unwrap();
    assert_eq!(values(&found), [-1, 10, 5, -1, 3].map(Scalar::Integer));
    let found = evaluate(&guarded(None), "<a: int64>", a()).unwrap();
    assert_eq!(values(&found)[1], Scalar::Null);
    // A constant that fails raises no error unless a tuple reaches it.
    let never = Expr::Case {
        branches: vec![(not_zero(), Expr::field("a"))],
        otherwise: Some(Box::new(call("div", [Expr::int64(1), Expr::int64(0)]))),
    };
    assert_eq!(
        values(&evaluate(&never, "<a: int64>", vec![ints(&[7])]).unwrap()),
        [Scalar::Integer(7)]
    );
    assert_eq!(code(evaluate(&never, "<a: int64>", vec![ints(&[0])])), Code::DivisionByZero);
}

#[test]
fn case_with_a_null_condition_goes_on() {
    let condition: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]));
    for (value, otherwise) in [
        (Expr::string("yes"), Expr::string("no")),
        (Expr::string("yes"), call("upper", [Expr::string("no")])),
    ] {
        let expr = Expr::Case {
            branches: vec![(Expr::field("c"), value)],
            otherwise: Some(Box::new(otherwise.clone())),
        };
        let found = values(&evaluate(&expr, "<c: boolean?>", vec![condition.clone()]).unwrap());
        let text = |text: &str| Scalar::String(text.into());
        let no = match otherwise {
            Expr::Constant(..) => text("no"),
            _ => text("NO"),
        };
        assert_eq!(found, [text("yes"), no.clone(), no]);
    }
}

#[test]
fn coalesce_evaluates_what_it_needs() {
    let a: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(0), None]));
    let b: ArrayRef = Arc::new(Int64Array::from(vec![Some(0), Some(5), Some(0), None]));
    let quotient = call("div", [Expr::int64(10), Expr::field("b")]);
    let expr = Expr::Coalesce(vec![Expr::field("a"), quotient, Expr::int64(-1)]);
    let found = evaluate(&expr, "<a: int64?, b: int64?>", vec![a, b]).unwrap();
    assert_eq!(values(&found), [1, 2, 0, -1].map(Scalar::Integer));
}

#[test]
fn the_try_form_is_true_where_it_would_raise() {
    let expr = Expr::Try(Box::new(risky()));
    let bound = bind(&expr, "<a: int64>").unwrap();
    assert!(!bound.can_raise());
    let found = bound.evaluate(&Chunk::from_arrays(vec![ints(&[0, 1, 5, 0, 3])]), &run()).unwrap();
    assert_eq!(values(&found), [true, true, false, true, true].map(Scalar::Boolean));
    assert_eq!(
        values(&evaluate(&expr, "<a: int64>", vec![ints(&[0])]).unwrap()),
        [Scalar::Boolean(true)]
    );
}

#[test]
fn constants_stay_constant() {
    let expr = call("add", [Expr::field("a"), Expr::int64(1)]);
    let bound = bind(&expr, "<a: int64>").unwrap();
    let value = scalar_to_array(&Scalar::Integer(4), &Atom::Int64).unwrap();
    let chunk = Chunk::new(vec![Column::Constant(value, 1000)], 1000);
    let found = bound.evaluate(&chunk, &run()).unwrap();
    assert!(
        matches!(&found, Column::Constant(value, 1000) if array_value(value, 0).unwrap() == Scalar::Integer(5))
    );
}

#[test]
fn disjunctions_of_equalities_are_sets() {
    let of = |field: &str, list: Vec<Expr>| {
        Expr::Or(list.into_iter().map(|c| call("eq", [Expr::field(field), c])).collect())
    };
    let tuple = "<a: int64?, s: string?>";
    let a: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2), None, Some(30)]));
    let s = strings(&[Some("x"), Some("a rather long text"), Some("y"), None]);
    for (list, field) in [
        (vec![Expr::int64(2), Expr::int64(30), Expr::int64(7)], "a"),
        ((0..40).map(|i| Expr::int64(i * 2)).collect(), "a"),
        (vec![Expr::int64(2), Expr::null(Atom::Int64), Expr::int64(7)], "a"),
        (vec![Expr::string("x"), Expr::string("a rather long text"), Expr::string("z")], "s"),
        (
            vec![Expr::string("x"), Expr::null(Atom::String), Expr::string("z"), Expr::string("w")],
            "s",
        ),
    ] {
        let set = of(field, list.clone());
        assert!(format!("{:?}", bind(&set, tuple).unwrap()).contains("InSet"));
        // Another comparison between two equalities prevents merging them.
        let apart = Expr::Or(
            list.into_iter()
                .flat_map(|c| {
                    [
                        call("eq", [Expr::field(field), c]),
                        call("lt", [Expr::field("a"), Expr::int64(-1)]),
                    ]
                })
                .collect(),
        );
        let expected = values(&evaluate(&apart, tuple, vec![a.clone(), s.clone()]).unwrap());
        let found = values(&evaluate(&set, tuple, vec![a.clone(), s.clone()]).unwrap());
        // If `a` is NULL, the comparison in between is unknown.
        for row in [0, 1, 3] {
            assert_eq!(found[row], expected[row], "{set:?} {row}");
        }
    }
}

/// One row of a table column; its array also holds a string too long for an inline view.
fn with_spare_string(value: &str) -> Column {
    let array = strings(&[Some("a longer text than sixteen bytes"), Some(value)]);
    Column::Constant(array.slice(1, 1), 2)
}

#[test]
fn constants_of_a_choice_keep_their_bytes_beside_longer_strings() {
    let mask: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
    let columns =
        vec![Column::Plain(mask), with_spare_string("Zürich"), with_spare_string("zebra")];
    let choice = Expr::Case {
        branches: vec![(Expr::field("a"), Expr::field("s"))],
        otherwise: Some(Box::new(Expr::field("t"))),
    };
    let bound = bind(&choice, "<a: boolean, s: string, t: string>").unwrap();
    let column = bound.evaluate(&Chunk::new(columns, 2), &run()).unwrap();
    assert_eq!(values(&column), ["Zürich", "zebra"].map(|text| Scalar::String(text.into())));
}
