//! Inlining: the body of a macro is bound in a scope of its own, in which only its arguments can be
//! read. Arguments are bound in the place of the call, once.

use std::ops::ControlFlow;
use std::sync::Arc;

use sqlparser::ast::{
    BinaryOperator, Expr as Ast, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, FunctionArguments, Value, ValueWithSpan, Visit, VisitMut, Visitor,
    VisitorMut,
};
use tessera_plan::Functions;
use tessera_types::{Error, Result};

use super::depth::each_expr;
use super::function::function_name;
use super::list::is_called;
use super::scope::Scope;
use super::typed::TypedExpr;
use super::{Binder, Place, normalized, with_span};
use tessera_parser::MacroBody;

/// How deep calls of macros are searched for volatile functions and aggregates.
const SEARCH_DEPTH_MAX: usize = 32;

/// An argument as it is written, and the names by which the body reads it.
pub(super) struct WrittenArgument<'q> {
    /// `$1`, `$2`, ….
    pub(super) position: String,
    pub(super) name: Option<&'q str>,
    pub(super) value: &'q Ast,
}

/// Returns the name under which a scope has the argument of a macro that is written as `$1`. No
/// column can have it.
pub(super) fn argument_key(placeholder: &str) -> String {
    format!("\0{placeholder}")
}

impl Binder<'_> {
    /// Binds an argument of a macro in the place of its call. A volatile value that the body reads
    /// more than once is computed once.
    pub(super) fn bound_argument(
        &mut self,
        written: &Ast,
        reads: usize,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let value = self.expr(written, place)?;
        if reads > 1 { self.once(value, place) } else { Ok(value) }
    }

    /// Binds a body in which only the arguments can be read.
    pub(super) fn inlined(
        &mut self,
        body: &Ast,
        arguments: Vec<(Arc<str>, TypedExpr)>,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let scope = Scope::of_arguments(arguments);
        let inner = &mut Place {
            scope: &scope,
            steps: &mut *place.steps,
            clause: place.clause,
            unnests: place.unnests.as_deref_mut(),
        };
        self.expr(body, inner)
    }

    /// Puts arguments into a body over aggregates or window functions, which are computed over the
    /// rows of the calling query, and hands the clauses of the call on to them.
    ///
    /// # Errors
    /// A volatile argument would be computed more than once.
    pub(super) fn filled(
        &self,
        mut body: Ast,
        args: &[WrittenArgument<'_>],
        call: &Function,
    ) -> Result<Ast> {
        for (at, arg) in args.iter().enumerate() {
            if reads(&body, &arg.position, arg.name) > 1 && self.is_volatile_tree(arg.value, 0) {
                let message = format!(
                    "argument {} of {} is volatile and read more than once; compute it in a subquery in FROM",
                    at + 1,
                    call.name
                );
                return Err(with_span(Error::unsupported(message), call));
            }
        }
        if let Some(filter) = &call.filter
            && self.is_volatile_tree(filter, 0)
            && self.aggregates_in(&body, 0) > 1
        {
            let message = format!(
                "a volatile FILTER of {} is not supported; compute it in a subquery in FROM",
                call.name
            );
            return Err(with_span(Error::unsupported(message), call));
        }
        match VisitMut::visit(&mut body, &mut Filling { binder: self, args, call }) {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(body),
        }
    }

    /// Returns whether a part of a statement calls a volatile function.
    pub(super) fn is_volatile_tree(&self, tree: &impl Visit, depth: usize) -> bool {
        struct Volatile<'b, 'a>(&'b Binder<'a>, usize);
        impl Visitor for Volatile<'_, '_> {
            type Break = ();

            fn pre_visit_expr(&mut self, expr: &Ast) -> ControlFlow<()> {
                let Ast::Function(function) = expr else { return ControlFlow::Continue(()) };
                let Some(name) = function_name(function) else { return ControlFlow::Continue(()) };
                let Volatile(binder, depth) = self;
                let own = binder.environment.definitions.macros(&name);
                let in_macro = |one: &Arc<tessera_parser::Macro>| match &one.body {
                    MacroBody::Value(body) => binder.is_volatile_tree(&**body, *depth + 1),
                    MacroBody::Table(query) => binder.is_volatile_tree(&**query, *depth + 1),
                };
                let is_volatile = Functions::is_volatile(&**binder.library(), &name)
                    || matches!(name.as_str(), "gen_random_uuid" | "uuidv4")
                    || *depth < SEARCH_DEPTH_MAX && own.iter().any(in_macro);
                if is_volatile { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
        }
        tree.visit(&mut Volatile(self, depth)).is_break()
    }

    /// Counts the calls of aggregates, window functions and `grouping` outside of subqueries, also
    /// in the bodies of macros; `depth` is the number of macros around the tree.
    pub(super) fn aggregates_in(&self, tree: &Ast, depth: usize) -> usize {
        let mut found = 0;
        each_expr(tree, |expr, queries| {
            let (Ast::Function(function), 0) = (expr, queries) else { return };
            let name = function_name(function).unwrap_or_default();
            let own = self.environment.definitions.macros(&name);
            let in_macro = |one: &Arc<tessera_parser::Macro>| match &one.body {
                MacroBody::Value(body) if depth < SEARCH_DEPTH_MAX => {
                    self.aggregates_in(body, depth + 1)
                }
                _ => 0,
            };
            let is_own = function.over.is_some()
                || own.is_empty()
                    && (self.aggregate_of(function).is_some() || is_called(function, "grouping"));
            found += own.iter().map(in_macro).max().unwrap_or(0) + usize::from(is_own);
        });
        found
    }
}

/// Counts how often a body reads an argument. A read in a subquery counts twice, because the
/// subquery may read it for each of its rows.
pub(super) fn reads(body: &impl Visit, position: &str, name: Option<&str>) -> usize {
    let mut found = 0;
    each_expr(body, |expr, queries| {
        if is_argument(expr, position, name) {
            found += if queries == 0 { 1 } else { 2 };
        }
    });
    found
}

fn is_argument(expr: &Ast, position: &str, name: Option<&str>) -> bool {
    match expr {
        Ast::Value(ValueWithSpan { value: Value::Placeholder(written), .. }) => written == position,
        // A struct argument may be followed by its fields.
        Ast::Identifier(written) => name == Some(&*normalized(written)),
        Ast::CompoundIdentifier(parts) => {
            parts.first().is_some_and(|first| name == Some(&*normalized(first)))
        }
        _ => false,
    }
}

/// Puts the arguments in their places, and the clauses of the call on aggregates.
struct Filling<'b, 'a, 'q> {
    binder: &'b Binder<'a>,
    args: &'b [WrittenArgument<'q>],
    call: &'b Function,
}

