//! Finds and creates groups by keys of fixed width, in compiled code.

use std::sync::{Arc, OnceLock};

use tessera_codegen::{FindGroups, GroupCode, InputCode, MachineType};
use tessera_context::Run;
use tessera_functions::{CodeVariants, Origin, TierCounters};
use tessera_types::{Result, Tuple};
use tessera_vector::{Chunk, Column};

use super::keys::KeyLayout;
use super::table::Table;

/// The most words of a record: compiled code writes it word by word.
const STRIDE_MAX: usize = 128;

/// The compilation request of a node, shared by all runs: a nested plan has many.
pub(super) type GroupRequestCell = OnceLock<Option<Arc<GroupRequest>>>;

#[derive(Debug)]
pub(super) struct GroupRequest {
    code: GroupCode,
    origins: Vec<Origin>,
    variants: CodeVariants<dyn FindGroups>,
}

/// Finds and creates groups in one run.
#[derive(Debug)]
pub(super) struct GroupFinder {
    request: Arc<GroupRequest>,
    run: Run,
    /// Counts tuples; `None` if there are states, whose tuples are counted instead.
    figures: Option<TierCounters>,
}

impl GroupRequest {
    /// Creates a request for keys that are the first fields of tuples; `None` without keys, or if a
    /// key is not compiled.
    fn new(tuple: &Tuple, layout: &KeyLayout, stride: usize) -> Option<GroupRequest> {
        let offsets =
            layout.coded_offsets().filter(|keys| !keys.is_empty() && stride <= STRIDE_MAX)?;
        let key = |field: &tessera_types::Field| {
            Some(InputCode::column(field.atom().and_then(MachineType::from_atom)?, field.nullable))
        };
        let keys = tuple.fields()[..offsets.len()].iter().map(key).collect::<Option<Vec<_>>>()?;
        let origins = (0..keys.len()).map(Origin::Field).collect();
        Some(GroupRequest {
            code: GroupCode { keys, offsets, stride },
            origins,
            variants: CodeVariants::default(),
        })
    }
}

impl GroupFinder {
    /// Returns `None` without a compiler, or if the keys, which are the first fields of tuples, are
    /// not compiled.
    pub(super) fn start(
        request: &GroupRequestCell,
        (tuple, layout, stride): (&Tuple, &KeyLayout, usize),
        has_states: bool,
        run: &Run,
    ) -> Option<Arc<GroupFinder>> {
        run.context.compiler()?;
        let request = request
            .get_or_init(|| GroupRequest::new(tuple, layout, stride).map(Arc::new))
            .clone()?;
        let figures = (!has_states).then(|| TierCounters::new(run));
        Some(Arc::new(GroupFinder { request, run: run.clone(), figures }))
    }

    /// Replaces `groups` with the groups of the selected tuples of a chunk, creating new ones;
    /// returns whether the code did so.
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
        let GroupRequest { code, origins, variants } = &*self.request;
        let rows = chunk.rows();
        // Dictionary columns use the groups cached by code instead.
        let is_plain = |column: &Column| matches!(column, Column::Plain(_));
        let are_plain = chunk.is_lazy() || chunk.stored()[..origins.len()].iter().all(is_plain);
        let Some(compiler) = self.run.context.compiler().filter(|_| are_plain) else {
            return Ok(false);
        };
        let compile = |keys: &[InputCode]| {
            compiler.find_groups(GroupCode { keys: keys.to_vec(), ..code.clone() })
        };
        let found = variants.find((origins, &code.keys), (chunk, rows), &self.run, compile)?;
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
