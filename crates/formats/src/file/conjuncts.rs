//! The conjuncts of a scan's predicate.

use std::sync::Arc;

use tessera_context::Run;
use tessera_functions::{BoundExpr, Predicate};
use tessera_operator::{Lowering, describe};
use tessera_plan::Expr;
use tessera_types::{Result, Tuple};
use tessera_vector::{Chunk, Column};

/// A conjunct of a predicate, bound to the columns it reads.
#[derive(Debug)]
pub struct Conjunct {
    /// The positions (in the scan's columns) of the inputs of `bound`, in their order.
    pub columns: Vec<usize>,
    /// The predicate over these columns.
    pub bound: BoundExpr,
    /// The conjuncts that were combined into this one.
    pub parts: Vec<Expr>,
}

/// A conjunct in one run.
#[derive(Debug)]
pub struct RunConjunct {
    /// Like [`Conjunct::columns`].
    pub columns: Vec<usize>,
    /// The predicate over these columns.
    pub predicate: Predicate,
}

/// Starts the conjuncts for a run.
pub fn start_conjuncts(conjuncts: &[Conjunct], run: &Run) -> Arc<[RunConjunct]> {
    let start = |conjunct: &Conjunct| RunConjunct {
        columns: conjunct.columns.clone(),
        predicate: Predicate::start(&conjunct.bound, run),
    };
    conjuncts.iter().map(start).collect()
}

/// Splits a predicate into bound conjuncts.
///
/// # Errors
/// Those of [`BoundExpr::new`].
pub fn conjuncts(
    filter: Option<&Expr>,
    columns: &Tuple,
    lowering: &Lowering<'_>,
) -> Result<Vec<Conjunct>> {
    let exprs = filter.map(Expr::conjuncts).unwrap_or_default();
    exprs.iter().map(|expr| conjunct(expr, columns, lowering)).collect()
}

/// Like [`conjuncts`], but combines the conjuncts that compiled code can evaluate into one, which
/// comes first: their columns are cheap to read.
///
/// # Errors
/// Those of [`BoundExpr::new`].
pub fn joined_conjuncts(
    filter: Option<&Expr>,
    columns: &Tuple,
    lowering: &Lowering<'_>,
) -> Result<Vec<Conjunct>> {
    let all = conjuncts(filter, columns, lowering)?;
    if all.iter().any(|conjunct| conjunct.bound.can_raise()) {
        return Ok(all);
    }
    let exprs = filter.map(Expr::conjuncts).unwrap_or_default();
    let (with_code, others): (Vec<_>, Vec<_>) =
        exprs.into_iter().zip(all).partition(|(_, conjunct)| conjunct.bound.has_code());
    let others = others.into_iter().map(|(_, conjunct)| conjunct);
    if with_code.is_empty() {
        return Ok(others.collect());
    }
    let joined = Expr::all(with_code.into_iter().map(|(expr, _)| expr).collect());
    Ok(std::iter::once(conjunct(&joined, columns, lowering)?).chain(others).collect())
}

pub(super) fn conjunct(expr: &Expr, columns: &Tuple, lowering: &Lowering<'_>) -> Result<Conjunct> {
    let positions = describe::keys(columns, &expr.fields(), "field")?;
    let read =
        Tuple::new(positions.iter().map(|&i| columns.fields()[i].clone()).collect::<Vec<_>>());
    let bound = BoundExpr::new(expr, &read, lowering.parameters, lowering.library)?;
    let parts = expr.conjuncts();
    Ok(Conjunct { columns: positions, bound, parts })
}

/// Applies conjuncts to a chunk of all columns, then projects it to the scan's output fields.
pub fn filter_and_project(
    columns: &[Column],
    rows: usize,
    conjuncts: &[RunConjunct],
    fields: &[usize],
) -> Result<Chunk> {
    let chosen = |fields: &[usize]| fields.iter().map(|&i| columns[i].clone()).collect();
    let mut left = Chunk::new(Vec::new(), rows);
    for conjunct in conjuncts {
        left = conjunct.predicate.select(left.with_stored(chosen(&conjunct.columns)))?;
        if left.is_empty() {
            break;
        }
    }
    Ok(left.with_stored(chosen(fields)))
}
