//! What extensions add to the engine.
//!
//! A room or a stranger's crate implements [`Extension`]. The program lists its extensions; a
//! session installs them into one [`Setup`] when it opens.

use std::fmt;
use std::sync::Arc;

use tessera_functions::UserFunction;
use tessera_operator::format::{Format, Formats};
use tessera_operator::{Registry, SubOperator};
use tessera_optimizer::table::TableCatalog;
use tessera_plan::{OperatorCatalog, Plan, Rules};
use tessera_types::{Error, Result};

use crate::device::Device;
use crate::platform::Platform;

/// Adds sub-operators, file formats, functions, passes, settings, tables, platforms, devices to
/// sessions.
pub trait Extension: fmt::Debug + Send + Sync {
    /// Its name, for messages.
    fn name(&self) -> &'static str;

    /// Adds what it brings. Called once for each session, so that what it adds may have state of
    /// the session.
    ///
    /// # Errors
    /// A name is taken.
    fn install(&self, setup: &mut Setup) -> Result<()>;
}

/// When a pass runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// After the optimizer's passes, before the platform's.
    Optimized,
    /// After the platform's pass.
    Distributed,
}

/// Rewrites a plan.
type Rewrite = dyn Fn(Plan, &OperatorCatalog, Rules) -> Result<Plan> + Send + Sync;

/// A rewrite of plans.
#[derive(Clone)]
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// When it runs.
    pub phase: Phase,
    /// The pass of the same phase that it follows. Without one it runs in the order of
    /// installation.
    pub after: Option<&'static str>,
    /// Rewrites a valid plan to a valid plan.
    pub rewrite: Arc<Rewrite>,
}

/// A setting that `SET` and a command line flag change.
#[derive(Debug, Clone, Copy)]
pub struct SettingEntry {
    /// Its name. The flag has hyphens in place of underscores.
    pub name: &'static str,
    /// Its initial value.
    pub default: &'static str,
    /// The placeholder of its value in `--help`, such as `N` or `SECONDS`.
    pub value_name: &'static str,
    /// Its help text.
    pub help: &'static str,
    /// Checks a value and returns the form that `SHOW` prints.
    pub parse: fn(&str) -> Result<String>,
}

/// A setting and its effect on a session.
#[derive(Clone)]
pub struct Setting {
    /// Its description.
    pub entry: SettingEntry,
    /// Applies a value that `parse` has returned.
    pub apply: Arc<dyn Fn(&str) -> Result<()> + Send + Sync>,
}

/// The parts that the extensions of a session have added.
#[derive(Debug)]
pub struct Setup {
    registry: Registry,
    passes: Vec<Pass>,
    settings: Vec<Setting>,
    tables: Vec<Arc<dyn TableCatalog + Send>>,
    platforms: Vec<Arc<dyn Platform>>,
    devices: Vec<Device>,
}

impl Setup {
    /// An empty setup over the functions of the registry's library.
    pub fn new(registry: Registry) -> Setup {
        Setup {
            registry,
            passes: Vec::new(),
            settings: Vec::new(),
            tables: Vec::new(),
            platforms: Vec::new(),
            devices: Vec::new(),
        }
    }

    /// Adds a sub-operator.
    ///
    /// # Errors
    /// The name is taken.
    pub fn operator(&mut self, operator: impl SubOperator + 'static) -> Result<()> {
        if self.registry.implementation(operator.name()).is_ok() {
            return Err(taken("sub-operator", operator.name()));
        }
        self.registry.register(operator);
        Ok(())
    }

    /// Adds a file format with its sub-operators.
    ///
    /// # Errors
    /// A name is taken: of the format, of a function that reads it, or of a sub-operator.
    pub fn format(&mut self, format: impl Format + 'static) -> Result<()> {
        let entry = format.entry();
        self.registry.formats().check_free(entry)?;
        let operators = std::iter::once(entry.scan).chain(entry.materialize);
        for operator in operators {
            if self.registry.implementation(operator).is_ok() {
                return Err(taken("sub-operator", operator));
            }
        }
        self.registry.register_format(format);
        Ok(())
    }

