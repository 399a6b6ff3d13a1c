//! Look-ups in compiled code: which tables have some, and the chunks it is given.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tessera_codegen::{InputCode, Lookup, LookupCode, Machine, WRITTEN_AT_ONCE};
use tessera_context::Run;
use tessera_functions::{Figures, Origin, Variants};
use tessera_rows::Candidates;
use tessera_types::{Result, Tuple};
use tessera_vector::Chunk;

use super::table::JoinTable;

/// There is room for so many pairs of each tuple, and some more.
const PAIRS_OF_TUPLE: usize = 2;
const PAIRS_MORE: usize = 1_024;

/// What was asked of a compiler for the look-ups of a node. All runs share it: a nested plan has
/// many.
#[derive(Debug)]
pub struct AskedLookup {
    code: LookupCode,
    origins: Vec<Origin>,
    variants: Variants<dyn Lookup>,
}

impl AskedLookup {
    /// For tuples that are looked up by the fields `keys`; none where there is no code for that.
    pub fn new(table: &JoinTable, stream: &Tuple, keys: &[usize]) -> Option<AskedLookup> {
        let key = |key: &usize| {
            let field = &stream.fields()[*key];
            let machine = field.atom().and_then(Machine::of)?;
            let is_word = matches!(machine, Machine::Integer { bits, .. } if bits <= 64);
            is_word.then(|| InputCode::column(machine, field.nullable))
        };
        let code = LookupCode {
            keys: keys.iter().map(key).collect::<Option<_>>()?,
            offsets: table.coded_offsets()?,
            stride: table.layout().stride_bytes(),
        };
        let origins = keys.iter().map(|key| Origin::Field(*key)).collect();
        Some(AskedLookup { code, origins, variants: Variants::default() })
    }
}

/// The compiled look-up of a table in one run.
#[derive(Debug)]
pub struct CompiledLookup {
    asked: Arc<AskedLookup>,
    figures: Figures,
    /// A chunk has had more pairs than there is room for: others will, too.
    overflows: AtomicBool,
}

impl CompiledLookup {
    /// None where there is no compiler, or the table is another than was asked for.
    pub fn start(asked: &Arc<AskedLookup>, table: &JoinTable, run: &Run) -> Option<CompiledLookup> {
        run.context.compiler()?;
        let is_its = asked.code.stride == table.layout().stride_bytes()
            && table.coded_offsets().as_ref() == Some(&asked.code.offsets)
            && table.raw(0).is_some();
        let (asked, figures) = (asked.clone(), Figures::new(run));
        is_its.then(|| CompiledLookup { asked, figures, overflows: AtomicBool::new(false) })
    }

    /// All pairs of the tuples that count in a chunk, into `pairs` (replaced); whether that was
    /// done.
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
        let AskedLookup { code, origins, variants } = &*self.asked;
        let (rows, run) = (chunk.rows(), self.figures.run());
        let room = rows * PAIRS_OF_TUPLE + PAIRS_MORE;
        let (Some(compiler), Some(raw)) = (run.context.compiler(), table.raw(room)) else {
            return Ok(false);
        };
        let ask = |keys: &[InputCode]| {
            compiler.lookup(LookupCode { keys: keys.to_vec(), ..code.clone() })
        };
        let found = variants.find((origins, &code.keys), (chunk, rows), run, ask)?;
        let Some((promise, inputs)) = found else { return Ok(false) };
        let Some(code) = promise.get(0)? else { return Ok(false) };
        pairs.clear();
        pairs.positions.reserve(room + WRITTEN_AT_ONCE);
        pairs.rows.reserve(room + WRITTEN_AT_ONCE);
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
