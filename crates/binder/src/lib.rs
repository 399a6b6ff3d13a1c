//! The binder: turns a query's syntax tree into a relation. It resolves names to typed fields and
//! rewrites subqueries as joins.
//!
//! A statement is bound with a [`PlanContext`]: the tables, and what the session has defined. Its
//! [`query`](PlanContext::query) binds a query and has [`tessera_optimizer::plan`] turn the
//! relation into a plan of sub-operators.
//!
//! Names and types follow PostgreSQL; `docs/dialect.md` lists the differences. Each part of the
//! syntax tree is either bound or rejected with an error that names it and its position.
//!
//! | file | binds |
//! |---|---|
//! | `query`, `cte`, `recursive`, `set`, `by_name` | queries, WITH, set operations, LIMIT |
//! | `values`, `literal_rows` | VALUES |
//! | `describe` | DESCRIBE, SHOW and SUMMARIZE in queries; LIMIT in percent |
//! | `select`, `projection`, `list`, `group`, `grouped`, `order` | SELECT: list, GROUP BY, DISTINCT, ORDER BY |
//! | `aliases`, `columns` | results that others read by alias; COLUMNS and the options of `*` |
//! | `from`, `factor`, `join`, `as_of`, `table_function`, `ordinality`, `sample` | FROM |
//! | `pivot`, `pivot_select`, `pivot_cells`, `unpivot` | PIVOT, UNPIVOT |
//! | `scope`, `steps` | column names; work that must precede an expression |
//! | `expr`, `operator`, `compare`, `row`, `pattern`, `cast`, `nested` | expressions |
//! | `membership`, `in_literals`, `literal`, `subquery` | IN, BETWEEN, ANY; literals; subqueries |
//! | `collation` | COLLATE, and the keys of texts with a collation |
//! | `function`, `struct_function`, `lambda` | calls of scalar functions |
//! | `macros`, `user_macro`, `inline` | macros and functions in SQL |
//! | `parameter` | parameters and variables |
//! | `system` | `information_schema`, `pg_catalog` and their like |
//! | `aggregate`, `aggregate_arguments` | calls of aggregate functions |
//! | `window`, `window_definition`, `window_range` | window functions |
//! | `typed`, `untyped`, `coerce`, `zone`, `enums`, `bit_strings` | types |
//!
//! Beside them, `context`, `definitions` and `parameters` are what a statement is bound with;
//! `clock` has its time.
//!
//! ```
//! use tessera_binder::{Constant, Parameters};
//!
//! // What `?`, or `$1`, stands for.
//! let values = Parameters::positional([Constant::from(2)]);
//! assert_ne!(values, Parameters::default());
//! ```

#![forbid(unsafe_code)]

mod aggregate;
mod aggregate_arguments;
mod aliases;
mod as_of;
mod bit_strings;
mod by_name;
mod cast;
mod clock;
mod coerce;
mod collation;
mod columns;
mod compare;
mod context;
mod cte;
mod definitions;
mod depth;
mod describe;
mod enums;
mod expr;
mod factor;
mod file_functions;
mod from;
mod function;
mod group;
mod grouped;
mod in_literals;
mod inline;
mod interval_parts;
mod join;
mod lambda;
mod list;
mod literal;
mod literal_rows;
mod macros;
mod membership;
mod nested;
mod operator;
mod order;
mod ordinality;
mod parameter;
mod parameters;
mod pattern;
mod pivot;
mod pivot_cells;
mod pivot_select;
mod pivot_values;
mod projection;
mod query;
mod recursive;
mod row;
mod row_numbers;
mod sample;
mod scope;
mod select;
mod set;
mod signature;
mod steps;
mod struct_function;
mod subquery;
mod system;
mod table_function;
mod timetz;
mod typed;
mod unpivot;
mod untyped;
mod user_macro;
mod values;
mod window;
mod window_definition;
mod window_range;
mod zone;

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast::{Query, Spanned};
use sqlparser::tokenizer::Span as TokenSpan;
use tessera_functions::Library;
use tessera_optimizer::expression::Simplifier;
use tessera_optimizer::logical::fields::Fields;
use tessera_optimizer::logical::relation::{Name, Relation};
use tessera_optimizer::table::TableCatalog;
use tessera_parser::{Macro, normalized};
use tessera_plan::{Expr, Rules};
use tessera_types::{Error, Result, Span};

