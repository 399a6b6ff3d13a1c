//! Tests of object stores against a server on loopback.

mod conformance;
mod google;
mod server;
mod store;
