//! Tests of expressions: each function family on plain, sliced, dictionary and constant columns.

mod arithmetic;
mod casts;
mod compare;
mod dictionary;
mod functions;
mod logic;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use tessera_context::Run;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Code, Tuple};
use tessera_vector::{Chunk, Column};

use super::BoundExpr;
use super::testing::*;
use tessera_values::scalar::{array_value, scalar_to_array};

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
    let bound = BoundExpr::new(&expr, &tuple, &parameters, &library()).unwrap();
    for p in [2, 3] {
        let value = scalar_to_array(&Scalar::Integer(p), &Atom::Int64).unwrap();
        let run = Run {
            parameters: Chunk::from_arrays(vec![value]),
            parameter_tuple: parameters.clone(),
            ..run()
        };
        let column: ArrayRef = Arc::new(arrow::array::Int64Array::from(vec![5, 7]));
        let found = bound.evaluate(&Chunk::from_arrays(vec![column]), &run).unwrap();
        assert_eq!(values(&found), [Scalar::Integer(5 * p), Scalar::Integer(7 * p)]);
    }
}
