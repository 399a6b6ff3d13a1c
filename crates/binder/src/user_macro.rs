//! Calls of macros and functions in SQL that the session has defined.

use std::sync::Arc;

use sqlparser::ast::{
    DataType, ExactNumberInfo, Expr as Ast, Function, FunctionArg, FunctionArgExpr, ObjectName,
    Spanned, TableAlias,
};
use tessera_optimizer::logical::relation::Relation;
use tessera_parser::{Macro, MacroBody, MacroParameter, select};
use tessera_plan::Expr;
use tessera_types::{Atom, Error, Result, SqlState};

use super::cte::Env;
use super::factor::aliased;
use super::from::{FromContext, Tables, lateral_scope};
use super::inline::{WrittenArgument, argument_key, list_of, reads};
use super::macros::check_clauses;
use super::row::any;
use super::scope::Scope;
use super::typed::TypedExpr;
use super::{Binder, BoundQuery, Place, normalized, row_numbers, unsupported_at, with_span};
use crate::context::PlanContext;

/// A macro, and the argument of each of its parameters.
struct ChosenMacro {
    definition: Arc<Macro>,
    /// The values; `None` where the default counts.
    args: Vec<Option<Ast>>,
}

impl Binder<'_> {
    /// Binds a call of a macro of the session; `None` for other functions.
    pub(super) fn user_macro(
        &mut self,
        name: &str,
        function: &Function,
        place: &mut Place<'_, '_>,
    ) -> Result<Option<TypedExpr>> {
        let args = list_of(function).map_or(&[][..], |list| &list.args[..]);
        let Some(chosen) = self.chosen(name, args, false)? else { return Ok(None) };
        let definition = chosen.definition.clone();
        let MacroBody::Value(body) = &definition.body else { return Ok(None) };
        let value = match self.aggregates_in(body, 0) {
            0 => {
                check_clauses(name, function)?;
                self.value_of(name, &definition, body, &chosen.args, place)?
            }
            _ => {
                self.enter(name, &definition)?;
                let value = self.over_aggregates(&definition, body, &chosen.args, function, place);
                self.open_macros.pop();
                value?
            }
        };
        let Some(data_type) = &definition.result else { return Ok(Some(value)) };
        let result = self.local_type(data_type)?;
        let exact = is_exact_number(data_type, &value.atom);
        match exact {
            true => Ok(Some(value)),
            false => self.assigned(value, &result, &format!("the result of {name}")).map(Some),
        }
    }

    /// Binds the body of a macro over scalars.
    fn value_of(
        &mut self,
        name: &str,
        definition: &Arc<Macro>,
        body: &Ast,
        args: &[Option<Ast>],
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let mut arguments = Vec::with_capacity(args.len());
        let mut nulls = Vec::new();
        for (at, (parameter, arg)) in definition.parameters.iter().zip(args).enumerate() {
            let position = format!("${}", at + 1);
            let reads = reads(body, &position, parameter.name.as_deref())
                + usize::from(definition.is_strict);
            let value = match (arg, &parameter.default) {
                (Some(arg), _) => self.bound_argument(arg, reads, place)?,
                (None, Some(default)) => self.inlined(default, Vec::new(), place)?,
                (None, None) => return Err(Error::internal("a macro without an argument")),
            };
            let value = self.as_declared(value, parameter, at)?;
            nulls.push(Expr::IsNull(Box::new(value.expr.clone())));
            arguments.extend(named(parameter, &position, value));
        }
        // Positions in the body mean nothing in the statement.
        self.enter(name, definition)?;
        let value = self.inlined(body, arguments, place).map_err(Error::without_span);
        self.open_macros.pop();
        let value = value?;
        if !definition.is_strict || nulls.is_empty() {
            return Ok(value);
        }
        let atom = value.atom.clone();
        let branches = vec![(any(nulls), Expr::null(atom.clone()))];
        let expr = Expr::Case { branches, otherwise: Some(Box::new(value.expr)) };
        Ok(TypedExpr::new(expr, atom))
    }

    /// Binds the body of a macro over aggregates or window functions.
    fn over_aggregates(
        &mut self,
        definition: &Macro,
        body: &Ast,
        args: &[Option<Ast>],
        function: &Function,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let mut written = Vec::with_capacity(args.len());
        for (at, (parameter, arg)) in definition.parameters.iter().zip(args).enumerate() {
            let value = arg.as_ref().or(parameter.default.as_ref());
            written.push(WrittenArgument {
                position: format!("${}", at + 1),
                name: parameter.name.as_deref(),
                value: value.ok_or_else(|| Error::internal("a macro without an argument"))?,
            });
        }
        let tree = self.filled(body.clone(), &written, function)?;
        self.expr(&tree, place).map_err(Error::without_span)
    }

    /// Binds a call of a table macro in FROM; `None` for other functions.
    pub(super) fn table_macro(
        &mut self,
        name: &str,
        args: &[FunctionArg],
        alias: Option<&TableAlias>,
        context: FromContext<'_, '_>,
        written: &ObjectName,
    ) -> Result<Option<Tables>> {
        let Some(chosen) = self.chosen(name, args, true)? else { return Ok(None) };
        let definition = chosen.definition.clone();
        let MacroBody::Table(query) = &definition.body else { return Ok(None) };
        let lateral = lateral_scope(context, true);
        let scope = Scope::empty(lateral.as_ref().or(context.outer), context.env.clone());
        let mut arguments = Vec::with_capacity(chosen.args.len());
        for (at, (parameter, arg)) in definition.parameters.iter().zip(&chosen.args).enumerate() {
            let steps = &mut Vec::new();
            let place = &mut Place { scope: &scope, steps, clause: "FROM", unnests: None };
            let value = match (arg, &parameter.default) {
                (Some(arg), _) => self.expr(arg, place)?,
                (None, Some(default)) => self.inlined(default, Vec::new(), place)?,
                (None, None) => return Err(Error::internal("a macro without an argument")),
            };
            if !place.steps.is_empty() || self.is_volatile(&value.expr) {
                let what = format!("a subquery or a volatile function as argument of {name}");
                return Err(unsupported_at(&what, written));
            }
            let value = self.as_declared(value, parameter, at)?;
            arguments.extend(named(parameter, &format!("${}", at + 1), value));
        }
        self.enter(name, &definition)?;
        self.reads_row_numbers |= row_numbers::are_read(query);
        let inner = Scope::of_arguments(arguments);
        let bound = self.query(query, Some(&inner), &Env::default());
        self.open_macros.pop();
        let bound = bound.map_err(|error| with_span(error.without_span(), written.span()))?;
        let bound = self.as_returned(bound, &definition, name)?;
        aliased(bound, alias, vec![name.into()]).map(Some)
    }

    /// Gives the columns of a query the names and types that a function returns.
    fn as_returned(
        &mut self,
        bound: BoundQuery,
        definition: &Macro,
        name: &str,
    ) -> Result<BoundQuery> {
        let declared: Vec<(Arc<str>, &DataType)> = match &definition.result {
            Some(data_type) => vec![(name.into(), data_type)],
            None => definition
                .columns
                .iter()
                .map(|column| (normalized(&column.name).into(), &column.data_type))
                .collect(),
        };
        if declared.is_empty() {
            return Ok(bound);
        }
        if declared.len() != bound.columns.len() {
            let message = format!(
                "function {name} returns {} columns, but its query has {}",
                declared.len(),
                bound.columns.len()
            );
            return Err(Error::semantic(message).with_state(SqlState::INVALID_FUNCTION_DEFINITION));
        }
        let BoundQuery { relation, mut columns } = bound;
        let mut exprs = Vec::with_capacity(columns.len());
        for (column, (column_name, data_type)) in columns.iter_mut().zip(declared) {
            let mut value = self.field(&column.field)?;
            if !is_exact_number(data_type, &value.atom) {
                let atom = self.local_type(data_type)?;
                let what = format!("column {column_name} of {name}");
                let invalid = SqlState::INVALID_FUNCTION_DEFINITION;
                value = self
                    .assigned(value, &atom, &what)
                    .map_err(|error| error.with_state(invalid))?;
            }
            let field = self.fields.fresh(&column_name, value.atom.clone());
            exprs.push((field.clone(), value.expr));
            column.name = column_name;
            column.field = field;
            column.atom = value.atom;
            column.literal = None;
        }
        Ok(BoundQuery { relation: Relation::Map { input: Box::new(relation), exprs }, columns })
    }

    /// Converts an argument to the type of its parameter.
    fn as_declared(
        &self,
        value: TypedExpr,
        parameter: &MacroParameter,
        at: usize,
    ) -> Result<TypedExpr> {
        let Some(data_type) = &parameter.data_type else { return Ok(value) };
        if is_exact_number(data_type, &value.atom) {
            return Ok(value);
        }
        let what = match &parameter.name {
            Some(name) => format!("argument {name}"),
            None => format!("argument {}", at + 1),
        };
        let atom = self.local_type(data_type)?;
        self.implicitly(value, &atom, &what)
            .map_err(|error| error.with_state(SqlState::UNDEFINED_FUNCTION))
    }

    /// Chooses the macro of a name that takes the arguments; `None` if there is no macro for rows
    /// of FROM, or for values, of this name.
    fn chosen(
        &self,
        name: &str,
        args: &[FunctionArg],
        in_from: bool,
    ) -> Result<Option<ChosenMacro>> {
        let all = self.environment.definitions.macros(name);
        let is_table = |one: &&Arc<Macro>| matches!(one.body, MacroBody::Table(_));
        let candidates: Vec<&Arc<Macro>> =
            all.iter().filter(|one| is_table(one) == in_from).collect();
        if candidates.is_empty() {
            return match all.is_empty() || in_from {
                true => Ok(None),
                false => {
                    let message = format!("{name} gives rows; call it in FROM");
                    Err(Error::semantic(message).with_state(SqlState::WRONG_OBJECT_TYPE))
                }
            };
        }
        for definition in &candidates {
            if let Some(args) = matched(definition, args) {
                return Ok(Some(ChosenMacro { definition: (*definition).clone(), args }));
            }
        }
        let takes: Vec<String> = candidates.iter().map(|one| signature(name, one)).collect();
        let message = format!(
            "{name} does not take these {} arguments; expected {}",
            args.len(),
            takes.join(" or ")
        );
        Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION))
    }

    /// Begins to bind the body of a macro.
    fn enter(&mut self, name: &str, definition: &Arc<Macro>) -> Result<()> {
        if self.open_macros.iter().any(|open| Arc::ptr_eq(open, definition)) {
            return Err(Error::semantic(format!("macro {name} calls itself"))
                .with_state(SqlState::INVALID_RECURSION));
        }
        self.open_macros.push(definition.clone());
        Ok(())
    }
}

