//! `SET`, `RESET` and `SHOW`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tessera_codegen::Compiler;
use tessera_engine::Setting;
use tessera_jit::{Device, Tier};
use tessera_objects::{SmartStorage, Timeouts};
use tessera_plan::Rules;
use tessera_types::{Error, Result, parse_timeout};
use tessera_vector::CHUNK_ROWS_MAX;

use crate::config::{Config, MEMORY_BYTES_MIN, parse_size};

/// The most worker threads that can be asked for.
const THREADS_MAX: usize = 1024;

/// In less memory nothing is compiled unasked: the compiler takes some 30 MB, which no budget
/// counts.
const COMPILER_BYTES_MIN: usize = 512 << 20;

/// What can be set without extensions, by name, and what it means.
const SETTINGS: [(&str, &str); 16] = [
    ("threads", "worker threads"),
    ("memory", "memory budget of a statement, such as 4GB"),
    ("temp_directory", "directory for what does not fit into the memory budget"),
    (
        "admission_timeout",
        "seconds until other statements leave enough memory for one to begin; none",
    ),
    ("connect_timeout", "seconds until a store or web server takes a connection; none"),
    ("first_byte_timeout", "seconds until its answer begins; none"),
    ("stall_timeout", "seconds between two pieces of its answer; none"),
    ("chunk_rows", "most tuples in a chunk, 1 to 65536"),
    (
        "device",
        "where compiled code runs: cpu; gpu: NVIDIA's, chunk by chunk; virtual-gpu: one that the processor stands in for (for tests)",
    ),
    ("deadline", "seconds after which a statement is cancelled; none"),
    (
        "disabled_rules",
        "rewrites that are left out, with commas between their names (docs/reference/rules.md); all; or none",
    ),
    ("join_order", "cost: joins ordered by estimated cost; written: as written"),
    (
        "smart_storage",
        "on: stores filter objects themselves where they can be trusted with it; auto: where it pays; off",
    ),
    (
        "statistics",
        "samples: estimates look at a few rows of each table, too; metadata: at what files say",
    ),
    (
        "tier",
        "vectorized: nothing is compiled; compiled: whatever can be, before it runs; auto: what many tuples go through, meanwhile",
    ),
    ("time_zone", "the time zone of now() and of conversions"),
];

/// The settings a statement may change.
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
    pub(crate) tier: Tier,
    pub(crate) device: Device,
    pub(crate) code_cache: Option<PathBuf>,
    pub(crate) planning: tessera_sql::Settings,
}

impl Values {
    /// # Errors
    /// A value is out of its range.
    pub(crate) fn new(config: &Config, settings: &[Setting]) -> Result<Values> {
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
            tier: config.tier,
            device: config.device,
            code_cache: config.code_cache.clone(),
            planning: tessera_sql::Settings::default(),
        };
        values.check()?;
        for (name, value) in &config.settings {
            values.set(name, value)?;
        }
        Ok(values)
    }

    /// Tells the extensions their values.
    ///
    /// # Errors
    /// An extension cannot use its value.
    pub(crate) fn apply(&self) -> Result<()> {
        self.extensions.iter().try_for_each(|(setting, value)| (setting.apply)(value))
    }

    /// All settings, with what they mean, sorted by name.
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
        tessera_jit::compiler(self.tier, self.device, None)?;
        if self.memory_bytes < MEMORY_BYTES_MIN {
            let message = format!("memory must be at least 1MiB, not {} bytes", self.memory_bytes);
            return Err(Error::semantic(message));
        }
        Ok(())
    }

    /// Who compiles; nobody where this build has no compiler (it was not asked for then), or where
    /// it is not worth its own memory.
    pub(crate) fn compiler(&self) -> Option<Arc<dyn Compiler>> {
        if self.tier == Tier::Auto && self.memory_bytes < COMPILER_BYTES_MIN {
            return None;
        }
        tessera_jit::compiler(self.tier, self.device, self.code_cache.as_deref()).ok().flatten()
    }

    /// # Errors
    /// There is no such setting, or the value does not fit it; nothing has changed then.
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
            "join_order" => {
                changed.planning.join_order = match value.to_ascii_lowercase().as_str() {
                    "cost" => true,
                    "written" => false,
                    _ => {
                        return Err(Error::semantic(format!(
                            "join_order is cost or written, not '{value}'"
                        )));
                    }
                }
            }
            "smart_storage" => {
                changed.smart_storage = SmartStorage::parse(value).ok_or_else(|| {
                    Error::semantic(format!("smart_storage is off, auto or on, not '{value}'"))
                })?;
            }
            "statistics" => {
                changed.samples = match value.to_ascii_lowercase().as_str() {
                    "samples" => true,
                    "metadata" => false,
                    _ => {
                        return Err(Error::semantic(format!(
                            "statistics is samples or metadata, not '{value}'"
                        )));
                    }
                }
            }
            "tier" => changed.tier = value.parse()?,
            "device" => changed.device = value.parse()?,
            "time_zone" | "timezone" => {
                if !UTC.iter().any(|known| known.eq_ignore_ascii_case(value)) {
                    let message = format!("times are in UTC: time_zone cannot be '{value}'");
                    return Err(Error::unsupported(message));
                }
                changed.planning.time_zone = value.into();
            }
            _ => {
                let own =
                    changed.extensions.iter_mut().find(|(setting, _)| setting.entry.name == name);
                let (setting, own) = own.ok_or_else(|| self.unknown(name))?;
                *own = (setting.entry.parse)(value)?;
            }
        }
        changed.check()?;
        *self = changed;
        Ok(())
    }

    /// # Errors
    /// There is no such setting.
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
            "statistics" => if self.samples { "samples" } else { "metadata" }.to_string(),
            "tier" => self.tier.to_string(),
            "device" => self.device.to_string(),
            "time_zone" | "timezone" => self.planning.time_zone.to_string(),
            _ => {
                let own = self.extensions.iter().find(|(setting, _)| setting.entry.name == name);
                own.ok_or_else(|| self.unknown(name))?.1.clone()
            }
        })
    }

    fn unknown(&self, name: &str) -> Error {
        let names: Vec<&str> = self.all().into_iter().map(|(name, _)| name).collect();
        Error::semantic(format!("there is no setting {name}; there are {}", names.join(", ")))
    }
}

/// What UTC is called.
const UTC: [&str; 15] = [
    "UTC",
    "Etc/UTC",
    "UCT",
    "Etc/UCT",
    "Universal",
    "Etc/Universal",
    "Zulu",
    "Etc/Zulu",
    "GMT",
    "Etc/GMT",
    "Z",
    "+00:00",
    "-00:00",
    "+00",
    "0",
];

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
        let mut values = Values::new(&Config { threads: 2, ..Config::default() }, &[own]).unwrap();
        values.set("direction", "down").unwrap();
        values.set("chunk_rows", "7").unwrap();
        values.set("deadline", "1.5").unwrap();
        values.set("smart_storage", "Auto").unwrap();
        values.set("connect_timeout", "2.5s").unwrap();
        values.set("stall_timeout", "none").unwrap();
        for (name, value) in [
            ("colour", "red"),
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
