//! How the program starts a platform: what the command line says of it, and what has to run before
//! a statement can.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use tessera_types::{Error, Result, parse_timeout};

use crate::setup::{Extension, SettingEntry};

/// A flag of the command line that only says how a platform is started.
#[derive(Debug, Clone, Copy)]
pub struct LaunchOption {
    /// Its name, with hyphens.
    pub name: &'static str,
    /// What the value is, for `--help`: `N`, `SIZE`.
    pub value_name: &'static str,
    /// Its value where the flag is not given.
    pub default: Option<&'static str>,
    /// What it means.
    pub help: &'static str,
    /// What is wrong with a value.
    pub check: fn(&str) -> std::result::Result<(), String>,
}

/// Checks a number for [`LaunchOption::check`].
///
/// # Errors
/// It is none of these.
pub fn check_number(value: &str, range: RangeInclusive<u16>) -> std::result::Result<(), String> {
    match value.parse::<u16>() {
        Ok(number) if range.contains(&number) => Ok(()),
        _ => Err(format!("must be a number from {} to {}", range.start(), range.end())),
    }
}

/// Checks a time-out for [`LaunchOption::check`].
///
/// # Errors
/// It is no time.
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

    /// The value of an option, where it has one.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The value of an option that has a default and that `check` has passed.
    ///
    /// # Errors
    /// It is no such value.
    pub fn parsed<T: std::str::FromStr>(&self, name: &str) -> Result<T> {
        let value = self.get(name).and_then(|value| value.parse().ok());
        value.ok_or_else(|| Error::semantic(format!("--{name} has no value that fits it")))
    }
}

/// What a launcher sees of the program.
pub struct Launch<'a> {
    /// The values of its options.
    pub values: &'a LaunchValues,
    /// The arguments of the program.
    pub arguments: Vec<OsString>,
    /// The database, where the command line names one.
    pub database: Option<PathBuf>,
    /// Settings of stores.
    pub stores: Vec<(String, String)>,
    /// Whether statements come from the standard input.
    pub reads_input: bool,
    /// Calls this at Ctrl-C; it says whether there was something to cancel. Gives what tells
    /// whether that has happened.
    pub on_interrupt: &'a dyn Fn(Box<dyn Fn() -> bool + Send>) -> Box<dyn Fn() -> bool>,
}

impl fmt::Debug for Launch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch").field("values", self.values).finish_non_exhaustive()
    }
}

/// Says more with the time of a statement.
pub type Report = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// What a launcher has started.
pub enum Launched {
    /// Statements start in this process.
    Here {
        /// Brings the platform.
        extension: Arc<dyn Extension>,
        /// The database, which may lie elsewhere now.
        database: Option<PathBuf>,
        /// Settings of stores, those of the launch among them.
        stores: Vec<(String, String)>,
        /// What the time of a statement is printed with.
        report: Option<Report>,
        /// What must live as long as the session.
        services: Box<dyn Any>,
    },
    /// Other processes have run the command line; their exit code.
    Elsewhere {
        /// The exit code, where they have ended by themselves.
        code: u8,
        /// Whether they were interrupted.
        interrupted: bool,
    },
}

impl fmt::Debug for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Launched::Here { .. } => "Here",
            Launched::Elsewhere { .. } => "Elsewhere",
        })
    }
}

/// A hidden subcommand by which a platform starts this program as a part of it.
#[derive(Debug, Clone, Copy)]
pub struct LaunchRole {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub help: &'static str,
    /// A variable of the environment that means this role where the program has no arguments.
    pub variable: Option<&'static str>,
    /// Its flags.
    pub options: &'static [LaunchOption],
    /// What it is given without a flag.
    pub operand: Option<LaunchOption>,
    /// Plays it; gives the exit code.
    pub play: fn(&LaunchValues) -> Result<u8>,
}

/// Starts a platform for the program.
pub trait Launcher: fmt::Debug + Send + Sync {
    /// The name of the platform, as `--platform` takes it.
    fn name(&self) -> &'static str;

    /// What it is, for `--help`.
    fn help(&self) -> &'static str;

    /// Its flags besides the settings.
    fn options(&self) -> &'static [LaunchOption] {
        &[]
    }

    /// The settings that its extension brings.
    fn settings(&self) -> &'static [SettingEntry] {
        &[]
    }

    /// Its hidden subcommands.
    fn roles(&self) -> &'static [LaunchRole] {
        &[]
    }

    /// Whether statements can be typed at a terminal.
    fn has_shell(&self) -> bool {
        true
    }

    /// Brings the platform where it was not started: its plans can be explained.
    fn extension(&self) -> Arc<dyn Extension>;

    /// Starts what statements run on.
    ///
    /// # Errors
    /// It does not start.
    fn launch(&self, launch: &Launch<'_>) -> Result<Launched>;
}
