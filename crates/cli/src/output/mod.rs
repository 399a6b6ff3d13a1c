//! Output of results in all formats.

mod lines;
mod table;
mod writer;

use std::io::{self, Write};

use arrow::array::RecordBatch;
use tessera_session::ResultStream;
use tessera_types::{Error, io_cause};

use self::lines::LineFormat;
pub(crate) use self::table::TableLimits;
use self::writer::RowWriter;
use crate::arguments::Format;

/// The reason why a result is missing or incomplete.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader has closed the output. This is not an error.
    Closed,
    /// The query failed after this number of rows was written.
    Query(Error, usize),
    /// Another error, to print.
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => {
                Failure::Error(Error::io(format!("cannot write the result: {}", io_cause(&error))))
            }
        }
    }
}

impl From<arrow::error::ArrowError> for Failure {
    fn from(error: arrow::error::ArrowError) -> Self {
        match error {
            arrow::error::ArrowError::IoError(_, source) => source.into(),
            other => Failure::Error(other.into()),
        }
    }
}

impl From<parquet::errors::ParquetError> for Failure {
    fn from(error: parquet::errors::ParquetError) -> Self {
        match error {
            parquet::errors::ParquetError::External(source) => match source.downcast::<io::Error>()
            {
                Ok(source) => (*source).into(),
                Err(source) => {
                    Failure::Error(Error::data(format!("cannot write Parquet: {source}")))
                }
            },
            other => Failure::Error(Error::data(format!("cannot write Parquet: {other}"))),
        }
    }
}

/// Writes results in one format.
#[derive(Debug)]
pub(crate) struct Printer<W> {
    out: W,
    format: Format,
    /// The limits of tables.
    pub(crate) limits: TableLimits,
    written: usize,
}

impl<W: Write + Send> Printer<W> {
    pub(crate) fn new(out: W, format: Format) -> Self {
        Printer { out, format, limits: TableLimits::default(), written: 0 }
    }

    /// Writes rows while the query runs. `begins` is called before the first byte.
    ///
    /// # Errors
    /// The query fails, the output cannot be written, or a binary format already has a result.
    pub(crate) fn rows(
        &mut self,
        mut rows: ResultStream,
        begins: impl Fn(),
    ) -> Result<(), Failure> {
        if self.format.is_binary() && self.written > 0 {
            return Err(Failure::Error(Error::unsupported(format!(
                "cannot write a second result with --format {}; run one query at a time",
                self.format.name()
            ))));
        }
        self.written += 1;
        if self.format == Format::Table {
            table::write(&mut self.out, rows, self.limits, begins)?;
            return Ok(self.out.flush()?);
        }
        // Waits for the first rows, so that a query that fails before them writes nothing.
        let first = rows.next().transpose().map_err(|error| Failure::Query(error, 0))?;
        begins();
        let lines = match self.format {
            Format::Json => Some(LineFormat::json(&rows)),
            Format::Csv | Format::Table => Some(LineFormat::Csv),
            Format::Arrow | Format::Parquet => None,
        };
        match lines {
            Some(lines) => lines::write(&mut self.out, &lines, first, rows)?,
            None => self.binary_rows(first, rows)?,
        }
        Ok(self.out.flush()?)
    }

    fn binary_rows(
        &mut self,
        first: Option<RecordBatch>,
        rows: ResultStream,
    ) -> Result<(), Failure> {
        let mut writer = RowWriter::new(&mut self.out, self.format == Format::Parquet, &rows)?;
        let mut written = 0;
        for batch in first.map(Ok).into_iter().chain(rows) {
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => {
                    writer.flush()?;
                    return Err(Failure::Query(error, written));
                }
            };
            written += batch.num_rows();
            writer.write(batch)?;
            writer.flush()?;
        }
        writer.finish()
    }

    /// Writes text, in all formats.
    ///
    /// # Errors
    /// The output is closed or cannot be written.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            self.out.write_all(b"\n")?;
        }
        Ok(self.out.flush()?)
    }

    /// Writes the summary of a statement without rows, if the format is `table`.
    ///
    /// # Errors
    /// The output is closed or cannot be written.
    pub(crate) fn done(&mut self, text: &str) -> Result<(), Failure> {
        if self.format == Format::Table && !text.is_empty() { self.text(text) } else { Ok(()) }
    }
}
