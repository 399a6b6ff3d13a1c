//! The compiled tier: pieces of plans as machine code, through LLVM.
//!
//! Sub-operators describe what can be compiled in the form of [`tessera_codegen`]. In a build with
//! the feature `llvm`, [`compiler`] gives the compiler that turns it into code. Code works on the
//! same state as the vectorised tier and changes none of it where a tuple may raise an error: then
//! the vectorised tier does the chunk, and raises the error if there is one.
//!
//! ```
//! use tessera_jit::{Device, Tier, compiler};
//!
//! assert!(compiler(Tier::Vectorized, Device::Cpu, None)?.is_none());
//! assert_eq!(compiler(Tier::Compiled, Device::Cpu, None).is_ok(), tessera_jit::IS_BUILT);
//! # Ok::<(), tessera_types::Error>(())
//! ```

#[cfg(feature = "llvm")]
mod ask;
#[cfg(feature = "llvm")]
mod compiler;
mod device;
#[cfg(feature = "llvm")]
mod function;
#[cfg(all(feature = "llvm", any(test, fuzzing)))]
pub mod fuzzing;
#[cfg(feature = "llvm")]
mod given;
#[cfg(feature = "llvm")]
mod gpu;
mod in_use;
#[cfg(feature = "llvm")]
mod kept;
#[cfg(feature = "llvm")]
mod loaded;
#[cfg(feature = "llvm")]
mod lower;
#[cfg(feature = "llvm")]
mod target;

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

pub use device::Device;
#[cfg(feature = "llvm")]
pub use gpu::cuda::kernel_nanoseconds;
#[cfg(feature = "llvm")]
pub use gpu::device::serve as serve_virtual_gpu;
pub use in_use::InUse;
use tessera_codegen::{Compiler, Function, FunctionCode};
use tessera_types::{Error, Result};

/// Whether this build has a compiler.
pub const IS_BUILT: bool = cfg!(feature = "llvm");

/// What a query runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tier {
    /// Column by column; nothing is compiled.
    Vectorized,
    /// Compiled before it runs, wherever that is possible.
    Compiled,
    /// Vectorised at first; what many tuples go through is compiled meanwhile.
    #[default]
    Auto,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tier::Vectorized => "vectorized",
            Tier::Compiled => "compiled",
            Tier::Auto => "auto",
        })
    }
}

impl FromStr for Tier {
    type Err = Error;

    fn from_str(text: &str) -> Result<Tier> {
        let all = [Tier::Vectorized, Tier::Compiled, Tier::Auto];
        let named = |tier: &Tier| tier.to_string().eq_ignore_ascii_case(text);
        all.into_iter().find(named).ok_or_else(|| {
            Error::semantic(format!("'{text}' is no tier; choose vectorized, compiled or auto"))
        })
    }
}

/// Checks a user's function and compiles it.
///
/// # Errors
/// Its module is none, or defines no such function; or this build has no compiler.
pub fn function(code: FunctionCode) -> Result<(Arc<FunctionCode>, Arc<dyn Function>)> {
    #[cfg(feature = "llvm")]
    return function::compiled(code);
    #[cfg(not(feature = "llvm"))]
    Err(Error::unsupported(format!(
        "function {} in LLVM IR: this build has no compiler; build it with --features llvm (which needs LLVM 19)",
        code.name
    )))
}

/// Who compiles in a tier, for a device; nobody in the vectorised one. Code for the processor is
/// kept for other processes in the directory `kept`, if there is one.
///
/// # Errors
/// The compiled tier or a device is asked for, and this build or machine has none.
pub fn compiler(
    tier: Tier,
    device: Device,
    kept: Option<&Path>,
) -> Result<Option<Arc<dyn Compiler>>> {
    if tier == Tier::Vectorized && device != Device::Cpu {
        return Err(Error::semantic(
            "only compiled code runs on a GPU: choose --tier compiled, or --device cpu",
        ));
    }
    #[cfg(feature = "llvm")]
    return Ok(match device {
        Device::Cpu => compiler::compiler(tier, kept),
        Device::Gpu => Some(Arc::new(gpu::Gpu::new(gpu::Cuda::get()?))),
        Device::VirtualGpu => Some(Arc::new(gpu::Gpu::new(gpu::VirtualGpu::get()?))),
    });
    #[cfg(not(feature = "llvm"))]
    match (tier, device, kept) {
        (Tier::Compiled, ..) | (_, Device::Gpu | Device::VirtualGpu, _) => Err(Error::unsupported(
            "this build has no compiled tier: build it with --features llvm (which needs LLVM 19), or choose --tier vectorized",
        )),
        (Tier::Vectorized | Tier::Auto, ..) => Ok(None),
    }
}
