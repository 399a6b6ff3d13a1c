//! The lists of records that scans have skipped.

use std::sync::Arc;

use tessera_context::{RejectScan, Rejects, lock};
use tessera_types::{Error, Result};

use super::{Storage, StreamAccess};

impl Storage {
    /// The list of the records that the next run skips. It replaces that of the last run.
    pub(crate) fn begin_rejects(&self) -> Arc<Rejects> {
        let rejects = Arc::<Rejects>::default();
        *lock(&self.files.rejects) = rejects.clone();
        rejects
    }

    /// Refuses to list what scans skip where other processes read the files.
    ///
    /// # Errors
    /// The platform has other processes.
    pub(crate) fn check_rejects(&self) -> Result<()> {
        match &self.files.allowed {
            StreamAccess::Refused(platform) => Err(Error::unsupported(format!(
                "option store_rejects is not supported on platform {platform}, whose other processes read the files; use \
                 ignore_errors, or platform local"
            ))),
            _ => Ok(()),
        }
    }

    /// Takes what the scans of the last run have skipped.
    pub(crate) fn take_rejects(&self) -> Vec<Arc<RejectScan>> {
        lock(&self.files.rejects).take()
    }
}
