//! Which sub-operators there are: meaning and implementation under one name.

use std::collections::BTreeMap;
use std::sync::Arc;

use tessera_functions::Library;
use tessera_plan::Catalogue;
use tessera_types::{Error, Result};

use crate::SubOperator;

/// Sub-operators by name, with the function library their expressions bind to.
#[derive(Debug, Clone)]
pub struct Registry {
    catalogue: Catalogue,
    implementations: BTreeMap<&'static str, Arc<dyn SubOperator>>,
    library: Arc<Library>,
}

impl Registry {
    /// A registry without sub-operators, but for the trait converters, which have a meaning and no
    /// runtime yet.
    pub fn new(library: Arc<Library>) -> Self {
        let mut catalogue = Catalogue::new(library.clone());
        tessera_plan::traits_catalogue::register(&mut catalogue);
        Registry { catalogue, implementations: BTreeMap::new(), library }
    }

    /// Adds a sub-operator; the last one of a name wins.
    pub fn register(&mut self, operator: impl SubOperator + 'static) {
        let operator = Arc::new(operator);
        self.catalogue.register(operator.clone());
        self.implementations.insert(operator.name(), operator);
    }

    /// The descriptors, for the verifier.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The functions.
    pub fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// A sub-operator by name.
    ///
    /// # Errors
    /// It has a descriptor at most: this build can explain it but not run it.
    pub fn implementation(&self, name: &str) -> Result<&Arc<dyn SubOperator>> {
        self.implementations.get(name).ok_or_else(|| {
            Error::unsupported(format!("sub-operator {name} cannot run in this build"))
        })
    }
}
