//! The last job of a failed run, which the end of the run waited for.

use std::time::Duration;

use tessera_plan::NodeId;
use tessera_plan::pipeline::{ChainStart, PipelineEnd};

use crate::compiled_plan::CompiledPlan;

/// The kind of a job.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Start,
    Advance,
    Morsel,
    Task,
}

/// A job that ended after its run had failed, or that made it fail.
#[derive(Debug)]
pub(crate) struct LastJob {
    pub(crate) pipeline: usize,
    pub(crate) kind: Kind,
    pub(crate) took: Duration,
    /// The longest call of a morsel: its node and duration.
    pub(crate) longest: Option<(NodeId, Duration)>,
    /// The time it took to drop the state of the run.
    pub(crate) cleared: Duration,
}

impl LastJob {
    pub(crate) fn describe(&self, plan: &CompiledPlan) -> String {
        let pipeline = &plan.pipelines.pipelines[self.pipeline];
        let start = pipeline.chains.first().map(|chain| chain.start);
        let mut path = match start {
            Some(ChainStart::Node(node)) => plan.name(node).to_string(),
            Some(ChainStart::Pipeline(other)) => format!("output of pipeline {other}"),
            None => String::new(),
        };
        for &node in pipeline.chains.first().map_or(&[][..], |chain| &chain.streams) {
            path += &format!(" > {}", plan.name(node));
        }
        if let PipelineEnd::Sink(node) = pipeline.end {
            path += &format!(" > {}", plan.name(node));
        }
        let kind = match self.kind {
            Kind::Start => "start of",
            Kind::Advance => "end of",
            Kind::Morsel => "morsel of",
            Kind::Task => "finishing task of",
        };
        let longest = self.longest.map_or(String::new(), |(node, took)| {
            format!(" ({:.1} ms in one call of {})", took.as_secs_f64() * 1e3, plan.name(node))
        });
        let [took, cleared] = [self.took, self.cleared].map(|time| time.as_secs_f64() * 1e3);
        format!("{kind} {path}: {took:.1} ms{longest}, then {cleared:.1} ms to free")
    }
}
