//! Requests to the function service on loopback, those of workers included.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tessera_serverless_local::fuzzing::function_requests(data));
