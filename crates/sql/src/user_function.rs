//! Creating and dropping user-defined functions.

use sqlparser::ast::{
    CreateFunction as ParsedFunction, CreateFunctionBody, DropFunction, Expr as SqlExpr,
    FunctionBehavior, FunctionCalledOnNull, FunctionReturnType, OperateFunctionArg, Value,
};
use tessera_binder::PlanContext;
use tessera_parser::{atom_of_type, no_types};
use tessera_types::{Atom, Error, Result, SqlState};

use crate::statement::{Statement, parts};

/// The language of functions in machine code.
const LANGUAGE: &str = "llvm";

/// `CREATE FUNCTION name([arg] type, …) RETURNS type LANGUAGE llvm [IMMUTABLE | STABLE | VOLATILE]
/// [STRICT] AS 'module'`.
#[derive(Debug, Clone)]
pub struct CreateFunction {
    /// The name of the function.
    pub name: String,
    /// The argument types.
    pub args: Vec<Atom>,
    /// The result type.
    pub result: Atom,
    /// The LLVM IR of its module.
    pub ir: String,
    /// Whether calls with equal arguments may return different values.
    pub volatile: bool,
    /// Whether to replace an existing function.
    pub or_replace: bool,
}

/// Plans `CREATE FUNCTION`.
pub(crate) fn create(create: &ParsedFunction, context: &PlanContext<'_>) -> Result<Statement> {
    let ParsedFunction {
        or_alter,
        or_replace,
        temporary,
        if_not_exists,
        name,
        args,
        return_type,
        function_body,
        behavior,
        called_on_null,
        parallel,
        security,
        set_params,
        using,
        language,
        determinism_specifier,
        options,
        remote_connection,
    } = create;
    let name = single(parts(name)?)?;
    let refuse = |what: &str| Err(Error::unsupported(format!("CREATE FUNCTION {name}: {what}")));
    let language = language.as_ref().map(|language| language.value.to_ascii_lowercase());
    crate::definition::refuse(
        "CREATE FUNCTION",
        &[
            ("OR ALTER", *or_alter),
            ("TEMPORARY", *temporary),
            ("IF NOT EXISTS", *if_not_exists),
            ("PARALLEL", parallel.is_some()),
            ("SECURITY", security.is_some()),
            ("SET", !set_params.is_empty()),
            ("USING", using.is_some()),
            ("DETERMINISTIC", determinism_specifier.is_some()),
            ("OPTIONS", options.is_some()),
            ("REMOTE WITH CONNECTION", remote_connection.is_some()),
        ],
    )?;
    let is_return = matches!(function_body, Some(CreateFunctionBody::Return(_)));
    if language.as_deref() == Some("sql") || language.is_none() && is_return {
        return crate::macro_definition::sql_function(&name, create, context);
    }
    if language.as_deref() != Some(LANGUAGE) {
        return refuse("the language must be sql or llvm; write LANGUAGE sql AS 'SELECT …'")
            .map_err(|error| error.with_state(SqlState::UNDEFINED_OBJECT));
    }
    if *called_on_null == Some(FunctionCalledOnNull::CalledOnNullInput) {
        return refuse(
            "functions in LLVM IR are not called for NULL arguments; remove CALLED ON NULL INPUT",
        );
    }
    let Some(CreateFunctionBody::AsBeforeOptions { body, link_symbol: None }) = function_body
    else {
        return refuse(
            "the body is missing; write AS 'the text of a module', which defines a function with this name",
        );
    };
    let ir = match body {
        SqlExpr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => text.clone(),
            Value::DollarQuotedString(text) => text.value.clone(),
            _ => return refuse("the module must be a string"),
        },
        _ => return refuse("the module must be a string"),
    };
    let Some(FunctionReturnType::DataType(result)) = return_type else {
        return refuse("the result type is missing; write RETURNS and a type");
    };
    Ok(Statement::CreateFunction(Box::new(CreateFunction {
        args: types(args.as_deref().unwrap_or_default())?,
        result: atom_of_type(result, &no_types)?,
        ir,
        // As in PostgreSQL, functions are volatile by default.
        volatile: matches!(behavior, None | Some(FunctionBehavior::Volatile)),
        or_replace: *or_replace,
        name,
    })))
}

/// Plans `DROP FUNCTION`.
pub(crate) fn drop_functions(dropped: &DropFunction) -> Result<Statement> {
    let one = |described: &sqlparser::ast::FunctionDesc| {
        let args = described.args.as_deref().map(types).transpose()?;
        Ok((single(parts(&described.name)?)?, args))
    };
    let DropFunction { if_exists, func_desc, drop_behavior } = dropped;
    let cascade = *drop_behavior == Some(sqlparser::ast::DropBehavior::Cascade);
    crate::definition::refuse("DROP FUNCTION", &[("CASCADE", cascade)])?;
    let functions = func_desc.iter().map(one).collect::<Result<_>>()?;
    Ok(Statement::DropFunctions { functions, if_exists: *if_exists })
}

fn single(name: Vec<String>) -> Result<String> {
    match &name[..] {
        [only] => Ok(only.clone()),
        parts => {
            let last = parts.last().map_or("", String::as_str);
            Err(Error::unsupported(format!(
                "a function in a schema is not supported; name it {last}"
            )))
        }
    }
}

fn types(args: &[OperateFunctionArg]) -> Result<Vec<Atom>> {
    let one = |arg: &OperateFunctionArg| match arg {
        OperateFunctionArg { mode: None, default_expr: None, data_type, .. } => {
            atom_of_type(data_type, &no_types)
        }
        other => Err(Error::unsupported(format!(
            "argument {other} is not supported; write a name and a type"
        ))),
    };
    args.iter().map(one).collect()
}
