//! Objects of S3, Google Cloud Storage, Azure and web servers: looking, listing, reading by ranges,
//! writing.
//!
//! [`Objects`] is what a session knows of stores. [`Objects::expand`] turns an address, a pattern
//! or a prefix into a sorted list of addresses; [`Objects::open`] gives a
//! [`RangeReader`](tessera_context::RangeReader) that never waits: it answers `Blocked` until the
//! bytes have come; [`Objects::create`] writes an object whole or not at all. Credentials, region
//! and endpoint come from the environment, as each cloud's own tools read it.
//!
//! Parts: `location` addresses; `store` clients; `timeouts` how long they wait; `io` the one I/O
//! thread of the process and what may be under way on it; `object` versions and edges; `fetch` one
//! range on its way; `reader`, `output`; `listing` patterns; `select` what a store computes itself;
//! `error`.
//!
//! **One version.** A statement sees each object as it first looked at it: later requests ask for
//! that content by its tag, and an object that was replaced meanwhile is an error. **All bytes.** A
//! body that ends early is asked for again from there on, a few times; it is never taken for the
//! whole.
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

mod error;
mod fetch;
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
pub use objects::{Edges, Expanded, Objects};
pub use select::{SelectRequest, SmartStorage, push_selects};
pub use timeouts::Timeouts;

/// A client of the store of an address, and the place there: for platforms that exchange tuples
/// through a store. It is used on the thread of [`io()`].
///
/// # Errors
/// The address is none, or what the environment says does not fit together.
pub fn client(
    address: &str,
    settings: &[(String, String)],
) -> tessera_types::Result<(Arc<dyn ObjectStore>, Path)> {
    let location = location::Location::parse(address)?;
    let _runtime = io::handle()?.enter();
    let timeouts = Arc::new(Mutex::new(Timeouts::of(settings)?));
    Ok((store::build(&location, settings, timeouts)?.0, location.path()?))
}

/// Who asks AWS, and in which region, as for its stores: for platforms that ask other services.
///
/// # Errors
/// What the environment says does not fit together.
pub fn aws(
    settings: &[(String, String)],
) -> tessera_types::Result<(AwsCredentialProvider, String)> {
    let builder = store::s3(settings);
    let region = store::region(&builder);
    let _runtime = io::handle()?.enter();
    // The store is only for its credentials.
    store::provide_tls();
    let store = builder.with_bucket_name("none").build().map_err(|error| {
        tessera_types::Error::io(format!(
            "cannot find credentials of AWS: {}",
            error::reason(&error)
        ))
    })?;
    Ok((store.credentials().clone(), region))
}

/// The I/O thread.
///
/// # Errors
/// The system gives no thread.
pub fn io() -> tessera_types::Result<Handle> {
    io::handle().cloned()
}

/// Whether a path is the address of an object, and not of a local file.
pub fn is_object(path: &str) -> bool {
    location::kind_of(path).is_some()
}
