//! Responses of stores to listings.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tessera_objects::fuzzing::listings(data));
