//! Tests of pipelines, workers and queries from outside.

mod early_output;
mod execution;
mod results;
