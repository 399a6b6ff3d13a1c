//! Expressions: the function library, binding, and evaluation.
//!
//! [`Library`] resolves functions by name and argument types: native ones first (comparisons,
//! checked arithmetic, dates, patterns, bits), one family per file, then DataFusion's (`foreign`).
//! A [`BoundExpr`] is an expression bound to an input tuple; it computes a column or narrows the
//! selection of a chunk. See `evaluate` for evaluation.
//!
//! `unsafe` code is confined to `compiled`, `computed`, `key_hash` and `user`, which call compiled
//! code.
//!
//! ```
//! use std::sync::{Arc, OnceLock};
//! use tessera_functions::{BoundExpr, Library};
//! use tessera_plan::Expr;
//! use tessera_types::{Atom, Field, Tuple};
//!
//! let field = |name: &str| Field::new(name, Atom::Decimal(15, 2));
//! let tuple = Tuple::new(vec![field("price"), field("discount")]);
//! let rest = Expr::call("sub", vec![Expr::int64(1), Expr::field("discount")]);
//! let revenue = Expr::call("mul", vec![Expr::field("price"), rest]);
//! let bound = BoundExpr::new(&revenue, &tuple, &Tuple::empty(), &Arc::new(Library::new()))?;
//! assert_eq!(bound.atom(), (&Atom::Decimal(31, 4), false));
//! assert!(!bound.can_raise());
//! # Ok::<(), tessera_types::Error>(())
//! ```

mod aggregate_types;
mod arithmetic;
mod bind;
mod bit_aggregates;
mod bit_strings;
mod bits;
pub mod bytes;
mod code;
mod compare;
mod compiled;
mod computed;
mod concat_op;
mod datetime;
mod decimal;
mod degrees;
mod evaluate;
mod extremes;
mod fold;
mod foreign;
mod frame_offset;
pub mod growth;
mod in_set;
mod kept_types;
pub mod key_hash;
mod lambdas;
mod library;
mod list_numbers;
mod lists;
mod logic;
mod long_strings;
pub mod macros;
mod math;
mod nullif;
mod numbers;
mod offered;
mod patterns;
mod quantified;
mod rounding;
mod select;
mod strict;
mod strings;
mod substr;
mod temporal;
mod type_info;
mod user;
mod uuids;
mod width_bucket;

pub mod testing;
#[cfg(test)]
mod tests;
mod window_type;

use std::sync::{Arc, OnceLock};

use arrow::array::Array;
use arrow::compute::concat;
use tessera_context::Run;
use tessera_plan::Expr;
use tessera_types::{Atom, Code, Error, Result, Tuple};
use tessera_vector::{Chunk, Column};

use bind::{Binder, Node, NodeKind};
use evaluate::{View, evaluate};
use tessera_values::kernel::as_boolean;

pub use code::{Coder, Origin};
use compiled::PredicateCode;
pub use compiled::{
    CodeVariants, Inputs, Predicate, TierCounters, is_readable, positions_from, positions_of, raw,
};
pub use computed::Computation;
use computed::ComputationCode;

pub use aggregate_types::argument_fields;
pub use bit_aggregates::of_bit_strings;
pub use datetime::{divide_interval, interval_between};
pub use fold::constant;
pub use foreign::foreign_type;
pub use lambdas::ALIASES as LAMBDA_FUNCTIONS;
pub use library::{Library, temporal_and_string_names};
pub use numbers::WHOLE_QUOTIENT;
pub use offered::is_offered;
pub use strict::{is_strict, is_written_null};
pub use temporal::series::TimestampSeries;
pub use type_info::duckdb_name;
pub use user::UserFunction;
pub use window_type::{WINDOW_FUNCTIONS, window_type};

/// An expression bound to an input tuple: names are resolved, functions found, constants computed.
#[derive(Debug, Clone)]
pub struct BoundExpr {
    /// The conjuncts of a predicate in evaluation order; for other expressions a single node.
    nodes: Arc<[Node]>,
    atom: Atom,
    nullable: bool,
    /// Whether intermediate values may be far longer than the input fields.
    grows: bool,
    /// Code of the expression as a predicate, created by the first run.
    predicate_code: Arc<OnceLock<Option<Arc<PredicateCode>>>>,
    /// Code of the expression as a value, created by the first run.
    computation_code: Arc<OnceLock<Option<Arc<ComputationCode>>>>,
}

