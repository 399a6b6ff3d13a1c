//! Tests of plans from outside.

mod common;
mod examples;
mod pipelines;
mod verify;
