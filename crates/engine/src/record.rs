//! What the runs of a compiled plan have done: figures, morsels, the last job of one that failed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tessera_context::lock;
use tessera_plan::NodeId;
use tessera_types::{Error, Result};

use crate::compiled_plan::CompiledPlan;
use crate::last::LastJob;
use crate::profile::{NodeFigures, NodeProfile, Profile};

/// What the runs of a compiled plan have done, with a record for each nested plan inside. A query
/// has a record of its own; that of a nested plan adds up all runs that the query makes of it.
#[derive(Debug)]
pub struct RunRecord {
    plan: Arc<CompiledPlan>,
    pub(crate) figures: Vec<NodeFigures>,
    /// Of the runs in other processes.
    elsewhere: Vec<NodeFigures>,
    pub(crate) morsels: Morsels,
    /// What was done last in a run that failed.
    pub(crate) last: Mutex<Option<LastJob>>,
    /// By node.
    nested: Vec<Vec<Arc<RunRecord>>>,
}

/// Morsels of all pipelines that have begun, in all runs.
#[derive(Debug, Default)]
pub(crate) struct Morsels {
    pub(crate) total: AtomicU64,
    pub(crate) done: AtomicU64,
}

impl RunRecord {
    /// The record of a query that will run this plan.
    pub fn new(plan: &Arc<CompiledPlan>) -> Arc<RunRecord> {
        let figures = || plan.nested.iter().map(|_| NodeFigures::default()).collect();
        let nested = |plans: &Vec<_>| plans.iter().map(RunRecord::new).collect();
        Arc::new(RunRecord {
            plan: plan.clone(),
            figures: figures(),
            elsewhere: figures(),
            morsels: Morsels::default(),
            last: Mutex::default(),
            nested: plan.nested.iter().map(nested).collect(),
        })
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<CompiledPlan> {
        &self.plan
    }

    /// The records of a node's nested plans.
    pub(crate) fn nested(&self, id: NodeId) -> &[Arc<RunRecord>] {
        &self.nested[id.index()]
    }

    /// The figures of all runs so far, here and in other processes.
    pub fn profile(&self) -> Profile {
        self.profile_with(true)
    }

    /// The figures of the runs in this process.
    pub fn own_profile(&self) -> Profile {
        self.profile_with(false)
    }

    fn profile_with(&self, elsewhere: bool) -> Profile {
        let node = |id: usize| {
            let both = [&self.figures[id], &self.elsewhere[id]];
            let chosen = if elsewhere { &both[..] } else { &both[..1] };
            let sum = |value: fn(&NodeFigures) -> &AtomicU64| {
                chosen.iter().map(|figures| value(figures).load(Ordering::Relaxed)).sum()
            };
            let mut counters = BTreeMap::new();
            for (name, value) in chosen.iter().flat_map(|figures| figures.counters.get()) {
                *counters.entry(name).or_default() += value;
            }
            NodeProfile {
                id: NodeId(id as u32),
                rows: sum(|figures| &figures.rows),
                bytes: sum(|figures| &figures.bytes),
                nanoseconds: sum(|figures| &figures.nanoseconds),
                counters,
                nested: self.nested[id]
                    .iter()
                    .map(|nested| nested.profile_with(elsewhere))
                    .collect(),
            }
        };
        Profile { nodes: (0..self.figures.len()).map(node).collect() }
    }

    /// A line for each node, nested ones after the one they stand in.
    pub(crate) fn write_figures(&self, lines: &mut String) {
        for (figures, nested) in self.figures.iter().zip(&self.nested) {
            *lines += &figures.line();
            *lines += "\n";
            nested.iter().for_each(|nested| nested.write_figures(lines));
        }
    }

    /// Adds the lines that another process has written.
    pub(crate) fn read_figures(&self, lines: &mut std::str::Lines<'_>) -> Result<()> {
        for (elsewhere, nested) in self.elsewhere.iter().zip(&self.nested) {
            let added = lines.next().and_then(|line| elsewhere.add_line(line));
            added.ok_or_else(|| Error::internal("figures of another plan"))?;
            nested.iter().try_for_each(|nested| nested.read_figures(lines))?;
        }
        Ok(())
    }

    /// Morsels done, and morsels there are, in all pipelines that have begun; nested plans counted.
    pub fn progress(&self) -> (u64, u64) {
        let own =
            (self.morsels.done.load(Ordering::Relaxed), self.morsels.total.load(Ordering::Relaxed));
        let nested = self.nested.iter().flatten().map(|nested| nested.progress());
        nested.fold(own, |sum, inner| (sum.0 + inner.0, sum.1 + inner.1))
    }

    /// The last job of a run that failed or was cancelled, of a nested plan's run where there is
    /// one: it shows what delays the end of a run.
    pub fn last_job(&self) -> Option<String> {
        let nested = self.nested.iter().flatten().find_map(|nested| nested.last_job());
        let own = || {
            let last = lock(&self.last);
            last.as_ref().map(|last| last.describe(&self.plan))
        };
        nested.or_else(own)
    }
}
