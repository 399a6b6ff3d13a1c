//! Planning of `CREATE EXTERNAL TABLE`.

use sqlparser::ast::{ColumnDef, ColumnOption, Ident};
use tessera_parser::ExternalTable;
use tessera_types::{Error, Field, Result};

use crate::statement::{CreateExternalTable, parts};

/// Plans the statement.
///
/// # Errors
/// A clause or a column type is not supported.
pub(crate) fn plan(create: &ExternalTable) -> Result<CreateExternalTable> {
    if create.has_unsupported {
        return Err(Error::unsupported(
            "CREATE EXTERNAL TABLE with UNBOUNDED, TEMPORARY, WITH ORDER or constraints is not supported",
        ));
    }
    let columns = create.columns.iter().map(field).collect::<Result<Vec<_>>>()?;
    let option = |(name, value): &(String, String)| {
        let name = name.to_ascii_lowercase();
        (name.strip_prefix("format.").unwrap_or(&name).to_string(), value.clone())
    };
    Ok(CreateExternalTable {
        name: parts(&create.name)?,
        columns: (!columns.is_empty()).then_some(columns),
        format: create.format.to_ascii_lowercase(),
        locations: create.locations.clone(),
        partitions: create.partitions.iter().map(name).collect(),
        options: create.options.iter().map(option).collect(),
        if_not_exists: create.if_not_exists,
        or_replace: create.or_replace,
    })
}

fn field(column: &ColumnDef) -> Result<Field> {
    let mut nullable = true;
    for option in &column.options {
        match &option.option {
            ColumnOption::NotNull => nullable = false,
            ColumnOption::Null => {}
            other => {
                return Err(Error::unsupported(format!(
                    "the column option {other} is not supported"
                )));
            }
        }
    }
    let atom = tessera_parser::atom_of_type(&column.data_type, &tessera_parser::no_types)?;
    Ok(Field::nullable(name(&column.name), atom).with_nullable(nullable))
}

fn name(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use tessera_parser::{StatementKind, parse};
    use tessera_types::{Atom, SqlState};

    use super::*;

    fn plan_sql(sql: &str) -> Result<CreateExternalTable> {
        let statements = parse(sql)?;
        match statements.first().map(|statement| &statement.kind) {
            Some(StatementKind::CreateExternalTable(create)) => plan(create),
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn clauses_stand_in_any_order() {
        let created = plan_sql(
            "create or replace external table a.\"B\" (X int not null, \"Y\" text) location 'p' \
             options (format.delimiter ';', 'HEADER' true, skip 2, quote E'\\'') \
             partitioned by (Year, \"Month\" int) stored as CSV;",
        )
        .unwrap();
        let text = |text: &str| text.to_string();
        assert_eq!((created.name, created.format), (vec![text("a"), text("B")], text("csv")));
        let columns = vec![
            Field::nullable("x", Atom::Int32).with_nullable(false),
            Field::nullable("Y", Atom::String),
            Field::nullable("Month", Atom::Int32),
        ];
        assert_eq!(created.columns, Some(columns));
        assert_eq!(
            (created.locations, created.partitions),
            (vec![text("p")], vec![text("year"), text("Month")])
        );
        let options = [("delimiter", ";"), ("header", "true"), ("skip", "2"), ("quote", "'")];
        assert_eq!(created.options, options.map(|(name, value)| (text(name), text(value))));
        assert!(created.or_replace && !created.if_not_exists);
        let created =
            plan_sql("create external table if not exists t stored as json location ('p', 'q',)")
                .unwrap();
        assert_eq!((created.columns, created.locations), (None, vec![text("p"), text("q")]));
        assert!(created.if_not_exists && !created.or_replace);
    }

    #[test]
    fn what_it_is_not_is_an_error() {
        for (sql, message) in [
            ("stored as csv", "Missing LOCATION clause"),
            ("location 'p'", "Missing STORED AS clause"),
            ("stored as csv location ()", "LOCATION requires at least one path"),
            ("stored as csv location 'p' stored as csv", "STORED AS specified more than once"),
            ("stored as csv location 'p' location 'p'", "LOCATION specified more than once"),
            ("options (a 1) options (a 1)", "OPTIONS specified more than once"),
            ("stored as 'csv' location 'p'", "expected one of PARQUET"),
            (
                "stored as csv location 'p' delimiter ','",
                "expected end of statement or ;, found delimiter",
            ),
            ("(a int b) stored as csv location 'p'", "',' or ')' after column definition, found b"),
            ("stored as csv options (a) location 'p'", "string or numeric value, found )"),
            (
                "stored as csv options (a 1 b 2) location 'p'",
                "',' or ')' after option definition, found b",
            ),
            ("partitioned by (1) stored as csv location 'p'", "expected a name, found 1"),
        ] {
            let error = plan_sql(&format!("create external table t {sql}")).unwrap_err();
            assert_eq!(error.sql_state(), SqlState::SYNTAX_ERROR, "{sql}: {error}");
            assert!(
                error.message().to_lowercase().contains(&message.to_lowercase()),
                "{sql}: {error}"
            );
        }
        assert!(
            plan_sql("create or replace external table if not exists t stored as csv location 'p'")
                .is_err()
        );
    }

    #[test]
    fn more_is_not_offered() {
        for sql in [
            "create unbounded external table t stored as csv location 'p'",
            "create or replace unbounded external table t stored as csv location 'p'",
            "create external temporary table t stored as csv location 'p'",
            "create external table t (a int) stored as csv with order (a desc nulls last) location 'p'",
            "create external table t (a int, primary key (a)) stored as csv location 'p'",
            "create external table t (a int primary key) stored as csv location 'p'",
        ] {
            let error = plan_sql(sql).unwrap_err();
            assert_eq!(error.sql_state(), SqlState::FEATURE_NOT_SUPPORTED, "{sql}: {error}");
        }
    }
}
