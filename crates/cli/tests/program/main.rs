//! The program from outside: what it prints, how it ends, what it leaves behind.

mod answers;
mod bad_input;
mod catalog;
mod copy;
mod exit_codes;
mod explain;
mod formats;
mod results;
mod streams;
mod support;
