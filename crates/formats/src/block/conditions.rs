//! Filter conditions that the encoded segments of a block evaluate, without decoding or before it.

use tessera_codegen::Comparison;
use tessera_plan::Expr;
use tessera_plan::rewrite::mirrored;
use tessera_types::{Result, Tuple};
use tessera_values::scalar::scalar_to_array;
use tessera_vector::encoding::{Condition, Verdict};

use super::Block;
use super::scan::NUMBERED;
use crate::file::Conjunct;

/// The parts of a conjunct that compare a column with a constant.
#[derive(Debug)]
pub(super) struct Conditions {
    parts: Vec<ColumnCondition>,
    /// Whether these comparisons are the whole conjunct.
    is_all: bool,
}

/// A comparison of a scan column with a constant.
#[derive(Debug)]
pub(super) struct ColumnCondition {
    /// The column's position in the scan.
    pub(super) column: usize,
    pub(super) condition: Condition,
}

/// The results of evaluating conditions on the segments of one block.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    /// Conditions that segments test without decoding: the conjunct, and the condition within it.
    filters: Vec<(usize, usize)>,
    /// For each conjunct, whether these conditions decide it completely.
    is_decided: Vec<bool>,
}

impl Conditions {
    /// Extracts the conditions of conjuncts over the scan's columns, which have these positions in
    /// the table. Returns none if a conjunct can raise an error, because an earlier test would hide
    /// it.
    pub(super) fn of(
        conjuncts: &[Conjunct],
        columns: &Tuple,
        positions: &[usize],
    ) -> Vec<Conditions> {
        let can_raise = conjuncts.iter().any(|conjunct| conjunct.bound.can_raise());
        let of = |conjunct: &Conjunct| {
            if can_raise {
                return Conditions { parts: Vec::new(), is_all: false };
            }
            let is_stored = |part: &ColumnCondition| positions.get(part.column) != Some(&NUMBERED);
            let parts = conjunct.parts.iter().filter_map(|part| condition(part, columns));
            let parts: Vec<_> = parts.filter(is_stored).collect();
            Conditions { is_all: parts.len() == conjunct.parts.len(), parts }
        };
        conjuncts.iter().map(of).collect()
    }
}

impl Verdicts {
    /// Evaluates conditions on the segments of a block, where `columns` are the scan's columns.
    /// Returns `None` if a condition holds for no tuple.
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

    /// Returns the conditions that segments test.
    pub(super) fn filters<'a>(
        &'a self,
        conditions: &'a [Conditions],
    ) -> impl Iterator<Item = &'a ColumnCondition> {
        self.filters.iter().map(|(conjunct, at)| &conditions[*conjunct].parts[*at])
    }

    /// Whether all tuples satisfy all conjuncts.
    pub(super) fn are_all_true(&self) -> bool {
        self.filters.is_empty() && self.is_decided.iter().all(|is_decided| *is_decided)
    }

    /// Whether the conjunct needs no further evaluation.
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
    let condition = Condition::new(Comparison::from_name(function)?, &constant)?;
    Some(ColumnCondition { column, condition })
}
