//! The catalog of a statement that is being planned: it runs the queries that planning needs.

use std::sync::Arc;

use arrow::array::AsArray;
use tessera_optimizer::table::{FileOption, Table, TableCatalog};
use tessera_plan::{FileFacts, Plan};
use tessera_types::{Error, Result};

use crate::plan_cache::{Question, Recorder};
use crate::run::Runner;

/// The tables of a session, with what runs plans over them.
#[derive(Debug)]
pub(crate) struct PlanningCatalog<'s> {
    pub(crate) tables: &'s (dyn TableCatalog + 's),
    pub(crate) runner: Runner,
    /// What it was asked.
    pub(crate) asked: Recorder,
}

impl TableCatalog for PlanningCatalog<'_> {
    fn table(&self, reference: &[&str]) -> Result<Option<Arc<Table>>> {
        let table = self.tables.table(reference)?;
        self.asked.table(Question::Table(owned(reference)), table.as_ref());
        Ok(table)
    }

    fn file_functions(&self) -> Vec<(&'static str, &'static str)> {
        self.tables.file_functions()
    }

    fn files(
        &self,
        paths: &[String],
        format: &str,
        options: &[FileOption],
    ) -> Result<Option<Arc<Table>>> {
        let table = self.tables.files(paths, format, options)?;
        let (paths, options) = (paths.to_vec(), options.to_vec());
        let question = Question::Files(paths, format.to_string(), options);
        self.asked.table(question, table.as_ref());
        Ok(table)
    }

    fn fact_functions(&self) -> Vec<&'static str> {
        self.tables.fact_functions()
    }

    fn facts(&self, function: &str, paths: &[String], options: &[FileOption]) -> Result<FileFacts> {
        self.asked.unrepeatable();
        self.tables.facts(function, paths, options)
    }

    fn view(&self, reference: &[&str]) -> Result<Option<Arc<str>>> {
        let view = self.tables.view(reference)?;
        self.asked.view(Question::View(owned(reference)), view.as_ref());
        Ok(view)
    }

    fn texts(&self, plan: &Plan) -> Result<Vec<Option<Arc<str>>>> {
        self.asked.unrepeatable();
        let (_, finished) = self.runner.run_with_retry(&self.runner.optimized(plan)?)?;
        let mut texts = Vec::with_capacity(finished.collected.rows());
        for chunk in finished.collected.chunks() {
            let column = chunk?.compact()?.column(0)?.plain()?;
            let values = column.as_string_view_opt();
            let values = values.ok_or_else(|| Error::internal("values that are not text"))?;
            texts.extend(values.iter().map(|text| text.map(Arc::from)));
        }
        Ok(texts)
    }

    fn table_names(&self) -> Vec<String> {
        self.asked.unrepeatable();
        self.tables.table_names()
    }

    fn table_kinds(&self) -> Vec<(String, &'static str)> {
        self.asked.unrepeatable();
        self.tables.table_kinds()
    }
}

fn owned(reference: &[&str]) -> Vec<String> {
    reference.iter().map(|part| part.to_string()).collect()
}
