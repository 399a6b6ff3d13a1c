//! `CREATE TEMP TABLE name AS query`: tables in memory, as encoded blocks.

use std::collections::HashSet;
use std::sync::Arc;

use tessera_binder::PlannedQuery;
use tessera_engine::RetainedMemory;
use tessera_formats::block::{self, Blocks};
use tessera_optimizer::table::{RowNumbers, Table};
use tessera_plan::{Params, Plan, Statistics, Value};
use tessera_rows::Collected;
use tessera_types::{Error, Result, Tuple, quote_name};

use crate::copy::with_names;
use crate::source::TableSampler;

/// The catalog entry of a table in memory.
#[derive(Debug)]
pub(crate) struct MemoryTable {
    pub(crate) table: Arc<Table>,
    /// The share of the process memory budget that the blocks use.
    _memory: RetainedMemory,
}

/// The plan that materializes a query as encoded blocks.
///
/// # Errors
/// Two columns have the same name.
pub(crate) fn plan(query: &PlannedQuery) -> Result<Plan> {
    let mut seen = HashSet::new();
    if let Some(twice) = query.names.iter().find(|name| !seen.insert(*name)) {
        return Err(Error::semantic(format!(
            "duplicate column {}; rename one of them with AS",
            quote_name(twice)
        )));
    }
    let names = query.names.iter().map(|name| name.as_str().into()).collect();
    let (mut builder, root) = with_names(query, names);
    let root = builder.add("block_materialize", &[root], Params::new());
    Ok(builder.finish(root))
}

/// The blocks that [`plan`] has materialized.
///
/// # Errors
/// The result does not have the shape of that plan.
pub(crate) fn blocks(collected: &Collected) -> Result<Arc<Blocks>> {
    let column = collected.single()?.column(0)?;
    let handle = column.handles()?.first();
    handle
        .ok_or_else(|| Error::internal("block_materialize has returned no blocks"))?
        .get::<Blocks>()
}

impl MemoryTable {
    /// Enables or disables sampling for estimates.
    pub(crate) fn set_sampler(&mut self, sampler: Option<&TableSampler>) {
        let sample = sampler.map(|sampler| sampler.sample_in_memory(&self.table));
        self.table = Arc::new(Table { sample, ..(*self.table).clone() });
    }

    /// Creates the catalog entry of a table and the table that scans read. `memory` accounts for
    /// the blocks.
    pub(crate) fn new(
        name: &str,
        query: &PlannedQuery,
        blocks: Arc<Blocks>,
        memory: RetainedMemory,
    ) -> (MemoryTable, block::Table) {
        let fields = query.tuple.fields().iter().zip(&query.names);
        let tuple = Tuple::new(
            fields.map(|(field, name)| field.renamed(name.as_str())).collect::<Vec<_>>(),
        );
        MemoryTable::of(name, tuple, blocks, memory)
    }

    /// Like [`MemoryTable::new`], for tuples of a type.
    pub(crate) fn of(
        name: &str,
        tuple: Tuple,
        blocks: Arc<Blocks>,
        memory: RetainedMemory,
    ) -> (MemoryTable, block::Table) {
        let table = Table {
            name: name.to_string(),
            tuple: tuple.clone(),
            operator: Arc::from("block_scan"),
            params: Params::new().with("table", Value::string(name)),
            filters: true,
            statistics: Statistics { rows: Some(blocks.rows() as f64), columns: Vec::new() },
            sample: None,
            row_numbers: Some(RowNumbers { column: block::ROW_NUMBER.into(), are_unique: true }),
        };
        (MemoryTable { table: Arc::new(table), _memory: memory }, block::Table { tuple, blocks })
    }
}
