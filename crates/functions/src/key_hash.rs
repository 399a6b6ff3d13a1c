//! Hashes of tuples by some of their fields, in whichever tier.

use std::sync::{Arc, OnceLock};

use tessera_codegen::{HashCode, HashKeys, InputCode, Machine};
use tessera_context::Run;
use tessera_types::{Result, Tuple};
use tessera_vector::hash::{hash_columns, hash_fields};
use tessera_vector::{Chunk, Column};

use super::{Figures, Origin, Variants};

/// What was asked of a compiler for the hashes of a node. All runs share it: a nested plan has
/// many.
pub type AskedHash = OnceLock<Option<Arc<Asked>>>;

/// The form of a node's hashes and the code of its variants.
#[derive(Debug)]
pub struct Asked {
    code: HashCode,
    origins: Vec<Origin>,
    variants: Variants<dyn HashKeys>,
}

/// Hashes tuples by their keys, in one run.
#[derive(Debug, Clone)]
pub struct KeyHasher {
    keys: Arc<[usize]>,
    compiled: Option<Arc<Compiled>>,
}

#[derive(Debug)]
struct Compiled {
    asked: Arc<Asked>,
    run: Run,
    /// Where the node's tuples are not counted by what comes after.
    figures: Option<Figures>,
}

impl Asked {
    /// None where a key has no code.
    fn new(tuple: &Tuple, keys: &[usize]) -> Option<Asked> {
        let input = |key: &usize| {
            let field = &tuple.fields()[*key];
            Some(InputCode::column(field.atom().and_then(Machine::of)?, field.nullable))
        };
        Some(Asked {
            code: HashCode { keys: keys.iter().map(input).collect::<Option<_>>()? },
            origins: keys.iter().map(|key| Origin::Field(*key)).collect(),
            variants: Variants::default(),
        })
    }
}

impl KeyHasher {
    /// By the fields `keys` of tuples, as a run has it.
    pub fn start(asked: &AskedHash, tuple: &Tuple, keys: &[usize], run: &Run) -> KeyHasher {
        let compiled = run.context.compiler().and_then(|_| {
            let asked = asked.get_or_init(|| Asked::new(tuple, keys).map(Arc::new)).clone()?;
            Some(Arc::new(Compiled { asked, run: run.clone(), figures: None }))
        });
        KeyHasher { keys: keys.into(), compiled }
    }

    /// As [`KeyHasher::start`], for a node that does nothing else with its tuples: the profile says
    /// how many were hashed by code.
    pub fn start_counted(asked: &AskedHash, tuple: &Tuple, keys: &[usize], run: &Run) -> KeyHasher {
        let mut hasher = KeyHasher::start(asked, tuple, keys, run);
        if let Some(compiled) = hasher.compiled.as_mut().and_then(Arc::get_mut) {
            compiled.figures = Some(Figures::new(run));
        }
        hasher
    }

    /// By the same in the vectorised tier.
    pub fn vectorized(keys: &[usize]) -> KeyHasher {
        KeyHasher { keys: keys.into(), compiled: None }
    }

    /// The hashes of the tuples that count in a chunk, at the places of their positions in `out`;
    /// what stands at others means nothing.
    ///
    /// # Errors
    /// As [`hash_fields`], and those of compiling.
    pub fn hashes(&self, chunk: &Chunk, out: &mut Vec<u64>) -> Result<()> {
        if let Some(compiled) = &self.compiled {
            let done = compiled.hashes(chunk, out)?;
            if let Some(figures) = &compiled.figures {
                figures.count(chunk.rows(), if done { chunk.rows() } else { 0 });
            }
            if done {
                return Ok(());
            }
        }
        let Some(selection) = chunk.selection() else { return hash_fields(chunk, &self.keys, out) };
        let keys =
            self.keys.iter().map(|key| chunk.column(*key)).collect::<Result<Vec<Column>>>()?;
        let mut hashes = Vec::new();
        hash_columns(&keys, chunk.rows(), &mut hashes)?;
        out.clear();
        out.resize(chunk.rows_stored(), 0);
        selection.values().iter().zip(hashes).for_each(|(place, hash)| out[*place as usize] = hash);
        Ok(())
    }
}

impl Compiled {
    /// As [`KeyHasher::hashes`]; whether it was done.
    fn hashes(&self, chunk: &Chunk, out: &mut Vec<u64>) -> Result<bool> {
        let Asked { code, origins, variants } = &*self.asked;
        let run = &self.run;
        let Some(compiler) = run.context.compiler() else { return Ok(false) };
        let ask = |keys: &[InputCode]| compiler.hash(HashCode { keys: keys.to_vec() });
        let found = variants.find((origins, &code.keys), (chunk, chunk.rows()), run, ask)?;
        let Some((promise, inputs)) = found else { return Ok(false) };
        let Some(code) = promise.get(0)? else { return Ok(false) };
        // Nobody reads what stays at the places of tuples that do not count.
        out.resize(chunk.rows_stored(), 0);
        let positions =
            chunk.selection().map_or(std::ptr::null(), |selection| selection.values().as_ptr());
        // SAFETY: the inputs are those of the code, in its order, with a value for each tuple that
        // the chunk stores, and validity of their own or for as many as a chunk can store; the
        // positions are of those tuples, of which each has a place in `out`.
        Ok(unsafe { code.run(inputs.raw(), positions, chunk.rows(), out.as_mut_ptr()) })
    }
}
