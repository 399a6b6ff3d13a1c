//! Key hashes of tuples, in either tier.

use std::sync::{Arc, OnceLock};

use tessera_codegen::{HashCode, HashKeys, InputCode, MachineType};
use tessera_context::Run;
use tessera_types::{Result, Tuple};
use tessera_vector::hash::{hash_columns, hash_fields};
use tessera_vector::{Chunk, Column};

use super::{CodeVariants, Origin, TierCounters};

/// Code for the hashes of a node, created by the first run. All runs share it, because a nested
/// plan has many.
pub type CachedHashCode = OnceLock<Option<Arc<KeyHashCode>>>;

/// The hash code of a node and its compiled variants.
#[derive(Debug)]
pub struct KeyHashCode {
    code: HashCode,
    origins: Vec<Origin>,
    variants: CodeVariants<dyn HashKeys>,
}

/// Hashes tuples by their keys in one run.
#[derive(Debug, Clone)]
pub struct KeyHasher {
    keys: Arc<[usize]>,
    compiled: Option<Arc<CompiledHasher>>,
}

#[derive(Debug)]
struct CompiledHasher {
    code: Arc<KeyHashCode>,
    run: Run,
    /// Counters for the profile, unless a later step counts the node's tuples.
    counters: Option<TierCounters>,
}

impl KeyHashCode {
    /// Returns `None` if a key cannot be compiled.
    fn new(tuple: &Tuple, keys: &[usize]) -> Option<KeyHashCode> {
        let input = |key: &usize| {
            let field = &tuple.fields()[*key];
            Some(InputCode::column(field.atom().and_then(MachineType::from_atom)?, field.nullable))
        };
        Some(KeyHashCode {
            code: HashCode { keys: keys.iter().map(input).collect::<Option<_>>()? },
            origins: keys.iter().map(|key| Origin::Field(*key)).collect(),
            variants: CodeVariants::default(),
        })
    }
}

impl KeyHasher {
    /// Prepares hashing by the fields `keys` for a run.
    pub fn start(cache: &CachedHashCode, tuple: &Tuple, keys: &[usize], run: &Run) -> KeyHasher {
        let compiled = run.context.compiler().and_then(|_| {
            let code = cache.get_or_init(|| KeyHashCode::new(tuple, keys).map(Arc::new)).clone()?;
            Some(Arc::new(CompiledHasher { code, run: run.clone(), counters: None }))
        });
        KeyHasher { keys: keys.into(), compiled }
    }

    /// Like [`KeyHasher::start`], for a node that only hashes its tuples: the profile shows how
    /// many were hashed by compiled code.
    pub fn start_counted(
        cache: &CachedHashCode,
        tuple: &Tuple,
        keys: &[usize],
        run: &Run,
    ) -> KeyHasher {
        let mut hasher = KeyHasher::start(cache, tuple, keys, run);
        if let Some(compiled) = hasher.compiled.as_mut().and_then(Arc::get_mut) {
            compiled.counters = Some(TierCounters::new(run));
        }
        hasher
    }

    /// Creates a hasher that uses only the vectorized tier.
    pub fn vectorized(keys: &[usize]) -> KeyHasher {
        KeyHasher { keys: keys.into(), compiled: None }
    }

    /// Hashes the selected tuples of a chunk into `out`, at their stored positions. Other positions
    /// of `out` are unspecified.
    ///
    /// # Errors
    /// As [`hash_fields`], or compilation fails.
    pub fn hashes(&self, chunk: &Chunk, out: &mut Vec<u64>) -> Result<()> {
        if let Some(compiled) = &self.compiled {
            let done = compiled.hashes(chunk, out)?;
            if let Some(counters) = &compiled.counters {
                counters.count(chunk.rows(), if done { chunk.rows() } else { 0 });
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

impl CompiledHasher {
    /// Like [`KeyHasher::hashes`]; returns false if the vectorized tier has to hash the chunk.
    fn hashes(&self, chunk: &Chunk, out: &mut Vec<u64>) -> Result<bool> {
        let KeyHashCode { code, origins, variants } = &*self.code;
        let run = &self.run;
        let Some(compiler) = run.context.compiler() else { return Ok(false) };
        let request = |keys: &[InputCode]| compiler.hash(HashCode { keys: keys.to_vec() });
        let found = variants.find((origins, &code.keys), (chunk, chunk.rows()), run, request)?;
        let Some((promise, inputs)) = found else { return Ok(false) };
        let Some(code) = promise.get(0)? else { return Ok(false) };
        // Positions of tuples that are not selected are never read.
        out.resize(chunk.rows_stored(), 0);
        let positions =
            chunk.selection().map_or(std::ptr::null(), |selection| selection.values().as_ptr());
        // SAFETY: the inputs match the code and have a value for each stored tuple; their validity
        // is their own or covers the largest chunk. The positions refer to stored tuples, and `out`
        // has a slot for each.
        Ok(unsafe { code.run(inputs.raw(), positions, chunk.rows(), out.as_mut_ptr()) })
    }
}
