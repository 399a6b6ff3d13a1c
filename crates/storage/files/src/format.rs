//! File formats by extension.

use tessera_types::{Error, Result};

/// The format of a file, as its extension tells.
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
    /// The format of the file at `path`.
    ///
    /// # Errors
    /// The extension is unknown, or the file is compressed as a whole.
    pub fn of_path(path: &str) -> Result<FileFormat> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
        match extension.as_str() {
            "parquet" | "pq" => Ok(FileFormat::Parquet),
            "csv" => Ok(FileFormat::Csv),
            "tsv" => Ok(FileFormat::Tsv),
            "json" | "jsonl" | "ndjson" => Ok(FileFormat::Json),
            "arrow" | "arrows" | "ipc" | "feather" => Ok(FileFormat::Ipc),
            "gz" | "zst" | "bz2" | "xz" | "zip" => {
                Err(Error::unsupported(format!("'{path}' is compressed as a whole; decompress it first")))
            }
            _ => Err(Error::semantic(format!(
                "cannot tell the format of '{path}': its name must end in .parquet, .csv, .tsv, .json, .jsonl, \
                 .ndjson, .arrow, .ipc or .feather"
            ))),
        }
    }

    /// The name of the scan sub-operator of the format.
    pub fn scan(self) -> &'static str {
        match self {
            FileFormat::Parquet => "parquet_scan",
            FileFormat::Csv | FileFormat::Tsv => "csv_scan",
            FileFormat::Json => "json_scan",
            FileFormat::Ipc => "ipc_scan",
        }
    }

    /// The name of the materialise sub-operator of the format.
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
    fn extensions() {
        assert_eq!(FileFormat::of_path("a/b.PARQUET").unwrap(), FileFormat::Parquet);
        assert_eq!(FileFormat::of_path("x.ndjson").unwrap(), FileFormat::Json);
        assert!(FileFormat::of_path("dir.csv/plain").is_err());
        assert!(FileFormat::of_path("x.csv.gz").unwrap_err().to_string().contains("decompress"));
    }
}
