//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use tessera_engine::{LaunchOption, LaunchRole, LaunchValues, Launcher, Report, SettingEntry};
use tessera_jit::{Device, Tier};
use tessera_objects::SmartStorage;
use tessera_session::{Config, parse_size};

use crate::extensions::LAUNCHERS;
use crate::runner::Timing;
use crate::timeouts::TimeoutLine;

/// SQL over Parquet, CSV, JSON lines and Arrow files.
///
/// Without -c and -f, reads statements from a terminal (a shell) or from the standard input. Exit
/// codes: 0 ok, 1 an error of a statement or a file, 2 usage, 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "tessera", version, args_conflicts_with_subcommands = true, max_term_width = 100)]
struct Line {
    #[command(subcommand)]
    command: Option<Sub>,
    #[command(flatten)]
    query: QueryLine,
}

#[derive(Debug, Subcommand)]
enum Sub {
    /// Verify and run a plan of sub-operators written by hand
    Run(Box<RunLine>),
    /// Write benchmark data as Parquet
    Generate(GenerateLine),
}

#[derive(Debug, Args)]
struct QueryLine {
    /// Directory, or prefix such as s3://bucket/tpch, whose files and folders are the tables:
    /// lineitem.parquet is lineitem
    database: Option<PathBuf>,
    /// Run these statements (can be repeated; runs in the order given, with -f)
    #[arg(short = 'c', long = "command", value_name = "SQL", allow_hyphen_values = true)]
    commands: Vec<String>,
    /// Run the statements of a file; `-` is the standard input, where a failed statement does not
    /// end the run
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputLine,
    #[command(flatten)]
    engine: EngineLine,
}

#[derive(Debug, Args)]
struct OutputLine {
    /// How rows are printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Print the time of each statement on the standard error
    #[arg(long)]
    timing: bool,
}

#[derive(Debug, Args)]
struct EngineLine {
    /// Worker threads (default: one per core)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Memory budget of a statement, such as 4GB or 512MiB (default: 80 % of the machine's)
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<usize>,
    /// Directory for what does not fit into the memory budget (default: that of temporary files)
    #[arg(long, value_name = "DIR")]
    temp_directory: Option<PathBuf>,
    /// Most tuples in a chunk, 1 to 65536
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    chunk_rows: Option<u32>,
    /// What is compiled to machine code: nothing (vectorized), whatever can be before it runs
    /// (compiled), or what many tuples go through, meanwhile (auto)
    #[arg(long, value_name = "TIER", default_value_t)]
    tier: Tier,
    /// Where compiled code runs: on the processor (cpu), on an NVIDIA GPU, chunk by chunk (gpu), or
    /// on one that the processor stands in for (virtual-gpu, for tests)
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: Device,
    /// Let statements create functions: machine code, which can do whatever this process can
    #[arg(long)]
    native_functions: bool,
    /// Whether stores filter objects themselves: wherever they can be trusted with it, or where it
    /// pays
    #[arg(long, value_name = "off|auto|on", value_parser = smart_storage, default_value = "off")]
    smart_storage: SmartStorage,
    /// Where samples of tables are kept for later runs; off: nowhere [default: tessera in
    /// XDG_CACHE_HOME, or in ~/.cache]
    #[arg(long, value_name = "DIRECTORY|off")]
    statistics_cache: Option<PathBuf>,
    /// Where machine code is kept for later runs; off: nowhere [default: tessera/code in
    /// XDG_CACHE_HOME, or in ~/.cache]
    #[arg(long, value_name = "DIRECTORY|off")]
    code_cache: Option<PathBuf>,
    /// Cancel a statement after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    deadline: Option<Duration>,
    #[command(flatten)]
    timeouts: TimeoutLine,
}

#[derive(Debug, Args)]
struct RunLine {
    /// The plan, in the language of docs/plan-language.md
    plan: PathBuf,
    #[command(flatten)]
    output: OutputLine,
    #[command(flatten)]
    engine: EngineLine,
}

#[derive(Debug, Args)]
struct GenerateLine {
    /// Which benchmark: tpch or ssb
    suite: String,
    /// Scale factor: 1 is about 6 million rows in the largest table
    #[arg(long = "sf", value_name = "X")]
    scale: f64,
    /// Directory to write to; created if needed
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Replace tables that are there already
    #[arg(long)]
    overwrite: bool,
    /// Declare all columns NOT NULL; without it they may be NULL, though none is
    #[arg(long)]
    not_null: bool,
    /// Threads (default: one per core)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Seed of SSB's random numbers
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// Comma-separated, with a header line; NULL is nothing, the empty string is ""
    Csv,
    /// One JSON object per line
    Json,
    /// Arrow IPC stream (binary)
    Arrow,
    /// Parquet (binary)
    Parquet,
}

