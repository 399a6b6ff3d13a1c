//! File formats by name and by extension.

use tessera_types::{Error, Result};

use crate::compressed::Compression;

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// Apache Parquet: `.parquet`.
    Parquet,
    /// Comma-separated values: `.csv`.
    Csv,
    /// Tab-separated values: `.tsv`.
    Tsv,
    /// Newline-delimited JSON: `.json`, `.jsonl`, `.ndjson`.
    Json,
    /// Arrow IPC, file or stream: `.arrow`, `.ipc`, `.feather`.
    Ipc,
}

impl FileFormat {
    /// Returns the format with this name, as in `STORED AS`, `COPY … (FORMAT …)` and `read_…`.
    pub fn called(name: &str) -> Option<FileFormat> {
        match name.to_ascii_lowercase().as_str() {
            "parquet" | "pq" => Some(FileFormat::Parquet),
            "csv" => Some(FileFormat::Csv),
            "tsv" => Some(FileFormat::Tsv),
            "json" | "jsonl" | "ndjson" => Some(FileFormat::Json),
            "arrow" | "arrows" | "ipc" | "feather" => Some(FileFormat::Ipc),
            _ => None,
        }
    }

    /// Returns the format of the file at `path` by its extension, before an optional `.gz` or
    /// `.zst`.
    ///
    /// # Errors
    /// The extension is unknown, or that of an unsupported compression.
    pub fn of_path(path: &str) -> Result<FileFormat> {
        let name = Compression::strip(path.rsplit('/').next().unwrap_or(path));
        let extension =
            name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
        if let Some(format) = FileFormat::called(&extension) {
            return Ok(format);
        }
        match extension.as_str() {
            "bz2" | "xz" | "zip" => Err(Error::unsupported(format!(
                "'{path}' has an unsupported compression; expected .gz or .zst, or decompress it first"
            ))),
            _ => Err(Error::semantic(format!(
                "cannot tell the format of '{path}': its name must end in .parquet, .csv, .tsv, .json, .jsonl, \
                 .ndjson, .arrow, .ipc or .feather; or name the format with read_csv('{path}'), read_json, \
                 read_parquet or read_arrow"
            ))),
        }
    }

    /// Detects the format of data from its start. Returns `None` for unknown binary data.
    pub fn of_start(start: &[u8]) -> Option<FileFormat> {
        if start.starts_with(b"PAR1") {
            return Some(FileFormat::Parquet);
        }
        // The second is the start of a message of an Arrow stream.
        if start.starts_with(b"ARROW1") || start.starts_with(&[0xff; 4]) {
            return Some(FileFormat::Ipc);
        }
        let text = match std::str::from_utf8(start) {
            Ok(text) => text,
            // The last character may be truncated.
            Err(error) if error.error_len().is_none() => {
                std::str::from_utf8(start.get(..error.valid_up_to())?).ok()?
            }
            Err(_) => return None,
        };
        if text.contains('\0') {
            return None;
        }
        let mut characters = text
            .trim_start_matches('\u{feff}')
            .chars()
            .filter(|character| !character.is_whitespace());
        match (characters.next(), characters.next()) {
            (Some('{'), Some('"' | '}')) | (Some('['), Some('{' | ']')) => Some(FileFormat::Json),
            _ => Some(FileFormat::Csv),
        }
    }

    /// The name of the format's scan sub-operator.
    pub fn scan(self) -> &'static str {
        match self {
            FileFormat::Parquet => "parquet_scan",
            FileFormat::Csv | FileFormat::Tsv => "csv_scan",
            FileFormat::Json => "json_scan",
            FileFormat::Ipc => "ipc_scan",
        }
    }

    /// The name of the format's materialize sub-operator.
    pub fn materialize(self) -> &'static str {
        match self {
            FileFormat::Parquet => "parquet_materialize",
            FileFormat::Csv | FileFormat::Tsv => "csv_materialize",
            FileFormat::Json => "json_materialize",
            FileFormat::Ipc => "ipc_materialize",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings() {
        let of = |start: &[u8]| FileFormat::of_start(start);
        assert_eq!(of(b"PAR1\x15\x04"), Some(FileFormat::Parquet));
        assert_eq!(of(b"ARROW1\0\0"), Some(FileFormat::Ipc));
        assert_eq!(of(b"\xff\xff\xff\xff\x10"), Some(FileFormat::Ipc));
        for json in ["{\"a\": 1}", " { \"a\"", "{}", "[{", "[\n]", "\u{feff}{\"a\""] {
            assert_eq!(of(json.as_bytes()), Some(FileFormat::Json), "{json}");
        }
        for csv in ["a,b\n1,2\n", "", "{a},b", "[1]", "\"{\"", "ä"] {
            assert_eq!(of(csv.as_bytes()), Some(FileFormat::Csv), "{csv}");
        }
        assert_eq!(of(&"aä".as_bytes()[..2]), Some(FileFormat::Csv));
        assert_eq!((of(b"\xe4,b\n"), of(b"a\0b")), (None, None));
    }

    #[test]
    fn extensions() {
        assert_eq!(FileFormat::of_path("a/b.PARQUET").unwrap(), FileFormat::Parquet);
        assert_eq!(FileFormat::called("CSV"), Some(FileFormat::Csv));
        assert_eq!(FileFormat::called("gz"), None);
        assert_eq!(FileFormat::of_path("x.ndjson").unwrap(), FileFormat::Json);
        assert!(FileFormat::of_path("dir.csv/plain").is_err());
        assert_eq!(FileFormat::of_path("x.csv.gz").unwrap(), FileFormat::Csv);
        assert_eq!(FileFormat::of_path("a.b/x.JSONL.ZST").unwrap(), FileFormat::Json);
        assert!(FileFormat::of_path("x.gz").is_err());
        assert!(FileFormat::of_path("x.csv.xz").unwrap_err().to_string().contains("decompress"));
    }
}
