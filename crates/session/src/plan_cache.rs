//! Plans of queries that a session has planned before.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tessera_context::lock;
use tessera_optimizer::table::{FileOption, Table, TableCatalog};
use tessera_plan::Plan;
use tessera_types::{Result, Tuple};

/// The most plans of a session.
const PLANS_MAX: usize = 128;
/// A longer text is planned each time: its plan may be as large.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// The plan of a query without parameters.
#[derive(Debug)]
pub(crate) struct KnownPlan {
    /// The plan after all passes that do not depend on the platform.
    pub(crate) plan: Plan,
    pub(crate) tuple: Tuple,
    pub(crate) names: Vec<String>,
}

/// What planning asked the catalog, and the answer. The catalog returns the same description of a
/// table until its files change.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// A table or none of this name.
    Table(Vec<String>, Option<Arc<Table>>),
    /// Files that are read in a format with options.
    Files(Vec<String>, String, Vec<FileOption>, Option<Arc<Table>>),
    /// The text of a view.
    View(Vec<String>, Option<Arc<str>>),
}

impl Lookup {
    /// Whether the catalog would answer the same.
    fn holds(&self, catalog: &dyn TableCatalog) -> Result<bool> {
        let same = |before: &Option<Arc<Table>>, now: Option<Arc<Table>>| match (before, now) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, &now),
            (before, now) => before.is_none() && now.is_none(),
        };
        Ok(match self {
            Lookup::Table(name, table) => same(table, catalog.table(&parts(name))?),
            Lookup::Files(paths, format, options, table) => {
                same(table, catalog.files(paths, format, options)?)
            }
            Lookup::View(name, text) => catalog.view(&parts(name))? == *text,
        })
    }
}

/// The parts of a name.
fn parts(name: &[String]) -> Vec<&str> {
    name.iter().map(String::as_str).collect()
}

/// Records what planning asks the catalog.
#[derive(Debug, Default)]
pub(crate) struct Lookups(Mutex<Recorded>);

#[derive(Debug, Default)]
struct Recorded {
    lookups: Vec<Lookup>,
    /// Whether it asked something whose answer may change at any time.
    is_unrepeatable: bool,
}

impl Lookups {
    pub(crate) fn add(&self, lookup: Lookup) {
        lock(&self.0).lookups.push(lookup);
    }

    /// Planning asked something whose answer may change at any time.
    pub(crate) fn unrepeatable(&self) {
        lock(&self.0).is_unrepeatable = true;
    }

    /// Returns what was asked, if all of it can be asked again.
    pub(crate) fn take(self) -> Option<Vec<Lookup>> {
        let Recorded { lookups, is_unrepeatable } = self.0.into_inner().unwrap_or_default();
        (!is_unrepeatable).then_some(lookups)
    }
}

/// The plans of a session by text. Whatever changes the session forgets all of them.
#[derive(Debug, Default)]
pub(crate) struct PlanCache {
    plans: HashMap<Arc<str>, (Arc<KnownPlan>, Vec<Lookup>)>,
    /// The texts, those that came first first.
    texts: VecDeque<Arc<str>>,
    /// How often a plan was used again.
    reuses: AtomicUsize,
}

impl PlanCache {
    /// Returns the plan of a text, if its tables are as they were.
    ///
    /// # Errors
    /// A table cannot be read.
    pub(crate) fn get(
        &self,
        text: &str,
        catalog: &dyn TableCatalog,
    ) -> Result<Option<Arc<KnownPlan>>> {
        let Some((known, lookups)) = self.plans.get(text) else { return Ok(None) };
        for lookup in lookups {
            if !lookup.holds(catalog)? {
                return Ok(None);
            }
        }
        self.reuses.fetch_add(1, Ordering::Relaxed);
        Ok(Some(known.clone()))
    }

    /// Keeps a plan; the oldest one goes if there are too many.
    pub(crate) fn insert(&mut self, text: &str, plan: Arc<KnownPlan>, lookups: Vec<Lookup>) {
        if text.len() > TEXT_BYTES_MAX {
            return;
        }
        let text: Arc<str> = text.into();
        if self.plans.insert(text.clone(), (plan, lookups)).is_none() {
            self.texts.push_back(text);
        }
        if self.texts.len() > PLANS_MAX
            && let Some(oldest) = self.texts.pop_front()
        {
            self.plans.remove(&oldest);
        }
    }

    /// Forgets all plans.
    pub(crate) fn clear(&mut self) {
        self.plans.clear();
        self.texts.clear();
    }

    /// The number of plans, and how often one was used again.
    pub(crate) fn figures(&self) -> (usize, usize) {
        (self.plans.len(), self.reuses.load(Ordering::Relaxed))
    }
}
