//! Cancels the statements of ranks.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use tessera_context::lock;

/// Cancels the statements of ranks, from any thread. Ranks that connect later are cancelled when
/// they do.
#[derive(Debug, Clone, Default)]
pub struct Canceller {
    ranks: Arc<Mutex<CancelState>>,
}

#[derive(Debug, Default)]
struct CancelState {
    connections: Vec<UnixStream>,
    cancelled: bool,
}

const CANCEL: &[u8] = b"cancel\n";

impl Canceller {
    /// Asks all ranks to cancel the running statement, or the next where none runs.
    pub fn cancel(&self) {
        let mut ranks = lock(&self.ranks);
        ranks.cancelled = true;
        for connection in &mut ranks.connections {
            drop(connection.write_all(CANCEL));
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        lock(&self.ranks).cancelled
    }

    /// Adds a rank that has connected.
    pub(super) fn add(&self, mut connection: UnixStream) {
        let mut ranks = lock(&self.ranks);
        if ranks.cancelled {
            drop(connection.write_all(CANCEL));
        }
        ranks.connections.push(connection);
    }
}
