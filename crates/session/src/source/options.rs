//! Options of file formats, as SQL writes them.

use tessera_files::FileFormat;
use tessera_ops::scan::{csv, json};
use tessera_plan::{Params, Value};
use tessera_types::{Error, Result};

/// What files are opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// Options as SQL writes them, as parameters of a scan or materialize sub-operator.
///
/// # Errors
/// The format has no such option, or it is there twice.
pub(crate) fn params_of_options(
    format: FileFormat,
    direction: Direction,
    options: &[(String, String)],
) -> Result<Params> {
    let known = known(format, direction);
    let mut params = Params::new();
    for (written, value) in options {
        let lower = written.to_ascii_lowercase();
        let name = same_as(&lower);
        if !known.contains(&name) {
            return Err(unknown(written, format, direction, known));
        }
        if params.get(name).is_some() {
            return Err(Error::semantic(format!("option {name} is given twice")));
        }
        match (name, value.as_str()) {
            // DuckDB's number of rows.
            ("sample", "-1") => params.set(name, Value::string("all")),
            _ => params.set(name, Value::string(value.as_str())),
        }
    }
    if format == FileFormat::Tsv && params.get("delimiter").is_none() {
        params.set("delimiter", Value::string("\t"));
    }
    Ok(params)
}

fn known(format: FileFormat, direction: Direction) -> &'static [&'static str] {
    match (format, direction) {
        (FileFormat::Csv | FileFormat::Tsv, Direction::Read) => &csv::SCAN_OPTIONS,
        (FileFormat::Csv | FileFormat::Tsv, Direction::Write) => &csv::MATERIALIZE_OPTIONS,
        (FileFormat::Json, Direction::Read) => &json::SCAN_OPTIONS,
        _ => &[],
    }
}

/// The name of an option that others call so.
fn same_as(name: &str) -> &str {
    match name {
        "delim" | "sep" => "delimiter",
        "has_header" => "header",
        "nullstr" | "null_value" => "null",
        "sample_size" => "sample",
        name => name,
    }
}

fn unknown(name: &str, format: FileFormat, direction: Direction, known: &[&str]) -> Error {
    let format = match format {
        FileFormat::Parquet => "Parquet",
        FileFormat::Csv | FileFormat::Tsv => "CSV",
        FileFormat::Json => "JSON",
        FileFormat::Ipc => "Arrow",
    };
    let doing = if direction == Direction::Read { "reading" } else { "writing" };
    let expected = match known {
        [] => "there is none".to_string(),
        known => format!("expected {}", known.join(", ")),
    };
    Error::semantic(format!("unknown option '{name}' of {doing} {format} files; {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(format: FileFormat, options: &[(&str, &str)]) -> Result<Params> {
        let options: Vec<_> =
            options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        params_of_options(format, Direction::Read, &options)
    }

    #[test]
    fn names_of_options() {
        let found = params(FileFormat::Csv, &[("delim", ";"), ("HEADER", "true")]).unwrap();
        assert_eq!(found.string("delimiter").unwrap().as_ref(), ";");
        assert!(found.get("header").is_some());
        let tabs = params(FileFormat::Tsv, &[]).unwrap();
        assert_eq!(tabs.string("delimiter").unwrap().as_ref(), "\t");
        let all = params(FileFormat::Json, &[("sample_size", "-1")]).unwrap();
        assert_eq!(all.string("sample").unwrap().as_ref(), "all");
        let refused =
            |format, options: &[(&str, &str)]| params(format, options).unwrap_err().message().to_string();
        let message = refused(FileFormat::Csv, &[("delimeter", ";")]);
        assert_eq!(
            message,
            "unknown option 'delimeter' of reading CSV files; expected header, delimiter, quote, \
             escape, null, sample, skip, comment"
        );
        assert!(refused(FileFormat::Parquet, &[("header", "true")]).contains("there is none"));
        assert!(refused(FileFormat::Csv, &[("delim", ";"), ("sep", ",")]).contains("twice"));
    }
}
