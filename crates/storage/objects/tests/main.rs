//! Tests of object stores against a server on loopback.

mod google;
mod server;
mod store;
