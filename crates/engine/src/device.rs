//! Devices: what runs a query's pipelines and compiled code.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tessera_codegen::{Compiler, Tier};
use tessera_context::Place;
use tessera_types::Result;

/// What a compiler is made for.
#[derive(Debug, Clone, Copy)]
pub struct CompilerOptions<'a> {
    /// What is compiled, and when.
    pub tier: Tier,
    /// The directory in which machine code is cached for other processes.
    pub cache: Option<&'a Path>,
    /// Where the memory of compiled code is counted.
    pub place: Place,
}

/// Makes the compiler of a device; `None` where the tier compiles nothing.
pub type MakeCompiler =
    Arc<dyn Fn(CompilerOptions<'_>) -> Result<Option<Arc<dyn Compiler>>> + Send + Sync>;

/// A device on which queries run: a set of cores, or a GPU beside them. The setting `device` names
/// the one that a session uses.
#[derive(Clone)]
pub struct Device {
    /// Its name, as a value of the setting.
    pub name: &'static str,
    /// Makes its compiler.
    pub compiler: MakeCompiler,
    /// Lanes of a pipeline that may wait for input at once, for each worker thread.
    pub lanes: usize,
    /// Where the memory of its compiled code is counted.
    pub place: Place,
}

impl Device {
    /// Its compiler for a tier. Machine code is cached in the directory `cache`.
    ///
    /// # Errors
    /// This build or machine does not have what the tier or the device needs.
    pub fn compiler(&self, tier: Tier, cache: Option<&Path>) -> Result<Option<Arc<dyn Compiler>>> {
        (self.compiler)(CompilerOptions { tier, cache, place: self.place })
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Device { name, lanes, place, .. } = self;
        f.debug_struct("Device")
            .field("name", name)
            .field("lanes", lanes)
            .field("place", place)
            .finish_non_exhaustive()
    }
}
