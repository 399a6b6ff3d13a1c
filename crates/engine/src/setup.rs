//! What extensions add to the engine.
//!
//! A room or a stranger's crate implements [`Extension`]. The program lists its extensions; a
//! session installs them into one [`Setup`] when it opens.

use std::fmt;
use std::sync::Arc;

use tessera_functions::UserFunction;
use tessera_operator::{Registry, SubOperator};
use tessera_optimizer::table::Catalog;
use tessera_plan::{Catalogue, Plan, Rules};
use tessera_types::{Error, Result};

use crate::platform::Platform;

/// Adds sub-operators, functions, passes, settings, tables, platforms to sessions.
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

/// What a pass does to a plan.
type Rewrite = dyn Fn(Plan, &Catalogue, Rules) -> Result<Plan> + Send + Sync;

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
    /// Takes and gives a plan that verifies.
    pub rewrite: Arc<Rewrite>,
}

/// A setting that `SET` changes and a flag of the command line gives.
#[derive(Debug, Clone, Copy)]
pub struct SettingEntry {
    /// Its name; the flag has hyphens for underscores.
    pub name: &'static str,
    /// Its value until it is changed.
    pub default: &'static str,
    /// What the value is, for `--help`: `N`, `SECONDS`.
    pub value_name: &'static str,
    /// What it means.
    pub help: &'static str,
    /// Checks a value, and gives it as `SHOW` prints it.
    pub parse: fn(&str) -> Result<String>,
}

/// A setting with what it does to a session.
#[derive(Clone)]
pub struct Setting {
    /// What it is.
    pub entry: SettingEntry,
    /// Uses a value that `parse` has given, from now on.
    pub apply: Arc<dyn Fn(&str) -> Result<()> + Send + Sync>,
}

/// What the extensions of a session have added.
#[derive(Debug)]
pub struct Setup {
    registry: Registry,
    passes: Vec<Pass>,
    settings: Vec<Setting>,
    tables: Vec<Arc<dyn Catalog + Send>>,
    platforms: Vec<Arc<dyn Platform>>,
}

impl Setup {
    /// Nothing but the functions of the registry's library.
    pub fn new(registry: Registry) -> Setup {
        Setup {
            registry,
            passes: Vec::new(),
            settings: Vec::new(),
            tables: Vec::new(),
            platforms: Vec::new(),
        }
    }

    /// Adds a sub-operator.
    ///
    /// # Errors
    /// There is one of its name.
    pub fn operator(&mut self, operator: impl SubOperator + 'static) -> Result<()> {
        if self.registry.implementation(operator.name()).is_ok() {
            return Err(taken("sub-operator", operator.name()));
        }
        self.registry.register(operator);
        Ok(())
    }

    /// Adds the sub-operators of a room.
    pub fn room(&mut self, register: impl FnOnce(&mut Registry)) {
        register(&mut self.registry);
    }

    /// Adds a function in native code.
    ///
    /// # Errors
    /// There is one of its name.
    pub fn function(&mut self, function: UserFunction) -> Result<()> {
        self.registry.library().define(function, false)
    }

    /// Adds a pass.
    ///
    /// # Errors
    /// There is one of its name, or none that it should follow.
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
    /// There is one of its name.
    pub fn setting(&mut self, setting: Setting) -> Result<()> {
        let name = setting.entry.name;
        if self.settings.iter().any(|other| other.entry.name == name) {
            return Err(taken("setting", name));
        }
        self.settings.push(setting);
        Ok(())
    }

    /// Adds tables. A session looks for a name there where it knows none itself.
    pub fn tables(&mut self, tables: Arc<dyn Catalog + Send>) {
        self.tables.push(tables);
    }

    /// Adds a platform: plans can be made for it, and statements run on it where the session says
    /// so.
    ///
    /// # Errors
    /// There is one of its name.
    pub fn platform(&mut self, platform: Arc<dyn Platform>) -> Result<()> {
        if self.platforms.iter().any(|other| other.name() == platform.name()) {
            return Err(taken("platform", platform.name()));
        }
        self.platforms.push(platform);
        Ok(())
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
    pub fn table_catalogs(&self) -> &[Arc<dyn Catalog + Send>] {
        &self.tables
    }

    /// All sub-operators and functions, for statements on one of the platforms: its executor and
    /// exchange are those that run.
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
