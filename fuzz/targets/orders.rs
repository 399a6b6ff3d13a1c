//! Requests to serverless workers, and their responses.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tessera_serverless::fuzzing::orders(data));
