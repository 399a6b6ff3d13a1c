//! The services on loopback, as clients and strangers see them.

mod client;
mod doors;
mod functions;
