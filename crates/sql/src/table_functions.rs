//! Functions in FROM that yield a row for each element of a list: `FROM generate_series(1, 10)` is planned as
//! `FROM unnest(generate_series(1, 10))`. As in PostgreSQL, the relation and its column are called as the alias says, else as the
//! function.

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    TableAlias, TableAliasColumnDef, TableFactor,
};

use crate::check::normalised;

const UNNEST: &str = "unnest";
/// Functions of which each row has a list.
const SERIES: [&str; 2] = ["generate_series", "range"];

/// Turns such a function into what the planner knows.
pub(crate) fn unnest(factor: &mut TableFactor) {
    if let TableFactor::Function { name, args, alias, .. } = factor
        && is_named(name, UNNEST)
        && let Some(array_exprs) = exprs(args)
    {
        let alias = alias.take();
        *factor = TableFactor::UNNEST {
            alias,
            array_exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: false,
        };
    }
    let (name, args, alias) = match factor {
        TableFactor::Table { name, args: Some(args), alias, .. } => (name, &args.args, alias),
        TableFactor::Function { name, args, alias, .. } => (name, &*args, alias),
        TableFactor::UNNEST { array_exprs, alias, .. } if array_exprs.len() == 1 => {
            name_column(alias, &Ident::new("unnest"));
            return;
        }
        _ => return,
    };
    let Some(series) = series(name) else { return };
    let (list, mut alias) = (call(name.clone(), args.clone()), alias.take());
    name_column(&mut alias, &series);
    *factor = TableFactor::UNNEST {
        alias,
        array_exprs: vec![list],
        with_offset: false,
        with_offset_alias: None,
        with_ordinality: false,
    };
}

fn is_named(name: &ObjectName, wanted: &str) -> bool {
    let [part] = name.0.as_slice() else { return false };
    part.as_ident().is_some_and(|ident| normalised(ident) == wanted)
}

/// Arguments without names.
fn exprs(args: &[FunctionArg]) -> Option<Vec<Expr>> {
    let expr = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    args.iter().map(expr).collect()
}

/// The name of a function that gives a list.
fn series(name: &ObjectName) -> Option<Ident> {
    let [part] = name.0.as_slice() else { return None };
    let ident = part.as_ident()?;
    SERIES.contains(&normalised(ident).as_str()).then(|| ident.clone())
}

/// A call of a function, with nothing besides its arguments.
pub(crate) fn call(name: ObjectName, args: Vec<FunctionArg>) -> Expr {
    let args = FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() };
    Expr::Function(Function {
        name,
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(args),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// Names the only column like the relation, and that like the function, where nobody has named them.
fn name_column(alias: &mut Option<TableAlias>, function: &Ident) {
    let new = || TableAlias { explicit: true, name: function.clone(), columns: Vec::new(), at: None };
    let alias = alias.get_or_insert_with(new);
    if alias.columns.is_empty() {
        alias.columns = vec![TableAliasColumnDef { name: alias.name.clone(), data_type: None }];
    }
}
