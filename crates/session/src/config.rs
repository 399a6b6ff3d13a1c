//! How a session is set up.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tessera_engine::Extension;
use tessera_jit::{Device, Tier};
use tessera_local::Local;
use tessera_objects::SmartStorage;
use tessera_types::{Error, Result};
use tessera_vector::CHUNK_ROWS;

use crate::extensions::Standard;

/// The smallest memory budget a session takes.
pub const MEMORY_BYTES_MIN: usize = 1 << 20;

/// What is assumed where the machine does not tell how much memory it has.
const MEMORY_BYTES_FALLBACK: usize = 4 << 30;

/// How a session is set up.
#[derive(Debug, Clone)]
pub struct Config {
    /// Worker threads.
    pub threads: usize,
    /// The memory budget of a statement, in bytes.
    pub memory_bytes: usize,
    /// Where state goes that does not fit into the budget.
    pub temp_directory: PathBuf,
    /// The memory of the statements of all sessions side by side, in bytes; at least that of one.
    pub process_memory_bytes: usize,
    /// The most tuples in a chunk: 1 to 8,192.
    pub chunk_rows: usize,
    /// The directory, or prefix of a store, whose files and folders are the tables.
    pub database: Option<PathBuf>,
    /// Whether statements come from the standard input, which they cannot read then.
    pub sql_from_stdin: bool,
    /// Settings of object stores, by the names of environment variables (`AWS_ENDPOINT_URL`,
    /// `TESSERA_STALL_TIMEOUT`); they come before these.
    pub stores: Vec<(String, String)>,
    /// What adds to the engine: sub-operators, functions, platforms, settings, in this order.
    pub extensions: Vec<Arc<dyn Extension>>,
    /// The name of the platform on which statements run.
    pub platform: String,
    /// Values of the extensions' settings, by name.
    pub settings: Vec<(String, String)>,
    /// What is compiled, and when.
    pub tier: Tier,
    /// Where compiled code runs.
    pub device: Device,
    /// Whether statements may create functions: these are machine code, and can do whatever this
    /// process can.
    pub native_functions: bool,
    /// When stores are asked to filter objects themselves.
    pub smart_storage: SmartStorage,
    /// The directory in which samples of tables are kept for other processes; nowhere if there is
    /// none.
    pub statistics_cache: Option<PathBuf>,
    /// The directory in which machine code is kept for other processes; nowhere if there is none.
    pub code_cache: Option<PathBuf>,
    /// Every statement is cancelled when it has run this long.
    pub deadline: Option<Duration>,
    /// How long a statement waits until others leave it enough memory to begin.
    pub admission_timeout: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        // The rest is left to what the budget does not count: file buffers, plans, other programs.
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
            device: Device::default(),
            native_functions: false,
            smart_storage: SmartStorage::Off,
            statistics_cache: None,
            code_cache: None,
            deadline: None,
            admission_timeout: None,
        }
    }
}

/// A number of bytes: `512`, `64MB`, `1.5 GiB`. `KB`, `MB`, `GB`, `TB` are powers of 1,000; `KiB` …
/// `TiB` of 1,024.
///
/// # Errors
/// The text is no size.
pub fn parse_size(text: &str) -> Result<usize> {
    let bad = || {
        Error::data(format!(
            "'{text}' is no size; write a number and a unit, such as 512MiB or 4GB"
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
    // Beyond 2^53 neighbouring sizes are the same float; nobody has that much memory.
    if bytes.is_finite() && bytes <= (1u64 << 53) as f64 { Ok(bytes as usize) } else { Err(bad()) }
}

/// The memory of the machine or of the container this process is limited to, whichever is smaller.
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
