//! Requests to the store on loopback.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tessera_serverless_local::fuzzing::store_requests(data));
