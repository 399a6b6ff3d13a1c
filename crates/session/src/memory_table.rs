//! `CREATE TEMP TABLE name AS query`: tuples that a session keeps in memory, encoded.

use std::collections::HashSet;
use std::sync::Arc;

use tessera_engine::Kept;
use tessera_formats::block::{self, Blocks};
use tessera_optimizer::table::{Statistics, Table};
use tessera_plan::{Params, Plan, Value};
use tessera_rows::Collected;
use tessera_sql::Planned;
use tessera_types::{Error, Result, Tuple, quote_name};

use crate::copy::named;
use crate::source::Sampler;

/// A table in memory as a session knows it.
#[derive(Debug)]
pub(crate) struct MemoryTable {
    pub(crate) table: Arc<Table>,
    _kept: Kept,
}

/// The plan that keeps a query's tuples, and what their fields are called.
///
/// # Errors
/// Two columns have the same name.
pub(crate) fn plan(query: &Planned) -> Result<Plan> {
    let mut seen = HashSet::new();
    if let Some(twice) = query.names.iter().find(|name| !seen.insert(*name)) {
        return Err(Error::semantic(format!(
            "column {} stands twice; give one of them another name with AS",
            quote_name(twice)
        )));
    }
    let names = query.names.iter().map(|name| name.as_str().into()).collect();
    let (mut builder, root) = named(query, names);
    let root = builder.add("block_materialize", &[root], Params::new());
    Ok(builder.finish(root))
}

/// The tuples that the plan has kept.
///
/// # Errors
/// It has yielded something else.
pub(crate) fn blocks(collected: &Collected) -> Result<Arc<Blocks>> {
    let column = collected.single()?.column(0)?;
    let handle = column.handles()?.first();
    handle.ok_or_else(|| Error::internal("a table without its tuples"))?.get::<Blocks>()
}

impl MemoryTable {
    /// Has it sampled for estimates, or no longer.
    pub(crate) fn sample(&mut self, sampler: Option<&Sampler>) {
        let sample = sampler.map(|sampler| sampler.sample_in_memory(&self.table));
        self.table = Arc::new(Table { sample, ..(*self.table).clone() });
    }

    /// A table of these tuples, which `kept` counts, and what scans read.
    pub(crate) fn new(
        name: &str,
        query: &Planned,
        blocks: Arc<Blocks>,
        kept: Kept,
    ) -> (MemoryTable, block::Table) {
        let fields = query.tuple.fields().iter().zip(&query.names);
        let tuple = Tuple::new(
            fields.map(|(field, name)| field.renamed(name.as_str())).collect::<Vec<_>>(),
        );
        let table = Table {
            name: name.to_string(),
            tuple: tuple.clone(),
            operator: Arc::from("block_scan"),
            params: Params::new().with("table", Value::string(name)),
            filters: true,
            statistics: Statistics { rows: Some(blocks.rows() as f64), columns: Vec::new() },
            sample: None,
        };
        (MemoryTable { table: Arc::new(table), _kept: kept }, block::Table { tuple, blocks })
    }
}
