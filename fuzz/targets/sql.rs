//! Statements: parsed, bound and planned.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tessera_session::fuzzing::sql(data));
