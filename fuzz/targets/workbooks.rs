//! Workbooks of Excel, read by statements.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tessera_session::fuzzing::workbooks(data));
