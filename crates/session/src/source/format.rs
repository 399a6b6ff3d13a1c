//! Formats of files by their names, and the names of formats in messages.

use std::sync::Arc;

use tessera_context::Compression;
use tessera_operator::format::{Format, Formats};
use tessera_types::{Error, Result};

/// Returns the format of the file at `path` by its extension, before an optional `.gz`
/// or the like.
///
/// # Errors
/// The extension is unknown, or that of an unsupported compression.
pub(crate) fn format_of_path<'a>(formats: &'a Formats, path: &str) -> Result<&'a Arc<dyn Format>> {
    let name = Compression::strip(path.rsplit('/').next().unwrap_or(path));
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    if let Some(format) = formats.of_extension(extension) {
        return Ok(format);
    }
    match extension.to_ascii_lowercase().as_str() {
        "zip" | "lzma" | "lz" | "7z" => Err(Error::unsupported(format!(
            "'{path}' has an unsupported compression; expected {}, or decompress it first",
            Compression::EXTENSIONS
        ))),
        _ => Err(Error::semantic(format!(
            "cannot tell the format of '{path}': its name must end in {}; or name the format with {}",
            alternatives(&formats.extensions()),
            alternatives(&functions(formats, path))
        ))),
    }
}

/// The functions that read files, the first with a path.
fn functions(formats: &Formats, path: &str) -> Vec<String> {
    let functions = formats.iter().filter_map(|format| format.entry().functions.first());
    let written = |(position, function): (usize, &&str)| match position {
        0 => format!("{function}('{path}')"),
        _ => function.to_string(),
    };
    functions.enumerate().map(written).collect()
}

/// Returns the format with this name.
///
/// # Errors
/// The format is unknown, or cannot be written where it `is_written`.
pub(crate) fn named<'a>(
    formats: &'a Formats,
    name: &str,
    is_written: bool,
) -> Result<&'a Arc<dyn Format>> {
    let fits = |format: &&Arc<dyn Format>| !is_written || format.entry().materialize.is_some();
    let known = if is_written { formats.written_names() } else { formats.names() };
    formats.named(name).filter(fits).ok_or_else(|| {
        let known = alternatives(&known);
        Error::unsupported(format!("unknown format '{name}'; expected {known}"))
    })
}

/// Returns `a, b or c`.
pub(crate) fn alternatives<T: AsRef<str>>(names: &[T]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        Some((last, [])) => last.to_string(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formats() -> Formats {
        tessera_testing::standard_registry().formats().clone()
    }

    #[test]
    fn beginnings() {
        let formats = formats();
        let of = |start: &[u8]| formats.of_start(start).map(|format| format.entry().name);
        assert_eq!(of(b"PAR1\x15\x04"), Some("parquet"));
        assert_eq!(of(b"ARROW1\0\0"), Some("arrow"));
        assert_eq!(of(b"\xff\xff\xff\xff\x10"), Some("arrow"));
        for json in ["{\"a\": 1}", " { \"a\"", "{}", "[{", "[\n]", "\u{feff}{\"a\""] {
            assert_eq!(of(json.as_bytes()), Some("json"), "{json}");
        }
        assert_eq!(of(b"PK\x03\x04\x14"), Some("xlsx"));
        for csv in ["a,b\n1,2\n", "", "{a},b", "[1]", "\"{\"", "ä"] {
            assert_eq!(of(csv.as_bytes()), Some("csv"), "{csv}");
        }
        assert_eq!(of(&"aä".as_bytes()[..2]), Some("csv"));
        assert_eq!((of(b"\xe4,b\n"), of(b"a\0b")), (None, None));
    }

    #[test]
    fn extensions() {
        let formats = formats();
        let of = |path: &str| format_of_path(&formats, path).map(|format| format.entry().name);
        assert_eq!(of("a/b.PARQUET").unwrap(), "parquet");
        assert_eq!(formats.named("CSV").unwrap().entry().name, "csv");
        assert!(formats.named("gz").is_none());
        assert_eq!(of("x.ndjson").unwrap(), "json");
        assert_eq!(of("x.arrows").unwrap(), "arrow");
        assert_eq!(of("x.pq").unwrap(), "parquet");
        assert_eq!(of("x.csv.gz").unwrap(), "csv");
        assert_eq!(of("a.b/x.JSONL.ZST").unwrap(), "json");
        for unknown in ["dir.csv/plain", "x.gz", "x.text", "x.blob", "text"] {
            assert!(of(unknown).is_err(), "{unknown}");
        }
        assert_eq!(of("x.csv.xz").unwrap(), "csv");
        assert_eq!(of("x.ndjson.BZ2").unwrap(), "json");
        assert!(of("x.csv.zip").unwrap_err().to_string().contains("decompress"));
        assert_eq!(
            of("x").unwrap_err().message(),
            "cannot tell the format of 'x': its name must end in .parquet, .csv, .tsv, .json, .jsonl, .ndjson, \
             .arrow, .ipc, .feather or .xlsx; or name the format with read_parquet('x'), read_csv, read_json, \
             read_arrow, read_text, read_blob or read_xlsx"
        );
    }

    #[test]
    fn names() {
        let formats = formats();
        assert_eq!(named(&formats, "Text", false).unwrap().entry().name, "text");
        let message =
            |is_written| named(&formats, "xml", is_written).unwrap_err().message().to_string();
        assert_eq!(
            message(true),
            "unknown format 'xml'; expected parquet, csv, tsv, json or arrow"
        );
        assert!(message(false).ends_with("json, arrow, text, blob or xlsx"));
        assert!(named(&formats, "text", true).is_err());
    }
}
