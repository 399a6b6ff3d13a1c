//! Calls of functions.

use std::collections::HashSet;
use std::sync::LazyLock;

use sqlparser::ast::{
    DuplicateTreatment, Expr as Ast, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Spanned,
};
use tessera_functions::{Library, WHOLE_QUOTIENT, common_type, is_offered, moments_and_texts};
use tessera_plan::{Expr, Functions};
use tessera_types::{Atom, Code, Error, Result, SqlState, TimeUnit, edit_distance};

use super::list::Unnested;
use super::typed::Typed;
use super::{Binder, Place, normalized, refuse_at};
use crate::postgres::Kind;

/// Functions whose arguments have one type.
const OF_ONE_TYPE: [&str; 4] = ["greatest", "least", "make_array", "make_list"];

/// Functions of a list and a value of its element type.
const OF_ELEMENTS: [&str; 14] = [
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

/// The names of `make_interval`'s arguments, in order.
const OF_INTERVAL: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];

/// The names of our own functions that can be called.
static OWN: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let own = Library::own_functions().into_iter().chain(moments_and_texts());
    let own = own.chain(["abs", "bit_not", "mod", "div", "nullif"]);
    own.filter(|name| is_offered(name)).collect()
});

impl Binder<'_> {
    /// A call as it is written.
    pub(super) fn function(
        &mut self,
        function: &Function,
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
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
            return Err(refuse_at("a second list of arguments", function));
        }
        if over.is_some() {
            return Err(refuse_at(&format!("the window function {name}"), function));
        }
        let Some(called) = function_name(function) else {
            return Err(refuse_at(&format!("the function {name} in a schema"), function));
        };
        match called.as_str() {
            "grouping" => return self.grouping_call(function, place),
            "unnest" => return self.unnest_call(function, place),
            _ => {}
        }
        if self.aggregate_of(function).is_some() {
            return self.aggregate(function, place);
        }
        let no_aggregate = |construct: &str| {
            let message = format!(
                "{construct} is only for aggregate functions, and {called} is not one; leave it out"
            );
            Err(Error::semantic(message).with_state(SqlState::WRONG_OBJECT_TYPE))
        };
        if filter.is_some() {
            return no_aggregate("FILTER");
        }
        if null_treatment.is_some() {
            return no_aggregate("IGNORE or RESPECT NULLS");
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
                    return no_aggregate("ORDER BY or the like");
                }
                &list.args[..]
            }
            FunctionArguments::Subquery(query) if called == "array" => {
                return self.array_of(query, place);
            }
            FunctionArguments::Subquery(query) => {
                return Err(refuse_at(&format!("a subquery as the argument of {name}"), &**query));
            }
        };
        if called == "make_interval"
            && list.iter().any(|arg| !matches!(arg, FunctionArg::Unnamed(_)))
        {
            let args = self.interval_parts(list, place)?;
            return self.function_call(&called, args);
        }
        let mut args = Vec::with_capacity(list.len());
        for arg in list {
            args.push(self.expr(argument(arg, function)?, place)?);
        }
        self.special(&called, args)
    }

    /// Functions whose arguments are not computed as those of others are, and all others.
    fn special(&self, name: &str, mut args: Vec<Typed>) -> Result<Typed> {
        match (name, args.len()) {
            ("coalesce" | "ifnull" | "nvl", 1..) => {
                let (args, atom) = self.unified(args, "coalesce")?;
                let args = args.into_iter().map(|arg| arg.expr).collect();
                Ok(Typed::new(Expr::Coalesce(args), atom))
            }
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
            _ => self.function_call(name, args),
        }
    }

    /// The first of two values where a condition is true, else the second.
    fn choice(&self, condition: Expr, values: Vec<Typed>, construct: &str) -> Result<Typed> {
        let [value, other] =
            <[Typed; 2]>::try_from(values).map_err(|_| Error::internal("two arguments are not"))?;
        let (value, other, atom) = self.unified_pair(value, other, construct)?;
        let branches = vec![(condition, value.expr)];
        Ok(Typed::new(Expr::Case { branches, otherwise: Some(Box::new(other.expr)) }, atom))
    }

    /// A call of a function on values.
    pub(super) fn function_call(&self, name: &str, args: Vec<Typed>) -> Result<Typed> {
        if args.len() <= 1
            && let Some(told) = self.moment.told(name)
        {
            return self.told(name, told, args);
        }
        if !self.is_callable(name) {
            return Err(self.no_function(name, &args));
        }
        let args = self.typed_arguments(name, args)?;
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
                    _ => Err(Error::internal("two arguments are not")),
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
            // Without more arguments NULL is sorted last, as everywhere.
            ("array_sort" | "list_sort", 1) => {
                let mut args = args;
                args.extend([Typed::text("ASC"), Typed::text("NULLS LAST")]);
                self.call("array_sort", args)
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

    fn is_callable(&self, name: &str) -> bool {
        let library = self.library();
        OWN.contains(name)
            || library.user_function(name).is_some()
            || (is_offered(name) && library.scalar_udf(name).is_some())
    }

    /// What a function tells of the moment, perhaps to some digits of a second.
    fn told(&self, name: &str, expr: Expr, args: Vec<Typed>) -> Result<Typed> {
        let atom = self.fields.atom_of(&expr)?;
        let value = Typed::new(expr, atom);
        match (args.into_iter().next(), &value.atom) {
            (None, _) => Ok(value),
            (Some(digits), Atom::Timestamp(..)) if digits.atom.is_integer() => {
                self.call("round_moment", vec![value, digits])
            }
            (Some(digits), Atom::Time(_)) if digits.atom.is_integer() => {
                self.call("round_time", vec![value, digits])
            }
            (Some(digits), _) => Err(self.no_function(name, &[digits])),
        }
    }

    /// Arguments with the types that the function asks for.
    fn typed_arguments(&self, name: &str, args: Vec<Typed>) -> Result<Vec<Typed>> {
        if OF_ONE_TYPE.contains(&name) {
            return self.unified(args, name).map(|(args, _)| args);
        }
        if name == "nullif" && args.len() == 2 {
            return self.of_nullif(args);
        }
        if let ([list, _, ..], true) = (&args[..], OF_ELEMENTS.contains(&name))
            && let Atom::List(slot) = &list.atom
        {
            let element = slot.atom.clone();
            let mut args = args.into_iter();
            let mut all: Vec<Typed> = args.by_ref().take(1).collect();
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
            return Ok(args.into_iter().map(Typed::known).collect());
        }
        self.arguments_typed(name, Kind::Scalar, args)
    }

    /// The arguments of `nullif`: they are compared, and the result is the first one.
    fn of_nullif(&self, args: Vec<Typed>) -> Result<Vec<Typed>> {
        let [first, second] =
            <[Typed; 2]>::try_from(args).map_err(|_| Error::internal("two arguments are not"))?;
        let (first, second) =
            match (first.unknown || first.is_null(), second.unknown || second.is_null()) {
                (true, false) => (self.beside_or_null(first, &second.atom)?, second),
                (false, true) => {
                    let second = self.beside_or_null(second, &first.atom)?;
                    (first, second)
                }
                _ => (first.known(), second.known()),
            };
        match common_type(&first.atom, &second.atom) {
            Some(_) => Ok(vec![first, second]),
            None => {
                let message = format!(
                    "nullif does not compare {} with {}; cast one of them",
                    first.atom, second.atom
                );
                Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION))
            }
        }
    }

    fn beside_or_null(&self, value: Typed, other: &Atom) -> Result<Typed> {
        match value.is_null() {
            true => self.cast_to(value, other, false),
            false => self.beside(value, other),
        }
    }

    /// `make_interval(days => 3)` by position.
    fn interval_parts(
        &mut self,
        list: &[FunctionArg],
        place: &mut Place<'_, '_>,
    ) -> Result<Vec<Typed>> {
        let mut given: Vec<Typed> = (0..OF_INTERVAL.len()).map(|_| Typed::int32(0)).collect();
        let wrong = |what: &str| {
            let message =
                format!("make_interval has no argument {what}; it has {}", OF_INTERVAL.join(", "));
            Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION)
        };
        for (index, arg) in list.iter().enumerate() {
            let (at, value) = match arg {
                FunctionArg::Unnamed(value) => (index, value),
                FunctionArg::Named { name, arg, .. }
                | FunctionArg::ExprNamed { name: Ast::Identifier(name), arg, .. } => {
                    let called = normalized(name);
                    let at = OF_INTERVAL.iter().position(|known| *known == called);
                    (at.ok_or_else(|| wrong(&called))?, arg)
                }
                other => return Err(wrong(&other.to_string())),
            };
            let FunctionArgExpr::Expr(value) = value else { return Err(wrong("*")) };
            let value = self.expr(value, place)?;
            *given.get_mut(at).ok_or_else(|| wrong(&format!("number {}", at + 1)))? = value;
        }
        Ok(given)
    }

    /// `unnest` in the list of a SELECT: a row for each element.
    fn unnest_call(&mut self, function: &Function, place: &mut Place<'_, '_>) -> Result<Typed> {
        let FunctionArguments::List(list) = &function.args else {
            return Err(refuse_at("unnest of a query", function));
        };
        let [arg] = &list.args[..] else {
            let message = "unnest takes one list here";
            return Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION));
        };
        let written = argument(arg, function)?;
        let list = {
            let scope = place.scope;
            let inner =
                &mut Place { scope, steps: &mut *place.steps, clause: "unnest", unnests: None };
            self.expr(written, inner)?
        };
        let Some(unnests) = place.unnests.as_deref_mut() else {
            let message = format!(
                "unnest is not supported in {}; call it in the list of SELECT or in FROM",
                place.clause
            );
            return Err(Error::unsupported(message));
        };
        let list = match list.is_null() {
            true => self.cast_to(list, &super::table_function::list_of(Atom::Int32), false)?,
            false => list,
        };
        let Atom::List(slot) = &list.atom else {
            let message = format!("unnest takes a list, not {}", list.atom);
            return Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION));
        };
        let atom = slot.atom.clone();
        if let Some(known) = unnests.iter().find(|known| known.list.expr == list.expr)
            && !self.fields.types().volatile(&list.expr)
        {
            return Ok(Typed::new(Expr::Field(known.element.clone()), atom));
        }
        let element = self.fields.fresh("unnest", atom.clone());
        unnests.push(Unnested { list, element: element.clone() });
        Ok(Typed::new(Expr::Field(element), atom))
    }

    fn no_function(&self, name: &str, args: &[Typed]) -> Error {
        let types = args.iter().map(|arg| arg.atom.to_string()).collect::<Vec<_>>().join(", ");
        let foreign = self.library().foreign_names().filter(|known| is_offered(known));
        let all = OWN.iter().copied().map(String::from).chain(foreign);
        let near = all.map(|known| (edit_distance(name, &known), known)).min();
        let hint = match near {
            Some((distance, known)) if distance <= 2 && distance < name.chars().count() / 2 + 1 => {
                format!("; did you mean {known}?")
            }
            _ => String::new(),
        };
        let message = format!("there is no function {name}({types}){hint}");
        Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION)
    }
}

