//! The settings of a session: `SET`, `RESET` and `SHOW`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tessera_codegen::{Compiler, Tier};
use tessera_engine::{Device, Setting};
use tessera_objects::{SmartStorage, Timeouts};
use tessera_plan::Rules;
use tessera_types::{Error, Result, did_you_mean, parse_timeout, suggest};
use tessera_values::temporal::session_zone::session_zone;
use tessera_vector::CHUNK_ROWS_MAX;

use crate::config::{Config, MEMORY_BYTES_MIN, parse_size};

/// The maximum number of worker threads.
const THREADS_MAX: usize = 1024;

/// The smallest memory budget with which tier `auto` compiles. The compiler uses about 30 MB
/// outside the budget.
const COMPILER_BYTES_MIN: usize = 512 << 20;

/// The name and meaning of each built-in setting.
const SETTINGS: [(&str, &str); 17] = [
    ("threads", "worker threads"),
    ("memory", "memory budget of a statement, such as 4GB"),
    ("temp_directory", "directory for data that exceeds the memory budget"),
    ("admission_timeout", "seconds to wait for memory that other statements use; none"),
    ("connect_timeout", "seconds to wait for a connection to a store or web server; none"),
    ("first_byte_timeout", "seconds to wait for the first byte of its response; none"),
    ("stall_timeout", "seconds to wait for the next part of its response; none"),
    ("chunk_rows", "maximum number of tuples in a chunk, 1 to 65536"),
    (
        "device",
        "device that statements run on: cpu; gpu (NVIDIA); virtual-gpu (emulated, for tests); or that of an extension",
    ),
    ("deadline", "seconds after which a statement is cancelled; none"),
    (
        "disabled_rules",
        "disabled rewrites, separated by commas (docs/reference/rules.md); all; or none",
    ),
    ("join_order", "cost: order joins by estimated cost; written: keep the order of the statement"),
    ("plan_cache", "whether a query whose text was planned before is not planned again: on; off"),
    (
        "smart_storage",
        "filtering by stores: on (where results are exact); auto (where it is also faster); off",
    ),
    (
        "statistics",
        "source of estimates: samples (file metadata and a few rows of each table); metadata (file metadata only)",
    ),
    (
        "tier",
        "vectorized: compile nothing; compiled: compile all supported code before it runs; auto: compile code for many tuples while it runs",
    ),
    (
        "time_zone",
        "time zone of timestamps with time zone: a name such as Europe/Berlin, an offset or UTC",
    ),
];

/// The current values of all settings.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    pub(crate) threads: usize,
    pub(crate) memory_bytes: usize,
    pub(crate) temp_directory: PathBuf,
    pub(crate) chunk_rows: usize,
    pub(crate) deadline: Option<Duration>,
    pub(crate) admission_timeout: Option<Duration>,
    pub(crate) timeouts: Timeouts,
    /// Settings of extensions, with their values.
    extensions: Vec<(Setting, String)>,
    pub(crate) smart_storage: SmartStorage,
    pub(crate) samples: bool,
    pub(crate) plan_cache: bool,
    pub(crate) tier: Tier,
    pub(crate) device: Device,
    /// All devices. `device` is one of them.
    devices: Arc<[Device]>,
    pub(crate) code_cache: Option<PathBuf>,
    pub(crate) planning: tessera_binder::Settings,
}

impl Values {
    /// The initial values of a session.
    ///
    /// # Errors
    /// A value is out of range, or `config` names an unknown setting or device.
    pub(crate) fn new(config: &Config, settings: &[Setting], devices: &[Device]) -> Result<Values> {
        let mut values = Values {
            threads: config.threads,
            memory_bytes: config.memory_bytes,
            temp_directory: config.temp_directory.clone(),
            chunk_rows: config.chunk_rows,
            deadline: config.deadline,
            admission_timeout: config.admission_timeout,
            timeouts: Timeouts::of(&config.stores)?,
            extensions: settings
                .iter()
                .map(|setting| (setting.clone(), setting.entry.default.to_string()))
                .collect(),
            smart_storage: config.smart_storage,
            samples: true,
            plan_cache: true,
            tier: config.tier,
            device: find_device(devices, &config.device)?,
            devices: devices.into(),
            code_cache: config.code_cache.clone(),
            planning: tessera_binder::Settings::default(),
        };
        values.check()?;
        for (name, value) in &config.settings {
            values.set(name, value)?;
        }
        Ok(values)
    }

    /// Passes the values of extension settings to their extensions.
    ///
    /// # Errors
    /// An extension cannot use its value.
    pub(crate) fn apply(&self) -> Result<()> {
        self.extensions.iter().try_for_each(|(setting, value)| (setting.apply)(value))
    }