impl PlanContext<'_> {
    /// Returns whether Tessera has a function of this name.
    pub fn has_function(&self, name: &str) -> bool {
        self.binder().own_function_names().contains(name)
    }

    /// Binds the body of a macro with arguments whose values are not known.
    ///
    /// # Errors
    /// The body reads an unknown name or, where all types are declared, it cannot be bound.
    pub fn check_macro(&self, name: &str, definition: &Macro) -> Result<()> {
        let binder = &mut self.binder();
        let mut arguments = Vec::with_capacity(definition.parameters.len());
        for (at, parameter) in definition.parameters.iter().enumerate() {
            let atom = match &parameter.data_type {
                Some(data_type) => binder.local_type(data_type)?,
                None => Atom::Null,
            };
            let value = TypedExpr::new(Expr::null(atom.clone()), atom);
            arguments.extend(named(parameter, &format!("${}", at + 1), value));
        }
        let query = match &definition.body {
            MacroBody::Table(query) => query.clone(),
            MacroBody::Value(body) => select((**body).clone())?,
        };
        let scope = Scope::of_arguments(arguments);
        let bound = binder
            .query(&query, Some(&scope), &Env::default())
            .and_then(|bound| binder.as_returned(bound, definition, name));
        let is_typed = definition.result.is_some() || !definition.columns.is_empty();
        match bound {
            Ok(_) => Ok(()),
            Err(error) if is_typed || NAMES_UNKNOWN.contains(&error.sql_state()) => {
                Err(error.without_span().context(format!("in the body of {name}")))
            }
            // The types of the arguments may make the difference.
            Err(_) => Ok(()),
        }
    }
}

