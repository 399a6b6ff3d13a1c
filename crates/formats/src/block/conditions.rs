//! Conditions of a filter that the segments of a block answer, without or before decoding.

use tessera_codegen::Comparison;
use tessera_functions::scalar::scalar_to_array;
use tessera_plan::Expr;
use tessera_types::{Result, Tuple};
use tessera_vector::encoding::{Condition, Verdict};

use super::Block;
use crate::file::Conjunct;
use crate::prune::mirrored;

/// What of a conjunct compares a column with a constant.
#[derive(Debug)]
pub(super) struct Conditions {
    parts: Vec<ColumnCondition>,
    /// Whether the conjunct says nothing else.
    is_all: bool,
}

/// A comparison of a column of the scan with a constant.
#[derive(Debug)]
pub(super) struct ColumnCondition {
    /// Its position in the scan.
    pub(super) column: usize,
    pub(super) condition: Condition,
}

/// What a block's segments say of the conjuncts, once for the block.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    /// Conditions that segments test without decoding: the conjunct, and which of its conditions.
    filters: Vec<(usize, usize)>,
    /// Whether nothing of a conjunct is left when these have been tested.
    is_decided: Vec<bool>,
}

impl Conditions {
    /// Those of some conjuncts over the scan's columns; none of conjuncts that can fail, since a
    /// test ahead of one would hide its error.
    pub(super) fn of(conjuncts: &[Conjunct], columns: &Tuple) -> Vec<Conditions> {
        let can_raise = conjuncts.iter().any(|conjunct| conjunct.bound.can_raise());
        let of = |conjunct: &Conjunct| {
            if can_raise {
                return Conditions { parts: Vec::new(), is_all: false };
            }
            let parts: Vec<_> =
                conjunct.parts.iter().filter_map(|part| condition(part, columns)).collect();
            Conditions { is_all: parts.len() == conjunct.parts.len(), parts }
        };
        conjuncts.iter().map(of).collect()
    }
}

impl Verdicts {
    /// Asks the segments of a block, where `columns` has the scan's columns; none where no tuple
    /// satisfies some condition.
    pub(super) fn of(
        conditions: &[Conditions],
        block: &Block,
        columns: &[usize],
    ) -> Result<Option<Verdicts>> {
        let mut verdicts = Verdicts::default();
        for (conjunct, conditions) in conditions.iter().enumerate() {
            let mut is_decided = conditions.is_all;
            for (at, part) in conditions.parts.iter().enumerate() {
                match block.columns[columns[part.column]].verdict(&part.condition)? {
                    Verdict::None => return Ok(None),
                    Verdict::All => {}
                    Verdict::Filter => verdicts.filters.push((conjunct, at)),
                    Verdict::Decode => is_decided = false,
                }
            }
            verdicts.is_decided.push(is_decided);
        }
        Ok(Some(verdicts))
    }

    /// The conditions that segments test.
    pub(super) fn filters<'a>(
        &'a self,
        conditions: &'a [Conditions],
    ) -> impl Iterator<Item = &'a ColumnCondition> {
        self.filters.iter().map(|(conjunct, at)| &conditions[*conjunct].parts[*at])
    }

    /// Whether all tuples are wanted.
    pub(super) fn are_all_true(&self) -> bool {
        self.filters.is_empty() && self.is_decided.iter().all(|is_decided| *is_decided)
    }

    /// Whether a conjunct need not be evaluated.
    pub(super) fn is_decided(&self, conjunct: usize) -> bool {
        self.is_decided[conjunct]
    }
}

fn condition(part: &Expr, columns: &Tuple) -> Option<ColumnCondition> {
    let Expr::Call { function, args } = part else { return None };
    let (function, name, value, atom) = match &args[..] {
        [Expr::Field(name), Expr::Constant(value, atom)] => (&**function, name, value, atom),
        [Expr::Constant(value, atom), Expr::Field(name)] => {
            (mirrored(function)?, name, value, atom)
        }
        _ => return None,
    };
    let column = columns.index_of(name)?;
    if columns.fields()[column].atom() != Some(atom) {
        return None;
    }
    let constant = scalar_to_array(value, atom).ok()?;
    let condition = Condition::new(Comparison::named(function)?, &constant)?;
    Some(ColumnCondition { column, condition })
}
