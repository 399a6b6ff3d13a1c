//! `rows_materialize`: stores tuples as `Rows`.

use std::sync::Arc;

use tessera_context::Run;
use tessera_operator::describe::collection_edge;
use tessera_operator::stream_util::chunks_source;
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_rows::{
    Collected, RowLayout, RowWriter, RowsCollector, RowsCollectorWorker, WriteRequestCell,
};
use tessera_types::Result;
use tessera_vector::{Chunk, Column};

/// Stores all tuples in one collection in the `rows` layout, and yields it as the only field of one
/// tuple (Modularis §2.3.2).
///
/// `<a>` = `1, 2` gives one `<data: rows<a>>`. Buffers the tuples and spills them when the memory
/// budget is exhausted; ends its pipeline; the tuples inside are in the order of the source.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <x: int64?>, rows = [[1], [2], [NULL::int64], [3]]}
///      %kept = rows_materialize(%t)
///      %result = rows_scan(%kept) {field = data}",
/// );
/// assert_eq!(rows, ["1", "2", "NULL", "3"]);
/// ```
#[derive(Debug)]
pub struct RowsMaterialize;

impl Descriptor for RowsMaterialize {
    tessera_operator::describe!(
        "rows_materialize",
        "Keeps all tuples in one collection of rows.",
        [],
        1,
        1
    );

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        collection_edge(inputs, "rows")
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for RowsMaterialize {
    fn lower(&self, _node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let layout = RowLayout::unhashed(&lowering.inputs[0].tuple)?;
        Ok(Operator::Sink(Arc::new(RowsMaterializeOperator {
            layout,
            write: WriteRequestCell::new(),
        })))
    }
}

#[derive(Debug)]
struct RowsMaterializeOperator {
    layout: Arc<RowLayout>,
    write: WriteRequestCell,
}

impl Sink for RowsMaterializeOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        let writer = RowWriter::start(&self.write, &self.layout, false, run);
        let collector = RowsCollector::new(self.layout.clone(), run);
        Ok(Arc::new(MaterializeRun { collector, writer, run: run.clone() }))
    }
}

#[derive(Debug)]
struct MaterializeRun {
    collector: Arc<RowsCollector>,
    writer: RowWriter,
    run: Run,
}

struct MaterializeWorker {
    local: RowsCollectorWorker,
    writer: RowWriter,
    run: Run,
}

impl SinkRun for MaterializeRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let (local, writer, run) = (self.collector.worker(), self.writer.clone(), self.run.clone());
        Ok(Box::new(MaterializeWorker { local, writer, run }))
    }

    fn accepts_lazy(&self) -> bool {
        true
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let workers = downcast_workers::<MaterializeWorker>(workers)?;
        let rows = self.collector.collect(workers.into_iter().map(|worker| worker.local))?;
        let chunk = Chunk::new(vec![Column::handle(rows)], 1);
        Ok(Finish {
            tasks: Vec::new(),
            output: chunks_source(vec![chunk], self.run.context.chunk_rows()),
        })
    }
}

impl SinkWorker for MaterializeWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.local.begin(position);
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.run.context.check()?;
        let selection = chunk.selection().map(|selection| &selection.values()[..]);
        let tuples = self.writer.tuples(&chunk)?;
        let bytes = chunk.value_bytes();
        self.local
            .append(bytes, |builder| builder.append_tuples(&tuples, None, selection).map(drop))
    }

    fn end(&mut self) -> Result<()> {
        self.local.end();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tessera_plan::{Expr, Params, Value};

    use tessera_context::testing::{Numbers, TestContext, batch, rows, same};
    use tessera_operator::testing::{SETTINGS, TestPlan, names};

    #[test]
    fn what_is_kept_comes_back_in_order() {
        for format in ["rows", "batch"] {
            let mut plan = TestPlan::new(crate::register);
            let mut numbers = Numbers::new(3);
            let line = |_| match numbers.below(4) {
                0 => "NULL NULL true".to_string(),
                n => format!("{n} a-text-that-is-long-{n} NULL"),
            };
            let lines: Vec<String> = (0..3_000).map(line).collect();
            let tuple = "<a: int64?, b: string?, c: boolean?>";
            let table = plan.table(batch(tuple, &lines.join("|")));
            let kept = plan.add(&format!("{format}_materialize"), &[table], Params::new());
            let field = Params::new().with("field", Value::Expr(Expr::field("data")));
            let root = plan.add(&format!("{format}_scan"), &[kept], field.clone());
            for (chunk, workers) in SETTINGS {
                let found = plan.run(root, chunk, workers).unwrap();
                assert_eq!(rows(&found), lines, "{format}");
            }
            let mut plan = TestPlan::new(crate::register);
            let table = plan.table(batch("<a: int64?>", ""));
            let kept = plan.add(&format!("{format}_materialize"), &[table], Params::new());
            let root = plan.add(&format!("{format}_scan"), &[kept], field);
            same(&plan.run(root, 7, 2).unwrap(), "<a: int64?>", "");
        }
    }

    #[test]
    fn rows_leave_memory_and_come_back_in_order() {
        let mut plan = TestPlan::new(crate::register);
        let line = |n: u64| match n % 4 {
            0 => "NULL NULL".to_string(),
            _ => format!("{n} a-text-that-is-long-{n}"),
        };
        let lines: Vec<String> = (0..5_000).map(line).collect();
        let table = plan.table(batch("<a: int64?, b: string?>", &lines.join("|")));
        let kept = plan.add("rows_materialize", &[table], Params::new());
        let field = Params::new().with("field", Value::Expr(Expr::field("data")));
        let root = plan.add("rows_scan", &[kept], field);
        for (chunk, workers) in SETTINGS {
            for state_budget in [0, 100_000] {
                let context = TestContext::with_state_budget(chunk, workers, state_budget);
                assert_eq!(rows(&plan.run_in(root, context.clone()).unwrap()), lines);
                assert!(context.spilled() > 0 || state_budget > 0);
            }
        }
    }

    #[test]
    fn another_format_is_rejected() {
        let mut plan = TestPlan::new(crate::register);
        let table = plan.table(batch("<a: int64>", ""));
        let kept = plan.add("rows_materialize", &[table], Params::new());
        let field = Params::new().with("field", names(&["data"]));
        let root = plan.add("batch_scan", &[kept], field);
        assert!(plan.verify(root).is_err());
        let mut plan = TestPlan::new(crate::register);
        let table = plan.table(batch("<a: int64>", ""));
        let kept = plan.add("rows_materialize", &[table], Params::new());
        let field = Params::new().with("field", Value::Expr(Expr::field("data")));
        let root = plan.add("batch_scan", &[kept], field);
        let message = plan.verify(root).unwrap_err().to_string();
        assert!(message.contains("field data is rows<a: int64>"), "{message}");
    }
}