impl Format {
    /// Whether it is not for a terminal.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Format::Arrow | Format::Parquet)
    }

    /// The name, as on the command line.
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

/// The platform that statements run on, and what the command line says of it.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) launcher: &'static dyn Launcher,
    pub(crate) values: LaunchValues,
}

impl Default for Place {
    fn default() -> Self {
        Place { launcher: LAUNCHERS[0], values: LaunchValues::default() }
    }
}

/// What to do.
#[derive(Debug)]
pub(crate) enum Command {
    Query(Query),
    Run(RunPlan),
    Generate(Generate),
    /// As a part of a platform.
    Role(LaunchRole, LaunchValues),
}

impl Command {
    fn config_mut(&mut self) -> Option<&mut Config> {
        match self {
            Command::Query(query) => Some(&mut query.config),
            Command::Run(run) => Some(&mut run.config),
            Command::Generate(_) | Command::Role(..) => None,
        }
    }

    /// Changes how its session is set up.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Config)) {
        if let Some(config) = self.config_mut() {
            change(config);
        }
    }

    /// Says with the time of a statement what else this says.
    pub(crate) fn set_report(&mut self, report: Report) {
        match self {
            Command::Query(Query { timing, .. }) | Command::Run(RunPlan { timing, .. }) => {
                timing.report = Some(report);
            }
            Command::Generate(_) | Command::Role(..) => {}
        }
    }

    /// How its session is set up.
    pub(crate) fn config(&self) -> Config {
        match self {
            Command::Query(query) => query.config.clone(),
            Command::Run(run) => run.config.clone(),
            Command::Generate(_) | Command::Role(..) => Config::default(),
        }
    }

    /// Whether it takes statements from the standard input.
    pub(crate) fn reads_input(&self) -> bool {
        match self {
            Command::Query(query) => {
                query.inputs.is_empty() || query.inputs.iter().any(Input::is_standard_input)
            }
            _ => false,
        }
    }

    /// As one of so many processes on the machine: threads and memory that were not given are
    /// shared out.
    pub(crate) fn shared_by(mut self, count: usize) -> Command {
        let default = Config::default();
        let Some(config) = self.config_mut() else { return self };
        if config.threads == default.threads {
            config.threads = (default.threads / count.max(1)).max(1);
        }
        if config.memory_bytes == default.memory_bytes {
            config.memory_bytes = default.memory_bytes / count.max(1);
        }
        self
    }
}

/// Statements to run.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) config: Config,
    /// In the order of the command line.
    pub(crate) inputs: Vec<Input>,
    pub(crate) format: Format,
    pub(crate) timing: Timing,
}

/// Where statements come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    Text(String),
    File(PathBuf),
    Stdin,
}

impl Input {
    /// Whether it is the standard input, by whatever name.
    pub(crate) fn is_standard_input(&self) -> bool {
        let names = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
        match self {
            Input::Stdin => true,
            Input::File(path) => names.iter().any(|name| path.as_os_str() == *name),
            Input::Text(_) => false,
        }
    }
}

/// A plan to run.
#[derive(Debug)]
pub(crate) struct RunPlan {
    pub(crate) config: Config,
    pub(crate) plan: PathBuf,
    pub(crate) format: Format,
    pub(crate) timing: Timing,
}

/// Data to write.
#[derive(Debug)]
pub(crate) struct Generate {
    pub(crate) suite: String,
    pub(crate) scale: f64,
    pub(crate) out: PathBuf,
    pub(crate) overwrite: bool,
    pub(crate) not_null: bool,
    pub(crate) threads: Option<u16>,
    pub(crate) seed: Option<u64>,
}

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

/// Reads the command line; ends the program where it makes no sense or asks for help.
pub(crate) fn parse() -> (Command, Place) {
    match from(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(error) => error.exit(),
    }
}

const PLATFORM: &str = "platform";

