//! Event streams that stores return for selections.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tessera_objects::fuzzing::select_events(data));
