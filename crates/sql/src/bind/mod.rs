//! The binder: a query's syntax tree becomes a relation. Names become fields, each with a type;
//! subqueries become joins.
//!
//! Names and types mean what they mean in PostgreSQL; `docs/dialect.md` lists the differences.
//! Every part of the syntax tree is bound or is an error that names it and its place.
//!
//! | file | binds |
//! |---|---|
//! | `query`, `cte`, `recursive`, `set`, `values` | queries, WITH, UNION and its like, VALUES |
//! | `select`, `list`, `group`, `grouped`, `order` | SELECT: its list, GROUP BY, DISTINCT, ORDER BY and LIMIT |
//! | `from`, `factor`, `join`, `table_function` | tables, joins, functions in FROM |
//! | `scope`, `fields` | names of columns; names and types of fields |
//! | `expr`, `operator`, `compare`, `row`, `pattern`, `cast`, `literal`, `nested`, `subquery` | expressions |
//! | `function`, `aggregate` | calls |
//! | `typed`, `untyped`, `coerce`, `sql_type` | types |

mod aggregate;
mod cast;
mod coerce;
mod compare;
mod cte;
mod expr;
mod factor;
mod from;
mod function;
mod group;
mod grouped;
mod in_literals;
mod join;
mod list;
mod literal;
mod nested;
mod operator;
mod order;
mod pattern;
mod query;
mod recursive;
mod row;
mod scope;
mod select;
mod set;
mod sql_type;
mod steps;
mod subquery;
mod table_function;
mod typed;
mod untyped;
mod values;
mod written_rows;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast::{Ident, Query, Spanned};
use sqlparser::tokenizer::Span as Tokens;
use tessera_functions::Library;
use tessera_optimizer::expression::Simplifier;
use tessera_optimizer::logical::fields::Fields;
use tessera_optimizer::logical::relation::{Name, Relation};
use tessera_optimizer::table::Catalog;
use tessera_plan::{Expr, Rules};
use tessera_types::{Error, Result, Span};

use crate::clock::Moment;
use cte::Env;
use scope::{Output, Scope};
pub(crate) use sql_type::atom_of_type;
use steps::Step;
use typed::Typed;

/// A query's relation, and the columns of its result.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub(crate) relation: Relation,
    /// By position; their fields are among the relation's.
    pub(crate) columns: Vec<Output>,
}

/// Binds one statement.
pub(crate) struct Binder<'a> {
    pub(crate) fields: Fields<'a>,
    catalog: &'a dyn Catalog,
    moment: Moment,
    /// Groupings so far that read nothing from outside.
    groupings: Vec<grouped::Known>,
    /// Volatile common table expressions that have been read.
    shared: Vec<(Rc<cte::Definition>, Bound)>,
    recursions: usize,
    /// Recursive queries whose steps are being bound.
    open_recursions: usize,
    view_depth: usize,
    /// How many calls of volatile functions have been bound.
    volatile_calls: Cell<usize>,
}

/// Where an expression stands.
pub(crate) struct Place<'p, 's> {
    pub(crate) scope: &'p Scope<'s>,
    /// What has to be done before the expression can be computed.
    pub(crate) steps: &'p mut Vec<Step>,
    /// The clause, for messages.
    pub(crate) clause: &'static str,
    /// Calls of `unnest` so far, where there can be some.
    pub(crate) unnests: Option<&'p mut Vec<list::Unnested>>,
}

impl<'a> Binder<'a> {
    pub(crate) fn new(
        catalog: &'a dyn Catalog,
        library: &'a Arc<Library>,
        moment: Moment,
        rules: Rules,
    ) -> Self {
        Binder {
            fields: Fields::new(library, rules),
            catalog,
            moment,
            groupings: Vec::new(),
            shared: Vec::new(),
            recursions: 0,
            open_recursions: 0,
            view_depth: 0,
            volatile_calls: Cell::new(0),
        }
    }

