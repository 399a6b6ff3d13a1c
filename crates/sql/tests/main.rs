//! Tests of planning from outside.

mod samples;
mod suites;
mod tables;
