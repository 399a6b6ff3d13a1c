//! Tests of plans from outside.

mod common;
mod examples;
mod passes;
mod pipelines;
mod verify;
