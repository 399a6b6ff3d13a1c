//! The flags and subcommands that all platforms have.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tessera_codegen::Tier;
use tessera_objects::SmartStorage;
use tessera_session::parse_size;

use crate::timeouts::TimeoutArgs;

/// SQL over Parquet, CSV, JSON lines and Arrow files.
///
/// Without -c and -f, reads statements from a terminal (a shell) or from the standard input. Exit
/// codes: 0 ok, 1 an error of a statement or a file, 2 usage, 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "tessera", version = env!("TESSERA_VERSION"))]
#[command(args_conflicts_with_subcommands = true, max_term_width = 100)]
pub(super) struct CommandLine {
    #[command(subcommand)]
    pub(super) command: Option<Subcommands>,
    #[command(flatten)]
    pub(super) query: QueryArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum Subcommands {
    /// Verify and run a plan of sub-operators written by hand
    Run(Box<RunArgs>),
    /// Write benchmark data as Parquet
    Generate(GenerateArgs),
}

#[derive(Debug, Args)]
pub(super) struct QueryArgs {
    /// Directory, or prefix such as s3://bucket/tpch, whose files and folders are the tables:
    /// lineitem.parquet is lineitem
    pub(super) database: Option<PathBuf>,
    /// Run these statements. Can be repeated; runs in order with -f
    #[arg(short = 'c', long = "command", value_name = "SQL", allow_hyphen_values = true)]
    pub(super) commands: Vec<String>,
    /// Run the statements of a file; `-` is the standard input, of which all statements run even if
    /// one fails
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
}

#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// Output format of rows
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(super) format: Format,
    /// Print the time of each statement to the standard error
    #[arg(long)]
    pub(super) timing: bool,
}

#[derive(Debug, Args)]
pub(super) struct EngineArgs {
    /// Worker threads (default: one per core)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,
    /// Memory budget of a statement, such as 4GB or 512MiB (default: 80 % of the machine's)
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub(super) memory: Option<usize>,
    /// Directory for data that exceeds the memory budget (default: that of temporary files)
    #[arg(long, value_name = "DIR")]
    pub(super) temp_directory: Option<PathBuf>,
    /// Maximum number of tuples in a chunk, 1 to 65536
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(super) chunk_rows: Option<u32>,
    /// Compilation to machine code: nothing (vectorized), all supported code before it runs
    /// (compiled), or code for many tuples while it runs (auto)
    #[arg(long, value_name = "TIER", default_value_t)]
    pub(super) tier: Tier,
    /// Device for compiled code: the processor (cpu), an NVIDIA GPU (gpu), or a GPU that the
    /// processor emulates (virtual-gpu, for tests)
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub(super) device: String,
    /// Allow CREATE FUNCTION: functions are machine code with all rights of this process
    #[arg(long)]
    pub(super) native_functions: bool,
    /// Filtering of objects by stores: never (off), where it is faster (auto), or wherever its
    /// results are exact (on)
    #[arg(long, value_name = "off|auto|on", value_parser = smart_storage, default_value = "off")]
    pub(super) smart_storage: SmartStorage,
    /// Directory that caches samples of tables for later runs, or off [default: tessera in
    /// XDG_CACHE_HOME, or in ~/.cache]
    #[arg(long, value_name = "DIRECTORY|off")]
    pub(super) statistics_cache: Option<PathBuf>,
    /// Directory that caches machine code for later runs, or off [default: tessera/code in
    /// XDG_CACHE_HOME, or in ~/.cache]
    #[arg(long, value_name = "DIRECTORY|off")]
    pub(super) code_cache: Option<PathBuf>,
    /// Cancel a statement after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) deadline: Option<Duration>,
    #[command(flatten)]
    pub(super) timeouts: TimeoutArgs,
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The plan, in the language of docs/reference/plan-language.md
    pub(super) plan: PathBuf,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
}

#[derive(Debug, Args)]
pub(super) struct GenerateArgs {
    /// Benchmark: tpch or ssb
    pub(super) suite: String,
    /// Scale factor: 1 is about 6 million rows in the largest table
    #[arg(long = "sf", value_name = "X")]
    pub(super) scale: f64,
    /// Directory to write to; created if needed
    #[arg(long, value_name = "DIR")]
    pub(super) out: PathBuf,
    /// Replace existing tables
    #[arg(long)]
    pub(super) overwrite: bool,
    /// Declare all columns NOT NULL; by default they are nullable, but contain no NULL
    #[arg(long)]
    pub(super) not_null: bool,
    /// Threads (default: one per core)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,
    /// Seed of the random numbers of SSB
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
}

/// The output format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned table for people
    Table,
    /// Comma-separated with a header line; NULL is an empty field, the empty string is ""
    Csv,
    /// One JSON object per line
    Json,
    /// Arrow IPC stream (binary)
    Arrow,
    /// Parquet (binary)
    Parquet,
}

impl Format {
    /// Whether the format is binary, and thus unsuitable for a terminal.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Format::Arrow | Format::Parquet)
    }

    /// The name of the format on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Arrow => "arrow",
            Format::Parquet => "parquet",
        }
    }
}

/// Parses a memory budget.
fn memory(text: &str) -> Result<usize, String> {
    let bytes = parse_size(text).map_err(|error| error.to_string())?;
    let least = tessera_session::MEMORY_BYTES_MIN;
    if bytes >= least { Ok(bytes) } else { Err(format!("must be at least {} KiB", least >> 10)) }
}

fn smart_storage(text: &str) -> Result<SmartStorage, String> {
    SmartStorage::parse(text).ok_or_else(|| "must be off, auto or on".to_string())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "must be a number of seconds above 0".to_string())
}
