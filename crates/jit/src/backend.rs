//! The processors for which code is generated.

/// The processor that code is generated for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// The CPU of this machine.
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
