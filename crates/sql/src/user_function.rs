//! Functions of users: how they are created and dropped.

use sqlparser::ast::{
    CreateFunction as ParsedFunction, CreateFunctionBody, DropFunction, Expr as SqlExpr,
    FunctionBehavior, FunctionCalledOnNull, FunctionReturnType, OperateFunctionArg, Value,
};
use tessera_types::{Atom, Error, Result};

use crate::statement::{Statement, parts};

/// The language of the functions that there are.
const LANGUAGE: &str = "llvm";

/// `CREATE FUNCTION name([arg] type, …) RETURNS type LANGUAGE llvm [IMMUTABLE | STABLE | VOLATILE]
/// [STRICT] AS 'module'`.
#[derive(Debug, Clone)]
pub struct CreateFunction {
    /// The name.
    pub name: String,
    /// The types of its arguments.
    pub args: Vec<Atom>,
    /// The type of its value.
    pub result: Atom,
    /// The text of its module.
    pub ir: String,
    /// Whether two calls with the same arguments may give different values.
    pub volatile: bool,
    /// Replace a function of that name.
    pub or_replace: bool,
}

/// What `CREATE FUNCTION` asks for.
pub(crate) fn create(create: &ParsedFunction) -> Result<Statement> {
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
    if language.as_deref() != Some(LANGUAGE) {
        return refuse(
            "there are functions in LLVM IR; say LANGUAGE llvm, and AS 'the text of a module'",
        );
    }
    if *called_on_null == Some(FunctionCalledOnNull::CalledOnNullInput) {
        return refuse(
            "in LLVM IR there are no NULLs, and functions are not called for them; leave CALLED ON NULL INPUT out",
        );
    }
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
    let Some(CreateFunctionBody::AsBeforeOptions { body, link_symbol: None }) = function_body
    else {
        return refuse("say AS 'the text of a module', which defines a function of this name");
    };
    let ir = match body {
        SqlExpr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => text.clone(),
            Value::DollarQuotedString(text) => text.value.clone(),
            _ => return refuse("a module is a string"),
        },
        _ => return refuse("a module is a string"),
    };
    let Some(FunctionReturnType::DataType(result)) = return_type else {
        return refuse("say RETURNS and the type of its value");
    };
    Ok(Statement::CreateFunction(Box::new(CreateFunction {
        args: types(args.as_deref().unwrap_or_default())?,
        result: crate::bind::atom_of_type(result)?,
        ir,
        // As in PostgreSQL, where nothing is said.
        volatile: matches!(behavior, None | Some(FunctionBehavior::Volatile)),
        or_replace: *or_replace,
        name,
    })))
}

/// What `DROP FUNCTION` asks for.
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
            Err(Error::unsupported(format!("a function in a schema; name it {last}")))
        }
    }
}

fn types(args: &[OperateFunctionArg]) -> Result<Vec<Atom>> {
    let one = |arg: &OperateFunctionArg| match arg {
        OperateFunctionArg { mode: None, default_expr: None, data_type, .. } => {
            crate::bind::atom_of_type(data_type)
        }
        other => {
            Err(Error::unsupported(format!("the argument {other}: there are names and types")))
        }
    };
    args.iter().map(one).collect()
}
