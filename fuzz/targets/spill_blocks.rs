//! Spilled blocks of tuples.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tessera_rows::fuzzing::spill_blocks(data));
