//! Integration tests of scans and written files.

mod common;
mod formats;
mod other_writers;
mod parquet;
mod reference;
mod text_files;