/// The command line: what all platforms have, and what each adds.
fn definition() -> clap::Command {
    let names = LAUNCHERS.map(|launcher| PossibleValue::new(launcher.name()).help(launcher.help()));
    let platform = Arg::new(PLATFORM)
        .long(PLATFORM)
        .value_name("PLATFORM")
        .value_parser(names)
        .default_value(LAUNCHERS[0].name())
        .help("Where statements run")
        .help_heading(None::<&str>);
    let mut flags = vec![platform];
    for launcher in LAUNCHERS {
        let own =
            launcher.options().iter().map(flag).chain(launcher.settings().iter().map(setting));
        flags.extend(own.map(|flag| flag.help_heading(format!("Platform {}", launcher.name()))));
    }
    let mut line = Line::command().args(flags.clone()).mut_subcommand("run", |run| run.args(flags));
    for role in roles() {
        let options = role.options.iter().map(flag);
        let operand = role.operand.iter().map(|operand| {
            Arg::new(operand.name).value_name(operand.value_name).help(operand.help).required(true)
        });
        line = line.subcommand(
            clap::Command::new(role.name).about(role.help).hide(true).args(options).args(operand),
        );
    }
    line
}

/// The subcommands by which platforms start this program.
pub(crate) fn roles() -> impl Iterator<Item = &'static LaunchRole> {
    LAUNCHERS.into_iter().flat_map(|launcher| launcher.roles())
}

/// A sentence as `--help` begins it.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn flag(option: &LaunchOption) -> Arg {
    let check = option.check;
    let flag = Arg::new(option.name)
        .long(option.name)
        .value_name(option.value_name)
        .value_parser(move |text: &str| check(text).map(|()| text.to_string()))
        .help(option.help);
    match option.default {
        Some(default) => flag.default_value(default),
        None => flag,
    }
}

/// The flag of a setting.
fn setting(setting: &SettingEntry) -> Arg {
    let parse = setting.parse;
    Arg::new(setting.name)
        .long(setting.name.replace('_', "-"))
        .value_name(setting.value_name)
        .default_value(setting.default)
        .value_parser(move |text: &str| parse(text))
        .help(capitalized(setting.help))
}

/// The settings that platforms bring.
fn settings() -> impl Iterator<Item = &'static SettingEntry> {
    LAUNCHERS.into_iter().flat_map(|launcher| launcher.settings())
}

/// The values of these options.
fn values<'o>(
    matches: &ArgMatches,
    options: impl IntoIterator<Item = &'o LaunchOption>,
) -> LaunchValues {
    let mut values = LaunchValues::default();
    for option in options {
        if let Some(value) = matches.get_one::<String>(option.name) {
            values.set(option.name, value.clone());
        }
    }
    values
}

fn place(matches: &ArgMatches) -> Place {
    let chosen = |launcher: &&&dyn Launcher| {
        matches.get_one::<String>(PLATFORM).is_some_and(|name| name == launcher.name())
    };
    let launcher = *LAUNCHERS.iter().find(chosen).unwrap_or(&LAUNCHERS[0]);
    Place { launcher, values: values(matches, launcher.options()) }
}

fn from(
    line: impl IntoIterator<Item = impl Into<std::ffi::OsString> + Clone>,
) -> Result<(Command, Place), clap::Error> {
    let matches = definition().try_get_matches_from(line)?;
    if let Some((name, matches)) = matches.subcommand()
        && let Some(role) = roles().find(|role| role.name == name)
    {
        let values = values(matches, role.options.iter().chain(&role.operand));
        return Ok((Command::Role(*role, values), Place::default()));
    }
    let parsed = Line::from_arg_matches(&matches)?;
    let of_platform = match &parsed.command {
        Some(Sub::Run(_)) => matches.subcommand_matches("run").unwrap_or(&matches),
        _ => &matches,
    };
    let place_of = match &parsed.command {
        Some(Sub::Generate(_)) => Place::default(),
        _ => place(of_platform),
    };
    let given = |name: &str| {
        of_platform.get_one::<String>(name).map(|value| (name.to_string(), value.clone()))
    };
    let given: Vec<_> = settings().filter_map(|setting| given(setting.name)).collect();
    let mut command = match parsed.command {
        Some(Sub::Run(run)) => Command::Run(RunPlan {
            config: config(run.engine, None),
            plan: run.plan,
            format: run.output.format,
            timing: run.output.timing.into(),
        }),
        Some(Sub::Generate(line)) => Command::Generate(Generate {
            suite: line.suite,
            scale: line.scale,
            out: line.out,
            overwrite: line.overwrite,
            not_null: line.not_null,
            threads: line.threads,
            seed: line.seed,
        }),
        None => {
            let place =
                |name: &str| matches.indices_of(name).into_iter().flatten().collect::<Vec<_>>();
            let query = parsed.query;
            let texts = query.commands.into_iter().map(Input::Text);
            let files = query
                .files
                .into_iter()
                .map(|file| if file.as_os_str() == "-" { Input::Stdin } else { Input::File(file) });
            let mut inputs: Vec<(usize, Input)> =
                place("commands").into_iter().zip(texts).collect();
            inputs.extend(place("files").into_iter().zip(files));
            inputs.sort_by_key(|(place, _)| *place);
            let inputs: Vec<Input> = inputs.into_iter().map(|(_, input)| input).collect();
            let mut config = config(query.engine, query.database);
            config.sql_from_stdin =
                inputs.is_empty() || inputs.iter().any(Input::is_standard_input);
            Command::Query(Query {
                config,
                inputs,
                format: query.output.format,
                timing: query.output.timing.into(),
            })
        }
    };
    command.change(|config| config.settings = given);
    Ok((command, place_of))
}

