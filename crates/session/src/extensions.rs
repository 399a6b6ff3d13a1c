//! The extension that every session installs.

use tessera_engine::{Extension, Setup};
use tessera_types::Result;

/// The platform-independent sub-operators, the file formats, and the devices.
#[derive(Debug, Clone, Copy, Default)]
pub struct Standard;

impl Extension for Standard {
    fn name(&self) -> &'static str {
        "standard"
    }

    fn install(&self, setup: &mut Setup) -> Result<()> {
        setup.room(tessera_operators::register);
        setup.room(tessera_formats::register);
        setup.room(tessera_xlsx::register);
        crate::devices::standard().into_iter().try_for_each(|device| setup.device(device))
    }
}
