//! `CREATE FUNCTION` and `DROP FUNCTION`.

use tessera_functions::{Library, UserFunction};
use tessera_sql::CreateFunction;
use tessera_types::{Atom, Error, Result, SqlState, did_you_mean};

/// Compiles a function and adds it to the library of a session.
///
/// # Errors
/// The code is invalid, or a function of this name exists and is not replaced.
pub(crate) fn create(library: &Library, create: &CreateFunction) -> Result<()> {
    let CreateFunction { name, args, result, .. } = create;
    let code = UserFunction::code(name, &create.ir, args, result)?;
    let compiled = tessera_jit::function(code)?;
    let types = (args.clone(), result.clone());
    library.define(UserFunction::new(types, create.volatile, compiled), create.or_replace)
}

/// Drops functions: all of them, or none on an error.
///
/// # Errors
/// A function does not exist.
pub(crate) fn drop(
    library: &Library,
    functions: &[(String, Option<Vec<Atom>>)],
    if_exists: bool,
) -> Result<()> {
    let is_there = |(name, args): &&(String, Option<Vec<Atom>>)| {
        library
            .user_function(name)
            .is_some_and(|function| args.as_ref().is_none_or(|args| function.types().0 == args))
    };
    let (found, missing): (Vec<_>, Vec<_>) = functions.iter().partition(is_there);
    if let (Some((name, _)), false) = (missing.first(), if_exists) {
        let known = library.user_functions();
        let hint = did_you_mean(name, known.iter().map(|function| &**function.name()));
        return Err(Error::semantic(format!(
            "unknown function {name}{hint}; DROP FUNCTION IF EXISTS ignores it"
        ))
        .with_state(SqlState::UNDEFINED_FUNCTION));
    }
    for (name, _) in found {
        library.remove(name);
    }
    Ok(())
}