fn config(engine: EngineLine, database: Option<PathBuf>) -> Config {
    let EngineLine { deadline, smart_storage, tier, device, native_functions, .. } = engine;
    let mut config = Config {
        database,
        deadline,
        smart_storage,
        tier,
        device,
        native_functions,
        ..Config::default()
    };
    engine.timeouts.set(&mut config);
    config.threads = engine.threads.map_or(config.threads, usize::from);
    config.memory_bytes = engine.memory.unwrap_or(config.memory_bytes);
    let user = cache_directory(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"));
    let code = user.as_ref().map(|user| user.join("code"));
    let chosen = |given: Option<PathBuf>, otherwise| match given {
        Some(directory) => Some(directory).filter(|directory| directory.as_os_str() != "off"),
        None => otherwise,
    };
    config.statistics_cache = chosen(engine.statistics_cache, user);
    config.code_cache = chosen(engine.code_cache, code);
    config.temp_directory = engine.temp_directory.unwrap_or(config.temp_directory);
    config.chunk_rows = engine.chunk_rows.map_or(config.chunk_rows, |rows| rows as usize);
    config
}

/// The user's cache directory for this program, if the environment tells (XDG Base Directory
/// Specification: a relative path counts for nothing).
fn cache_directory(cache: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let cache = cache.and_then(absolute).or_else(|| Some(home.and_then(absolute)?.join(".cache")));
    Some(cache?.join("tessera"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }

    #[test]
    fn inputs_keep_their_order() {
        let line = ["tessera", "db", "-c", "a", "-f", "b", "-c", "c", "-f", "-", "--threads", "2"];
        let (Command::Query(query), place) = from(line).unwrap() else { panic!("not a query") };
        assert_eq!(place.launcher.name(), "local");
        let expected = [
            Input::Text("a".into()),
            Input::File("b".into()),
            Input::Text("c".into()),
            Input::Stdin,
        ];
        assert_eq!(query.inputs, expected);
        assert_eq!((query.config.threads, query.config.database), (2, Some("db".into())));
    }

    #[test]
    fn samples_are_kept_where_the_user_keeps_caches() {
        let directory = |cache: Option<&str>, home: Option<&str>| {
            cache_directory(cache.map(OsString::from), home.map(OsString::from))
        };
        assert_eq!(directory(Some("/c"), Some("/h")), Some("/c/tessera".into()));
        assert_eq!(directory(Some("c"), Some("/h")), Some("/h/.cache/tessera".into()));
        assert_eq!(directory(None, None), None);
        let (Command::Query(query), _) = from(["tessera", "--statistics-cache", "off"]).unwrap()
        else {
            panic!("not a query")
        };
        assert_eq!(query.config.statistics_cache, None);
    }

    #[test]
    fn nonsense_is_rejected() {
        for line in [
            vec!["tessera", "--threads", "0"],
            vec!["tessera", "--memory", "much"],
            vec!["tessera", "--chunk-rows", "65537"],
            vec!["tessera", "--format", "xml"],
            vec!["tessera", "generate", "tpch"],
            vec!["tessera", "--worker-memory", "64MiB"],
            vec!["tessera", "--smart-storage", "perhaps"],
        ] {
            assert_eq!(from(line.clone()).unwrap_err().exit_code(), 2, "{line:?}");
        }
        assert!(settings().count() > 0);
        for setting in settings() {
            let line = ["tessera", &format!("--{}", setting.name.replace('_', "-")), "sideways"];
            assert_eq!(from(line).unwrap_err().exit_code(), 2, "{line:?}");
        }
    }
}
