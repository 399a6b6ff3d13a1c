//! Looks up tuples in a join table with compiled code.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tessera_codegen::{InputCode, Lookup, LookupCode, MachineType, UNCHECKED_MATCHES};
use tessera_context::Run;
use tessera_functions::{CodeVariants, Origin, TierCounters};
use tessera_rows::Candidates;
use tessera_types::{Result, Tuple};
use tessera_vector::Chunk;

use super::table::JoinTable;

/// The capacity for pairs, per tuple of the chunk.
const PAIRS_OF_TUPLE: usize = 2;
const PAIRS_MORE: usize = 1_024;

/// The compilation request for the lookups of a node, shared by all runs: a nested plan has many.
#[derive(Debug)]
pub struct LookupRequest {
    code: LookupCode,
    origins: Vec<Origin>,
    variants: CodeVariants<dyn Lookup>,
}

impl LookupRequest {
    /// Creates a request for tuples that are looked up by the fields `keys`; `None` if they are not
    /// compiled.
    pub fn new(table: &JoinTable, stream: &Tuple, keys: &[usize]) -> Option<LookupRequest> {
        let key = |key: &usize| {
            let field = &stream.fields()[*key];
            let machine = field.atom().and_then(MachineType::from_atom)?;
            let is_word = matches!(machine, MachineType::Integer { bits, .. } if bits <= 64);
            is_word.then(|| InputCode::column(machine, field.nullable))
        };
        let code = LookupCode {
            keys: keys.iter().map(key).collect::<Option<_>>()?,
            offsets: table.coded_offsets()?,
            stride: table.layout().stride_bytes(),
        };
        let origins = keys.iter().map(|key| Origin::Field(*key)).collect();
        Some(LookupRequest { code, origins, variants: CodeVariants::default() })
    }
}

/// The compiled lookup in a table, in one run.
#[derive(Debug)]
pub struct CompiledLookup {
    request: Arc<LookupRequest>,
    figures: TierCounters,
    /// Set when a chunk had more pairs than the capacity: later chunks are likely to have, too.
    overflows: AtomicBool,
}

impl CompiledLookup {
    /// Returns `None` without a compiler, or if the table differs from the requested one.
    pub fn start(
        request: &Arc<LookupRequest>,
        table: &JoinTable,
        run: &Run,
    ) -> Option<CompiledLookup> {
        run.context.compiler()?;
        let is_its = request.code.stride == table.layout().stride_bytes()
            && table.coded_offsets().as_ref() == Some(&request.code.offsets)
            && table.raw(0).is_some();
        let (request, figures) = (request.clone(), TierCounters::new(run));
        is_its.then(|| CompiledLookup { request, figures, overflows: AtomicBool::new(false) })
    }

    /// Replaces `pairs` with all pairs of the selected tuples in a chunk; returns whether the code
    /// did so.
    pub(super) fn run(
        &self,
        table: &JoinTable,
        chunk: &Chunk,
        pairs: &mut Candidates,
    ) -> Result<bool> {
        let done = !self.overflows.load(Ordering::Relaxed) && self.run_code(table, chunk, pairs)?;
        self.figures.count(chunk.rows(), if done { chunk.rows() } else { 0 });
        Ok(done)
    }

    fn run_code(&self, table: &JoinTable, chunk: &Chunk, pairs: &mut Candidates) -> Result<bool> {
        let LookupRequest { code, origins, variants } = &*self.request;
        let (rows, run) = (chunk.rows(), self.figures.run());
        let room = rows * PAIRS_OF_TUPLE + PAIRS_MORE;
        let (Some(compiler), Some(raw)) = (run.context.compiler(), table.raw(room)) else {
            return Ok(false);
        };
        let compile = |keys: &[InputCode]| {
            compiler.lookup(LookupCode { keys: keys.to_vec(), ..code.clone() })
        };
        let found = variants.find((origins, &code.keys), (chunk, rows), run, compile)?;
        let Some((promise, inputs)) = found else { return Ok(false) };
        let Some(code) = promise.get(0)? else { return Ok(false) };
        pairs.clear();
        pairs.positions.reserve(room + UNCHECKED_MATCHES);
        pairs.rows.reserve(room + UNCHECKED_MATCHES);
        let positions =
            chunk.selection().map_or(std::ptr::null(), |selection| selection.values().as_ptr());
        // SAFETY: the inputs are those of the code, in its order, with a value for each tuple that
        // the chunk stores, and validity of their own or for as many as a chunk can store; the
        // positions are of those tuples. The table is complete, and of the layout that the code has
        // (`start`). There is room for as many pairs as `raw` says and more, of which as many are
        // written as the code says.
        unsafe {
            let (tuples, found) = (pairs.positions.as_mut_ptr(), pairs.rows.as_mut_ptr());
            let Some(len) = code.run(inputs.raw(), positions, rows, &raw, tuples, found) else {
                self.overflows.store(true, Ordering::Relaxed);
                return Ok(false);
            };
            pairs.positions.set_len(len);
            pairs.rows.set_len(len);
        }
        Ok(true)
    }
}
