//! Tables in FROM: by name, subqueries, functions, and joins in parentheses.

use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast::{Ident, ObjectName, Query, Spanned, TableAlias, TableFactor};
use tessera_optimizer::logical::relation::Relation;
use tessera_optimizer::table::Table;
use tessera_types::{Code, Error, Result, SqlState};

use super::cte::{Env, Meaning, check_alias, renamed};
use super::from::{Around, Tables, surroundings};
use super::list::idents;
use super::scope::{Column, Output};
use super::{Binder, Bound, normalized, placed, refuse, refuse_at};

/// The deepest nesting of views in views.
const VIEW_DEPTH_MAX: usize = 32;

impl Binder<'_> {
    pub(super) fn table_factor(
        &mut self,
        factor: &TableFactor,
        around: Around<'_, '_>,
    ) -> Result<Tables> {
        let place = factor;
        match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
            } => {
                refuse(!with_hints.is_empty(), "WITH after a table", place)?;
                refuse(version.is_some(), "a table version (FOR SYSTEM_TIME)", place)?;
                refuse(*with_ordinality, "WITH ORDINALITY", place)?;
                refuse(!partitions.is_empty(), "PARTITION after a table", place)?;
                refuse(json_path.is_some(), "a JSON path after a table", place)?;
                refuse(sample.is_some(), "TABLESAMPLE", place)?;
                refuse(!index_hints.is_empty(), "an index hint", place)?;
                match args {
                    Some(args) => {
                        refuse(args.settings.is_some(), "SETTINGS of a table function", place)?;
                        self.table_function(name, &args.args, alias.as_ref(), around)
                    }
                    None => self.named(name, alias.as_ref(), around),
                }
            }
            TableFactor::Derived { lateral, subquery, alias, sample } => {
                refuse(sample.is_some(), "TABLESAMPLE", place)?;
                let bound = match surroundings(around, *lateral) {
                    Some(scope) => self.query(subquery, Some(&scope), around.env)?,
                    None => self.query(subquery, around.outer, around.env)?,
                };
                aliased(bound, alias.as_ref(), Vec::new())
            }
            TableFactor::Function { lateral: _, name, args, with_ordinality, alias } => {
                refuse(*with_ordinality, "WITH ORDINALITY", place)?;
                self.table_function(name, args, alias.as_ref(), around)
            }
            TableFactor::UNNEST {
                alias,
                array_exprs,
                with_offset,
                with_offset_alias,
                with_ordinality,
            } => {
                refuse(*with_offset || with_offset_alias.is_some(), "WITH OFFSET", place)?;
                refuse(*with_ordinality, "WITH ORDINALITY", place)?;
                self.unnest(array_exprs, alias.as_ref(), around)
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let tables = self.with_joins(table_with_joins, around)?;
                match alias {
                    None => Ok(tables),
                    Some(alias) => {
                        let shown = tables.columns.into_iter().filter(|column| !column.hidden);
                        let columns = shown.map(output).collect();
                        aliased(
                            Bound { relation: tables.relation, columns },
                            Some(alias),
                            Vec::new(),
                        )
                    }
                }
            }
            TableFactor::TableFunction { .. } => Err(refuse_at("TABLE(…) in FROM", factor)),
            TableFactor::JsonTable { .. } | TableFactor::OpenJsonTable { .. } => {
                Err(refuse_at("JSON_TABLE", factor))
            }
            TableFactor::Pivot { .. } => Err(refuse_at("PIVOT", factor)),
            TableFactor::Unpivot { .. } => Err(refuse_at("UNPIVOT", factor)),
            TableFactor::MatchRecognize { .. } => Err(refuse_at("MATCH_RECOGNIZE", factor)),
            TableFactor::XmlTable { .. } => Err(refuse_at("XMLTABLE", factor)),
            TableFactor::SemanticView { .. } => Err(refuse_at("SEMANTIC_VIEW", factor)),
        }
    }

    /// A common table expression, a view, or a table.
    fn named(
        &mut self,
        name: &ObjectName,
        alias: Option<&TableAlias>,
        around: Around<'_, '_>,
    ) -> Result<Tables> {
        let parts = idents(name)?;
        let place = name.span();
        let reference: Vec<String> = parts.iter().map(normalized).collect();
        let table =
            || reference.iter().map(|part| Arc::from(part.as_str())).collect::<Vec<Arc<str>>>();
        if let [only] = reference.as_slice() {
            match around.env.find(only) {
                Some(Meaning::Query(definition)) => {
                    let bound = self.defined(definition, around.outer)?;
                    return aliased(bound, alias, table());
                }
                Some(Meaning::Work(work)) => {
                    return aliased(self.work_table(&work), alias, table());
                }
                None => {}
            }
        }
        let names: Vec<&str> = reference.iter().map(String::as_str).collect();
        if let Some(text) = self.catalog.view(&names)? {
            let bound = self
                .view(&text)
                .map_err(|error| error.context(format!("in view {}", names.join("."))))?;
            return aliased(bound, alias, table());
        }
        match self.catalog.table(&names).map_err(|error| placed(error, place))? {
            Some(found) => {
                let bound = self.scan(found, reference.last().map_or("", String::as_str));
                aliased(bound, alias, table())
            }
            None => Err(placed(self.no_table(&parts), place)),
        }
    }

    fn no_table(&self, parts: &[Ident]) -> Error {
        let mut names = self.catalog.table_names();
        names.sort();
        let more = if names.len() > 12 { ", …" } else { "" };
        names.truncate(12);
        let known = match names.is_empty() {
            true => {
                "there are none; name a file in quotes ('data.parquet') or create an external table"
                    .to_string()
            }
            false => format!("there are {}{more}", names.join(", ")),
        };
        let name = parts.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join(".");
        Error::semantic(format!("there is no table {name}; {known}"))
            .with_state(SqlState::UNDEFINED_TABLE)
    }

    /// A table's columns.
    pub(super) fn scan(&mut self, table: Arc<Table>, name: &str) -> Bound {
        let (mut columns, mut outputs) = (Vec::new(), Vec::new());
        for (index, field) in table.tuple.fields().iter().enumerate() {
            // Collections are no values.
            let Some(atom) = field.atom() else { continue };
            let fresh = self.fields.fresh_column(name, &field.name, atom.clone());
            columns.push((fresh.clone(), index));
            outputs.push(Output {
                name: field.name.clone(),
                field: fresh,
                atom: atom.clone(),
                literal: None,
            });
        }
        Bound {
            relation: Relation::Scan { table, columns, predicates: Vec::new() },
            columns: outputs,
        }
    }

    fn view(&mut self, text: &str) -> Result<Bound> {
        if self.view_depth == VIEW_DEPTH_MAX {
            let message = format!(
                "views nested deeper than {VIEW_DEPTH_MAX} (VIEW_DEPTH_MAX); does one name itself?"
            );
            return Err(Error::new(Code::Limit, message));
        }
        let query: Box<Query> = crate::parse::query_of_view(text)?;
        self.view_depth += 1;
        let bound = self.query(&query, None, &Env::default());
        self.view_depth -= 1;
        // Its places are those of the view's text.
        bound.map_err(|error| error.without_span())
    }
}

fn output(column: Column) -> Output {
    Output { name: column.name, field: column.field, atom: column.atom, literal: None }
}

/// A query's columns as those of a table: under an alias, or a name of its own in parts.
pub(super) fn aliased(
    bound: Bound,
    alias: Option<&TableAlias>,
    name: Vec<Arc<str>>,
) -> Result<Tables> {
    let Bound { relation, mut columns } = bound;
    let table: Rc<[Arc<str>]> = match alias {
        Some(alias) => {
            check_alias(alias)?;
            columns = renamed(columns, alias)?;
            Rc::new([normalized(&alias.name).into()])
        }
        None => name.into(),
    };
    let column = |output: Output| Column {
        table: table.clone(),
        name: output.name,
        field: output.field,
        atom: output.atom,
        hidden: false,
        extended: false,
    };
    Ok(Tables { relation, columns: columns.into_iter().map(column).collect() })
}
