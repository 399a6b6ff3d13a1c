//! The registry of sub-operators: descriptor and implementation under one name.

use std::collections::BTreeMap;
use std::sync::Arc;

use tessera_functions::Library;
use tessera_plan::OperatorCatalog;
use tessera_types::{Error, Result};

use crate::SubOperator;
use crate::format::{Format, Formats};
use crate::platform::{Executor, PlatformOperator, Runtime};

/// Sub-operators and file formats by name, and the function library that expressions bind to.
#[derive(Debug, Clone)]
pub struct Registry {
    catalog: OperatorCatalog,
    implementations: BTreeMap<&'static str, Arc<dyn SubOperator>>,
    formats: Formats,
    library: Arc<Library>,
    /// What the executor's descriptor knows of all platforms.
    executor: Executor,
}

impl Registry {
    /// Creates a registry that has only the trait converters, which have descriptors but no
    /// implementation yet.
    pub fn new(library: Arc<Library>) -> Self {
        let mut catalog = OperatorCatalog::new(library.clone());
        tessera_plan::traits_catalog::register(&mut catalog);
        Registry {
            catalog,
            implementations: BTreeMap::new(),
            formats: Formats::default(),
            library,
            executor: Executor::default(),
        }
    }

    /// Adds a sub-operator. It replaces an earlier one of the same name.
    pub fn register(&mut self, operator: impl SubOperator + 'static) {
        let operator = Arc::new(operator);
        self.catalog.register(operator.clone());
        self.implementations.insert(operator.name(), operator);
    }

    /// Says that the workers of a platform share one memory. A platform says so before it registers
    /// its executor; plans of other platforms verify as before.
    pub fn share_memory(&mut self, platform: &'static str) {
        self.executor.shared_memory.push(platform);
        self.register(self.executor.clone());
    }

    /// Adds the executor of a platform in place of that of another platform.
    pub fn register_executor(&mut self, runtime: impl Runtime + 'static) {
        self.register(PlatformOperator::new(self.executor.clone(), runtime));
    }

    /// Adds a file format and its sub-operators. It replaces an earlier one of the same name.
    pub fn register_format(&mut self, format: impl Format + 'static) {
        format.register(self);
        let pushes = self.catalog.pushes(format.entry().scan);
        self.formats.add(Arc::new(format), pushes);
    }

    /// The file formats.
    pub fn formats(&self) -> &Formats {
        &self.formats
    }

    /// The descriptors, for the verifier.
    pub fn catalog(&self) -> &OperatorCatalog {
        &self.catalog
    }

    /// The function library.
    pub fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// Returns a sub-operator by name.
    ///
    /// # Errors
    /// No implementation is registered: this build can explain the sub-operator but not run it.
    pub fn implementation(&self, name: &str) -> Result<&Arc<dyn SubOperator>> {
        self.implementations
            .get(name)
            .ok_or_else(|| Error::unsupported(format!("this build cannot run sub-operator {name}")))
    }
}
