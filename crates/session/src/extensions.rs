//! The extensions that every session has.

use std::sync::Arc;

use tessera_engine::{Extension, Setup};
use tessera_local::Local;
use tessera_types::Result;

/// Sub-operators that no platform forces to differ, formats of files, and the platform of this machine's cores.
#[derive(Debug, Clone, Copy, Default)]
pub struct Standard;

impl Extension for Standard {
    fn name(&self) -> &'static str {
        "standard"
    }

    fn install(&self, setup: &mut Setup) -> Result<()> {
        setup.room(tessera_operators::register);
        setup.room(tessera_formats::register);
        setup.platform(Arc::new(Local))
    }
}
