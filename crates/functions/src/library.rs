//! The function library.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion_common::config::ConfigOptions;
use datafusion_expr::{AggregateUDF, ScalarUDF, Volatility};
use parking_lot::RwLock;

use tessera_codegen::{Comparison, Operation};
use tessera_context::interrupt::check_here;
use tessera_plan::{Expr, Functions, Scalar};
use tessera_types::{Atom, Error, Result, SqlState};

use super::arithmetic::{resolve_binary, resolve_unary};
use super::compare::Compare;
use super::offered::{is_left_out, is_offered};
use super::user::UserFunction;
use super::{
    aggregate_types, bit_aggregates, bit_strings, bits, compare, concat_op, extremes, foreign,
    frame_offset, lambdas, list_numbers, lists, macros, math, nullif, numbers, patterns,
    quantified, rounding, strings, substr, temporal, type_info, uuids,
};
use tessera_patterns::like;
use tessera_values::cast::cast_raises;
use tessera_values::scalar::{array_value, scalar_to_array};
use tessera_values::types::{
    Arg, ResolvedCall, common_type, exact_in, expect_arguments, wrong_arguments,
};

/// Native functions that are dispatched by name alone.
const OWN: [&str; 5] = ["neg", "abs", "bit_count", "concat_op", "frame_offset"];

/// DuckDB's aliases of functions.
const ALIASES: [(&str, &str); 15] = [
    ("list_min", "array_min"),
    ("lcase", "lower"),
    ("ucase", "upper"),
    ("len", "character_length"),
    ("strlen", "octet_length"),
    ("unicode", "ascii"),
    ("ord", "ascii"),
    ("prefix", "starts_with"),
    ("suffix", "ends_with"),
    ("str_split", "string_split"),
    ("split", "string_split"),
    ("string_split_regex", "regexp_split_to_array"),
    ("str_split_regex", "regexp_split_to_array"),
    ("greatest_common_divisor", "gcd"),
    ("least_common_multiple", "lcm"),
];

/// Native functions on dates, times, strings and bytes; they take precedence over DataFusion's.
pub fn temporal_and_string_names() -> impl Iterator<Item = &'static str> {
    let others = ["generate_series", "range", "like", "ilike"];
    let aliases = ALIASES.iter().map(|(alias, _)| *alias);
    let own = temporal::NAMES
        .iter()
        .chain(strings::NAMES)
        .chain(patterns::NAMES)
        .chain(type_info::NAMES)
        .chain(uuids::NAMES)
        .chain([&uuids::BY_TIME])
        .chain(lists::NAMES)
        .chain(bit_strings::NAMES);
    own.copied().chain(others).chain(aliases)
}

/// All functions that expressions can call: native ones first, then user-defined, then
/// DataFusion's.
pub struct Library {
    scalars: HashMap<String, Arc<ScalarUDF>>,
    aggregates: HashMap<String, Arc<AggregateUDF>>,
    config: Arc<ConfigOptions>,
    /// User-defined functions by name.
    users: RwLock<BTreeMap<Arc<str>, Arc<UserFunction>>>,
}

impl Default for Library {
    fn default() -> Self {
        Library::new()
    }
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Library")
            .field("scalars", &self.scalars.len())
            .field("aggregates", &self.aggregates.len())
            .finish_non_exhaustive()
    }
}

impl Library {
    /// Creates the library without user-defined functions.
    pub fn new() -> Self {
        let mut scalars = HashMap::new();
        let all = datafusion_functions::all_default_functions().into_iter();
        for udf in all.chain(datafusion_functions_nested::all_default_nested_functions()) {
            for alias in udf.aliases() {
                scalars.insert(alias.clone(), udf.clone());
            }
            scalars.insert(udf.name().to_string(), udf);
        }
        for udf in super::bytes::functions() {
            scalars.insert(udf.name().to_string(), udf);
        }
        scalars.retain(|name, _| !is_left_out(name));
        let mut aggregates = HashMap::new();
        for udf in datafusion_functions_aggregate::all_default_aggregate_functions() {
            for alias in udf.aliases() {
                aggregates.insert(alias.clone(), udf.clone());
            }
            aggregates.insert(udf.name().to_string(), udf);
        }
        for udf in bit_aggregates::functions() {
            aggregates.insert(udf.name().to_string(), udf);
        }
        Library {
            scalars,
            aggregates,
            config: Arc::new(ConfigOptions::default()),
            users: RwLock::default(),
        }
    }

    /// Returns a scalar function of DataFusion.
    pub fn scalar_udf(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.scalars.get(name).cloned()
    }

    /// Returns an aggregate function of DataFusion.
    pub fn aggregate_udf(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.aggregates.get(name).cloned()
    }