/// The states of names that a body cannot read, whatever its arguments are.
const NAMES_UNKNOWN: [SqlState; 3] =
    [SqlState::UNDEFINED_COLUMN, SqlState::UNDEFINED_TABLE, SqlState::AMBIGUOUS_COLUMN];

/// Returns the names under which a body reads an argument.
fn named(
    parameter: &MacroParameter,
    position: &str,
    value: TypedExpr,
) -> impl Iterator<Item = (Arc<str>, TypedExpr)> {
    let name = parameter.name.as_deref().map(|name| (Arc::from(name), value.clone()));
    name.into_iter().chain([(Arc::from(argument_key(position)), value)])
}

/// Returns whether a declared type is PostgreSQL's `numeric`, which keeps the digits of a number.
fn is_exact_number(data_type: &DataType, atom: &Atom) -> bool {
    let is_numeric = matches!(
        data_type,
        DataType::Numeric(ExactNumberInfo::None)
            | DataType::Decimal(ExactNumberInfo::None)
            | DataType::Dec(ExactNumberInfo::None)
    );
    is_numeric && matches!(atom, Atom::Decimal(..))
}

/// Returns the argument of each parameter, if the macro takes these arguments.
fn matched(definition: &Macro, args: &[FunctionArg]) -> Option<Vec<Option<Ast>>> {
    let parameters = &definition.parameters;
    let mut given: Vec<Option<Ast>> = vec![None; parameters.len()];
    for (index, arg) in args.iter().enumerate() {
        let (at, value) = match arg {
            FunctionArg::Unnamed(value) => (index, value),
            FunctionArg::Named { name, arg, .. } => {
                let name = normalized(name);
                let is_it = |one: &MacroParameter| one.name.as_deref() == Some(&*name);
                (parameters.iter().position(is_it)?, arg)
            }
            FunctionArg::ExprNamed { .. } => return None,
        };
        let FunctionArgExpr::Expr(value) = value else { return None };
        match given.get_mut(at)? {
            Some(_) => return None,
            free => *free = Some(value.clone()),
        }
    }
    let is_there = |(arg, parameter): (&Option<Ast>, &MacroParameter)| {
        arg.is_some() || parameter.default.is_some()
    };
    given.iter().zip(parameters).all(is_there).then_some(given)
}

/// Shows a macro with its parameters.
pub(super) fn signature(name: &str, definition: &Macro) -> String {
    let parameter = |(at, one): (usize, &MacroParameter)| {
        let mut text = one.name.clone().unwrap_or_else(|| format!("${}", at + 1));
        if let Some(data_type) = &one.data_type {
            text = format!("{text} {data_type}");
        }
        match &one.default {
            Some(default) => format!("{text} := {default}"),
            None => text,
        }
    };
    let all: Vec<String> = definition.parameters.iter().enumerate().map(parameter).collect();
    format!("{name}({})", all.join(", "))
}