impl Binder<'_> {
    /// An error of a library's function in the words of a user.
    pub(super) fn of_function(error: Error, name: &str) -> Error {
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

/// The name of a function, which may be one of PostgreSQL's catalog.
pub(super) fn function_name(function: &Function) -> Option<String> {
    let parts: Option<Vec<_>> =
        function.name.0.iter().map(|part| part.as_ident().map(normalized)).collect();
    match parts?.as_slice() {
        [name] => Some(name.clone()),
        [schema, name] if schema == "pg_catalog" => Some(name.clone()),
        _ => None,
    }
}

/// An argument that is an expression.
pub(super) fn argument<'q>(arg: &'q FunctionArg, function: &Function) -> Result<&'q Ast> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr),
        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_)) => {
            Err(refuse_at("table.* as an argument (name a column)", function))
        }
        FunctionArg::Unnamed(_) => {
            let message = format!("{} does not take *", function.name);
            let error = Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION);
            Err(super::placed(error, function.span()))
        }
        FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => {
            let message = format!("{} has no argument that is called so: {arg}", function.name);
            let error = Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION);
            Err(super::placed(error, function.span()))
        }
    }
}

fn is_list(args: &[Typed]) -> bool {
    matches!(args.first(), Some(Typed { atom: Atom::List(_), .. }))
}
