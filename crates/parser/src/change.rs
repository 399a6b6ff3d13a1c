//! Statements that change tables, which are not supported yet.

use sqlparser::ast::{FromTable, Statement, TableFactor, TableWithJoins};
use tessera_types::Error;

/// Returns the error of INSERT, UPDATE, DELETE, MERGE and TRUNCATE; `None` for other statements.
pub fn unsupported_change(statement: &Statement) -> Option<Error> {
    let (verb, table) = match statement {
        Statement::Insert(insert) => ("INSERT", Some(insert.table.to_string())),
        Statement::Update(update) => ("UPDATE", name(&update.table)),
        Statement::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            ("DELETE", from.first().and_then(name))
        }
        Statement::Merge(merge) => ("MERGE", factor_name(&merge.table)),
        Statement::Truncate(truncate) => {
            ("TRUNCATE", truncate.table_names.first().map(|table| table.name.to_string()))
        }
        _ => return None,
    };
    let table = table.unwrap_or_else(|| "t".to_string());
    Some(Error::unsupported(format!(
        "{verb} is not supported: tables cannot be changed yet; write CREATE OR REPLACE TABLE \
         {table} AS SELECT … with all rows that {table} shall have"
    )))
}

fn name(table: &TableWithJoins) -> Option<String> {
    factor_name(&table.relation)
}

fn factor_name(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table { name, .. } => Some(name.to_string()),
        _ => None,
    }
}
