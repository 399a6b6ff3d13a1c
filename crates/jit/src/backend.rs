//! The processors for which code is generated.

use std::fmt;
use std::str::FromStr;

use tessera_types::{Error, Result};

/// The processor that code is generated for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// The CPU of this machine.
    #[default]
    Cpu,
    /// The first NVIDIA GPU. Each run copies its input to the GPU and its results back.
    Gpu,
    /// A GPU that the CPU emulates: the code of a GPU, in a grid of threads, on memory that the
    /// host cannot access. For tests.
    VirtualGpu,
}

impl Backend {
    /// All backends.
    pub const ALL: [Backend; 3] = [Backend::Cpu, Backend::Gpu, Backend::VirtualGpu];

    /// Returns the name of the backend.
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Cpu => "cpu",
            Backend::Gpu => "gpu",
            Backend::VirtualGpu => "virtual-gpu",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = Error;

    fn from_str(text: &str) -> Result<Backend> {
        let named = |backend: &Backend| backend.name().eq_ignore_ascii_case(text);
        Backend::ALL.into_iter().find(named).ok_or_else(|| {
            Error::semantic(format!("unknown device '{text}'; expected cpu, gpu or virtual-gpu"))
        })
    }
}
