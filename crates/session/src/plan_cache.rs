//! Plans of queries that a session has planned before.

use std::collections::hash_map::Entry;
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

/// What planning asks the catalog.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum Question {
    /// For a table of this name.
    Table(Vec<String>),
    /// For files that are read in a format with options.
    Files(Vec<String>, String, Vec<FileOption>),
    /// For a view of this name.
    View(Vec<String>),
}

/// What the catalog answers. It returns the same description of a table until its files change.
#[derive(Debug)]
pub(crate) enum Answer {
    Table(Option<Arc<Table>>),
    View(Option<Arc<str>>),
}

impl Question {
    /// Asks a catalog.
    pub(crate) fn ask(&self, catalog: &dyn TableCatalog) -> Result<Answer> {
        Ok(match self {
            Question::Table(name) => Answer::Table(catalog.table(&parts(name))?),
            Question::Files(paths, format, options) => {
                Answer::Table(catalog.files(paths, format, options)?)
            }
            Question::View(name) => Answer::View(catalog.view(&parts(name))?),
        })
    }
}

/// The parts of a name.
fn parts(name: &[String]) -> Vec<&str> {
    name.iter().map(String::as_str).collect()
}

impl PartialEq for Answer {
    fn eq(&self, other: &Answer) -> bool {
        match (self, other) {
            (Answer::Table(Some(one)), Answer::Table(Some(other))) => Arc::ptr_eq(one, other),
            (Answer::Table(one), Answer::Table(other)) => one.is_none() && other.is_none(),
            (Answer::View(one), Answer::View(other)) => one == other,
            _ => false,
        }
    }
}

/// The questions of planning, and their answers.
pub(crate) type Answers = HashMap<Question, Answer>;

/// Records what planning asks the catalog.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<Recorded>);

#[derive(Debug, Default)]
struct Recorded {
    answers: Answers,
    /// Whether the answer to a question may change at any time, or has changed.
    is_unrepeatable: bool,
}

impl Recorder {
    pub(crate) fn table(&self, question: Question, table: Option<&Arc<Table>>) {
        self.add(question, Answer::Table(table.cloned()));
    }

    pub(crate) fn view(&self, question: Question, view: Option<&Arc<str>>) {
        self.add(question, Answer::View(view.cloned()));
    }

    fn add(&self, question: Question, answer: Answer) {
        let Recorded { answers, is_unrepeatable } = &mut *lock(&self.0);
        match answers.entry(question) {
            Entry::Vacant(place) => drop(place.insert(answer)),
            Entry::Occupied(known) => *is_unrepeatable |= *known.get() != answer,
        }
    }

    /// Planning asked something whose answer may change at any time.
    pub(crate) fn unrepeatable(&self) {
        lock(&self.0).is_unrepeatable = true;
    }

    /// Returns what was asked, if all of it can be asked again.
    pub(crate) fn answers(self) -> Option<Answers> {
        let Recorded { answers, is_unrepeatable } = self.0.into_inner().unwrap_or_default();
        (!is_unrepeatable).then_some(answers)
    }
}

/// The plans of a session by text. Whatever changes the session forgets all of them.
#[derive(Debug, Default)]
pub(crate) struct PlanCache {
    plans: HashMap<Arc<str>, (Arc<KnownPlan>, Answers)>,
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
        let Some((known, answers)) = self.plans.get(text) else { return Ok(None) };
        for (question, answer) in answers {
            if question.ask(catalog)? != *answer {
                return Ok(None);
            }
        }
        self.reuses.fetch_add(1, Ordering::Relaxed);
        Ok(Some(known.clone()))
    }

    /// Keeps a plan; the oldest one goes if there are too many.
    pub(crate) fn insert(&mut self, text: &str, plan: Arc<KnownPlan>, answers: Answers) {
        if text.len() > TEXT_BYTES_MAX {
            return;
        }
        let text: Arc<str> = text.into();
        if self.plans.insert(text.clone(), (plan, answers)).is_none() {
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
