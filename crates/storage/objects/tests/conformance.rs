//! The conformance suite of stores, against the server on loopback.

use std::sync::Arc;

use tessera_context::conformance::{self, Store};
use tessera_context::{Output, RangeReader};
use tessera_objects::{Edges, Objects};
use tessera_types::Result;

use crate::server::{Fault, Server};

struct Bucket(Objects);

impl Store for Bucket {
    fn address(&self, name: &str) -> String {
        format!("s3://bucket/deep/{name}")
    }

    fn begin(&self) {
        self.0.begin(None);
    }

    fn open(&self, address: &str) -> Result<Arc<dyn RangeReader>> {
        self.0.stamp(address)?;
        self.0.open(address)
    }

    fn create(&self, address: &str) -> Result<Box<dyn Output>> {
        self.0.create(address)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        Ok(self.0.expand(folder, Edges::default())?.addresses)
    }
}

#[test]
fn a_store_conforms() {
    let server = Server::start();
    conformance::store(&Bucket(Objects::new(server.settings())));
    assert_eq!(server.uploads(), (0, 0));
}

#[test]
fn a_store_with_passing_faults_conforms() {
    let server = Server::start();
    // The gaps between faults grow, so that no request fails again and again.
    let (mut reads, mut next, mut gap) = (0, 3, 3);
    server.fail(move |request| {
        reads += usize::from(request.is_read());
        if !request.is_read() || reads < next {
            return Fault::None;
        }
        gap += 1;
        next = reads + gap;
        if gap % 2 == 0 { Fault::Status(503) } else { Fault::Cut }
    });
    conformance::store(&Bucket(Objects::new(server.settings())));
}