    /// What a statement's query means.
    ///
    /// # Errors
    /// Names that stand for nothing, types that do not fit, what is not offered.
    pub(crate) fn statement(&mut self, query: &Query) -> Result<Bound> {
        self.query(query, None, &Env::default())
    }

    fn library(&self) -> &'a Arc<Library> {
        self.fields.library
    }

    /// An expression in the form in which it is computed.
    fn finished(&self, value: Typed) -> Result<Typed> {
        let types = self.fields.types();
        self.simplified(value, types.rules)
    }

    /// A value that may have to be known while planning, whichever rules are on.
    fn evaluated(&self, value: Typed) -> Result<Typed> {
        self.simplified(value, Rules::ALL)
    }

    fn simplified(&self, value: Typed, rules: Rules) -> Result<Typed> {
        let simplifier = Simplifier::new(self.library(), self.fields.types()).with_rules(rules);
        let expr = simplifier.tree(value.expr);
        // What a call gives may depend on how an argument is written.
        let expr = match self.fields.atom_of(&expr)? {
            atom if atom == value.atom => expr,
            _ => expr.cast(value.atom.clone()),
        };
        Ok(Typed { expr, ..value })
    }

    /// A call of a library's function, with its type.
    fn call(&self, function: &str, args: Vec<Typed>) -> Result<Typed> {
        let given: Vec<_> = args.iter().map(|arg| (arg.atom.clone(), true, &arg.expr)).collect();
        let (atom, _) = tessera_plan::Functions::scalar(&**self.library(), function, &given)
            .map_err(|error| Self::of_function(error, function))?;
        if tessera_plan::Functions::is_volatile(&**self.library(), function) {
            self.volatile_calls.set(self.volatile_calls.get() + 1);
        }
        let args = args.into_iter().map(|arg| arg.expr).collect();
        Ok(Typed::new(Expr::call(function, args), atom))
    }

    fn is_volatile(&self, expr: &Expr) -> bool {
        self.fields.types().volatile(expr)
    }

    /// A field's value.
    fn field(&self, name: &Name) -> Result<Typed> {
        Ok(Typed::new(Expr::Field(name.clone()), self.fields.atom(name)?))
    }
}

/// The stack that is left when more is allocated, and how much more.
const STACK_LEFT: usize = 256 << 10;
const STACK_MORE: usize = 2 << 20;

/// Runs a part of the binder that calls itself for what is nested, with enough stack.
fn with_stack<T>(job: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_LEFT, STACK_MORE, job)
}

/// A name as it is looked up: in lower case unless it is in quotes.
pub(crate) fn normalized(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

/// Where something is written. It is looked up for errors only: the parser walks the whole part.
pub(crate) trait Written {
    /// The place.
    fn tokens(self) -> Tokens;
}

impl Written for Tokens {
    fn tokens(self) -> Tokens {
        self
    }
}

impl<T: Spanned> Written for &T {
    fn tokens(self) -> Tokens {
        self.span()
    }
}

/// The error at a place of the statement, where that is known.
pub(crate) fn placed(error: Error, written: impl Written) -> Error {
    if error.span().is_some() {
        return error;
    }
    let place = written.tokens();
    match place.start.line {
        0 => error,
        line => error.at(Span { line: line as u32, column: place.start.column as u32 }),
    }
}

/// An error where there is a construct that is not offered.
pub(crate) fn refuse(condition: bool, construct: &str, written: impl Written) -> Result<()> {
    match condition {
        true => Err(placed(Error::unsupported(format!("{construct} is not supported")), written)),
        false => Ok(()),
    }
}

/// The same for a construct that is written somewhere.
pub(crate) fn refuse_at(construct: &str, written: &impl Spanned) -> Error {
    placed(Error::unsupported(format!("{construct} is not supported")), written.span())
}

/// What stands in parentheses.
fn without_parentheses(mut expr: &sqlparser::ast::Expr) -> &sqlparser::ast::Expr {
    while let sqlparser::ast::Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}
