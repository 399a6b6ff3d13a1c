//! Nothing has to be started.

use std::sync::Arc;

use tessera_engine::{Extension, Launch, Launched, Launcher, Setup};
use tessera_types::Result;

/// Lets statements run in this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalLauncher;

/// Brings nothing: every session has this platform.
#[derive(Debug)]
struct Nothing;

impl Extension for Nothing {
    fn name(&self) -> &'static str {
        super::NAME
    }

    fn install(&self, _setup: &mut Setup) -> Result<()> {
        Ok(())
    }
}

impl Launcher for LocalLauncher {
    fn name(&self) -> &'static str {
        super::NAME
    }

    fn help(&self) -> &'static str {
        "The cores of this machine"
    }

    fn extension(&self) -> Arc<dyn Extension> {
        Arc::new(Nothing)
    }

    fn launch(&self, launch: &Launch<'_>) -> Result<Launched> {
        Ok(Launched::Here {
            extension: Arc::new(Nothing),
            database: launch.database.clone(),
            stores: Vec::new(),
            report: None,
            services: Box::new(()),
        })
    }
}
