//! Calls of scalar functions.

use std::collections::{BTreeSet, HashSet};
use std::sync::LazyLock;

use sqlparser::ast::{
    DuplicateTreatment, Expr as Ast, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Spanned,
};
use tessera_functions::{
    Library, WHOLE_QUOTIENT, WINDOW_FUNCTIONS, is_offered, temporal_and_string_names,
};
use tessera_plan::{Expr, Functions};
use tessera_types::{Atom, Code, Error, Result, SqlState, TimeUnit, did_you_mean};
use tessera_values::types::common_type;

use super::typed::TypedExpr;
use super::{Binder, Place, enums, normalized, unsupported_at, with_span};
use tessera_overloads::Kind;

/// Functions that convert all arguments to a common type.
const SAME_TYPE: [&str; 4] = ["greatest", "least", "make_array", "make_list"];

/// Functions of a list and values of its element type.
const LIST_AND_ELEMENTS: [&str; 14] = [
    "array_append",
    "array_contains",
    "array_has",
    "array_position",
    "array_positions",
    "array_push_back",
    "array_remove",
    "array_remove_all",
    "array_replace_all",
    "list_append",
    "list_contains",
    "list_has",
    "list_position",
    "list_remove",
];

/// Functions that the binder rewrites.
const SPECIAL: [&str; 9] = [
    "array",
    "coalesce",
    "current_setting",
    "getvariable",
    "grouping",
    "if",
    "ifnull",
    "nvl",
    "nvl2",
];

/// The names of the native functions that SQL can call.
static NATIVE: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let own = Library::native_function_names().into_iter().chain(temporal_and_string_names());
    let own = own.chain(["abs", "bit_count", "bit_not", "mod", "div", "nullif"]);
    own.filter(|name| is_offered(name)).collect()
});

