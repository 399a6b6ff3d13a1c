//! Predicates over columns that are constant in each file: paths and hive partitions. They decide
//! which files are opened at all.

use tessera_context::Run;
use tessera_operator::Lowering;
use tessera_plan::Expr;
use tessera_types::Result;
use tessera_vector::{Chunk, Column};

use super::FileScan;
use super::conjuncts::{Conjunct, conjunct};

/// The conjuncts of a scan's predicate that read only constants of files.
#[derive(Debug)]
pub struct FilePredicate(Vec<Conjunct>);

impl FilePredicate {
    /// Binds those conjuncts of a scan that cannot raise an error.
    ///
    /// # Errors
    /// Those of [`tessera_functions::BoundExpr::new`].
    pub fn new(scan: &FileScan, lowering: &Lowering<'_>) -> Result<FilePredicate> {
        let is_constant = |name: &str| {
            !scan.partitions.is_empty()
                && scan.partitions.iter().all(|row| row.iter().any(|(known, ..)| **known == *name))
        };
        let mut conjuncts = Vec::new();
        for expr in scan.filter.as_ref().map(Expr::conjuncts).unwrap_or_default() {
            let fields = expr.fields();
            if fields.is_empty() || !fields.iter().all(|name| is_constant(name)) {
                continue;
            }
            let bound = conjunct(&expr, &scan.columns, lowering)?;
            if !bound.bound.can_raise() {
                conjuncts.push(bound);
            }
        }
        Ok(FilePredicate(conjuncts))
    }

    /// Returns the positions of the files that can have selected rows, and counts the others.
    ///
    /// # Errors
    /// A constant is not of its column's type.
    pub fn wanted(&self, scan: &FileScan, run: &Run) -> Result<Vec<usize>> {
        let all = 0..scan.paths.len();
        if self.0.is_empty() {
            return Ok(all.collect());
        }
        let mut wanted = Vec::new();
        for position in all {
            run.context.check()?;
            if self.selects(scan, position, run)? {
                wanted.push(position);
            }
        }
        run.counters.add("files_skipped", (scan.paths.len() - wanted.len()) as u64);
        Ok(wanted)
    }

    fn selects(&self, scan: &FileScan, position: usize, run: &Run) -> Result<bool> {
        let constants = scan.constants(position)?;
        for Conjunct { columns, bound, .. } in &self.0 {
            let columns = columns.iter().filter_map(|&column| constants.get(column)?.clone());
            let columns = columns.map(|constant| Column::Constant(constant, 1)).collect();
            if bound.select(Chunk::new(columns, 1), run)?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
