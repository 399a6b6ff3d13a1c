//! Requests to the loopback store.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tessera_serverless_local::fuzzing::store_requests(data));