impl VisitorMut for Filling<'_, '_, '_> {
    type Break = Error;

    fn post_visit_expr(&mut self, expr: &mut Ast) -> ControlFlow<Error> {
        match expr {
            Ast::Value(_) | Ast::Identifier(_) => {
                let arg = self.args.iter().find(|arg| is_argument(expr, &arg.position, arg.name));
                if let Some(arg) = arg {
                    *expr = Ast::Nested(Box::new(arg.value.clone()));
                }
            }
            Ast::Function(function) if self.binder.aggregate_of(function).is_some() => {
                self.hand_on(function);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Filling<'_, '_, '_> {
    fn hand_on(&self, function: &mut Function) {
        function.over = self.call.over.clone();
        if let Some(filter) = &self.call.filter {
            let filter = Ast::Nested(filter.clone());
            function.filter = Some(Box::new(match function.filter.take() {
                Some(own) => Ast::BinaryOp {
                    left: Box::new(Ast::Nested(own)),
                    op: BinaryOperator::And,
                    right: Box::new(filter),
                },
                None => filter,
            }));
        }
        let (Some(given), FunctionArguments::List(list)) = (list_of(self.call), &mut function.args)
        else {
            return;
        };
        let is_star = matches!(list.args[..], [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]);
        if given.duplicate_treatment.is_some() && !is_star {
            list.duplicate_treatment = given.duplicate_treatment;
        }
        // Further keys decide among rows with equal ones; without keys the order is irrelevant.
        for clause in &given.clauses {
            let own = list.clauses.iter_mut().find_map(|own| match own {
                FunctionArgumentClause::OrderBy(keys) => Some(keys),
                _ => None,
            });
            if let (FunctionArgumentClause::OrderBy(more), Some(own)) = (clause, own) {
                own.extend(more.iter().cloned());
            }
        }
    }
}

/// Returns the arguments of a call.
pub(super) fn list_of(function: &Function) -> Option<&FunctionArgumentList> {
    match &function.args {
        FunctionArguments::List(list) => Some(list),
        _ => None,
    }
}
