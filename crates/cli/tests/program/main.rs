//! Tests of the program as a process: output, exit codes, files.

mod answers;
mod bad_input;
mod catalog;
mod copy;
mod exit_codes;
mod explain;
mod formats;
mod memory;
mod plans;
mod reference;
mod results;
mod streams;
mod support;