impl Binder<'_> {
    /// Binds a function call.
    pub(super) fn function(
        &mut self,
        function: &Function,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        if let Some(call) = self.unpacked_call(function, place.scope)? {
            return self.function(&call, place);
        }
        if let Some(value) = self.macro_call(function, place)? {
            return Ok(value);
        }
        let Function {
            name,
            uses_odbc_syntax: _,
            parameters,
            args,
            filter,
            null_treatment,
            over,
            within_group,
        } = function;
        if !matches!(parameters, FunctionArguments::None) {
            return Err(unsupported_at("a second list of arguments", function));
        }
        if let Some(over) = over {
            return self
                .window_call(function, over, place)
                .map_err(|error| with_span(error, function));
        }
        let Some(called) = function_name(function) else {
            if let Some(call) = super::nested::method_of_column(function, place) {
                return self.expr(&call, place);
            }
            return Err(unsupported_at(&format!("the function {name} in a schema"), function));
        };
        match called.as_str() {
            "columns" => {
                let construct = format!("COLUMNS in {} (or in a subquery of it)", place.clause);
                return Err(unsupported_at(&construct, function));
            }
            "grouping" => return self.grouping_call(function, place),
            "unnest" => return self.unnest_call(function, place),
            _ => {}
        }
        if self.aggregate_of(function).is_some() {
            return self.aggregate(function, place);
        }
        if let Some(error) = super::window::without_over(&called)
            && !self.is_callable(&called)
        {
            return Err(with_span(error, function));
        }
        let no_aggregate = |construct: &str| {
            if !self.function_names().contains(&called) {
                return Err(self.unknown_function(&called, ""));
            }
            let message = format!(
                "{construct} needs an aggregate function, but {called} is a scalar function; remove {construct}"
            );
            Err(Error::semantic(message).with_state(SqlState::WRONG_OBJECT_TYPE))
        };
        if filter.is_some() {
            return no_aggregate("FILTER");
        }
        if null_treatment.is_some() {
            return no_aggregate("IGNORE NULLS or RESPECT NULLS");
        }
        if !within_group.is_empty() {
            return no_aggregate("WITHIN GROUP");
        }
        let list = match args {
            FunctionArguments::None => &[][..],
            FunctionArguments::List(list) => {
                if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
                    return no_aggregate("DISTINCT");
                }
                if !list.clauses.is_empty() {
                    return no_aggregate("ORDER BY in the arguments");
                }
                &list.args[..]
            }
            FunctionArguments::Subquery(query) if called == "array" => {
                return self.array_of(query, place);
            }
            FunctionArguments::Subquery(query) => {
                return Err(unsupported_at(
                    &format!("a subquery as the argument of {name}"),
                    &**query,
                ));
            }
        };
        if super::struct_function::NAMES.contains(&called.as_str()) {
            return self.struct_function(&called, list, function, place);
        }
        if called == "make_interval"
            && list.iter().any(|arg| !matches!(arg, FunctionArg::Unnamed(_)))
        {
            let args = self.interval_parts(list, place)?;
            return self.function_call(&called, args);
        }
        if let Some(value) = self.call_with_lambda(&called, function, list, place)? {
            return Ok(value);
        }
        let mut args = Vec::with_capacity(list.len());
        for arg in list {
            let written = match argument(arg, function) {
                Err(_) if !self.function_names().contains(&called) => {
                    return Err(with_span(self.unknown_function(&called, ""), function));
                }
                written => written?,
            };
            args.push(self.expr(written, place)?);
        }
        self.special(&called, args)
    }

    /// Binds functions with special argument rules, then all others.
    fn special(&self, name: &str, mut args: Vec<TypedExpr>) -> Result<TypedExpr> {
        match (name, args.len()) {
            ("coalesce" | "ifnull" | "nvl", 1..) => {
                let (args, atom) = self.unified(args, "coalesce")?;
                let args = args.into_iter().map(|arg| arg.expr).collect();
                Ok(TypedExpr::new(Expr::Coalesce(args), atom))
            }
            ("getvariable", 1) => self.variable(&args[0]),
            ("current_setting", 1 | 2) => self.current_setting(args),
            ("nvl2", 3) => {
                let value = args.remove(0);
                let is_there = Expr::Not(Box::new(Expr::IsNull(Box::new(value.expr))));
                self.choice(is_there, args, "nvl2")
            }
            ("if", 3) => {
                let condition =
                    self.implicitly(args.remove(0), &Atom::Boolean, "the condition of if")?;
                self.choice(condition.expr, args, "if")
            }
            ("arrow_cast" | "arrow_try_cast", 2) => {
                let exprs: Vec<_> =
                    args.iter().map(|arg| (arg.atom.clone(), true, &arg.expr)).collect();
                let (to, _) = self.library().scalar(name, &exprs)?;
                self.cast_to(args.swap_remove(0), &to, name.contains("try"))
            }
            (name, _) if enums::NAMES.contains(&name) => self.enum_function(name, args),
            _ => self.function_call(name, args),
        }
    }

    /// Returns the first of two values if a condition is true, else the second.
    fn choice(
        &self,
        condition: Expr,
        values: Vec<TypedExpr>,
        construct: &str,
    ) -> Result<TypedExpr> {
        let [value, other] = <[TypedExpr; 2]>::try_from(values)
            .map_err(|_| Error::internal("expected two arguments"))?;
        let (value, other, atom) = self.unified_pair(value, other, construct)?;
        let branches = vec![(condition, value.expr)];
        Ok(TypedExpr::new(Expr::Case { branches, otherwise: Some(Box::new(other.expr)) }, atom))
    }

    /// Calls a function on bound arguments.
    pub(super) fn function_call(&self, name: &str, args: Vec<TypedExpr>) -> Result<TypedExpr> {
        if args.len() <= 1
            && let Some(value) = self.clock(name)
        {
            return self.clock_value(name, value, args);
        }
        if !self.is_callable(name) {
            return Err(self.no_function(name, &args));
        }
        let args = self.zoned_arguments(name, self.typed_arguments(name, args)?)?;
        let args = self.collated_arguments(name, args)?;
        let function = match name {
            "div" => WHOLE_QUOTIENT,
            "substring" if args.get(1).is_some_and(|from| from.atom.is_integer()) => "substr",
            other => other,
        };
        match (function, args.len()) {
            ("mod", 2) => {
                let mut args = args.into_iter();
                match (args.next(), args.next()) {
                    (Some(left), Some(right)) => self.arithmetic("mod", left, right),
                    _ => Err(Error::internal("expected two arguments")),
                }
            }
            ("character_length" | "char_length" | "length" | "len", 1) if is_list(&args) => {
                let length = self.call("array_length", args)?;
                self.cast_to(length, &Atom::Int64, false)
            }
            ("character_length" | "char_length" | "length" | "len", 1)
                if args[0].atom == Atom::Bytes =>
            {
                self.call("octet_length", args)
            }
            // By default NULL sorts last, as in ORDER BY.
            ("array_sort" | "list_sort", 1) => {
                let mut args = args;
                args.extend([TypedExpr::text("ASC"), TypedExpr::text("NULLS LAST")]);
                self.call("array_sort", args)
            }
            ("timezone", 2) if matches!(args[1].atom, Atom::Time(_) | Atom::TimeTz) => {
                self.time_at_zone(args)
            }
            // The fields are a local time of the session.
            ("make_timestamptz", 6) => {
                let local = self.call("make_timestamp", args)?;
                let zoned = Atom::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
                self.cast_to(local, &self.localized(&zoned), false)
            }
            ("age", 1) => {
                let today = self.function_call("current_date", Vec::new())?;
                let mut all = vec![self.cast_to(
                    today,
                    &Atom::Timestamp(TimeUnit::Microsecond, None),
                    false,
                )?];
                all.extend(args);
                self.call("age", all)
            }
            _ => self.call(function, args),
        }
    }

    pub(super) fn is_callable(&self, name: &str) -> bool {
        let library = self.library();
        NATIVE.contains(name)
            || library.user_function(name).is_some()
            || (is_offered(name) && library.scalar_udf(name).is_some())
    }

    /// Returns the value of a date or time function such as `now`, rounded to a number of
    /// fractional digits of a second if one is given.
    fn clock_value(&self, name: &str, expr: Expr, args: Vec<TypedExpr>) -> Result<TypedExpr> {
        let atom = self.fields.atom_of(&expr)?;
        let value = TypedExpr::new(expr, atom);
        match (args.into_iter().next(), &value.atom) {
            (None, _) => Ok(value),
            (Some(digits), Atom::Timestamp(..)) if digits.atom.is_integer() => {
                self.call("round_moment", vec![value, digits])
            }
            (Some(digits), Atom::Time(_) | Atom::TimeTz) if digits.atom.is_integer() => {
                self.call("round_time", vec![value, digits])
            }
            (Some(digits), _) => Err(self.no_function(name, &[digits])),
        }
    }

    /// Converts arguments to the types that the function takes.
    fn typed_arguments(&self, name: &str, args: Vec<TypedExpr>) -> Result<Vec<TypedExpr>> {
        if SAME_TYPE.contains(&name) {
            return self.unified(args, name).map(|(args, _)| args);
        }
        if matches!(name, "generate_series" | "range") {
            let known = args.iter().find(|arg| !arg.unknown && !arg.is_null());
            let atom = known.map_or(Atom::Int64, |arg| arg.atom.clone());
            if atom.is_integer() {
                let typed = |arg: TypedExpr| match arg.unknown {
                    true => self.cast_to(arg, &atom, false),
                    false => Ok(arg),
                };
                return args.into_iter().map(typed).collect();
            }
        }
        if name == "nullif" && args.len() == 2 {
            return self.nullif_arguments(args);
        }
        if let ([list, _, ..], true) = (&args[..], LIST_AND_ELEMENTS.contains(&name))
            && let Atom::List(slot) = &list.atom
        {
            let element = slot.atom.clone();
            let mut args = args.into_iter();
            let mut all: Vec<TypedExpr> = args.by_ref().take(1).collect();
            for value in args {
                let decimal = matches!(value.atom, Atom::Decimal(..));
                all.push(
                    match value.unknown || value.is_null() || (element.is_float() && decimal) {
                        true => self.cast_to(value, &element, false)?,
                        false => value,
                    },
                );
            }
            return Ok(all);
        }
        if self.library().user_function(name).is_some() {
            return Ok(args.into_iter().map(TypedExpr::known).collect());
        }
        self.arguments_typed(name, Kind::Scalar, args)
    }

    /// Converts the arguments of `nullif`, which compares both and returns the first.
    fn nullif_arguments(&self, args: Vec<TypedExpr>) -> Result<Vec<TypedExpr>> {
        let [first, second] = <[TypedExpr; 2]>::try_from(args)
            .map_err(|_| Error::internal("expected two arguments"))?;
        let (first, second) =
            match (first.unknown || first.is_null(), second.unknown || second.is_null()) {
                (true, false) => (self.adapt_literal_or_null(first, &second.atom)?, second),
                (false, true) => {
                    let second = self.adapt_literal_or_null(second, &first.atom)?;
                    (first, second)
                }
                _ => (first.known(), second.known()),
            };
        match common_type(&first.atom, &second.atom) {
            Some(_) => Ok(vec![first, second]),
            None => {
                let message = format!(
                    "nullif cannot compare {} with {}; cast one of them",
                    first.atom, second.atom
                );
                Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION))
            }
        }
    }

    fn adapt_literal_or_null(&self, value: TypedExpr, other: &Atom) -> Result<TypedExpr> {
        match value.is_null() {
            true => self.cast_to(value, other, false),
            false => self.adapt_literal(value, other),
        }
    }

    /// Returns the error for an unknown function, with the nearest known name.
    fn no_function(&self, name: &str, args: &[TypedExpr]) -> Error {
        let types = args.iter().map(|arg| arg.atom.to_string()).collect::<Vec<_>>().join(", ");
        self.unknown_function(name, &format!("({types})"))
    }

    /// Returns the error for a name that neither a scalar, aggregate nor table function has.
    pub(super) fn unknown_function(&self, name: &str, args: &str) -> Error {
        let known = self.function_names();
        let hint = did_you_mean(name, known.iter().map(String::as_str));
        Error::semantic(format!("unknown function {name}{args}{hint}"))
            .with_state(SqlState::UNDEFINED_FUNCTION)
    }

    /// Returns the names of all functions: scalar, aggregate and in FROM.
    fn function_names(&self) -> BTreeSet<String> {
        let mut names = self.own_function_names();
        names.extend(self.environment.definitions.all_macros().map(|(name, _)| name.clone()));
        names
    }

    /// Returns the names of all functions but macros of the session.
    pub(super) fn own_function_names(&self) -> BTreeSet<String> {
        let library = self.library();
        let mut names: BTreeSet<String> = library.offered().into_iter().collect();
        names.extend(library.user_functions().iter().map(|function| function.name().to_string()));
        let native =
            NATIVE.iter().copied().chain(SPECIAL).chain(enums::NAMES).chain(WINDOW_FUNCTIONS);
        let known = native.chain(super::aggregate::names()).chain(super::table_function::names());
        names.extend(known.map(String::from));
        let file_functions = self.catalog.file_functions().into_iter();
        names.extend(file_functions.map(|(function, _)| function.to_string()));
        names.extend(self.catalog.fact_functions().into_iter().map(str::to_string));
        names
    }
}

