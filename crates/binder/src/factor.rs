//! Table factors of FROM: named tables, subqueries, functions, and joins in parentheses.

use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast::{Ident, NullInclusion, ObjectName, Query, Spanned, TableAlias, TableFactor};
use tessera_types::{Code, Error, Result, SqlState, suggest};

use super::cte::{Env, Meaning, check_alias, renamed};
use super::from::{FromContext, Tables, lateral_scope};
use super::list::idents;
use super::pivot::{Pivot, PivotOn};
use super::scope::{Column, OutputColumn, shown};
use super::{Binder, BoundQuery, normalized, refuse, row_numbers, unsupported_at, with_span};

/// The maximum nesting depth of views.
const VIEW_DEPTH_MAX: usize = 32;

impl Binder<'_> {
    pub(super) fn table_factor(
        &mut self,
        factor: &TableFactor,
        context: FromContext<'_, '_>,
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
                let has_function = args.is_some();
                refuse(*with_ordinality && !has_function, "WITH ORDINALITY of a table", place)?;
                refuse(!partitions.is_empty(), "PARTITION after a table", place)?;
                refuse(json_path.is_some(), "a JSON path after a table", place)?;
                refuse(!index_hints.is_empty(), "an index hint", place)?;
                let mut tables = match args {
                    Some(args) => {
                        refuse(args.settings.is_some(), "SETTINGS of a table function", place)?;
                        let alias = alias.as_ref();
                        self.table_function((name, &args.args), alias, *with_ordinality, context)?
                    }
                    None => self.named(name, alias.as_ref(), context)?,
                };
                tables.relation = self.table_sample(tables.relation, sample.as_ref(), place)?;
                Ok(tables)
            }
            TableFactor::Derived { lateral, subquery, alias, sample } => {
                let mut bound = match lateral_scope(context, *lateral) {
                    Some(scope) => self.query(subquery, Some(&scope), context.env)?,
                    None => self.query(subquery, context.outer, context.env)?,
                };
                bound.relation = self.table_sample(bound.relation, sample.as_ref(), place)?;
                aliased(bound, alias.as_ref(), Vec::new())
            }
            TableFactor::Function { lateral: _, name, args, with_ordinality, alias } => {
                self.table_function((name, args), alias.as_ref(), *with_ordinality, context)
            }
            TableFactor::UNNEST {
                alias,
                array_exprs,
                with_offset,
                with_offset_alias,
                with_ordinality,
            } => {
                refuse(*with_offset || with_offset_alias.is_some(), "WITH OFFSET", place)?;
                self.unnest(array_exprs, alias.as_ref(), *with_ordinality, context)
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let tables = self.with_joins(table_with_joins, context)?;
                match alias {
                    None => Ok(tables),
                    Some(alias) => {
                        let shown = tables.columns.into_iter().filter(|column| !column.hidden);
                        let columns = shown.map(output).collect();
                        aliased(
                            BoundQuery { relation: tables.relation, columns },
                            Some(alias),
                            Vec::new(),
                        )
                    }
                }
            }
            TableFactor::TableFunction { .. } => Err(unsupported_at("TABLE(…) in FROM", factor)),
            TableFactor::JsonTable { .. } | TableFactor::OpenJsonTable { .. } => {
                Err(unsupported_at("JSON_TABLE", factor))
            }
            TableFactor::Pivot {
                table,
                aggregate_functions,
                value_column,
                value_source,
                default_on_null,
                alias,
            } => {
                refuse(default_on_null.is_some(), "DEFAULT ON NULL of PIVOT", place)?;
                let tables = self.factor(table, context)?;
                let exprs: Vec<_> = value_column.iter().collect();
                let first = exprs.first().map(|expr| expr.span());
                let pivot = Pivot {
                    on: vec![PivotOn { exprs, values: Some(value_source) }],
                    aggregates: aggregate_functions,
                    group_by: &[],
                    place: first.unwrap_or_else(|| place.span()),
                };
                aliased(self.pivot(tables, &pivot, context)?, alias.as_ref(), Vec::new())
            }
            TableFactor::Unpivot { table, value, name, columns, null_inclusion, alias } => {
                let tables = self.factor(table, context)?;
                let include_nulls = matches!(null_inclusion, Some(NullInclusion::IncludeNulls));
                let bound =
                    self.unpivot_factor(tables, (value, name), columns, (include_nulls, context))?;
                aliased(bound, alias.as_ref(), Vec::new())
            }
            TableFactor::MatchRecognize { .. } => Err(unsupported_at("MATCH_RECOGNIZE", factor)),
            TableFactor::XmlTable { .. } => Err(unsupported_at("XMLTABLE", factor)),
            TableFactor::SemanticView { .. } => Err(unsupported_at("SEMANTIC_VIEW", factor)),
        }
    }

    /// Binds a name in FROM: a common table expression, a view or a table.
    fn named(
        &mut self,
        name: &ObjectName,
        alias: Option<&TableAlias>,
        context: FromContext<'_, '_>,
    ) -> Result<Tables> {
        let parts = idents(name)?;
        let place = name.span();
        let reference: Vec<String> = parts.iter().map(normalized).collect();
        let table =
            || reference.iter().map(|part| Arc::from(part.as_str())).collect::<Vec<Arc<str>>>();
        if let [only] = reference.as_slice() {
            match context.env.find(only) {
                Some(Meaning::Query(definition)) => {
                    let bound = self.defined(definition, context.outer)?;
                    return aliased(bound, alias, table());
                }
                Some(Meaning::WorkTable(work)) => {
                    return aliased(self.work_table(&work)?, alias, table());
                }
                Some(Meaning::Tables(tables)) => return Ok((*tables).clone()),
                None => {}
            }
        }
        let names: Vec<&str> = reference.iter().map(String::as_str).collect();
        if let Some(bound) = self.system_relation(&names)? {
            return aliased(bound, alias, table());
        }
        if let Some(text) = self.catalog.view(&names)? {
            let bound = self
                .view(&text)
                .map_err(|error| error.context(format!("in view {}", names.join("."))))?;
            return aliased(bound, alias, table());
        }
        match self.catalog.table(&names).map_err(|error| with_span(error, place))? {
            Some(found) => {
                let name = reference.last().map_or("", String::as_str);
                self.scanned(found, name, alias, table())
            }
            None => Err(with_span(self.no_table(&parts, context.env), place)),
        }
    }

    /// Returns the error for an unknown table, with the nearest name and the known tables.
    fn no_table(&self, parts: &[Ident], env: &Env) -> Error {
        let mut names = self.catalog.table_names();
        names.extend(env.names());
        names.sort();
        names.dedup();
        let name = parts.last().map_or("", |part| part.value.as_str());
        let hint = match names.is_empty() {
            true => {
                "; no tables are defined; name a file in quotes ('data.parquet') or create an external table"
                    .to_string()
            }
            false => suggest(name, "known tables are", &names),
        };
        Error::semantic(format!("unknown table '{}'{hint}", shown(parts)))
            .with_state(SqlState::UNDEFINED_TABLE)
    }

    pub(super) fn view(&mut self, text: &str) -> Result<BoundQuery> {
        if self.view_depth == VIEW_DEPTH_MAX {
            let message = format!(
                "views are nested deeper than {VIEW_DEPTH_MAX} levels (VIEW_DEPTH_MAX); check for a view that reads itself"
            );
            return Err(Error::new(Code::Limit, message));
        }
        let query: Box<Query> = tessera_parser::query_of_view(text)?;
        self.reads_row_numbers |= row_numbers::are_read(&query);
        self.view_depth += 1;
        let bound = self.query(&query, None, &Env::default());
        self.view_depth -= 1;
        // Positions in the view's text mean nothing in the statement.
        bound.map_err(|error| error.without_span())
    }
}

fn output(column: Column) -> OutputColumn {
    OutputColumn { name: column.name, field: column.field, atom: column.atom, literal: None }
}

/// Turns a query's columns into a table's columns, under an alias or the table's own name.
pub(super) fn aliased(
    bound: BoundQuery,
    alias: Option<&TableAlias>,
    name: Vec<Arc<str>>,
) -> Result<Tables> {
    let BoundQuery { relation, mut columns } = bound;
    let table: Rc<[Arc<str>]> = match alias {
        Some(alias) => {
            check_alias(alias)?;
            columns = renamed(columns, alias)?;
            Rc::new([normalized(&alias.name).into()])
        }
        None => name.into(),
    };
    let column = |output: OutputColumn| Column {
        table: table.clone(),
        name: output.name,
        field: output.field,
        atom: output.atom,
        hidden: false,
        pseudo: false,
        extended: false,
    };
    Ok(Tables { relation, columns: columns.into_iter().map(column).collect() })
}
