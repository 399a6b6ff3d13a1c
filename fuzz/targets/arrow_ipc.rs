//! Arrow IPC files and streams, as statements read them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tessera_session::fuzzing::arrow_ipc(data));
