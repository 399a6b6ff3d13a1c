//! The text form of plans.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tessera_session::fuzzing::plans(data));
