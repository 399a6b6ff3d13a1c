//! Tests of the planner through its public API.

mod samples;
mod suites;
mod tables;
