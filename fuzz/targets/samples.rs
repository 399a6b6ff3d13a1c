//! Files of the cache of samples.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tessera_session::fuzzing::samples(data));
