//! Shared by the tests of this crate: a store in memory, and tasks of workers that write to it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tessera_context::{Context, Token};
use tessera_engine::{Governor, Query, Settings};
use tokio::runtime::{Builder, Handle as Io};

use crate::cloud::Space;
use crate::task::{Order, Task};

/// The memory budget of each query.
pub(crate) const MEMORY: usize = 4 << 20;

pub(crate) struct World {
    pub(crate) io: Io,
    pub(crate) store: Arc<InMemory>,
    pub(crate) workers: usize,
}

impl World {
    pub(crate) fn new(workers: usize) -> World {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let io = runtime.handle().clone();
        std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        World { io, store: Arc::new(InMemory::new()), workers }
    }

    pub(crate) fn space(&self) -> Space {
        Space::new((self.store.clone(), Path::from("query")))
    }

    pub(crate) fn task(&self, index: usize) -> Arc<Task> {
        let order = Order {
            index,
            workers: self.workers,
            prefix: String::new(),
            plan: "".into(),
            chunk_rows: 8192,
            memory_bytes: MEMORY,
            repeatable: true,
        };
        Arc::new(Task::new(order, self.space(), self.io.clone()))
    }

    pub(crate) fn names(&self) -> Vec<Path> {
        let names = self.store.list(Some(&Path::from("query"))).map_ok(|meta| meta.location);
        names.try_collect::<Vec<_>>().now_or_never().unwrap().unwrap()
    }

    pub(crate) fn get(&self, name: &Path) -> Vec<u8> {
        let got = self.store.get(name).now_or_never().unwrap().unwrap();
        got.bytes().now_or_never().unwrap().unwrap().to_vec()
    }

    pub(crate) fn put(&self, name: &Path, bytes: Vec<u8>) {
        self.store.put(name, bytes.into()).now_or_never().unwrap().unwrap();
    }
}

/// Returns a query with the budget `MEMORY`.
pub(crate) fn context() -> Arc<dyn Context> {
    Query::new(Settings::default(), &Governor::new(MEMORY))
}

pub(crate) fn wait(token: Token) {
    for _ in 0..1000 {
        token.wait(Duration::from_millis(10));
    }
    assert!(token.is_ready());
}
