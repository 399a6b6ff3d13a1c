//! `block_materialize`: stores tuples as encoded blocks.

use std::sync::{Arc, Mutex};

use tessera_context::{Reservation, Run};
use tessera_operator::describe::{collection_edge, edge};
use tessera_operator::stream_util::chunks_source;
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_rows::Collected;
use tessera_types::{Result, Tuple};
use tessera_vector::{Chunk, Column, concat_chunks};

use super::{BLOCK_ROWS, Block, Blocks};

/// Stores all tuples in one collection of encoded blocks, and yields it as the only field of one
/// tuple.
///
/// `<a>` = `1, 2` gives one `<data: block<a>>`. Buffers the encoded tuples; ends its pipeline; the
/// tuples inside are in the order of the source. Errors: a field that holds a collection.
#[derive(Debug)]
pub struct BlockMaterialize;

impl Descriptor for BlockMaterialize {
    tessera_operator::describe!(
        "block_materialize",
        "Keeps all tuples in one collection of encoded blocks.",
        [],
        1,
        1
    );

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let output = collection_edge(inputs, "block")?;
        edge(inputs)?.tuple.arrow_schema()?;
        Ok(output)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for BlockMaterialize {
    fn lower(&self, _node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        Ok(Operator::Sink(Arc::new(BlockMaterializeOperator {
            tuple: lowering.inputs[0].tuple.clone(),
        })))
    }
}

#[derive(Debug)]
struct BlockMaterializeOperator {
    tuple: Tuple,
}

impl Sink for BlockMaterializeOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        Ok(Arc::new(MaterializeRun { tuple: self.tuple.clone(), run: run.clone() }))
    }
}

#[derive(Debug)]
struct MaterializeRun {
    tuple: Tuple,
    run: Run,
}

/// Blocks with the positions of their first morsels. Consecutive morsels share blocks, so that
/// small morsels do not make small blocks.
struct MaterializeWorker {
    tuple: Tuple,
    run: Run,
    /// The morsel that would continue the current block.
    next: Option<u64>,
    /// The morsel of the current block's first tuple.
    position: u64,
    waiting: Vec<Chunk>,
    waiting_rows: usize,
    blocks: Vec<(u64, Block)>,
    memory: Reservation,
    memory_waiting: Reservation,
}

impl SinkRun for MaterializeRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let context = &self.run.context;
        let (memory, memory_waiting) =
            (Reservation::new(context.clone()), Reservation::new(context.clone()));
        Ok(Box::new(MaterializeWorker {
            tuple: self.tuple.clone(),
            run: self.run.clone(),
            next: None,
            position: 0,
            waiting: Vec::new(),
            waiting_rows: 0,
            blocks: Vec::new(),
            memory,
            memory_waiting,
        }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let (mut blocks, mut memory) = (Vec::new(), Vec::new());
        for mut worker in downcast_workers::<MaterializeWorker>(workers)? {
            worker.encode()?;
            blocks.extend(worker.blocks);
            memory.push(worker.memory);
        }
        // The sort is stable, so the blocks of a morsel keep their order.
        blocks.sort_by_key(|(position, _)| *position);
        let blocks = blocks.into_iter().map(|(_, block)| Arc::new(block)).collect();
        let chunk =
            Chunk::new(vec![Column::handle(Blocks { blocks, memory: Mutex::new(memory) })], 1);
        Ok(Finish {
            tasks: Vec::new(),
            output: chunks_source(vec![chunk], self.run.context.chunk_rows()),
        })
    }
}

impl MaterializeWorker {
    /// Encodes the waiting chunks as a block.
    fn encode(&mut self) -> Result<()> {
        let chunks = std::mem::take(&mut self.waiting);
        let rows = std::mem::take(&mut self.waiting_rows);
        if rows == 0 {
            return Ok(());
        }
        self.run.context.check()?;
        let all = concat_chunks(&chunks)?;
        drop(chunks);
        let block = Block::new(&all, &self.tuple)?;
        self.memory.grow(block.bytes())?;
        self.memory_waiting.resize(0)?;
        self.blocks.push((self.position, block));
        Ok(())
    }
}

impl SinkWorker for MaterializeWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        if self.next != Some(position) {
            self.encode()?;
        }
        if self.waiting_rows == 0 {
            self.position = position;
        }
        self.next = Some(position + 1);
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.run.context.check()?;
        let chunk = chunk.compact()?;
        self.memory_waiting.grow(chunk.value_bytes())?;
        self.waiting_rows += chunk.rows();
        self.waiting.push(chunk);
        if self.waiting_rows < BLOCK_ROWS {
            return Ok(());
        }
        self.encode()?;
        self.position = self.next.map_or(0, |next| next - 1);
        Ok(())
    }
}
