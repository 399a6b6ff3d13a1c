//! The extension that every session has.

use tessera_engine::{Extension, Setup};
use tessera_types::Result;

/// Sub-operators that no platform forces to differ, and formats of files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Standard;

impl Extension for Standard {
    fn name(&self) -> &'static str {
        "standard"
    }

    fn install(&self, setup: &mut Setup) -> Result<()> {
        setup.room(tessera_operators::register);
        setup.room(tessera_formats::register);
        Ok(())
    }
}
