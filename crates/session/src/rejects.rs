//! The tables of what scans have skipped: `reject_scans` and `reject_errors`.
//!
//! A scan lists what it skips while it runs. When its statement is over, the next one finds the
//! lists as tables in memory, to which each statement adds its scans.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewArray, UInt64Array};

use tessera_context::{Reject, RejectScan};
use tessera_formats::block::{BLOCK_ROWS, Blocks};
use tessera_formats::count_lines;
use tessera_types::{Atom, Field, Result, Tuple};
use tessera_vector::{Chunk, Column};

use crate::catalog::already_exists;
use crate::memory_table::MemoryTable;
use crate::session::Session;

impl Session {
    /// Adds what the scans of the last statement have skipped to tables of this session.
    ///
    /// # Errors
    /// A name of the tables is taken, or the memory of the process is exhausted.
    pub(crate) fn keep_rejects(&mut self) -> Result<()> {
        let scans = self.storage.take_rejects();
        if !scans.is_empty() {
            // The last statement may have been cancelled.
            self.cancel.interrupt.begin(self.values.deadline);
        }
        for scan in scans.iter().filter(|scan| !scan.files.is_empty()) {
            self.reject_scans += 1;
            self.keep_scan(self.reject_scans, scan).map_err(|error| {
                error.context("the records that the last statement has skipped cannot be kept")
            })?;
        }
        Ok(())
    }

    fn keep_scan(&mut self, number: u64, scan: &RejectScan) -> Result<()> {
        let mut errors = scan.take();
        for (position, file) in scan.files.iter().enumerate() {
            let first = errors.partition_point(|error| error.file < position);
            let behind = errors.partition_point(|error| error.file <= position);
            let of_file = &mut errors[first..behind];
            if !of_file.is_empty() {
                // A file that has changed since has no lines to count.
                if let Ok(reader) = self.storage.open_as(&file.path, file.compression) {
                    let starts = of_file.iter().map(|error| error.start - 1);
                    let lines = count_lines(&*reader, starts, &self.cancel.interrupt)?;
                    of_file.iter_mut().zip(lines).for_each(|(error, line)| error.line = line);
                }
            }
        }
        let [scans, table] = &scan.tables;
        let (tuple, rows) = error_rows(number, &errors);
        self.append(table, tuple, rows)?;
        let (tuple, rows) = scan_rows(number, scan, &errors);
        self.append(scans, tuple, rows)
    }

    /// Adds rows to a table in memory, which is created first.
    fn append(&mut self, name: &str, tuple: Tuple, rows: Vec<Chunk>) -> Result<()> {
        let before = match self.catalog.tables().get(name) {
            Ok(table) if table.tuple == tuple => Some(table),
            Err(_) if !self.catalog.is_taken(name) => None,
            _ => return Err(already_exists(name)),
        };
        if before.is_some() && rows.is_empty() {
            return Ok(());
        }
        let before = before.as_ref().map(|table| &*table.blocks);
        let blocks = Arc::new(Blocks::append(before, &rows, &tuple)?);
        let memory = self.memory.keep(blocks.bytes(), &self.cancel.interrupt)?;
        let (table, tuples) = MemoryTable::of(name, tuple, blocks, memory);
        self.catalog.insert_in_memory(name, table, tuples);
        Ok(())
    }
}

/// The rows of the table of errors, with the columns that DuckDB has.
fn error_rows(number: u64, errors: &[Reject]) -> (Tuple, Vec<Chunk>) {
    let tuple = Tuple::new(vec![
        Field::new("scan_id", Atom::UInt64),
        Field::new("file_id", Atom::UInt64),
        Field::nullable("line", Atom::UInt64),
        Field::new("line_byte_position", Atom::UInt64),
        Field::new("byte_position", Atom::UInt64),
        Field::nullable("column_idx", Atom::UInt64),
        Field::nullable("column_name", Atom::String),
        Field::new("error_type", Atom::String),
        Field::new("csv_line", Atom::String),
        Field::new("error_message", Atom::String),
    ]);
    let rows = |errors: &[Reject]| {
        let line = |error: &Reject| (error.line > 0).then_some(error.line);
        let columns: Vec<ArrayRef> = vec![
            numbers(errors, |_| Some(number)),
            numbers(errors, |error| Some(error.file as u64)),
            numbers(errors, line),
            numbers(errors, |error| Some(error.start)),
            numbers(errors, |error| Some(error.byte)),
            numbers(errors, |error| error.column),
            texts(errors, |error| error.name.as_deref()),
            texts(errors, |error| Some(error.kind.name())),
            texts(errors, |error| Some(&error.record)),
            texts(errors, |error| Some(&error.what)),
        ];
        chunk(columns, errors.len())
    };
    (tuple, errors.chunks(BLOCK_ROWS).map(rows).collect())
}

/// The rows of the table of scans: the files that have errors.
fn scan_rows(number: u64, scan: &RejectScan, errors: &[Reject]) -> (Tuple, Vec<Chunk>) {
    let has_errors = |file: usize| {
        let first = errors.partition_point(|error| error.file < file);
        errors.get(first).is_some_and(|error| error.file == file)
    };
    let names = scan.files.first().map(|file| file.options.iter().map(|(name, _)| *name));
    let names: Vec<&str> = names.into_iter().flatten().collect();
    let fixed = [
        Field::new("scan_id", Atom::UInt64),
        Field::new("file_id", Atom::UInt64),
        Field::new("file_path", Atom::String),
    ];
    let options = names.iter().map(|name| Field::nullable(*name, Atom::String));
    let tuple = Tuple::new(fixed.into_iter().chain(options).collect::<Vec<_>>());
    let files: Vec<usize> = (0..scan.files.len()).filter(|file| has_errors(*file)).collect();
    let rows = |files: &[usize]| {
        let mut columns = vec![
            numbers(files, |_| Some(number)),
            numbers(files, |file| Some(*file as u64)),
            texts(files, |file| Some(&scan.files[*file].path)),
        ];
        for position in 0..names.len() {
            let text = |file: &usize| {
                scan.files[*file].options.get(position).and_then(|(_, text)| text.as_deref())
            };
            columns.push(Arc::new(StringViewArray::from_iter(files.iter().map(text))));
        }
        chunk(columns, files.len())
    };
    (tuple, files.chunks(BLOCK_ROWS).map(rows).collect())
}

fn numbers<T>(items: &[T], number: impl Fn(&T) -> Option<u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter(items.iter().map(number)))
}

fn texts<'a, T>(items: &'a [T], text: impl Fn(&'a T) -> Option<&'a str>) -> ArrayRef {
    Arc::new(StringViewArray::from_iter(items.iter().map(text)))
}

fn chunk(columns: Vec<ArrayRef>, rows: usize) -> Chunk {
    Chunk::new(columns.into_iter().map(Column::Plain).collect(), rows)
}