impl Binder<'_> {
    /// Rephrases an error of a library function for users.
    pub(super) fn function_error(error: Error, name: &str) -> Error {
        if error.code() != Code::Semantic || error.sql_state() != Code::Semantic.sql_state() {
            return error;
        }
        let text = error.message();
        let text = text.strip_prefix(&format!("function {name}: ")).unwrap_or(text);
        let message =
            crate::signature::message(text).unwrap_or_else(|| error.message().to_string());
        Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION)
    }
}

/// Returns the name of a function, which `pg_catalog` may qualify.
pub(super) fn function_name(function: &Function) -> Option<String> {
    let parts: Option<Vec<_>> =
        function.name.0.iter().map(|part| part.as_ident().map(normalized)).collect();
    match parts?.as_slice() {
        [name] => Some(name.clone()),
        [schema, name] if schema == "pg_catalog" => Some(name.clone()),
        _ => None,
    }
}

/// Returns the expression of an argument.
pub(super) fn argument<'q>(arg: &'q FunctionArg, function: &Function) -> Result<&'q Ast> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr),
        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_)) => {
            Err(unsupported_at("table.* as an argument (name a column)", function))
        }
        FunctionArg::Unnamed(_) => Err(not_taken(function, "*")),
        FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => {
            Err(not_taken(function, &format!("named argument {arg}")))
        }
    }
}

fn not_taken(function: &Function, what: &str) -> Error {
    let message = format!("{} does not take {what}", function.name);
    let error = Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION);
    with_span(error, function.span())
}

fn is_list(args: &[TypedExpr]) -> bool {
    matches!(args.first(), Some(TypedExpr { atom: Atom::List(_), .. }))
}
