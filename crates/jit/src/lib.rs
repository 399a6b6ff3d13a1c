//! The compiled tier: generates machine code for parts of plans through LLVM.
//!
//! Sub-operators describe their computations in the IR of [`tessera_codegen`]. In a build with the
//! feature `llvm`, [`compiler`] returns the compiler that turns it into machine code. Compiled code
//! works on the same state as the vectorized tier. If a tuple may raise an error it leaves the
//! state unchanged; the vectorized tier then processes the chunk and raises the error, if any.
//!
//! Unsafe code is in `compiler` (calls of compiled code), `function`, `linker`, `gpu`, and `lower`
//! (computed addresses).
//!
//! ```
//! use tessera_codegen::Tier;
//! use tessera_context::Place;
//! use tessera_jit::{Backend, compiler};
//!
//! assert!(compiler(Backend::Cpu, Tier::Vectorized, None, Place::Host)?.is_none());
//! let compiled = compiler(Backend::Cpu, Tier::Compiled, None, Place::Host);
//! assert_eq!(compiled.is_ok(), tessera_jit::IS_BUILT);
//! # Ok::<(), tessera_types::Error>(())
//! ```

mod backend;
#[cfg(feature = "llvm")]
mod code_cache;
#[cfg(feature = "llvm")]
mod compiler;
#[cfg(feature = "llvm")]
mod constants;
#[cfg(feature = "llvm")]
mod function;
#[cfg(all(feature = "llvm", any(test, fuzzing)))]
pub mod fuzzing;
#[cfg(feature = "llvm")]
mod gpu;
mod lease;
#[cfg(feature = "llvm")]
mod linker;
#[cfg(feature = "llvm")]
mod lower;
#[cfg(feature = "llvm")]
mod stop;
#[cfg(feature = "llvm")]
mod target;

use std::path::Path;
use std::sync::Arc;

pub use backend::Backend;
#[cfg(feature = "llvm")]
pub use gpu::cuda::kernel_nanoseconds;
#[cfg(feature = "llvm")]
pub use gpu::device::serve as serve_virtual_gpu;
pub use lease::CompilerLease;
use tessera_codegen::{Compiler, Function, FunctionCode, Tier};
use tessera_context::Place;
use tessera_types::{Error, Result};

/// Whether this build has a compiler.
pub const IS_BUILT: bool = cfg!(feature = "llvm");

/// Checks and compiles a user-defined function.
///
/// # Errors
/// Its module is invalid or lacks the function, or this build has no compiler.
pub fn function(code: FunctionCode) -> Result<(Arc<FunctionCode>, Arc<dyn Function>)> {
    #[cfg(feature = "llvm")]
    return function::compile(code);
    #[cfg(not(feature = "llvm"))]
    Err(Error::unsupported(format!(
        "function {}: this build cannot compile LLVM IR; build with --features llvm (requires LLVM 19)",
        code.name
    )))
}

/// Returns the compiler of a tier for a processor; `None` in the vectorized tier. Code for the CPU
/// is cached for other processes in the directory `cache`. Device buffers are counted at `place`.
///
/// # Errors
/// This build or machine does not support the tier or the processor.
pub fn compiler(
    backend: Backend,
    tier: Tier,
    cache: Option<&Path>,
    place: Place,
) -> Result<Option<Arc<dyn Compiler>>> {
    if tier == Tier::Vectorized && backend != Backend::Cpu {
        return Err(Error::semantic(
            "the vectorized tier cannot run on a GPU; use --tier compiled or --device cpu",
        ));
    }
    #[cfg(feature = "llvm")]
    return Ok(match backend {
        Backend::Cpu => compiler::compiler(tier, cache),
        Backend::Gpu => Some(Arc::new(gpu::GpuCompiler::new(gpu::Cuda::get()?, place))),
        Backend::VirtualGpu => {
            Some(Arc::new(gpu::GpuCompiler::new(gpu::VirtualGpu::get()?, place)))
        }
    });
    #[cfg(not(feature = "llvm"))]
    match (tier, backend, cache, place) {
        (Tier::Compiled, ..) | (_, Backend::Gpu | Backend::VirtualGpu, ..) => {
            Err(Error::unsupported(
                "this build has no compiled tier; build with --features llvm (requires LLVM 19) or use --tier vectorized",
            ))
        }
        (Tier::Vectorized | Tier::Auto, ..) => Ok(None),
    }
}