use clock::StatementTime;
pub use context::{Mode, PlanContext, PlannedQuery, Settings};
use cte::Env;
pub use definitions::{Definitions, Environment, Prepared};
pub use parameters::{Constant, Inference, Parameters};
use scope::{OutputColumn, Scope};
use steps::Step;
use typed::TypedExpr;

/// A bound query: its relation and its result columns.
#[derive(Debug, Clone)]
pub(crate) struct BoundQuery {
    pub(crate) relation: Relation,
    /// The result columns in order; their fields are fields of `relation`.
    pub(crate) columns: Vec<OutputColumn>,
}

/// The binder of one statement.
pub(crate) struct Binder<'a> {
    pub(crate) fields: Fields<'a>,
    catalog: &'a dyn TableCatalog,
    start_time: StatementTime,
    /// The time zone of timestamps with time zone.
    zone: Arc<str>,
    /// Uncorrelated groupings bound so far, which equal groupings reuse.
    groupings: Vec<grouped::CachedGrouping>,
    /// Volatile common table expressions bound so far, which later references share.
    shared: Vec<(Rc<cte::CteDefinition>, BoundQuery)>,
    /// The number of recursive queries bound so far, for unique identifiers.
    recursions: usize,
    /// The number of recursive terms being bound.
    open_recursions: usize,
    /// The nesting depth of the view being bound.
    view_depth: usize,
    /// The number of volatile function calls bound so far.
    volatile_calls: Cell<usize>,
    /// Whether a function of the current date or time was bound.
    reads_clock: Cell<bool>,
    /// The collations of fields of text.
    collations: HashMap<Name, collation::Collation>,
    /// Whether the statement has COLLATE.
    has_collations: Cell<bool>,
    /// Whether the statement reads a column with the name of a row number.
    reads_row_numbers: bool,
    environment: Environment<'a>,
    mode: Mode<'a>,
    /// The macros of the session that are being bound, the innermost last.
    open_macros: Vec<Arc<Macro>>,
}

/// The position of an expression in a query: its scope, its clause and the work that precedes it.
pub(crate) struct Place<'p, 's> {
    pub(crate) scope: &'p Scope<'s>,
    /// The steps that the relation needs before the expression can be computed.
    pub(crate) steps: &'p mut Vec<Step>,
    /// The name of the clause, for error messages.
    pub(crate) clause: &'static str,
    /// The `unnest` calls collected so far; `None` where `unnest` is not allowed.
    pub(crate) unnests: Option<&'p mut Vec<list::UnnestCall>>,
}

impl<'a> Binder<'a> {
    pub(crate) fn new(
        catalog: &'a dyn TableCatalog,
        library: &'a Arc<Library>,
        start_time: StatementTime,
        settings: &Settings,
        environment: Environment<'a>,
        mode: Mode<'a>,
    ) -> Self {
        Binder {
            fields: Fields::new(library, settings.rules),
            catalog,
            start_time,
            zone: settings.time_zone.zone.clone(),
            groupings: Vec::new(),
            shared: Vec::new(),
            recursions: 0,
            open_recursions: 0,
            view_depth: 0,
            volatile_calls: Cell::new(0),
            reads_clock: Cell::new(false),
            collations: HashMap::new(),
            has_collations: Cell::new(false),
            reads_row_numbers: false,
            environment,
            mode,
            open_macros: Vec::new(),
        }
    }

    /// Binds the query of a statement.
    ///
    /// # Errors
    /// A name is unknown or ambiguous, types do not match, or a construct is not supported.
    pub(crate) fn statement(&mut self, query: &Query) -> Result<BoundQuery> {
        self.reads_row_numbers |= row_numbers::are_read(query);
        self.query(query, None, &Env::default())
    }

    /// The value of a function of the current date or time; `None` for other functions.
    fn clock(&self, function: &str) -> Option<Expr> {
        let value = self.start_time.value_of(function, &self.zone)?;
        self.reads_clock.set(true);
        Some(value)
    }

