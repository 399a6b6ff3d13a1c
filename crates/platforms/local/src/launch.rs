//! The launcher of platform `local`, which starts no processes.

use std::sync::Arc;

use tessera_engine::{Extension, Launch, LaunchOutcome, Launcher};
use tessera_types::Result;

use crate::Local;

/// Runs statements in this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalLauncher;

impl Launcher for LocalLauncher {
    fn name(&self) -> &'static str {
        crate::NAME
    }

    fn help(&self) -> &'static str {
        "The cores of this machine"
    }

    fn extension(&self) -> Arc<dyn Extension> {
        Arc::new(Local)
    }

    fn launch(&self, launch: &Launch<'_>) -> Result<LaunchOutcome> {
        Ok(LaunchOutcome::Here {
            extension: Arc::new(Local),
            database: launch.database.clone(),
            stores: launch.stores.clone(),
            report: None,
            services: Box::new(()),
        })
    }
}