    /// The names and meanings of all settings, sorted by name.
    pub(crate) fn all(&self) -> Vec<(&'static str, &'static str)> {
        let extensions =
            self.extensions.iter().map(|(setting, _)| (setting.entry.name, setting.entry.help));
        let mut all: Vec<_> = SETTINGS.into_iter().chain(extensions).collect();
        all.sort_unstable();
        all
    }

    fn check(&self) -> Result<()> {
        let range = |name: &str, value: usize, least: usize, most: usize| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(Error::semantic(format!("{name} must be {least} to {most}, not {value}")))
        };
        range("threads", self.threads, 1, THREADS_MAX)?;
        range("chunk_rows", self.chunk_rows, 1, CHUNK_ROWS_MAX)?;
        self.device.compiler(self.tier, None)?;
        if self.memory_bytes < MEMORY_BYTES_MIN {
            let message = format!("memory must be at least 1MiB, not {} bytes", self.memory_bytes);
            return Err(Error::semantic(message));
        }
        Ok(())
    }

    /// The compiler for statements. `None` if the build has no compiler, the tier is `vectorized`,
    /// or the memory budget is too small for tier `auto`.
    pub(crate) fn compiler(&self) -> Option<Arc<dyn Compiler>> {
        if self.tier == Tier::Auto && self.memory_bytes < COMPILER_BYTES_MIN {
            return None;
        }
        self.device.compiler(self.tier, self.code_cache.as_deref()).ok().flatten()
    }

    /// Sets a setting. On an error, all settings keep their values.
    ///
    /// # Errors
    /// The setting is unknown, or the value is invalid.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let mut changed = self.clone();
        let whole = || {
            value.trim().parse::<usize>().map_err(|_| {
                Error::semantic(format!("{name} must be a whole number, not '{value}'"))
            })
        };
        match name {
            "threads" => changed.threads = whole()?,
            "chunk_rows" => changed.chunk_rows = whole()?,
            "memory" => changed.memory_bytes = parse_size(value)?,
            "temp_directory" => changed.temp_directory = value.into(),
            "deadline" => changed.deadline = deadline(value)?,
            "admission_timeout" => changed.admission_timeout = timeout(name, value)?,
            "connect_timeout" => changed.timeouts.connect = timeout(name, value)?,
            "first_byte_timeout" => changed.timeouts.first_byte = timeout(name, value)?,
            "stall_timeout" => changed.timeouts.stall = timeout(name, value)?,
            "disabled_rules" => changed.planning.rules = Rules::all_but(value)?,
            "join_order" => changed.planning.join_order = choice(name, value, ["cost", "written"])?,
            "plan_cache" => changed.plan_cache = choice(name, value, ["on", "off"])?,
            "smart_storage" => {
                changed.smart_storage = SmartStorage::parse(value).ok_or_else(|| {
                    Error::semantic(format!("smart_storage must be off, auto or on, not '{value}'"))
                })?;
            }
            "statistics" => changed.samples = choice(name, value, ["samples", "metadata"])?,
            "tier" => changed.tier = value.parse()?,
            "device" => changed.device = find_device(&self.devices, value)?,
            "time_zone" | "timezone" => {
                changed.planning.time_zone = session_zone(value)?;
            }
            _ => {
                let entry =
                    changed.extensions.iter_mut().find(|(setting, _)| setting.entry.name == name);
                let (setting, current) = entry.ok_or_else(|| self.unknown(name))?;
                *current = (setting.entry.parse)(value)?;
            }
        }
        changed.check()?;
        *self = changed;
        Ok(())
    }

    /// The value of a setting, as text that `SET` accepts.
    ///
    /// # Errors
    /// The setting is unknown.
    pub(crate) fn get(&self, name: &str) -> Result<String> {
        Ok(match name {
            "threads" => self.threads.to_string(),
            "chunk_rows" => self.chunk_rows.to_string(),
            "memory" => self.memory_bytes.to_string(),
            "temp_directory" => self.temp_directory.display().to_string(),
            "deadline" => seconds(self.deadline),
            "admission_timeout" => seconds(self.admission_timeout),
            "connect_timeout" => seconds(self.timeouts.connect),
            "first_byte_timeout" => seconds(self.timeouts.first_byte),
            "stall_timeout" => seconds(self.timeouts.stall),
            "disabled_rules" => self.planning.rules.disabled(),
            "join_order" => if self.planning.join_order { "cost" } else { "written" }.to_string(),
            "smart_storage" => self.smart_storage.name().to_string(),
            "plan_cache" => if self.plan_cache { "on" } else { "off" }.to_string(),
            "statistics" => if self.samples { "samples" } else { "metadata" }.to_string(),
            "tier" => self.tier.to_string(),
            "device" => self.device.name.to_string(),
            "time_zone" | "timezone" => self.planning.time_zone.name.to_string(),
            _ => {
                let entry = self.extensions.iter().find(|(setting, _)| setting.entry.name == name);
                entry.ok_or_else(|| self.unknown(name))?.1.clone()
            }
        })
    }

    fn unknown(&self, name: &str) -> Error {
        let names: Vec<&str> = self.all().into_iter().map(|(name, _)| name).collect();
        let hint = did_you_mean(name, names.iter().copied());
        let hint = match hint.is_empty() {
            true => format!("; expected one of {}", names.join(", ")),
            false => hint,
        };
        Error::semantic(format!("unknown setting '{name}'{hint}"))
    }
}