    /// The names of native functions, mostly on numbers; they take precedence over DataFusion's.
    pub fn native_function_names() -> Vec<&'static str> {
        let mut names: Vec<&str> = rounding::NAMES
            .into_iter()
            .chain(numbers::NAMES)
            .chain(math::names())
            .chain(list_numbers::NAMES)
            .chain(compare::EXACT_NAMES)
            .chain(quantified::NAMES)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The names and aliases of DataFusion's scalar functions.
    pub fn foreign_names(&self) -> impl Iterator<Item = String> + use<'_> {
        self.scalars.keys().cloned()
    }

    /// The names of all scalar functions, native and DataFusion's, with aliases.
    pub fn scalar_names(&self) -> Vec<String> {
        let own = OWN
            .into_iter()
            .chain(Library::native_function_names())
            .chain(temporal_and_string_names())
            .chain(lambdas::ALIASES.map(|(name, _)| name))
            .map(String::from);
        let mut names: Vec<String> = own.chain(self.scalars.keys().cloned()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The names of all functions and aggregates that SQL may call.
    pub fn offered(&self) -> Vec<String> {
        let scalars = self.scalar_names().into_iter();
        let aggregates = self.aggregates.keys().cloned();
        let own = aggregate_types::NAMES.into_iter().map(String::from);
        let mut names: Vec<String> =
            scalars.chain(aggregates).chain(own).chain(macros::names()).collect();
        names.retain(|name| is_offered(name));
        names.sort();
        names.dedup();
        names
    }

    /// The user-defined functions.
    pub fn user_functions(&self) -> Vec<Arc<UserFunction>> {
        self.users.read().values().cloned().collect()
    }

    /// Adds a user-defined function.
    ///
    /// # Errors
    /// The library has a function of this name, or there is a user-defined one and `replace` is
    /// false.
    pub fn define(&self, function: UserFunction, replace: bool) -> Result<()> {
        let name = function.name().clone();
        let of_library = Comparison::from_name(&name).is_some()
            || Operation::from_name(&name).is_some()
            || OWN.contains(&&*name)
            || Library::native_function_names().contains(&&*name)
            || temporal_and_string_names().any(|own| own == &*name)
            || lambdas::ALIASES.iter().any(|(own, _)| *own == &*name)
            || like::resolve(&name, &[]).is_some()
            || bits::resolve(&name, &[]).is_some()
            || aggregate_types::NAMES.contains(&&*name)
            || macros::names().any(|own| own == *name)
            || self.scalars.contains_key(&*name)
            || self.aggregates.contains_key(&*name);
        if of_library {
            return Err(Error::semantic(format!(
                "{name} is a function of the library; choose another name"
            )));
        }
        let mut users = self.users.write();
        if users.contains_key(&name) && !replace {
            return Err(Error::semantic(format!(
                "function {name} already exists; use CREATE OR REPLACE FUNCTION to replace it"
            )));
        }
        users.insert(name, Arc::new(function));
        Ok(())
    }

    /// Returns a user-defined function.
    pub fn user_function(&self, name: &str) -> Option<Arc<UserFunction>> {
        self.users.read().get(name).cloned()
    }

    /// Removes a user-defined function; returns whether it existed.
    pub fn remove(&self, name: &str) -> bool {
        self.users.write().remove(name).is_some()
    }

    /// Resolves a call by name and argument types.
    pub fn resolve(&self, name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
        let name = ALIASES
            .iter()
            .find(|(alias, _)| *alias == name)
            .map_or(name, |(_, function)| *function);
        if let Some(comparison) = Comparison::from_name(name) {
            return resolve_comparison(name, comparison, args);
        }
        if let Some(operation) = Operation::from_name(name) {
            return resolve_binary(name, operation, args);
        }
        let own = like::resolve(name, args)
            .or_else(|| bit_strings::resolve(name, args))
            .or_else(|| bits::resolve(name, args))
            .or_else(|| rounding::resolve(name, args))
            .or_else(|| math::resolve(name, args))
            .or_else(|| numbers::resolve(name, args))
            .or_else(|| list_numbers::resolve(name, args))
            .or_else(|| compare::resolve_exact(name, args))
            .or_else(|| quantified::resolve(name, args));
        if let Some(resolved) = own {
            return resolved;
        }
        let own = temporal::resolve(name, args)
            .or_else(|| strings::resolve(name, args))
            .or_else(|| patterns::resolve(name, args))
            .or_else(|| type_info::resolve(name, args))
            .or_else(|| uuids::resolve(name, args))
            .or_else(|| lists::resolve(name, args));
        if let Some(resolved) = own {
            return resolved;
        }
        match name {
            "neg" => return resolve_unary(name, true, args),
            "substr" | "substring" => {
                if let Some(resolved) = substr::resolve(args) {
                    return Ok(resolved);
                }
            }
            "greatest" | "least" if args.iter().any(|arg| *arg.atom == Atom::Interval) => {
                return temporal::extreme(name, args);
            }
            "greatest" | "least"
                if args.iter().any(|arg| {
                    matches!(
                        arg.atom,
                        Atom::List(_)
                            | Atom::Struct(_)
                            | Atom::Map(..)
                            | Atom::Enum(_)
                            | Atom::Bits
                    )
                }) =>
            {
                return extremes::resolve(name, args);
            }
            // As in DuckDB, NULL is not counted as a value here.
            "array_distinct" | "list_distinct" => {
                return self.foreign(name, args).map(lists::without_nulls);
            }
            "character_length" if args.first().is_some_and(|arg| *arg.atom == Atom::Bytes) => {
                return self.foreign("octet_length", args);
            }
            uuids::RANDOM => return self.foreign(name, args).map(uuids::random),
            uuids::BY_TIME => {
                return uuids::by_time(args, self.foreign(uuids::RANDOM, &[])?);
            }
            "abs" => return resolve_unary(name, false, args),
            "nullif" => return nullif::resolve(args),
            "concat_op" => return concat_op::resolve(args),
            "frame_offset" => return frame_offset::resolve(args),
            _ => {}
        }
        self.foreign(name, args)
    }

    fn foreign(&self, name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
        if let Some(function) = self.user_function(name) {
            return function.resolve(args);
        }
        match self.scalars.get(name) {
            Some(udf) => foreign::resolve(udf, &self.config, args),
            None => Err(Error::semantic(format!("unknown function {name}"))
                .with_state(SqlState::UNDEFINED_FUNCTION)),
        }
    }
}

/// Converts arguments from the verifier's form.
fn arguments<'a>(args: &'a [(Atom, bool, &'a Expr)]) -> Vec<Arg<'a>> {
    args.iter()
        .map(|(atom, nullable, expr)| {
            let value = match expr {
                Expr::Constant(scalar, atom) => scalar_to_array(scalar, atom).ok(),
                _ => None,
            };
            Arg { atom, nullable: *nullable, expr, value }
        })
        .collect()
}

impl Functions for Library {
    fn scalar(&self, name: &str, args: &[(Atom, bool, &Expr)]) -> Result<(Atom, bool)> {
        // Every pass over a plan derives expression types, so this check also interrupts planning.
        check_here()?;
        if let Some(typed) = lambdas::type_of(name, args) {
            return typed;
        }
        self.resolve(name, &arguments(args)).map(|resolved| (resolved.atom, resolved.nullable))
    }

    fn can_raise(&self, name: &str, args: &[(Atom, bool, &Expr)]) -> bool {
        if lambdas::takes_lambda(name) {
            return lambdas::raises(name);
        }
        self.resolve(name, &arguments(args)).map_or(true, |resolved| {
            let mut casts = args.iter().zip(&resolved.casts);
            resolved.raises || casts.any(|((from, ..), to)| cast_raises(from, to))
        })
    }

    fn cast_can_raise(&self, from: &Atom, to: &Atom) -> bool {
        cast_raises(from, to)
    }

    fn is_volatile(&self, name: &str) -> bool {
        let is_volatile = |udf: &Arc<ScalarUDF>| udf.signature().volatility == Volatility::Volatile;
        name == uuids::BY_TIME
            || self.scalars.get(name).is_some_and(is_volatile)
            || self.user_function(name).is_some_and(|function| function.is_volatile())
    }

    fn aggregate(
        &self,
        name: &str,
        args: &[(Atom, bool)],
        _distinct: bool,
    ) -> Result<(Atom, bool)> {
        if let Some(own) = aggregate_types::own(name, args) {
            return own;
        }
        match self.aggregates.get(name) {
            Some(udf) => aggregate_types::foreign(udf, args),
            None => Err(Error::semantic(format!("unknown aggregate function {name}"))
                .with_state(SqlState::UNDEFINED_FUNCTION)),
        }
    }
}

fn resolve_comparison(
    name: &str,
    comparison: Comparison,
    args: &[Arg<'_>],
) -> Result<ResolvedCall> {
    expect_arguments(name, args, 2)?;
    let (left, right) = (args[0].atom, args[1].atom);
    let atom = if in_type_of_other(&args[0], right) {
        right.clone()
    } else if in_type_of_other(&args[1], left) {
        left.clone()
    } else {
        common_type(left, right)
            .ok_or_else(|| wrong_arguments(name, args, "cast one to the type of the other"))?
    };
    let casts = vec![atom.clone(), atom.clone()];
    let cost = match atom {
        Atom::Bytes => 3,
        _ if atom.is_stored_as_text() => 3,
        Atom::List(_) | Atom::Struct(_) | Atom::Map(..) => 50,
        _ => 1,
    };
    let mut resolved =
        ResolvedCall::strict(Atom::Boolean, args, casts, Compare { comparison, atom })
            .costing(cost);
    resolved.nullable &= !comparison.is_total();
    Ok(resolved)
}

/// Whether an argument is a constant that can be converted exactly to the other type, so that the
/// column need not be converted.
fn in_type_of_other(arg: &Arg<'_>, other: &Atom) -> bool {
    let value = arg.value.as_ref().and_then(|value| array_value(value, 0).ok());
    match value {
        Some(Scalar::Null) | None => false,
        Some(value) => arg.atom != other && exact_in(&value, arg.atom, other),
    }
}
