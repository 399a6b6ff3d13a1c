//! Expressions: the function library, binding, evaluation.
//!
//! [`Library`] names and types functions: ours first (comparisons, checked arithmetic, dates,
//! patterns, bits), one family a file, then DataFusion's (`foreign`). [`Bound`] is an expression
//! bound to a tuple; it gives columns or narrows a chunk's selection. Evaluation is described in
//! `evaluate`, conversions between types in [`cast`].
//!
//! ```
//! use std::sync::{Arc, OnceLock};
//! use tessera_functions::{Bound, Library};
//! use tessera_plan::Expr;
//! use tessera_types::{Atom, Field, Tuple};
//!
//! let field = |name: &str| Field::new(name, Atom::Decimal(15, 2));
//! let tuple = Tuple::new(vec![field("price"), field("discount")]);
//! let rest = Expr::call("sub", vec![Expr::int64(1), Expr::field("discount")]);
//! let revenue = Expr::call("mul", vec![Expr::field("price"), rest]);
//! let bound = Bound::new(&revenue, &tuple, &Tuple::empty(), &Arc::new(Library::new()))?;
//! assert_eq!(bound.atom(), (&Atom::Decimal(31, 4), false));
//! assert!(!bound.can_raise());
//! # Ok::<(), tessera_types::Error>(())
//! ```

mod about;
mod aggregate_types;
mod arithmetic;
mod bind;
mod bits;
pub mod bytes;
pub mod cast;
mod code;
mod compare;
mod compiled;
mod computed;
mod datetime;
mod decimal;
mod degrees;
pub mod digits;
mod evaluate;
pub mod exact;
mod extremes;
mod fold;
mod foreign;
pub mod format;
pub mod growth;
mod in_set;
mod kernel;
pub mod key_hash;
mod library;
mod like;
mod list_numbers;
mod lists;
mod logic;
mod long;
mod math;
mod moments;
mod nullif;
mod numbers;
mod offered;
pub mod one_nan;
mod parse;
mod parse_float;
mod parse_interval;
mod parse_list;
mod patterns;
pub mod plain;
mod quantified;
mod rounding;
mod rowwise;
pub mod scalar;
mod select;
pub mod settled;
mod similar;
mod strict;
mod substr;
mod text;
mod texts;
mod types;
mod user;

pub mod testing;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use arrow::array::Array;
use arrow::compute::concat;
use tessera_context::Run;
use tessera_plan::Expr;
use tessera_types::{Atom, Code, Error, Result, Tuple};
use tessera_vector::{Chunk, Column};

use bind::{Binder, Kind, Node};
use evaluate::{View, evaluate};
use kernel::as_boolean;

pub use code::{Coder, Origin};
use compiled::AskedPredicate;
pub use compiled::{
    Figures, Inputs, Predicate, Variants, lies_at, positions_from, positions_of, raw,
};
use computed::AskedComputation;
pub use computed::Computation;

pub use aggregate_types::argument_fields;
pub use datetime::divided;
pub use fold::constant;
pub use foreign::foreign_type;
pub use format::format_array;
pub use library::{Library, moments_and_texts};
pub use moments::series::Moments;
pub use numbers::WHOLE_QUOTIENT;
pub use offered::is_offered;
pub use strict::{is_strict, is_written_null};
pub use types::common_type;
pub use user::UserFunction;

/// An expression bound to an input tuple: names resolved, functions found, constants made.
#[derive(Debug, Clone)]
pub struct Bound {
    /// The conjuncts of a predicate, in the order of evaluation; else the expression alone.
    nodes: Arc<[Node]>,
    atom: Atom,
    nullable: bool,
    /// Whether values on the way may be far longer than those of its fields.
    grows: bool,
    /// What was asked of a compiler for it as a predicate, by the first run.
    asked: Arc<OnceLock<Option<Arc<AskedPredicate>>>>,
    /// The same for it as a value.
    computation: Arc<OnceLock<Option<Arc<AskedComputation>>>>,
}

impl Bound {
    /// Binds an expression over `tuple`, in a plan with these parameters.
    ///
    /// # Errors
    /// As [`tessera_plan::type_of`].
    pub fn new(
        expr: &Expr,
        tuple: &Tuple,
        parameters: &Tuple,
        library: &Arc<Library>,
    ) -> Result<Bound> {
        let mut node = Binder { tuple, parameters, library }.bind(expr)?;
        let (atom, nullable) = (node.atom.clone(), node.nullable);
        let nodes = match &mut node.kind {
            Kind::And(list) if list.len() > 1 => {
                select::order(list);
                std::mem::take(list)
            }
            _ => vec![node],
        };
        let (asked, computation) = (Arc::default(), Arc::default());
        let grows = growth::grows_in(expr);
        Ok(Bound { nodes: nodes.into(), atom, nullable, grows, asked, computation })
    }

    /// The type of its values, and whether they may be NULL.
    pub fn atom(&self) -> (&Atom, bool) {
        (&self.atom, self.nullable)
    }

    /// Whether values on the way may be far longer than those of its fields.
    pub fn grows(&self) -> bool {
        self.grows
    }

    /// Whether some value of its fields makes it fail.
    pub fn can_raise(&self) -> bool {
        self.nodes.iter().any(|node| node.raises)
    }

    /// Whether compiled code can say, of a tuple, whether it is true, and nothing is said of texts:
    /// those may lie in a dictionary.
    pub fn has_code(&self) -> bool {
        compiled::code_of(self, false).is_some()
    }

    /// Its value for each tuple that counts (dense).
    ///
    /// # Errors
    /// A value that overflows, divides by zero or does not convert; but never for a tuple that does
    /// not count, that an earlier conjunct rejected, or whose CASE branch is not taken.
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

    /// Whether a whole chunk is too much for it at once.
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

    /// As a predicate: the tuples for which it is true.
    ///
    /// # Errors
    /// As [`Bound::evaluate`].
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
