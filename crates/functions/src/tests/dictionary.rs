use arrow::array::{DictionaryArray, Int32Array};
use arrow::datatypes::Int32Type;

use super::*;

/// A dictionary with these keys and words, and the same strings in plain form.
fn both(keys: &[Option<i32>], words: &[Option<&str>]) -> (Column, Column) {
    let keys = Int32Array::from(keys.to_vec());
    let array: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys, strings(words)));
    let dictionary = Column::Dictionary(array);
    let plain = Column::Plain(dictionary.plain().unwrap());
    (dictionary, plain)
}

#[test]
fn dictionary_and_plain_columns_agree() {
    let field = || Expr::field("a");
    let text = |text: &str| Expr::string(text);
    let number = |expr: Expr| Expr::Cast { input: Box::new(expr), to: Atom::Int64, safe: true };
    let exprs = [
        field(),
        call("eq", [field(), text("12")]),
        call("is_distinct", [field(), text("12")]),
        call("like", [field(), text("%1%")]),
        call("upper", [field()]),
        Expr::IsNull(Box::new(field())),
        Expr::Coalesce(vec![field(), text("none")]),
        number(field()),
        Expr::Or(vec![call("eq", [field(), text("12")]), call("eq", [field(), text("abc")])]),
        Expr::Case {
            branches: vec![(call("like", [field(), text("a%")]), text("A"))],
            otherwise: Some(Box::new(field())),
        },
        Expr::And(vec![
            call("eq", [field(), text("12")]),
            call("gt", [Expr::field("n"), Expr::int64(1)]),
        ]),
        call("eq", [field(), field()]),
    ];
    let words = [Some("12"), Some("abc"), None, Some("unused"), Some("31")];
    let keys: Vec<Option<i32>> =
        [0, 1, 4, 2, 1, 0, 4, 4, 1].map(Some).into_iter().chain([None, Some(0)]).collect();
    let n: ArrayRef =
        Arc::new(arrow::array::Int64Array::from((0..keys.len() as i64).collect::<Vec<_>>()));
    for keys in [&keys[..], &keys[..9], &keys[..3]] {
        let (dictionary, plain) = both(keys, &words);
        let n = Column::Plain(n.slice(0, keys.len()));
        for expr in &exprs {
            let bound = bind(expr, "<a: string?, n: int64>").unwrap();
            for _ in 0..2 {
                let chunk = |a: &Column| Chunk::new(vec![a.clone(), n.clone()], keys.len());
                let found = bound.evaluate(&chunk(&dictionary), &run()).unwrap();
                let expected = bound.evaluate(&chunk(&plain), &run()).unwrap();
                assert_eq!(values(&found), values(&expected), "{expr:?}");
                let some = Arc::new(UInt32Array::from(vec![0, 2]));
                let found =
                    bound.evaluate(&chunk(&dictionary).select(some.clone()), &run()).unwrap();
                let expected = bound.evaluate(&chunk(&plain).select(some), &run()).unwrap();
                assert_eq!(values(&found), values(&expected), "{expr:?}");
                if *bound.atom().0 == Atom::Boolean {
                    let found = bound.select(chunk(&dictionary), &run()).unwrap();
                    let expected = bound.select(chunk(&plain), &run()).unwrap();
                    assert_eq!(positions(&found), positions(&expected), "{expr:?}");
                }
                let found = bound.evaluate(&chunk(&dictionary).slice(1, 2), &run()).unwrap();
                let expected = bound.evaluate(&chunk(&plain).slice(1, 2), &run()).unwrap();
                assert_eq!(values(&found), values(&expected), "{expr:?}");
            }
        }
    }
}

#[test]
fn an_entry_that_no_row_has_does_not_raise() {
    let (column, _) = both(&[Some(0), Some(2), Some(0)], &[Some("1"), Some("x"), Some("3")]);
    let bound = bind(&Expr::field("a").cast(Atom::Int64), "<a: string>").unwrap();
    for _ in 0..2 {
        let found = bound.evaluate(&Chunk::new(vec![column.clone()], 3), &run()).unwrap();
        assert_eq!(values(&found), [1, 3, 1].map(Scalar::Integer));
    }
    let (column, _) = both(&[Some(0), Some(1), Some(0)], &[Some("1"), Some("x"), Some("3")]);
    assert_eq!(code(bound.evaluate(&Chunk::new(vec![column], 3), &run())), Code::Data);
}

#[test]
fn results_on_a_dictionary_are_not_kept_for_other_parameters() {
    let (dictionary, _) = both(&[Some(0), Some(1), Some(0)], &[Some("x"), Some("y")]);
    let parameters: Tuple = "<p: string>".parse().unwrap();
    let expr = call("eq", [Expr::field("a"), Expr::Parameter("p".into())]);
    let bound =
        BoundExpr::new(&expr, &"<a: string?>".parse().unwrap(), &parameters, &library()).unwrap();
    for (parameter, expected) in [("x", [true, false, true]), ("y", [false, true, false])] {
        let given = Chunk::from_arrays(vec![strings(&[Some(parameter)])]);
        let run = Run { parameters: given, parameter_tuple: parameters.clone(), ..run() };
        let found = bound.evaluate(&Chunk::new(vec![dictionary.clone()], 3), &run).unwrap();
        assert_eq!(values(&found), expected.map(Scalar::Boolean), "{parameter}");
    }
}