/// Finds a device by name.
///
/// # Errors
/// The name is unknown.
fn find_device(devices: &[Device], name: &str) -> Result<Device> {
    let device = devices.iter().find(|device| device.name.eq_ignore_ascii_case(name));
    device.cloned().ok_or_else(|| {
        let names: Vec<&str> = devices.iter().map(|device| device.name).collect();
        Error::semantic(format!(
            "unknown device '{name}'{}",
            suggest(name, "expected one of", &names)
        ))
    })
}

/// Whether a value is the first of two.
fn choice(name: &str, value: &str, [yes, no]: [&str; 2]) -> Result<bool> {
    match value {
        value if value.eq_ignore_ascii_case(yes) => Ok(true),
        value if value.eq_ignore_ascii_case(no) => Ok(false),
        _ => Err(Error::semantic(format!("{name} must be {yes} or {no}, not '{value}'"))),
    }
}

fn deadline(value: &str) -> Result<Option<Duration>> {
    if value.eq_ignore_ascii_case("none") || value == "0" {
        return Ok(None);
    }
    let seconds = value.trim().trim_end_matches('s').parse::<f64>().ok();
    match seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
        Some(deadline) => Ok(Some(deadline)),
        None => Err(Error::semantic(format!(
            "deadline must be a number of seconds or none, not '{value}'"
        ))),
    }
}

fn seconds(time: Option<Duration>) -> String {
    time.map_or("none".to_string(), |time| time.as_secs_f64().to_string())
}

fn timeout(name: &str, value: &str) -> Result<Option<Duration>> {
    let wrong = || {
        Error::semantic(format!(
            "{name} must be a number of seconds above 0, or none, not '{value}'"
        ))
    };
    parse_timeout(value).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use tessera_engine::SettingEntry;

    use super::*;

    #[test]
    fn a_value_out_of_range_changes_nothing() {
        let entry = SettingEntry {
            name: "direction",
            default: "up",
            value_name: "WAY",
            help: "up or down",
            parse: |value| match value {
                "up" | "down" => Ok(value.to_string()),
                _ => Err(Error::semantic("up or down")),
            },
        };
        let own = Setting { entry, apply: Arc::new(|_| Ok(())) };
        let config = Config { threads: 2, ..Config::default() };
        let mut values = Values::new(&config, &[own], &crate::devices::standard()).unwrap();
        values.set("direction", "down").unwrap();
        values.set("chunk_rows", "7").unwrap();
        values.set("deadline", "1.5").unwrap();
        values.set("smart_storage", "Auto").unwrap();
        values.set("connect_timeout", "2.5s").unwrap();
        values.set("stall_timeout", "none").unwrap();
        for (name, value) in [
            ("color", "red"),
            ("threads", "0"),
            ("threads", "x"),
            ("chunk_rows", "65537"),
            ("memory", "10"),
            ("direction", "x"),
            ("smart_storage", "much"),
            ("stall_timeout", "0"),
            ("admission_timeout", "soon"),
            ("statistics", "none"),
            ("disabled_rules", "push_nut"),
            ("tier", "fast"),
            ("device", "abacus"),
        ] {
            assert!(values.set(name, value).is_err(), "{name} = {value}");
        }
        assert_eq!(values.get("direction").unwrap(), "down");
        assert_eq!(values.get("threads").unwrap(), "2");
        assert_eq!(values.get("chunk_rows").unwrap(), "7");
        assert_eq!(values.get("deadline").unwrap(), "1.5");
        assert_eq!(values.get("smart_storage").unwrap(), "auto");
        let timeouts =
            ["connect_timeout", "first_byte_timeout", "stall_timeout", "admission_timeout"];
        assert_eq!(timeouts.map(|name| values.get(name).unwrap()), ["2.5", "30", "none", "none"]);
    }
}
