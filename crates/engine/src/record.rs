//! What the runs of a compiled plan have done: figures, progress, the last job of a failed run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tessera_context::lock;
use tessera_plan::NodeId;
use tessera_types::{Error, Result};

use crate::compiled_plan::CompiledPlan;
use crate::last_job::LastJob;
use crate::profile::{NodeFigures, NodeProfile, Profile};

/// Figures of the runs of a compiled plan, with a record for each nested plan. Each query has its
/// own record. The record of a nested plan adds up all its runs in the query.
#[derive(Debug)]
pub struct RunRecord {
    plan: Arc<CompiledPlan>,
    pub(crate) figures: Vec<NodeFigures>,
    /// Figures of the runs in other processes.
    elsewhere: Vec<NodeFigures>,
    pub(crate) morsels: Morsels,
    /// The last job of a failed run.
    pub(crate) last: Mutex<Option<LastJob>>,
    /// The records of nested plans, by node.
    nested: Vec<Vec<Arc<RunRecord>>>,
}

/// Morsels of all started pipelines, in all runs.
#[derive(Debug, Default)]
pub(crate) struct Morsels {
    pub(crate) total: AtomicU64,
    pub(crate) done: AtomicU64,
}

impl RunRecord {
    /// A record for a query that will run this plan.
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

    /// Writes a line for each node. The lines of a nested plan follow the line of its node.
    pub(crate) fn write_figures(&self, lines: &mut String) {
        for (figures, nested) in self.figures.iter().zip(&self.nested) {
            *lines += &figures.line();
            *lines += "\n";
            nested.iter().for_each(|nested| nested.write_figures(lines));
        }
    }

    /// Adds the figures that another process has written as lines.
    pub(crate) fn read_figures(&self, lines: &mut std::str::Lines<'_>) -> Result<()> {
        for (elsewhere, nested) in self.elsewhere.iter().zip(&self.nested) {
            let added = lines.next().and_then(|line| elsewhere.add_line(line));
            added.ok_or_else(|| Error::internal("figures of another plan"))?;
            nested.iter().try_for_each(|nested| nested.read_figures(lines))?;
        }
        Ok(())
    }

    /// Finished morsels and all morsels of the started pipelines, those of nested plans included.
    pub fn progress(&self) -> (u64, u64) {
        let own =
            (self.morsels.done.load(Ordering::Relaxed), self.morsels.total.load(Ordering::Relaxed));
        let nested = self.nested.iter().flatten().map(|nested| nested.progress());
        nested.fold(own, |sum, inner| (sum.0 + inner.0, sum.1 + inner.1))
    }

    /// Describes the last job of a failed or cancelled run, or of a nested plan's run: it shows
    /// what delayed the end.
    pub fn last_job(&self) -> Option<String> {
        let nested = self.nested.iter().flatten().find_map(|nested| nested.last_job());
        let own = || {
            let last = lock(&self.last);
            last.as_ref().map(|last| last.describe(&self.plan))
        };
        nested.or_else(own)
    }
}
