//! The platforms that this program can start.

use std::sync::Arc;

use tessera_engine::{Extension, Launcher};
use tessera_local::LocalLauncher;
use tessera_platform_mpi::MpiLauncher;
use tessera_serverless_launch::ServerlessLauncher;
use tessera_session::Standard;

/// The platforms, the default first.
pub(crate) const LAUNCHERS: [&dyn Launcher; 3] =
    [&LocalLauncher, &MpiLauncher, &ServerlessLauncher];

/// The extensions of every session. `started` is the running platform `name`; the others only
/// explain plans.
pub(crate) fn extensions(name: &str, started: &Arc<dyn Extension>) -> Vec<Arc<dyn Extension>> {
    let mut all: Vec<Arc<dyn Extension>> = vec![Arc::new(Standard)];
    all.extend(LAUNCHERS.iter().map(|launcher| match launcher.name() == name {
        true => started.clone(),
        false => launcher.extension(),
    }));
    all
}
