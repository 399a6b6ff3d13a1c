//! Starting a platform from the program: its command line flags, and what must run before a
//! statement can.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use tessera_types::{Error, Result, parse_timeout};

use crate::setup::{Extension, SettingEntry};

/// A command line flag of a platform's launcher.
#[derive(Debug, Clone, Copy)]
pub struct LaunchOption {
    /// Its name, with hyphens.
    pub name: &'static str,
    /// The placeholder of its value in `--help`, such as `N` or `SIZE`.
    pub value_name: &'static str,
    /// Its value if the flag is absent.
    pub default: Option<&'static str>,
    /// Its help text.
    pub help: &'static str,
    /// Returns what is wrong with a value.
    pub check: fn(&str) -> std::result::Result<(), String>,
}

/// Checks a number for [`LaunchOption::check`].
///
/// # Errors
/// The value is not a number in the range.
pub fn check_number(value: &str, range: RangeInclusive<u16>) -> std::result::Result<(), String> {
    match value.parse::<u16>() {
        Ok(number) if range.contains(&number) => Ok(()),
        _ => Err(format!("must be a number from {} to {}", range.start(), range.end())),
    }
}

/// Checks a time-out for [`LaunchOption::check`].
///
/// # Errors
/// The value is not a time.
pub fn check_timeout(value: &str) -> std::result::Result<(), String> {
    match parse_timeout(value) {
        Some(_) => Ok(()),
        None => Err("must be a number of seconds above 0, or none".to_string()),
    }
}

/// The values of a platform's options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchValues(BTreeMap<&'static str, String>);

impl LaunchValues {
    /// Sets the value of an option.
    pub fn set(&mut self, name: &'static str, value: String) {
        self.0.insert(name, value);
    }

    /// The value of an option, if it has one.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The value of an option that has a default and that `check` has passed.
    ///
    /// # Errors
    /// The value does not parse.
    pub fn parsed<T: std::str::FromStr>(&self, name: &str) -> Result<T> {
        let value = self.get(name).and_then(|value| value.parse().ok());
        value.ok_or_else(|| Error::semantic(format!("--{name} has no value that fits it")))
    }
}

/// The program as a launcher sees it.
pub struct Launch<'a> {
    /// The values of its options.
    pub values: &'a LaunchValues,
    /// The arguments of the program.
    pub arguments: Vec<OsString>,
    /// The database that the command line names.
    pub database: Option<PathBuf>,
    /// Settings of object stores.
    pub stores: Vec<(String, String)>,
    /// Whether statements come from standard input.
    pub reads_input: bool,
    /// Registers a function that Ctrl-C calls; it returns whether there was something to cancel.
    /// Returns a function that reports whether Ctrl-C has happened.
    pub on_interrupt: &'a dyn Fn(Box<dyn Fn() -> bool + Send>) -> Box<dyn Fn() -> bool>,
}

impl fmt::Debug for Launch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch").field("values", self.values).finish_non_exhaustive()
    }
}

/// Returns text to print with the time of a statement.
pub type Report = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// The result of a launch.
pub enum LaunchOutcome {
    /// Statements run from this process.
    Here {
        /// The extension that brings the platform.
        extension: Arc<dyn Extension>,
        /// The database; a launcher may have moved it.
        database: Option<PathBuf>,
        /// Settings of object stores, including those of the launcher.
        stores: Vec<(String, String)>,
        /// Text to print with the time of a statement.
        report: Option<Report>,
        /// Values that must live as long as the session.
        services: Box<dyn Any>,
    },
    /// Other processes have run the command line.
    Elsewhere {
        /// Their exit code.
        code: u8,
        /// Whether they were interrupted.
        interrupted: bool,
    },
}

impl fmt::Debug for LaunchOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LaunchOutcome::Here { .. } => "Here",
            LaunchOutcome::Elsewhere { .. } => "Elsewhere",
        })
    }
}

/// A hidden subcommand with which a platform starts this program as one of its processes.
#[derive(Debug, Clone, Copy)]
pub struct LaunchRole {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub help: &'static str,
    /// The environment variable that selects this role if the program has no arguments.
    pub variable: Option<&'static str>,
    /// Its flags.
    pub options: &'static [LaunchOption],
    /// Its positional argument.
    pub operand: Option<LaunchOption>,
    /// Runs the role and returns its exit code.
    pub play: fn(&LaunchValues) -> Result<u8>,
}

/// Starts a platform for the program.
pub trait Launcher: fmt::Debug + Send + Sync {
    /// The name of the platform, as a value of `--platform`.
    fn name(&self) -> &'static str;

    /// One phrase for `--help`.
    fn help(&self) -> &'static str;

    /// Its flags, except those of its settings.
    fn options(&self) -> &'static [LaunchOption] {
        &[]
    }

    /// The settings of its extension.
    fn settings(&self) -> &'static [SettingEntry] {
        &[]
    }

    /// Its hidden subcommands.
    fn roles(&self) -> &'static [LaunchRole] {
        &[]
    }

    /// Whether the platform supports the interactive shell.
    fn has_shell(&self) -> bool {
        true
    }

    /// The extension of the platform without a launch, so that its plans can be explained.
    fn extension(&self) -> Arc<dyn Extension>;

    /// Starts what statements run on.
    ///
    /// # Errors
    /// It does not start.
    fn launch(&self, launch: &Launch<'_>) -> Result<LaunchOutcome>;
}
