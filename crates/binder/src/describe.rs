//! DESCRIBE, SHOW and SUMMARIZE in queries, and LIMIT with a percentage or a subquery.
//!
//! Each becomes a query in SQL over an input that is bound before.

use std::fmt::Write;
use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast::{
    DescribeKind, DescribeQuery, DescribeSubject, Expr as Ast, SelectItem, SetExpr, Spanned,
    TableFactor, TableWithJoins,
};
use sqlparser::tokenizer::Span as TokenSpan;
use tessera_functions::duckdb_name;
use tessera_types::{Atom, Error, Result, SqlState, quote_text};

use super::cte::{Env, Meaning};
use super::factor::aliased;
use super::from::Tables;
use super::scope::{Column, Scope};
use super::{Binder, BoundQuery, Place, unsupported_at, with_span};

/// The name of the input in the queries in SQL. A user's name has no blank without quotes.
const INPUT: &str = "described input";

/// The name of the row with the values of LIMIT and OFFSET.
const COUNTS: &str = "limit and offset";

/// The rows of `SHOW TABLES`.
const TABLES: &str = "SELECT table_name AS name FROM information_schema.tables \
     WHERE table_schema NOT IN ('information_schema', 'pg_catalog') ORDER BY name";

/// The columns of SUMMARIZE after the name and the type, each with its type.
const SUMMARY: [(&str, &str); 10] = [
    ("min", "text"),
    ("max", "text"),
    ("approx_unique", "bigint"),
    ("avg", "text"),
    ("std", "text"),
    ("q25", "text"),
    ("q50", "text"),
    ("q75", "text"),
    ("count", "bigint"),
    ("null_percentage", "numeric(9, 2)"),
];

