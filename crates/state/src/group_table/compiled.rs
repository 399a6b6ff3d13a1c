//! Finding and making groups in compiled code: by keys of fixed width.

use std::sync::{Arc, OnceLock};

use tessera_codegen::{FindGroups, GroupCode, InputCode, Machine};
use tessera_context::Run;
use tessera_functions::{Figures, Origin, Variants};
use tessera_types::{Result, Tuple};
use tessera_vector::{Chunk, Column};

use super::keys::KeyLayout;
use super::table::Table;

/// A new record is written word by word.
const STRIDE_MAX: usize = 128;

/// What was asked of a compiler for a node. All runs share it: a nested plan has many.
pub(super) type AskedGroups = OnceLock<Option<Arc<Asked>>>;

#[derive(Debug)]
pub(super) struct Asked {
    code: GroupCode,
    origins: Vec<Origin>,
    variants: Variants<dyn FindGroups>,
}

/// Finds and makes groups, in one run.
#[derive(Debug)]
pub(super) struct GroupFinder {
    asked: Arc<Asked>,
    run: Run,
    /// Where there are no states, whose tuples are counted.
    figures: Option<Figures>,
}

impl Asked {
    /// For the first fields of tuples; none where there is no key, or one without code.
    fn new(tuple: &Tuple, layout: &KeyLayout, stride: usize) -> Option<Asked> {
        let offsets =
            layout.coded_offsets().filter(|keys| !keys.is_empty() && stride <= STRIDE_MAX)?;
        let key = |field: &tessera_types::Field| {
            Some(InputCode::column(field.atom().and_then(Machine::of)?, field.nullable))
        };
        let keys = tuple.fields()[..offsets.len()].iter().map(key).collect::<Option<Vec<_>>>()?;
        let origins = (0..keys.len()).map(Origin::Field).collect();
        Some(Asked {
            code: GroupCode { keys, offsets, stride },
            origins,
            variants: Variants::default(),
        })
    }
}

impl GroupFinder {
    /// None where there is no compiler, or no code for the keys, which are the first fields of
    /// tuples.
    pub(super) fn start(
        asked: &AskedGroups,
        (tuple, layout, stride): (&Tuple, &KeyLayout, usize),
        has_states: bool,
        run: &Run,
    ) -> Option<Arc<GroupFinder>> {
        run.context.compiler()?;
        let asked =
            asked.get_or_init(|| Asked::new(tuple, layout, stride).map(Arc::new)).clone()?;
        let figures = (!has_states).then(|| Figures::new(run));
        Some(Arc::new(GroupFinder { asked, run: run.clone(), figures }))
    }

    /// The groups of the tuples that count in a chunk, into `groups` (replaced), new ones made;
    /// whether that was done.
    ///
    /// # Errors
    /// Those of compiling, or there are too many groups.
    pub(super) fn find(
        &self,
        chunk: &Chunk,
        table: &mut Table,
        groups: &mut Vec<u32>,
    ) -> Result<bool> {
        let is_done = self.run_code(chunk, table, groups)?;
        if let Some(figures) = &self.figures {
            figures.count(chunk.rows(), if is_done { chunk.rows() } else { 0 });
        }
        Ok(is_done)
    }

    fn run_code(&self, chunk: &Chunk, table: &mut Table, groups: &mut Vec<u32>) -> Result<bool> {
        let Asked { code, origins, variants } = &*self.asked;
        let rows = chunk.rows();
        // Of a dictionary's entries groups are remembered.
        let is_plain = |column: &Column| matches!(column, Column::Plain(_));
        let are_plain = chunk.is_lying() || chunk.stored()[..origins.len()].iter().all(is_plain);
        let Some(compiler) = self.run.context.compiler().filter(|_| are_plain) else {
            return Ok(false);
        };
        let ask = |keys: &[InputCode]| {
            compiler.find_groups(GroupCode { keys: keys.to_vec(), ..code.clone() })
        };
        let found = variants.find((origins, &code.keys), (chunk, rows), &self.run, ask)?;
        let Some((promise, inputs)) = found else { return Ok(false) };
        let Some(code) = promise.get(0)? else { return Ok(false) };
        groups.clear();
        groups.reserve(rows);
        let positions =
            chunk.selection().map_or(std::ptr::null(), |selection| selection.values().as_ptr());
        table.fill(rows, |table| {
            // SAFETY: the inputs are those of the code, in its order, with a value for each tuple
            // that the chunk stores, and validity of their own or for as many as a chunk can store;
            // the positions are of those tuples. The table is of the code's layout, and
            // `Table::fill` keeps the promises of its room. There is room for a group of each
            // tuple, and one is written for each.
            unsafe {
                let is_done = code.run(inputs.raw(), positions, rows, table, groups.as_mut_ptr());
                groups.set_len(if is_done { rows } else { 0 });
                is_done
            }
        })
    }
}
