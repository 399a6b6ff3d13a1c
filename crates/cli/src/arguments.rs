//! The command line.

mod flags;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches};
use tessera_engine::{LaunchOption, LaunchRole, LaunchValues, Launcher, Report, SettingEntry};
use tessera_session::Config;

use crate::extensions::LAUNCHERS;
use crate::runner::Timing;
pub(crate) use flags::Format;
use flags::{CommandLine, EngineArgs, Subcommands};

/// The platform to run statements on, and the values of its options.
#[derive(Debug, Clone)]
pub(crate) struct PlatformChoice {
    pub(crate) launcher: &'static dyn Launcher,
    pub(crate) values: LaunchValues,
}

impl Default for PlatformChoice {
    fn default() -> Self {
        PlatformChoice { launcher: LAUNCHERS[0], values: LaunchValues::default() }
    }
}

/// The command to run.
#[derive(Debug)]
pub(crate) enum Command {
    Query(Query),
    Run(RunPlan),
    Generate(Generate),
    /// A role of this process in a platform, such as a worker.
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

    /// Changes the configuration of the session.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Config)) {
        if let Some(config) = self.config_mut() {
            change(config);
        }
    }

    /// Adds `report`'s lines to the `--timing` output.
    pub(crate) fn set_report(&mut self, report: Report) {
        match self {
            Command::Query(Query { timing, .. }) | Command::Run(RunPlan { timing, .. }) => {
                timing.report = Some(report);
            }
            Command::Generate(_) | Command::Role(..) => {}
        }
    }

    /// Sets the socket where the standard input comes from.
    pub(crate) fn set_input(&mut self, socket: Option<PathBuf>) {
        if let Command::Query(query) = self {
            query.input_socket = socket;
        }
    }

    /// The configuration of the session.
    pub(crate) fn config(&self) -> Config {
        match self {
            Command::Query(query) => query.config.clone(),
            Command::Run(run) => run.config.clone(),
            Command::Generate(_) | Command::Role(..) => Config::default(),
        }
    }

    /// Whether statements are read from the standard input.
    pub(crate) fn reads_input(&self) -> bool {
        match self {
            Command::Query(query) => {
                query.inputs.is_empty() || query.inputs.iter().any(Input::is_standard_input)
            }
            _ => false,
        }
    }

    /// Divides the default threads and memory by the number of processes on the machine.
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

/// The command that runs statements.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) config: Config,
    /// The inputs in the order of the command line.
    pub(crate) inputs: Vec<Input>,
    pub(crate) format: Format,
    pub(crate) timing: Timing,
    /// The socket where a launcher passes the standard input on.
    pub(crate) input_socket: Option<PathBuf>,
}

/// A source of statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    Text(String),
    File(PathBuf),
    Stdin,
}

impl Input {
    /// Whether this is the standard input, including its device files.
    pub(crate) fn is_standard_input(&self) -> bool {
        let names = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
        match self {
            Input::Stdin => true,
            Input::File(path) => names.iter().any(|name| path.as_os_str() == *name),
            Input::Text(_) => false,
        }
    }
}

/// The command that runs a plan.
#[derive(Debug)]
pub(crate) struct RunPlan {
    pub(crate) config: Config,
    pub(crate) plan: PathBuf,
    pub(crate) format: Format,
    pub(crate) timing: Timing,
}

/// The command that writes benchmark data.
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

/// Parses the command line. Exits if it is invalid or requests help.
pub(crate) fn parse() -> (Command, PlatformChoice) {
    match parse_from(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(error) => error.exit(),
    }
}

const PLATFORM: &str = "platform";

/// The definition of the command line: common flags and those of each platform.
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
    let mut line =
        CommandLine::command().args(flags.clone()).mut_subcommand("run", |run| run.args(flags));
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

/// The roles of all platforms, which are hidden subcommands.
pub(crate) fn roles() -> impl Iterator<Item = &'static LaunchRole> {
    LAUNCHERS.into_iter().flat_map(|launcher| launcher.roles())
}

/// Capitalizes a help text.
fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The flag of a platform option.
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

/// The settings of all platforms.
fn settings() -> impl Iterator<Item = &'static SettingEntry> {
    LAUNCHERS.into_iter().flat_map(|launcher| launcher.settings())
}

/// The values of options on the command line.
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

/// The chosen platform and the values of its options.
fn platform_choice(matches: &ArgMatches) -> PlatformChoice {
    let chosen = |launcher: &&&dyn Launcher| {
        matches.get_one::<String>(PLATFORM).is_some_and(|name| name == launcher.name())
    };
    let launcher = *LAUNCHERS.iter().find(chosen).unwrap_or(&LAUNCHERS[0]);
    PlatformChoice { launcher, values: values(matches, launcher.options()) }
}

/// Parses a command line.
fn parse_from(
    line: impl IntoIterator<Item = impl Into<std::ffi::OsString> + Clone>,
) -> Result<(Command, PlatformChoice), clap::Error> {
    let matches = definition().try_get_matches_from(line)?;
    if let Some((name, matches)) = matches.subcommand()
        && let Some(role) = roles().find(|role| role.name == name)
    {
        let values = values(matches, role.options.iter().chain(&role.operand));
        return Ok((Command::Role(*role, values), PlatformChoice::default()));
    }
    let parsed = CommandLine::from_arg_matches(&matches)?;
    let platform_matches = match &parsed.command {
        Some(Subcommands::Run(_)) => matches.subcommand_matches("run").unwrap_or(&matches),
        _ => &matches,
    };
    let platform = match &parsed.command {
        Some(Subcommands::Generate(_)) => PlatformChoice::default(),
        _ => platform_choice(platform_matches),
    };
    let given = |name: &str| {
        platform_matches.get_one::<String>(name).map(|value| (name.to_string(), value.clone()))
    };
    let given: Vec<_> = settings().filter_map(|setting| given(setting.name)).collect();
    let mut command = match parsed.command {
        Some(Subcommands::Run(run)) => Command::Run(RunPlan {
            config: config(run.engine, None),
            plan: run.plan,
            format: run.output.format,
            timing: run.output.timing.into(),
        }),
        Some(Subcommands::Generate(line)) => Command::Generate(Generate {
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
                input_socket: None,
                config,
                inputs,
                format: query.output.format,
                timing: query.output.timing.into(),
            })
        }
    };
    command.change(|config| config.settings = given);
    Ok((command, platform))
}

/// The configuration of a session from the flags.
fn config(engine: EngineArgs, database: Option<PathBuf>) -> Config {
    let EngineArgs { deadline, smart_storage, tier, device, native_functions, .. } = engine;
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

/// The user's cache directory for this program, from environment variables. Relative paths are
/// ignored (XDG Base Directory Specification).
fn cache_directory(cache: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let cache = cache.and_then(absolute).or_else(|| Some(home.and_then(absolute)?.join(".cache")));
    Some(cache?.join("tessera"))
}

#[cfg(test)]
mod tests;
