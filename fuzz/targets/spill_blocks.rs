//! Blocks of tuples that left memory.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tessera_rows::fuzzing::spill_blocks(data));
