//! What serverless workers are asked and answer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tessera_serverless::fuzzing::orders(data));
