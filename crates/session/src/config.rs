//! The configuration of a session.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tessera_codegen::Tier;
use tessera_engine::Extension;
use tessera_local::Local;
use tessera_objects::SmartStorage;
use tessera_types::{Error, Result};
use tessera_vector::CHUNK_ROWS;

use crate::extensions::Standard;

/// The minimum memory budget of a session, in bytes.
pub const MEMORY_BYTES_MIN: usize = 1 << 20;

/// The assumed size of memory if the machine does not report it.
const MEMORY_BYTES_FALLBACK: usize = 4 << 30;

/// The configuration of a session.
#[derive(Debug, Clone)]
pub struct Config {
    /// Worker threads.
    pub threads: usize,
    /// The memory budget of a statement, in bytes.
    pub memory_bytes: usize,
    /// The directory for data that exceeds the budget.
    pub temp_directory: PathBuf,
    /// The memory budget of all concurrent sessions, in bytes; at least that of one statement.
    pub process_memory_bytes: usize,
    /// The maximum number of tuples in a chunk: 1 to 65,536.
    pub chunk_rows: usize,
    /// The directory or object store prefix whose files and folders are the tables.
    pub database: Option<PathBuf>,
    /// Whether SQL is read from the standard input, which statements then cannot scan.
    pub sql_from_stdin: bool,
    /// Settings of object stores, by the names of environment variables (`AWS_ENDPOINT_URL`,
    /// `TESSERA_STALL_TIMEOUT`), which they override.
    pub stores: Vec<(String, String)>,
    /// Extensions to install, in this order: sub-operators, functions, platforms, settings.
    pub extensions: Vec<Arc<dyn Extension>>,
    /// The name of the platform that runs statements.
    pub platform: String,
    /// Values of extension settings, by name.
    pub settings: Vec<(String, String)>,
    /// Which code is compiled, and when.
    pub tier: Tier,
    /// The name of the device that runs statements.
    pub device: String,
    /// Whether statements may create functions, which are machine code with all rights of this
    /// process.
    pub native_functions: bool,
    /// When stores filter objects themselves.
    pub smart_storage: SmartStorage,
    /// The directory that caches samples of tables for later processes; `None` disables it.
    pub statistics_cache: Option<PathBuf>,
    /// The directory that caches machine code for later processes; `None` disables it.
    pub code_cache: Option<PathBuf>,
    /// The time after which a statement is cancelled.
    pub deadline: Option<Duration>,
    /// The time for which a statement waits for memory that other statements use.
    pub admission_timeout: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        // The rest is for memory outside the budget: file buffers, plans, other programs.
        let memory_bytes = machine_memory_bytes().unwrap_or(MEMORY_BYTES_FALLBACK) / 10 * 8;
        Config {
            threads: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            memory_bytes,
            process_memory_bytes: memory_bytes,
            temp_directory: std::env::temp_dir(),
            chunk_rows: CHUNK_ROWS,
            database: None,
            sql_from_stdin: false,
            stores: Vec::new(),
            extensions: vec![Arc::new(Standard), Arc::new(Local)],
            platform: tessera_local::NAME.to_string(),
            settings: Vec::new(),
            tier: Tier::default(),
            device: crate::devices::DEFAULT.to_string(),
            native_functions: false,
            smart_storage: SmartStorage::Off,
            statistics_cache: None,
            code_cache: None,
            deadline: None,
            admission_timeout: None,
        }
    }
}

/// Parses a number of bytes: `512`, `64MB`, `1.5 GiB`. `KB` to `TB` are powers of 1,000, `KiB` to
/// `TiB` of 1,024.
///
/// # Errors
/// The text is not a size, or the size exceeds 2^53 bytes.
pub fn parse_size(text: &str) -> Result<usize> {
    let bad = || {
        Error::data(format!(
            "invalid size '{text}'; expected a number and a unit, such as 512MiB or 4GB"
        ))
    };
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return Err(bad()),
    };
    let bytes = number.parse::<f64>().map_err(|_| bad())? * factor as f64;
    // A float represents integers exactly up to 2^53 only.
    if bytes.is_finite() && bytes <= (1u64 << 53) as f64 { Ok(bytes as usize) } else { Err(bad()) }
}

/// The size of the memory of the machine, or the limit of the container if that is smaller.
fn machine_memory_bytes() -> Option<usize> {
    let total = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
        let kibibytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
        kibibytes.checked_mul(1024)
    });
    let container = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok()?.trim().parse::<usize>().ok());
    match (total, container) {
        (Some(total), Some(container)) => Some(total.min(container)),
        (total, container) => total.or(container),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("512", 512),
            ("4GB", 4_000_000_000),
            ("512MiB", 512 << 20),
            (" 1.5 kib ", 1536),
            ("1g", 1_000_000_000),
        ] {
            assert_eq!(parse_size(text).unwrap(), bytes, "{text}");
        }
        for text in ["", "GB", "-1GB", "1XB", "1..2GB", "99999999999TB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
