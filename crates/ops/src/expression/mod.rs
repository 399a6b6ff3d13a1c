//! Expressions: the function library, binding, evaluation.

use std::sync::Arc;

use tessera_encodings::{Chunk, Column};
use tessera_plan::{Expr, Functions, Scope};
use tessera_types::{Atom, Error, Result, Tuple};

use crate::context::Run;

/// The functions expressions can call: ours first, then DataFusion's.
#[derive(Debug, Default)]
pub struct Library {}

impl Functions for Library {
    fn scalar(&self, name: &str, _args: &[(Atom, bool, &Expr)]) -> Result<(Atom, bool)> {
        Err(Error::semantic(format!("there is no function {name}")))
    }

    fn aggregate(&self, name: &str, _args: &[(Atom, bool)], _distinct: bool) -> Result<(Atom, bool)> {
        Err(Error::semantic(format!("there is no aggregate function {name}")))
    }
}

/// An expression bound to an input tuple: names resolved, functions found, constants made.
#[derive(Debug, Clone)]
pub struct Bound {
    expr: Expr,
    atom: Atom,
    nullable: bool,
}

impl Bound {
    /// Binds an expression over `tuple`, in a plan with these parameters.
    ///
    /// # Errors
    /// As [`tessera_plan::type_of`].
    pub fn new(expr: &Expr, tuple: &Tuple, parameters: &Tuple, library: &Arc<Library>) -> Result<Bound> {
        let (atom, nullable) =
            tessera_plan::type_of(expr, Scope { tuple, parameters, functions: &**library })?;
        Ok(Bound { expr: expr.clone(), atom, nullable })
    }

    /// The type of its values, and whether they may be NULL.
    pub fn atom(&self) -> (&Atom, bool) {
        (&self.atom, self.nullable)
    }

    /// Its value for each tuple that counts (dense).
    pub fn evaluate(&self, _chunk: &Chunk, _run: &Run) -> Result<Column> {
        Err(Error::unsupported(format!("{:?}", self.expr)))
    }

    /// As a predicate: the tuples for which it is true.
    pub fn select(&self, _chunk: Chunk, _run: &Run) -> Result<Chunk> {
        Err(Error::unsupported(format!("{:?}", self.expr)))
    }
}
