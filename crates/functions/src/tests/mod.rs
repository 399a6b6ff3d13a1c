//! Tests of expressions: each family on plain, sliced, dictionary and constant columns.

mod arithmetic;
mod casts;
mod compare;
mod dictionary;
mod functions;
mod logic;
mod rules;
mod simplify;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringViewArray, UInt32Array};
use tessera_context::Run;
use tessera_context::testing::TestContext;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Code, Result, Tuple};
use tessera_vector::{Chunk, Column};

use super::scalar::{array_value, scalar_to_array};
use super::{Bound, Library};

fn run() -> Run {
    Run {
        context: TestContext::new(2048, 1),
        parameter_tuple: Tuple::empty(),
        parameters: Chunk::unit(),
        counters: Arc::default(),
        board: Arc::default(),
    }
}

fn library() -> Arc<Library> {
    static LIBRARY: std::sync::OnceLock<Arc<Library>> = std::sync::OnceLock::new();
    LIBRARY.get_or_init(Arc::default).clone()
}

fn bind(expr: &Expr, tuple: &str) -> Result<Bound> {
    Bound::new(expr, &tuple.parse().unwrap(), &Tuple::empty(), &library())
}

fn evaluate(expr: &Expr, tuple: &str, columns: Vec<ArrayRef>) -> Result<Column> {
    let bound = bind(expr, tuple)?;
    let column = bound.evaluate(&Chunk::from_arrays(columns), &run())?;
    assert_eq!(column.plain()?.data_type(), &bound.atom().0.arrow());
    Ok(column)
}

/// The value of an expression without fields.
fn constant(expr: &Expr) -> Result<Scalar> {
    let bound = bind(expr, "<>")?;
    let value = bound.evaluate(&Chunk::unit(), &run())?.plain()?;
    assert_eq!(value.data_type(), &bound.atom().0.arrow());
    array_value(&value, 0)
}

/// A constant read from text.
fn value(atom: &str, text: &str) -> Expr {
    Expr::string(text).cast(atom.parse().unwrap())
}

fn null(atom: &str) -> Expr {
    Expr::null(atom.parse().unwrap())
}

fn call(function: &str, args: impl Into<Vec<Expr>>) -> Expr {
    Expr::call(function, args.into())
}

/// What an expression without fields prints as, with its type.
fn shown(expr: &Expr) -> String {
    let atom = match bind(expr, "<>") {
        Ok(bound) => bound.atom().0.clone(),
        Err(error) => return format!("{:?}", error.code()),
    };
    match constant(&expr.clone().cast(Atom::String)) {
        Ok(Scalar::String(text)) => format!("{text}: {atom}"),
        Ok(_) => format!("NULL: {atom}"),
        Err(error) => format!("{:?}", error.code()),
    }
}

fn strings(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(values.iter().copied().collect::<StringViewArray>())
}

fn values(column: &Column) -> Vec<Scalar> {
    let array = column.plain().unwrap();
    (0..array.len()).map(|i| array_value(&array, i).unwrap()).collect()
}

fn code<T: std::fmt::Debug>(result: Result<T>) -> Code {
    result.unwrap_err().code()
}

/// A chunk in which only these stored tuples count.
fn selected(columns: Vec<ArrayRef>, positions: &[u32]) -> Chunk {
    Chunk::from_arrays(columns).select(Arc::new(UInt32Array::from(positions.to_vec())))
}

fn positions(chunk: &Chunk) -> Vec<u32> {
    match chunk.selection() {
        None => (0..chunk.rows() as u32).collect(),
        Some(selection) => selection.values().to_vec(),
    }
}

#[test]
fn a_long_chain_is_evaluated() {
    let work = || {
        let field = || Expr::field("a");
        let sum = (0..10_000).fold(field(), |sum, _| call("add", [sum, field()]));
        let column: ArrayRef = Arc::new(arrow::array::Int64Array::from(vec![1, 2]));
        let found = evaluate(&sum, "<a: int64>", vec![column]).unwrap();
        assert_eq!(values(&found), [Scalar::Integer(10_001), Scalar::Integer(20_002)]);
        let deep = (0..13_000).fold(field(), |sum, _| call("add", [sum, field()]));
        assert_eq!(code(bind(&deep, "<a: int64>")), Code::Limit);
    };
    std::thread::Builder::new().stack_size(256 << 20).spawn(work).unwrap().join().unwrap();
}

#[test]
fn parameters_are_constants_of_the_run() {
    let tuple: Tuple = "<a: int64>".parse().unwrap();
    let parameters: Tuple = "<p: int64>".parse().unwrap();
    let expr = call("mul", [Expr::field("a"), Expr::Parameter("p".into())]);
    let bound = Bound::new(&expr, &tuple, &parameters, &library()).unwrap();
    for p in [2, 3] {
        let value = scalar_to_array(&Scalar::Integer(p), &Atom::Int64).unwrap();
        let run =
            Run { parameters: Chunk::from_arrays(vec![value]), parameter_tuple: parameters.clone(), ..run() };
        let column: ArrayRef = Arc::new(arrow::array::Int64Array::from(vec![5, 7]));
        let found = bound.evaluate(&Chunk::from_arrays(vec![column]), &run).unwrap();
        assert_eq!(values(&found), [Scalar::Integer(5 * p), Scalar::Integer(7 * p)]);
    }
}