impl Binder<'_> {
    /// Binds DESCRIBE, SHOW or SUMMARIZE as a query.
    pub(super) fn describe_query(
        &mut self,
        describe: &DescribeQuery,
        outer: Option<&Scope<'_>>,
        env: &Env,
    ) -> Result<BoundQuery> {
        let DescribeQuery { token: _, kind, subject } = describe;
        let input = match subject {
            DescribeSubject::Tables => {
                return self.query(&*tessera_parser::query(TABLES)?, outer, env);
            }
            DescribeSubject::Query(query) => self.query(query, outer, env)?,
            DescribeSubject::Name(name) => {
                let at = |error: Error| with_span(error, name.span());
                self.query(&*tessera_parser::table_query(name)?, outer, env).map_err(at)?
            }
        };
        let names: Vec<Arc<str>> = input.columns.iter().map(|column| column.name.clone()).collect();
        let types: Vec<Atom> = input.columns.iter().map(|column| column.atom.clone()).collect();
        match kind {
            DescribeKind::Describe | DescribeKind::Show => {
                self.query(&*tessera_parser::query(&description(&names, &types))?, None, env)
            }
            DescribeKind::Summarize if names.is_empty() => {
                Err(unsupported_at("SUMMARIZE of a table without columns", describe))
            }
            DescribeKind::Summarize => self.over(input, &summary(&names, &types), env),
        }
    }

    /// Binds LIMIT with a percentage: that share of all tuples, rounded down, after the offset.
    pub(super) fn limited_to_percent(
        &mut self,
        bound: BoundQuery,
        percent: &Ast,
        offset: u64,
        env: &Env,
    ) -> Result<BoundQuery> {
        let number = self.constant_number(percent, "LIMIT")?;
        // NULL is no limit.
        let number = number.unwrap_or(100.0);
        if !(0.0..=100.0).contains(&number) {
            let message = format!("a percentage of LIMIT must be between 0 and 100, not {number}");
            let error = Error::semantic(message).with_state(SqlState::INVALID_ROW_COUNT_IN_LIMIT);
            return Err(with_span(error, percent.span()));
        }
        let columns = bound.columns.clone();
        let listed: Vec<String> = (1..=columns.len()).map(|at| format!("c{at}")).collect();
        let listed = listed.join(", ");
        let query = format!(
            "SELECT {listed} FROM (SELECT *, row_number() OVER () AS \"row\", count(*) OVER () AS \
             \"rows\" FROM \"{INPUT}\") AS numbered \
             WHERE \"row\" > {offset} AND \"row\" - {offset} <= \
             floor(\"rows\"::double precision * {number:?}::double precision / 100) \
             ORDER BY \"row\""
        );
        let mut limited = self.over(bound, &query, env)?;
        for (column, before) in limited.columns.iter_mut().zip(columns) {
            (column.name, column.literal) = (before.name, before.literal);
        }
        Ok(limited)
    }

    /// Binds LIMIT and OFFSET that are computed by subqueries, from the tables that `env` names. As
    /// in PostgreSQL, they are of type bigint, and NULL is no limit.
    pub(super) fn limited_to_values(
        &mut self,
        bound: BoundQuery,
        limit: Option<&Ast>,
        offset: Option<&Ast>,
        env: &Env,
    ) -> Result<BoundQuery> {
        for (written, clause) in [(limit, "LIMIT"), (offset, "OFFSET")] {
            let Some(written) = written else { continue };
            let (scope, mut steps) = (Scope::empty(None, env.clone()), Vec::new());
            let place = &mut Place { scope: &scope, steps: &mut steps, clause, unnests: None };
            let value = self.expr(written, place)?;
            self.as_count(value, clause).map_err(|error| with_span(error, written))?;
        }
        let checked = |name: &str, clause: &str| {
            format!(
                "CASE WHEN {name} < 0 THEN error('{clause} must not be negative, not ' || {name}) \
                 ELSE {name} END AS {name}"
            )
        };
        let text = format!(
            "SELECT {}, {} FROM (SELECT NULL::bigint AS \"limit\", 0::bigint AS \"offset\")",
            checked("\"limit\"", "LIMIT"),
            checked("\"offset\"", "OFFSET")
        );
        let mut counts = tessera_parser::query(&text)?;
        let written = [limit, offset];
        if let SetExpr::Select(outer) = &mut *counts.body
            && let [TableWithJoins { relation: TableFactor::Derived { subquery, .. }, .. }] =
                &mut outer.from[..]
            && let SetExpr::Select(inner) = &mut *subquery.body
        {
            for (item, written) in inner.projection.iter_mut().zip(written) {
                if let SelectItem::ExprWithAlias { expr: Ast::Cast { expr, .. }, .. } = item
                    && let Some(written) = written
                {
                    **expr = written.clone();
                }
            }
        }
        let place = written.into_iter().flatten().next().map_or(TokenSpan::empty(), Ast::span);
        let counts = self.query(&counts, None, env).map_err(|error| with_span(error, place))?;
        let counts = aliased(counts, None, vec![COUNTS.into()])?;
        let columns = bound.columns.clone();
        let listed: Vec<String> = (1..=columns.len()).map(|at| format!("c{at}")).collect();
        let query = format!(
            "SELECT {} FROM (SELECT *, row_number() OVER () AS \"row\" FROM \"{INPUT}\") AS \
             numbered, \"{COUNTS}\" WHERE \"row\" > coalesce(\"offset\", 0) AND \
             (\"limit\" IS NULL OR \"row\" - coalesce(\"offset\", 0) <= \"limit\") \
             ORDER BY \"row\"",
            listed.join(", ")
        );
        let env = env.with(COUNTS.to_string(), Meaning::Tables(Rc::new(counts)));
        let mut limited = self.over(bound, &query, &env)?;
        for (column, before) in limited.columns.iter_mut().zip(columns) {
            (column.name, column.literal) = (before.name, before.literal);
        }
        Ok(limited)
    }

    /// Binds a query in SQL over an input whose columns are called c1, c2, ….
    fn over(&mut self, input: BoundQuery, query: &str, env: &Env) -> Result<BoundQuery> {
        let table: Rc<[Arc<str>]> = Rc::new([INPUT.into()]);
        let columns = input.columns.into_iter().enumerate().map(|(at, column)| Column {
            table: table.clone(),
            name: format!("c{}", at + 1).into(),
            field: column.field,
            atom: column.atom,
            hidden: false,
            pseudo: false,
            extended: false,
        });
        let tables = Tables { columns: columns.collect(), relation: input.relation };
        let env = env.with(INPUT.to_string(), Meaning::Tables(Rc::new(tables)));
        self.query(&*tessera_parser::query(query)?, None, &env)
    }
}

