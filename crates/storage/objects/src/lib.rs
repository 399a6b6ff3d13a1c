//! Objects of S3, Google Cloud Storage, Azure and web servers: metadata, listing, range reads,
//! writing.
//!
//! [`Objects`] holds the stores and objects of a session. [`Objects::expand`] turns an address, a
//! pattern or a prefix into a sorted list of addresses. [`Objects::open`] returns a
//! [`RangeReader`](tessera_context::RangeReader) that never blocks: it returns `Blocked` until the
//! bytes have arrived. [`Objects::create`] writes an object completely or not at all,
//! [`Objects::create_folder`] all objects of a prefix. Credentials, region and endpoint come from
//! the environment variables that each cloud's own tools read.
//!
//! Modules: `location` addresses; `store` clients; `timeouts` of requests; `io` the I/O thread and
//! its limits; `object` versions and edges; `fetch` one range; `reader`, `output`, `folder`;
//! `listing` patterns; `select` work pushed down to a store; `error`.
//!
//! **One version.** A statement sees each object in the version of its first request. Later
//! requests name that version's tag; an object that was replaced meanwhile is an error. **All
//! bytes.** After a body that ends early, the rest is requested again, a few times; a short body is
//! never taken for the whole.
//!
//! ```
//! use tessera_objects::{Objects, is_object};
//! assert!(is_object("s3://bucket/lineitem.parquet") && !is_object("lineitem.parquet"));
//! let objects = Objects::new(Vec::new());
//! let error = objects.expand("https://example.org/*.csv", Default::default()).unwrap_err();
//! assert!(error.message().contains("no listing"));
//! ```
//!
//! Non-goals: a cache of objects on disk, logins other than those of the clouds' environments.

#![forbid(unsafe_code)]

mod error;
mod fetch;
mod folder;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod io;
mod listing;
mod location;
mod object;
mod objects;
mod output;
mod reader;
mod select;
mod store;
mod timeouts;

use std::sync::{Arc, Mutex};

use object_store::ObjectStore;
use object_store::aws::AwsCredentialProvider;
use object_store::path::Path;
use tokio::runtime::Handle;

pub use io::{KINDS, Totals, totals};
pub use object::Stamp;
pub use objects::{Edges, ObjectList, Objects};
pub use select::{SelectRequest, SmartStorage, push_selects};
pub use timeouts::Timeouts;

/// Returns a client of the store of an address, and the path in the store, for platforms that
/// exchange tuples through a store. The client must be used on the thread of [`io()`].
///
/// # Errors
/// The address is invalid, or the environment is inconsistent.
pub fn client(
    address: &str,
    settings: &[(String, String)],
) -> tessera_types::Result<(Arc<dyn ObjectStore>, Path)> {
    let location = location::Location::parse(address)?;
    let _runtime = io::handle()?.enter();
    let timeouts = Arc::new(Mutex::new(Timeouts::of(settings)?));
    Ok((store::build(&location, settings, timeouts)?.0, location.path()?))
}

/// Returns AWS credentials and region as for S3, for platforms that use other services.
///
/// # Errors
/// The environment is inconsistent, or no credentials are found.
pub fn aws(
    settings: &[(String, String)],
) -> tessera_types::Result<(AwsCredentialProvider, String)> {
    let builder = store::s3(settings);
    let region = store::region(&builder);
    let _runtime = io::handle()?.enter();
    // The store serves only to find credentials.
    store::provide_tls();
    let store = builder.with_bucket_name("none").build().map_err(|error| {
        tessera_types::Error::io(format!("cannot find AWS credentials: {}", error::reason(&error)))
    })?;
    Ok((store.credentials().clone(), region))
}

/// Returns the runtime of the I/O thread.
///
/// # Errors
/// The thread cannot be started.
pub fn io() -> tessera_types::Result<Handle> {
    io::handle().cloned()
}

/// Whether a path is the address of an object and not of a local file.
pub fn is_object(path: &str) -> bool {
    location::kind_of(path).is_some()
}
