//! Planning of PREPARE, EXECUTE and SET VARIABLE.

use std::collections::BTreeMap;

use sqlparser::ast::{Expr as Ast, FunctionArg, FunctionArgExpr};
use tessera_binder::{Constant, Inference, Mode, Parameters, PlanContext, Prepared};
use tessera_parser::{Execute, Prepare, normalized, select};
use tessera_types::{Atom, Error, Result, SqlState};

use crate::statement::{Statement, plan_kind};

/// The states of unknown names, which no value of a parameter makes known.
const UNKNOWN: [SqlState; 2] = [SqlState::UNDEFINED_COLUMN, SqlState::UNDEFINED_TABLE];

/// Plans `PREPARE`: binds the statement to find the types of its parameters.
pub(crate) fn plan_prepare(prepare: &Prepare, context: &PlanContext<'_>) -> Result<Statement> {
    let Prepare { name, types, statement } = prepare;
    let types = types.iter().map(|of| context.type_of(of)).collect::<Result<Vec<_>>>()?;
    let mut names = statement.parameters();
    // A declared parameter counts, also where the statement does not read it.
    for position in (1..=types.len()).map(|at| at.to_string()) {
        if !names.contains(&position) {
            names.push(position);
        }
    }
    let inference = Inference::declared(types);
    // As in DuckDB, named parameters have the types of their values.
    let has_names = names.iter().any(|name| name.parse::<u64>().is_err());
    inference.needs_values.set(has_names);
    let planned = plan_kind(statement, &context.in_mode(Mode::Inferred(&inference)));
    if let Err(error) = planned
        && (!inference.needs_values.get() || UNKNOWN.contains(&error.sql_state()))
    {
        return Err(error);
    }
    let mut types = inference.into_types(&names)?;
    let parameters = names.into_iter().map(|name| {
        let atom = types.remove(&name).flatten().filter(|_| !has_names);
        (name, atom)
    });
    let prepared = Prepared { statement: (**statement).clone(), parameters: parameters.collect() };
    Ok(Statement::Prepare { name: normalized(name), prepared: Box::new(prepared) })
}

/// Plans `EXECUTE` as the statement that it runs.
pub(crate) fn plan_execute(execute: &Execute, context: &PlanContext<'_>) -> Result<Statement> {
    let Execute { name, args } = execute;
    let prepared = context.environment.definitions.prepared(&normalized(name))?;
    let types: BTreeMap<&str, Option<&Atom>> =
        prepared.parameters.iter().map(|(name, atom)| (name.as_str(), atom.as_ref())).collect();
    let mut values = Vec::with_capacity(args.len());
    for (at, arg) in args.iter().enumerate() {
        let (name, value) = match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => ((at + 1).to_string(), value),
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                (name.value.to_lowercase(), value)
            }
            other => {
                let message = format!("EXECUTE takes values, not {other}");
                return Err(Error::semantic(message).with_state(SqlState::SYNTAX_ERROR));
            }
        };
        if values.iter().any(|(known, _)| *known == name) {
            let message = format!("parameter ${name} gets two values");
            return Err(Error::semantic(message).with_state(SqlState::SYNTAX_ERROR));
        }
        values.push((name, value));
    }
    let of = format!("prepared statement {}", name.value);
    let names: Vec<String> = prepared.parameters.iter().map(|(name, _)| name.clone()).collect();
    let given = |name: &String| (name.clone(), Constant::null());
    Parameters::named(values.iter().map(|(name, _)| given(name))).check(&names, &of)?;
    let mut bound = Vec::with_capacity(values.len());
    for (name, value) in values {
        let atom = types.get(name.as_str()).copied().flatten();
        bound.push((name.clone(), context.parameter_value(&name, value, atom)?));
    }
    let parameters = Parameters::named(bound);
    // Positions in the prepared text mean nothing in this one.
    plan_kind(&prepared.statement, &context.in_mode(Mode::Given(&parameters)))
        .map_err(Error::without_span)
}

/// Plans `SET VARIABLE`: a query gives the value.
pub(crate) fn plan_set_variable(
    name: &str,
    value: &Ast,
    context: &PlanContext<'_>,
) -> Result<Statement> {
    let query = context.query(&*select(value.clone())?)?;
    Ok(Statement::SetVariable { name: name.to_string(), query: Box::new(query) })
}
