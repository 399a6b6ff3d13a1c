//! Tests of scans and written files from outside.

mod common;
mod formats;
mod other_writers;
mod parquet;
mod text_files;
