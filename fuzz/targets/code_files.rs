//! Files of the code cache.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tessera_jit::fuzzing::code_files(data));
