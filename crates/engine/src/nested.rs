//! Runs of nested plans for their sub-operators.

use std::sync::Arc;

use tessera_context::Context;
use tessera_operator::stream_util::ChunksReader;
use tessera_operator::{NestedPlan, Reader};
use tessera_rows::Collected;
use tessera_types::Result;
use tessera_vector::Chunk;

use crate::execution::Execution;
use crate::query_run::{QueryRun, RunReader};
use crate::record::RunRecord;
use crate::workers::Shared;

/// A nested plan within a run of its outer plan.
#[derive(Debug)]
struct NestedRuns {
    record: Arc<RunRecord>,
}

/// The nested plan of a record, for its sub-operator.
pub(crate) fn nested_plan(record: &Arc<RunRecord>) -> Arc<dyn NestedPlan> {
    Arc::new(NestedRuns { record: record.clone() })
}

impl NestedRuns {
    fn execution(
        &self,
        parameters: Chunk,
        context: &Arc<dyn Context>,
        workers: usize,
    ) -> Result<Arc<Execution>> {
        Execution::new(&self.record, parameters, context.clone(), workers, nested_plan)
    }

    /// Runs the plan for one parameter tuple with all workers. The calling worker takes part.
    fn run_parallel(&self, parameters: Chunk, context: &Arc<dyn Context>) -> Result<Collected> {
        match Shared::of_this_thread() {
            Some((shared, worker)) => {
                let execution = self.execution(parameters, context, shared.worker_count())?;
                match worker {
                    Some(worker) => shared.run_taking_part(&execution, worker)?,
                    None => shared.run_waiting(&execution),
                }
                unwrap_collected(execution.take_result()?)
            }
            None => self.run(parameters, context),
        }
    }
}

impl NestedPlan for NestedRuns {
    fn run(&self, parameters: Chunk, context: &Arc<dyn Context>) -> Result<Collected> {
        let execution = self.execution(parameters, context, 1)?;
        execution.run_alone()?;
        unwrap_collected(execution.take_result()?)
    }

    fn stream(&self, parameters: Chunk, context: &Arc<dyn Context>) -> Result<Box<dyn Reader>> {
        match Shared::of_this_thread() {
            Some((shared, None)) => {
                let start = (parameters, context.clone());
                let run = QueryRun::start(&shared, &self.record, start, nested_plan, false)?;
                Ok(Box::new(RunReader(run)))
            }
            _ => {
                let collected = self.run_parallel(parameters, context)?;
                Ok(Box::new(ChunksReader::from_spillable(
                    collected.spillable_chunks().to_vec(),
                    context.chunk_rows(),
                )))
            }
        }
    }

    fn figures(&self) -> String {
        let mut lines = String::new();
        self.record.write_figures(&mut lines);
        lines
    }

    fn add_figures(&self, figures: &str) -> Result<()> {
        self.record.read_figures(&mut figures.lines())
    }
}

fn unwrap_collected(collected: Arc<Collected>) -> Result<Collected> {
    Ok(Arc::try_unwrap(collected).unwrap_or_else(|shared| (*shared).clone()))
}
