//! Requests to the loopback function service, including those of workers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tessera_serverless_local::fuzzing::function_requests(data));