/// Returns the query of the rows that describe columns.
fn description(names: &[Arc<str>], types: &[Atom]) -> String {
    let mut rows = String::new();
    for (name, atom) in names.iter().zip(types) {
        let comma = if rows.is_empty() { "" } else { ", " };
        let (name, atom) = (quote_text(name), quote_text(&duckdb_name(atom)));
        let _ = write!(rows, "{comma}({name}, {atom}, 'YES', NULL::text, NULL::text, NULL::text)");
    }
    let columns = "(column_name, column_type, \"null\", \"key\", \"default\", extra)";
    match rows.is_empty() {
        true => format!(
            "SELECT * FROM (VALUES ('', '', '', NULL::text, NULL::text, NULL::text)) AS d{columns} \
             WHERE false"
        ),
        false => format!("SELECT * FROM (VALUES {rows}) AS d{columns}"),
    }
}

/// Returns the query of SUMMARIZE over columns: one tuple of all aggregates, then a tuple for each
/// column.
fn summary(names: &[Arc<str>], types: &[Atom]) -> String {
    let mut aggregates = Vec::new();
    for (at, atom) in types.iter().enumerate() {
        let values = values_of(&format!("c{}", at + 1), atom);
        let named = values.into_iter().zip(SUMMARY);
        aggregates.extend(
            named.map(|(value, (name, atom))| format!("({value})::{atom} AS {name}_{}", at + 1)),
        );
    }
    let list = |of: &dyn Fn(usize) -> String| {
        let values: Vec<String> = (0..names.len()).map(of).collect();
        values.join(", ")
    };
    let mut items = vec![
        format!("unnest(ARRAY[{}]::text[]) AS column_name", list(&|at| quote_text(&names[at]))),
        format!(
            "unnest(ARRAY[{}]::text[]) AS column_type",
            list(&|at| quote_text(&duckdb_name(&types[at])))
        ),
    ];
    items.extend(SUMMARY.iter().map(|(name, _)| {
        format!("unnest(ARRAY[{}]) AS \"{name}\"", list(&|at| format!("{name}_{}", at + 1)))
    }));
    let (items, aggregates) = (items.join(", "), aggregates.join(", "));
    format!("SELECT {items} FROM (SELECT {aggregates} FROM \"{INPUT}\") AS summarized")
}

/// Returns the aggregates of a column in the order of [`SUMMARY`].
fn values_of(column: &str, atom: &Atom) -> [String; 10] {
    let is_number = atom.is_numeric();
    // Types without an order by value are ordered by their text.
    let ordered = match atom.is_nested() || *atom == Atom::Boolean {
        true => format!("{column}::text"),
        false => column.to_string(),
    };
    let number = format!("{column}::double precision");
    let is_moment = matches!(atom, Atom::Date | Atom::Timestamp(..));
    let or_null = |is_known: bool, value: String| if is_known { value } else { "NULL".to_string() };
    let quantile = |at: &str| {
        let value = format!("approx_quantile({number}, {at})");
        let middle = format!("percentile_cont({at}) WITHIN GROUP (ORDER BY {column})");
        or_null(
            is_number || is_moment,
            match atom {
                Atom::Date => format!("({middle})::date::text"),
                Atom::Timestamp(..) => format!("({middle})::text"),
                atom if atom.is_integer() => format!("round({value})::numeric(38, 0)::text"),
                Atom::Decimal(precision, scale) => {
                    format!("{value}::numeric({precision}, {scale})::text")
                }
                _ => format!("{value}::text"),
            },
        )
    };
    [
        format!("min({ordered})::text"),
        format!("max({ordered})::text"),
        format!("approx_count_distinct({ordered})"),
        or_null(
            is_number || is_moment,
            format!("avg({})::text", if is_moment { column } else { &number }),
        ),
        or_null(is_number, format!("stddev({number})::text")),
        quantile("0.25"),
        quantile("0.5"),
        quantile("0.75"),
        "count(*)".to_string(),
        format!("100.0 * (count(*) - count({column})) / nullif(count(*), 0)"),
    ]
}
