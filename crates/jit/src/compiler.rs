//! The CPU compiler: compiles pieces of code at once (tier `compiled`) or in the background when
//! that is likely to pay off (tier `auto`).

mod piece;
mod run;
mod shared;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tessera_codegen::{
    Compiler, Compute, ComputeCode, FindGroups, GroupCode, HashCode, HashKeys, Lookup, LookupCode,
    Promise, Select, SelectCode, Tier, Update, UpdateCode, WriteCode, WriteRows,
};
use tessera_types::Result;

use crate::code_cache::CodeCache;
use crate::constants::RuntimeConstants;
pub(crate) use piece::{Piece, emit_piece};
use shared::{CacheEntry, SHARED};
pub(crate) use shared::{CompileTime, thread_nanoseconds};

/// Nanoseconds that compiled code saves for each state update or predicate of a tuple, measured on
/// TPC-H 1.
const SAVED_NANOSECONDS: u64 = 2;
/// The time to check the on-disk cache for code and to link it.
const LOAD_NANOSECONDS: u64 = 200_000;

/// The CPU compiler of one session and tier.
#[derive(Debug)]
pub(crate) struct CpuCompiler {
    tier: Tier,
    cache: Option<Arc<CodeCache>>,
    compile_time: Arc<CompileTime>,
}

/// Returns the CPU compiler of a tier; `None` for the vectorized tier.
pub(crate) fn compiler(tier: Tier, cache: Option<&Path>) -> Option<Arc<dyn Compiler>> {
    match tier {
        Tier::Vectorized => None,
        tier => {
            let cache = cache.map(|cache| Arc::new(CodeCache::new(cache)));
            Some(Arc::new(CpuCompiler { tier, cache, compile_time: Arc::default() }))
        }
    }
}

impl CpuCompiler {
    fn request(&self, (piece, constants): (Piece, RuntimeConstants)) -> Request {
        let (cache, compile_time) = (self.cache.clone(), self.compile_time.clone());
        Request {
            entry: SHARED.entry(piece),
            constants: Arc::new(constants),
            tier: self.tier,
            cache,
            compile_time,
        }
    }
}

impl Compiler for CpuCompiler {
    fn update(&self, code: UpdateCode) -> Arc<dyn Promise<dyn Update>> {
        Arc::new(self.request(Piece::of_update(code)))
    }

    fn select(&self, code: SelectCode) -> Arc<dyn Promise<dyn Select>> {
        Arc::new(self.request(Piece::of_select(code)))
    }

    fn lookup(&self, code: LookupCode) -> Option<Arc<dyn Promise<dyn Lookup>>> {
        Some(Arc::new(self.request((Piece::Lookup(code), RuntimeConstants::default()))))
    }

    fn compute(&self, code: ComputeCode) -> Option<Arc<dyn Promise<dyn Compute>>> {
        Some(Arc::new(self.request(Piece::of_compute(code))))
    }

    fn hash(&self, code: HashCode) -> Option<Arc<dyn Promise<dyn HashKeys>>> {
        Some(Arc::new(self.request((Piece::Hash(code), RuntimeConstants::default()))))
    }

    fn find_groups(&self, code: GroupCode) -> Option<Arc<dyn Promise<dyn FindGroups>>> {
        Some(Arc::new(self.request((Piece::Group(code), RuntimeConstants::default()))))
    }

    fn write(&self, code: WriteCode) -> Option<Arc<dyn Promise<dyn WriteRows>>> {
        Some(Arc::new(self.request((Piece::Write(code), RuntimeConstants::default()))))
    }

    fn reads_lists(&self) -> bool {
        true
    }

    fn compile_stats(&self) -> (usize, Duration) {
        self.compile_time.get()
    }
}

/// A query's request for the code of a piece.
#[derive(Debug, Clone)]
struct Request {
    entry: Arc<CacheEntry>,
    /// The runtime constants, in the order of the piece.
    constants: Arc<RuntimeConstants>,
    tier: Tier,
    cache: Option<Arc<CodeCache>>,
    compile_time: Arc<CompileTime>,
}

impl Request {
    /// Returns whether the code is ready; counts `rows` toward compilation if not.
    fn is_ready(&self, rows: usize) -> Result<bool> {
        let entry = &self.entry;
        if self.tier == Tier::Compiled {
            SHARED.compile(self);
        }
        match (entry.code.get(), self.tier) {
            (Some(Ok(_)), _) => Ok(true),
            (Some(Err(error)), Tier::Compiled) => Err(error.clone()),
            (Some(Err(_)), _) => Ok(false),
            (None, _) => {
                let rows = entry.rows.fetch_add(rows as u64, Ordering::Relaxed) + rows as u64;
                // Assume that as many tuples follow as have come so far.
                let saved = rows * entry.piece.weight() * SAVED_NANOSECONDS;
                if saved > LOAD_NANOSECONDS && SHARED.search_cache(self) {
                    return Ok(true);
                }
                if saved > SHARED.compile_nanoseconds() {
                    SHARED.enqueue(self);
                }
                Ok(false)
            }
        }
    }
}

macro_rules! promise {
    ($($piece:ident),*) => { $(
        impl Promise<dyn $piece> for Request {
            fn get(&self, rows: usize) -> Result<Option<&(dyn $piece + 'static)>> {
                Ok(self.is_ready(rows)?.then_some(self))
            }
        }
    )* };
}
promise!(Update, Select, Compute, Lookup, HashKeys, FindGroups, WriteRows);

#[cfg(test)]
mod random;
#[cfg(test)]
mod rows;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod texts;