    /// The file formats so far.
    pub fn formats(&self) -> &Formats {
        self.registry.formats()
    }

    /// Adds the sub-operators of a crate.
    pub fn room(&mut self, register: impl FnOnce(&mut Registry)) {
        register(&mut self.registry);
    }

    /// Adds a function in native code.
    ///
    /// # Errors
    /// The name is taken.
    pub fn function(&mut self, function: UserFunction) -> Result<()> {
        self.registry.library().define(function, false)
    }

    /// Adds a pass.
    ///
    /// # Errors
    /// The name is taken, or the pass that it follows is missing.
    pub fn pass(&mut self, pass: Pass) -> Result<()> {
        if self.passes.iter().any(|other| other.name == pass.name) {
            return Err(taken("pass", pass.name));
        }
        let position = match pass.after {
            None => self.passes.len(),
            Some(after) => {
                let is_before = |other: &Pass| other.name == after && other.phase == pass.phase;
                let before = self.passes.iter().position(is_before).ok_or_else(|| {
                    Error::semantic(format!(
                        "pass {} should follow {after}; no pass of that name is installed",
                        pass.name
                    ))
                })?;
                before + 1
            }
        };
        self.passes.insert(position, pass);
        Ok(())
    }

    /// Adds a setting.
    ///
    /// # Errors
    /// The name is taken.
    pub fn setting(&mut self, setting: Setting) -> Result<()> {
        let name = setting.entry.name;
        if self.settings.iter().any(|other| other.entry.name == name) {
            return Err(taken("setting", name));
        }
        self.settings.push(setting);
        Ok(())
    }

    /// Adds tables. A session looks there for names that it does not know.
    pub fn tables(&mut self, tables: Arc<dyn TableCatalog + Send>) {
        self.tables.push(tables);
    }

    /// Adds a platform: plans can be made for it, and statements run on it where the session says
    /// so.
    ///
    /// # Errors
    /// The name is taken.
    pub fn platform(&mut self, platform: Arc<dyn Platform>) -> Result<()> {
        if self.platforms.iter().any(|other| other.name() == platform.name()) {
            return Err(taken("platform", platform.name()));
        }
        self.platforms.push(platform);
        Ok(())
    }

    /// Adds a device.
    ///
    /// # Errors
    /// Another device has its name.
    pub fn device(&mut self, device: Device) -> Result<()> {
        if self.devices.iter().any(|other| other.name == device.name) {
            return Err(taken("device", device.name));
        }
        self.devices.push(device);
        Ok(())
    }

    /// The devices so far.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The platforms so far.
    pub fn platforms(&self) -> &[Arc<dyn Platform>] {
        &self.platforms
    }

    /// The settings so far.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// The passes so far, in the order in which they run.
    pub fn passes(&self) -> &[Pass] {
        &self.passes
    }

    /// The tables so far.
    pub fn table_catalogs(&self) -> &[Arc<dyn TableCatalog + Send>] {
        &self.tables
    }

    /// All sub-operators and functions for a session on `platform`, whose executor and exchange
    /// replace those of the other platforms.
    pub fn into_registry(self, platform: &dyn Platform) -> Registry {
        let mut registry = self.registry;
        for other in &self.platforms {
            if other.name() != platform.name() {
                other.register(&mut registry);
            }
        }
        platform.register(&mut registry);
        registry
    }
}

fn taken(what: &str, name: &str) -> Error {
    Error::semantic(format!("two extensions bring the {what} {name}; leave one of them out"))
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pass { name, phase, after, .. } = self;
        f.debug_struct("Pass")
            .field("name", name)
            .field("phase", phase)
            .field("after", after)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting").field("entry", &self.entry).finish_non_exhaustive()
    }
}
