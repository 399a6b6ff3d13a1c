//! Integration tests of the public interface.

mod common;
mod examples;
mod pipelines;
mod verify;
