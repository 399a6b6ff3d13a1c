//! Rows in exchange objects.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tessera_serverless::fuzzing::wire_rows(data));
