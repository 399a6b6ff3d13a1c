//! The devices that every session has.

use std::sync::Arc;

use tessera_context::{LANES, Place};
use tessera_engine::{CompilerOptions, Device};
use tessera_jit::Backend;

/// The name of the default device.
pub(crate) const DEFAULT: &str = Backend::Cpu.name();

/// The processor, the first NVIDIA GPU, and a GPU that the processor emulates.
pub(crate) fn standard() -> [Device; 3] {
    [
        device(Backend::Cpu, Place::Host),
        device(Backend::Gpu, Place::Device),
        device(Backend::VirtualGpu, Place::Device),
    ]
}

fn device(backend: Backend, place: Place) -> Device {
    let compiler = Arc::new(move |options: CompilerOptions<'_>| {
        tessera_jit::compiler(backend, options.tier, options.cache, options.place)
    });
    Device { name: backend.name(), compiler, lanes: LANES, place }
}