    fn library(&self) -> &'a Arc<Library> {
        self.fields.library
    }

    /// Simplifies an expression into the form in which it is computed.
    fn finished(&self, value: TypedExpr) -> Result<TypedExpr> {
        let types = self.fields.types();
        self.simplified(value, types.rules)
    }

    /// Evaluates a value as far as possible at planning time, regardless of which rules are
    /// enabled.
    fn evaluated(&self, value: TypedExpr) -> Result<TypedExpr> {
        self.simplified(value, Rules::ALL)
    }

    fn simplified(&self, value: TypedExpr, rules: Rules) -> Result<TypedExpr> {
        let mut value = value;
        if self.has_collations.get() {
            collation::remove_marks(&mut value.expr);
        }
        let simplifier = Simplifier::new(self.library(), self.fields.types()).with_rules(rules);
        let expr = simplifier.tree(value.expr);
        // The result type of a call may depend on the form of an argument.
        let expr = match self.fields.atom_of(&expr)? {
            atom if atom == value.atom => expr,
            _ => expr.cast(value.atom.clone()),
        };
        Ok(TypedExpr { expr, ..value })
    }

    /// Calls a function of the library.
    fn call(&self, function: &str, args: Vec<TypedExpr>) -> Result<TypedExpr> {
        let args = self.labeled(enums::Called::Scalar, function, args)?;
        let args = self.times_taken(function, self.bits_as_text(function, args)?)?;
        let given: Vec<_> = args.iter().map(|arg| (arg.atom.clone(), true, &arg.expr)).collect();
        let (atom, _) = tessera_plan::Functions::scalar(&**self.library(), function, &given)
            .map_err(|error| Self::function_error(error, function))?;
        if tessera_plan::Functions::is_volatile(&**self.library(), function) {
            self.volatile_calls.set(self.volatile_calls.get() + 1);
        }
        let args = args.into_iter().map(|arg| arg.expr).collect();
        self.in_session_zone(TypedExpr::new(Expr::call(function, args), atom))
    }

    fn is_volatile(&self, expr: &Expr) -> bool {
        self.fields.types().volatile(expr)
    }

    /// Reads a field.
    fn field(&self, name: &Name) -> Result<TypedExpr> {
        Ok(TypedExpr::new(Expr::Field(name.clone()), self.fields.atom(name)?))
    }
}

/// The remaining stack size that triggers an allocation, in bytes.
const STACK_LEFT: usize = 256 << 10;
/// The size of an additional stack segment, in bytes.
const STACK_MORE: usize = 2 << 20;

/// Runs a recursive part of the binder with enough stack.
fn with_stack<T>(job: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_LEFT, STACK_MORE, job)
}

/// A part of a statement that has a source position. The position is computed only for errors,
/// because the parser walks the whole part to find it.
pub(crate) trait HasSpan {
    /// Returns the span of the part.
    fn source_span(self) -> TokenSpan;
}

impl HasSpan for TokenSpan {
    fn source_span(self) -> TokenSpan {
        self
    }
}

impl<T: Spanned> HasSpan for &T {
    fn source_span(self) -> TokenSpan {
        self.span()
    }
}

/// Attaches a source position to an error that has none, if the position is known.
pub(crate) fn with_span(error: Error, written: impl HasSpan) -> Error {
    if error.span().is_some() {
        return error;
    }
    let place = written.source_span();
    match place.start.line {
        0 => error,
        line => error.at(Span { line: line as u32, column: place.start.column as u32 }),
    }
}

/// Returns an error if an unsupported construct is present.
pub(crate) fn refuse(condition: bool, construct: &str, written: impl HasSpan) -> Result<()> {
    match condition {
        true => {
            Err(with_span(Error::unsupported(format!("{construct} is not supported")), written))
        }
        false => Ok(()),
    }
}

/// Returns the error for an unsupported construct at a source position.
pub(crate) fn unsupported_at(construct: &str, written: &impl Spanned) -> Error {
    with_span(Error::unsupported(format!("{construct} is not supported")), written.span())
}

/// Strips the parentheses around an expression.
fn without_parentheses(mut expr: &sqlparser::ast::Expr) -> &sqlparser::ast::Expr {
    while let sqlparser::ast::Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}