impl BoundExpr {
    /// Binds an expression over `tuple` in a plan with these parameters.
    ///
    /// # Errors
    /// As [`tessera_plan::type_of`].
    pub fn new(
        expr: &Expr,
        tuple: &Tuple,
        parameters: &Tuple,
        library: &Arc<Library>,
    ) -> Result<BoundExpr> {
        let mut node = Binder { tuple, parameters, library }.bind(expr)?;
        let (atom, nullable) = (node.atom.clone(), node.nullable);
        let nodes = match &mut node.kind {
            NodeKind::And(list) if list.len() > 1 => {
                select::order(list);
                std::mem::take(list)
            }
            _ => vec![node],
        };
        let (predicate_code, computation_code) = (Arc::default(), Arc::default());
        let grows = growth::grows_in(expr);
        Ok(BoundExpr {
            nodes: nodes.into(),
            atom,
            nullable,
            grows,
            predicate_code,
            computation_code,
        })
    }

    /// The result type, and whether results may be NULL.
    pub fn atom(&self) -> (&Atom, bool) {
        (&self.atom, self.nullable)
    }

    /// Whether intermediate values may be far longer than the input fields.
    pub fn grows(&self) -> bool {
        self.grows
    }

    /// Whether some input makes the expression fail.
    pub fn can_raise(&self) -> bool {
        self.nodes.iter().any(|node| node.raises)
    }

    /// Whether the expression can be compiled as a predicate without reading strings. Strings may
    /// be dictionary-encoded, which the vectorized tier handles better.
    pub fn has_code(&self) -> bool {
        compiled::code_of(self, false).is_some()
    }

    /// Computes the value of each selected tuple (dense).
    ///
    /// # Errors
    /// A value overflows, divides by zero or does not convert. Tuples that are not selected, were
    /// rejected by an earlier conjunct, or are in a CASE branch not taken never raise errors.
    pub fn evaluate(&self, chunk: &Chunk, run: &Run) -> Result<Column> {
        if !self.grows {
            return self.evaluate_at_once(chunk, run);
        }
        let evaluate = |piece: &Chunk| self.evaluate_at_once(piece, run);
        let values = growth::each_piece(
            chunk,
            run,
            |sample| evaluate(sample).map(drop),
            |_, piece| evaluate(piece),
        )?;
        if let [only] = &values[..] {
            return Ok(only.clone());
        }
        let values = values.iter().map(Column::plain).collect::<Result<Vec<_>>>()?;
        let values: Vec<&dyn Array> = values.iter().map(|array| array.as_ref()).collect();
        Ok(Column::Plain(concat(&values)?))
    }

    /// Whether the chunk has to be evaluated in pieces to limit memory.
    fn is_cut(&self, chunk: &Chunk, run: &Run) -> bool {
        let evaluate = |sample: &Chunk| self.evaluate_at_once(sample, run).map(drop);
        self.grows
            && growth::piece_rows(chunk, run, evaluate).is_some_and(|piece| piece < chunk.rows())
    }

    fn evaluate_at_once(&self, chunk: &Chunk, run: &Run) -> Result<Column> {
        let view = match chunk.selection() {
            None => View::all(chunk.stored(), chunk.rows_stored(), &run.parameters),
            Some(selection) => {
                View::at(chunk.stored(), selection.as_ref().clone(), &run.parameters)
            }
        };
        match &*self.nodes {
            [node] => evaluate(node, &view),
            conjuncts => logic::connective(conjuncts, &view, false),
        }
    }

    /// Selects the tuples for which this predicate is true.
    ///
    /// # Errors
    /// As [`BoundExpr::evaluate`].
    pub fn select(&self, chunk: Chunk, run: &Run) -> Result<Chunk> {
        if self.atom != Atom::Boolean {
            return Err(Error::new(
                Code::Semantic,
                format!("a predicate must be boolean, not {}", self.atom),
            ));
        }
        if self.is_cut(&chunk, run) {
            let is_true = self.evaluate(&chunk, run)?.plain()?;
            return Ok(chunk.filter(as_boolean(&is_true)?));
        }
        select::select(&self.nodes, chunk, &run.parameters)
    }
}
