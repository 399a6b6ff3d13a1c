//! Skips records that cannot be read, and lists them.

use std::sync::Arc;

use arrow::array::BooleanArray;
use arrow::compute::filter;

use tessera_context::{Reject, RejectKind, Reservation};
use tessera_types::{Error, Result, quote_name};
use tessera_vector::Column;

use super::cells::{BadCell, Cells};
use super::{BadRecord, TextFile, TextRun};

/// The most bytes of a record that are listed.
const RECORD_SHOWN_BYTES_MAX: usize = 64 << 10;

/// A value that is not of its column's type.
#[derive(Debug)]
pub(super) struct BadValue {
    pub(super) row: usize,
    /// The position of the column in `Layout::read`.
    source: usize,
    what: String,
}

impl TextRun {
    /// Like [`TextRun::columns_of`], without the records that have a value of another type than
    /// its column's. Returns the columns, the number of their rows, and these values.
    pub(super) fn good_columns(
        &self,
        file: &TextFile,
        cells: &mut [Cells],
        rows: usize,
    ) -> Result<(Vec<Column>, usize, Vec<BadValue>)> {
        let (mut bad, mut keep) = (Vec::new(), vec![true; rows]);
        for (source, position) in file.layout.read.iter().enumerate() {
            let field = &self.columns.fields()[*position];
            let (Some(cells), Some(atom)) = (cells.get_mut(source), field.atom()) else { continue };
            let name = || quote_name(&field.name);
            let mut skip = |row: usize, what: String| {
                if let Some(keep) = keep.get_mut(row) {
                    *keep = false;
                }
                bad.push(BadValue { row, source, what });
            };
            if !field.nullable {
                for row in cells.nulls() {
                    skip(row, format!("column {} is declared NOT NULL but holds NULL", name()));
                }
            }
            for BadCell { row, what } in cells.take_bad(atom) {
                skip(row, format!("column {}: {what}", name()));
            }
        }
        let kept = keep.iter().filter(|keep| **keep).count();
        let mask = BooleanArray::from(keep);
        let columns = self.each_column(file, cells, kept, |cells, atom, _| {
            let array = cells.to_array(atom).map_err(|error| Error::internal(error.what))?;
            Ok::<_, Error>(if kept == rows { array } else { filter(&array, &mask)? })
        })?;
        bad.sort_by_key(|value| (value.row, value.source));
        Ok((columns, kept, bad))
    }
}

/// The rejects of one reader.
#[derive(Debug)]
pub(super) struct Skipped {
    found: Vec<Reject>,
    memory: Reservation,
}

/// The rejects that a reader holds before it passes them on.
const HELD: usize = 1_000;

impl Skipped {
    pub(super) fn new(memory: Reservation) -> Skipped {
        Skipped { found: Vec::new(), memory }
    }

    /// Lists a malformed record at byte `offset` of a file.
    pub(super) fn add_record(
        &mut self,
        run: &TextRun,
        file: usize,
        (offset, record): (u64, &[u8]),
        bad: BadRecord,
    ) -> Result<()> {
        let start = |field| run.format.field_start(record, field);
        // The place of the error, as DuckDB counts it.
        let (byte, number) = match (bad.kind, bad.field) {
            (RejectKind::MissingColumns, Some(field)) => (record.len(), Some(field)),
            (RejectKind::TooManyColumns, Some(field)) => {
                (start(field).map_or(0, |start| start.saturating_sub(1)), Some(field + 1))
            }
            (_, Some(field)) => (start(field).unwrap_or(0), Some(field + 1)),
            (_, None) => (0, None),
        };
        let name = bad.field.and_then(|field| run.field_name(file, field));
        let place = (byte, number, name);
        self.add(run, file, (offset, record), place, (bad.kind, bad.what))
    }

    /// Lists a value of a record.
    pub(super) fn add_value(
        &mut self,
        run: &TextRun,
        file: usize,
        (offset, record): (u64, &[u8]),
        value: BadValue,
    ) -> Result<()> {
        let targets = &run.files[file].layout.targets;
        let field = targets.iter().position(|target| *target == Some(value.source));
        let byte = field.and_then(|field| run.format.field_start(record, field)).unwrap_or(0);
        let name = field.and_then(|field| run.field_name(file, field));
        let place = (byte, field.map(|field| field + 1), name);
        self.add(run, file, (offset, record), place, (RejectKind::Cast, value.what))
    }

    fn add(
        &mut self,
        run: &TextRun,
        file: usize,
        (offset, record): (u64, &[u8]),
        (byte, column, name): (usize, Option<usize>, Option<Arc<str>>),
        (kind, what): (RejectKind, String),
    ) -> Result<()> {
        let shown = record.get(..RECORD_SHOWN_BYTES_MAX).unwrap_or(record);
        let mut text = String::with_capacity(shown.len());
        for piece in shown.utf8_chunks() {
            text.push_str(piece.valid());
            text.extend(piece.invalid().iter().map(|_| '?'));
        }
        let reject = Reject {
            file,
            line: 0,
            start: offset + 1,
            byte: offset + 1 + byte as u64,
            column: column.map(|column| column as u64),
            name,
            kind,
            record: text,
            what,
        };
        self.memory.grow(reject.bytes())?;
        self.found.push(reject);
        match self.found.len() >= HELD {
            true => self.flush(run),
            false => Ok(()),
        }
    }

    /// Passes the rejects on to the list of the scan.
    pub(super) fn flush(&mut self, run: &TextRun) -> Result<()> {
        match &run.rejects {
            Some(rejects) if !self.found.is_empty() => {
                rejects.add(&mut self.found, &mut self.memory)
            }
            _ => Ok(()),
        }
    }
}

impl TextRun {
    /// The name of a field's column.
    fn field_name(&self, file: usize, field: usize) -> Option<Arc<str>> {
        let layout = &self.files[file].layout;
        let column = *layout.read.get(layout.targets.get(field).copied().flatten()?)?;
        Some(self.columns.fields()[column].name.clone())
    }
}
