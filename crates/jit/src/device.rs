//! Where compiled code runs.

use std::fmt;
use std::str::FromStr;

use tessera_types::{Error, Result};

/// Where compiled code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Device {
    /// On the processor.
    #[default]
    Cpu,
    /// On the first NVIDIA GPU. Each run copies what it reads, and back what comes of it.
    Gpu,
    /// On a GPU that the processor stands in for: the same code as a GPU's, in a grid of threads,
    /// on memory that the host cannot touch. For tests.
    VirtualGpu,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Device::Cpu => "cpu",
            Device::Gpu => "gpu",
            Device::VirtualGpu => "virtual-gpu",
        })
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Device> {
        let named = |device: &Device| device.to_string().eq_ignore_ascii_case(text);
        [Device::Cpu, Device::Gpu, Device::VirtualGpu].into_iter().find(named).ok_or_else(|| {
            Error::semantic(format!("'{text}' is no device; choose cpu, gpu or virtual-gpu"))
        })
    }
}
