//! Helpers for tests of expressions, in this crate and in crates that depend on it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringViewArray, UInt32Array};
use tessera_context::Run;
use tessera_context::testing::TestContext;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Code, Result, Tuple};
use tessera_vector::{Chunk, Column};

use super::{BoundExpr, Library};
use tessera_values::scalar::array_value;

/// Creates a run without parameters.
pub fn run() -> Run {
    Run::new(TestContext::new(2048, 1))
}

/// The function library, shared by all tests.
pub fn library() -> Arc<Library> {
    static LIBRARY: std::sync::OnceLock<Arc<Library>> = std::sync::OnceLock::new();
    LIBRARY.get_or_init(Arc::default).clone()
}

/// Binds an expression to a tuple.
pub fn bind(expr: &Expr, tuple: &str) -> Result<BoundExpr> {
    BoundExpr::new(expr, &tuple.parse().unwrap(), &Tuple::empty(), &library())
}

/// Evaluates an expression over these columns.
pub fn evaluate(expr: &Expr, tuple: &str, columns: Vec<ArrayRef>) -> Result<Column> {
    let bound = bind(expr, tuple)?;
    let column = bound.evaluate(&Chunk::from_arrays(columns), &run())?;
    assert_eq!(column.plain()?.data_type(), &bound.atom().0.arrow());
    Ok(column)
}

/// Evaluates an expression without fields.
pub fn constant(expr: &Expr) -> Result<Scalar> {
    let bound = bind(expr, "<>")?;
    let value = bound.evaluate(&Chunk::unit(), &run())?.plain()?;
    assert_eq!(value.data_type(), &bound.atom().0.arrow());
    array_value(&value, 0)
}

/// A constant parsed from text.
pub fn value(atom: &str, text: &str) -> Expr {
    Expr::string(text).cast(atom.parse().unwrap())
}

/// NULL of a type.
pub fn null(atom: &str) -> Expr {
    Expr::null(atom.parse().unwrap())
}

/// A function call.
pub fn call(function: &str, args: impl Into<Vec<Expr>>) -> Expr {
    Expr::call(function, args.into())
}

/// Formats the value and the type of an expression without fields.
pub fn shown(expr: &Expr) -> String {
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

/// A column of strings.
pub fn strings(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(values.iter().copied().collect::<StringViewArray>())
}

/// The values of a column.
pub fn values(column: &Column) -> Vec<Scalar> {
    let array = column.plain().unwrap();
    (0..array.len()).map(|i| array_value(&array, i).unwrap()).collect()
}

/// The code of an error.
pub fn code<T: std::fmt::Debug>(result: Result<T>) -> Code {
    result.unwrap_err().code()
}

/// A chunk in which only these stored tuples are selected.
pub fn selected(columns: Vec<ArrayRef>, positions: &[u32]) -> Chunk {
    Chunk::from_arrays(columns).select(Arc::new(UInt32Array::from(positions.to_vec())))
}

/// The positions of the selected tuples.
pub fn positions(chunk: &Chunk) -> Vec<u32> {
    match chunk.selection() {
        None => (0..chunk.rows() as u32).collect(),
        Some(selection) => selection.values().to_vec(),
    }
}
