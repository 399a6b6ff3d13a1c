//! Tests of the services on loopback, for authorized and unauthorized clients.

mod client;
mod doors;
mod functions;
