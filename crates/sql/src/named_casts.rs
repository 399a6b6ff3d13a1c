//! Casts that the planner must not call like what they cast.
//!
//! DataFusion names a cast after its input. So it takes `sum(a)` and `sum(CAST(a AS double))` for one column, and sorts by a grouped cast
//! of `a` where another column of the result is called `a`. Where a SELECT is in danger of that, its casts are wrapped in a
//! function that gives them a name and nothing else; `logical` takes it away once names are resolved.

use std::collections::HashMap;
use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use datafusion_common::{Result as PlannerResult, ScalarValue, internal_err};
use datafusion_expr::{
    ColumnarValue, Expr as Logical, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use sqlparser::ast::{
    self, Distinct, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, ObjectName,
    OrderByKind, Query, Select, SelectItem, SetExpr, Value, VisitMut, VisitorMut,
};
use tessera_types::{Error, Result};

use crate::check::{Flow, normalised, visited};

/// The function's name, which no identifier of a user's spells by accident.
pub(crate) const NAMED_CAST: &str = "cast as";

/// The query with the casts wrapped that would be taken for something else.
///
/// # Errors
/// None that text of a user could cause.
pub(crate) fn wrapped(query: Box<Query>) -> Result<Box<Query>> {
    visited(query, &mut Queries)
}

struct Queries;

impl VisitorMut for Queries {
    type Break = Error;

    fn post_visit_query(&mut self, query: &mut Query) -> Flow {
        let order = query.order_by.as_mut().map(|order_by| &mut order_by.kind);
        let keys: Vec<&mut Expr> = match order {
            Some(OrderByKind::Expressions(keys)) => keys.iter_mut().map(|key| &mut key.expr).collect(),
            _ => Vec::new(),
        };
        let select = match &mut *query.body {
            SetExpr::Select(select) => select,
            // What sorts a UNION belongs to none of its terms.
            terms => return terms_named(terms),
        };
        selects_named(select, keys)
    }
}

/// Each SELECT that is a term of a set operation.
fn terms_named(terms: &mut SetExpr) -> Flow {
    let mut left_over = vec![terms];
    while let Some(terms) = left_over.pop() {
        match terms {
            SetExpr::Select(select) => selects_named(select, Vec::new())?,
            SetExpr::SetOperation { left, right, .. } => left_over.extend([&mut **right, &mut **left]),
            _ => {}
        }
    }
    ControlFlow::Continue(())
}

/// Wraps the casts of a SELECT, and of the keys that sort it, where they would be taken for
/// something else.
fn selects_named<'a>(select: &'a mut Select, mut keys: Vec<&'a mut Expr>) -> Flow {
    let sorted: Vec<String> = keys.iter().filter_map(|key| result_column(key, select)).collect();
    let mut exprs = expressions(select);
    exprs.append(&mut keys);
    // Without a cast there is nothing to look for, and long expressions are not looked through.
    let has_cast = |expr: &&mut Expr| {
        let text = expr.to_string();
        text.contains("CAST(") || text.contains("::")
    };
    if !exprs.iter().any(has_cast) {
        return ControlFlow::Continue(());
    }
    let mut found = Found::default();
    exprs.iter_mut().try_for_each(|expr| found.look(expr))?;
    if !found.clash && !sorted.iter().any(|name| found.cast_columns.contains(name)) {
        return ControlFlow::Continue(());
    }
    let mut wrapping = Outermost { depth: 0, show: wrap };
    exprs.into_iter().try_for_each(|expr| expr.visit(&mut wrapping))
}

/// The expressions of a SELECT that may become columns.
fn expressions(select: &mut Select) -> Vec<&mut Expr> {
    let mut exprs: Vec<&mut Expr> = Vec::new();
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            exprs.push(expr);
        }
    }
    if let Some(Distinct::On(keys)) = &mut select.distinct {
        exprs.extend(keys);
    }
    if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
        exprs.extend(keys);
    }
    exprs.extend(&mut select.having);
    exprs
}

/// The alias of the column of the result that a key of the order names.
fn result_column(key: &Expr, select: &Select) -> Option<String> {
    let alias = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(normalised(alias)),
        _ => None,
    };
    match key {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => {
                alias(select.projection.get(number.parse::<usize>().ok()?.checked_sub(1)?)?)
            }
            _ => None,
        },
        Expr::Identifier(name) => Some(normalised(name)),
        _ => None,
    }
}

/// Shows each expression after its parts, but none of a subquery.
struct Outermost<F> {
    depth: usize,
    show: F,
}

impl<F: FnMut(&mut Expr) -> Flow> VisitorMut for Outermost<F> {
    type Break = Error;

    fn pre_visit_query(&mut self, _query: &mut Query) -> Flow {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> Flow {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        if self.depth == 0 { (self.show)(expr) } else { ControlFlow::Continue(()) }
    }
}

/// What casts a SELECT has, outside of its subqueries, and whether two of its expressions differ in nothing else.
#[derive(Default)]
struct Found {
    cast_columns: Vec<String>,
    /// Whole expressions, calls and casts (what the planner names) by their text without casts.
    texts: HashMap<String, String>,
    clash: bool,
}

impl Found {
    /// Looks at an expression and all calls and casts in it.
    fn look(&mut self, expr: &mut Expr) -> Flow {
        self.note(expr)?;
        let show = |expr: &mut Expr| match expr {
            Expr::Function(_) | Expr::Cast { .. } => self.note(expr),
            _ => ControlFlow::Continue(()),
        };
        expr.visit(&mut Outermost { depth: 0, show })
    }

    fn note(&mut self, expr: &Expr) -> Flow {
        if self.clash {
            return ControlFlow::Continue(());
        }
        if let Expr::Cast { expr: inner, .. } = expr {
            match &**inner {
                Expr::Identifier(name) => self.cast_columns.push(normalised(name)),
                Expr::CompoundIdentifier(parts) => self.cast_columns.extend(parts.last().map(normalised)),
                _ => {}
            }
        }
        let mut bare = expr.clone();
        bare.visit(&mut Alike)?;
        let text = bare.to_string().to_lowercase();
        let mut strip = Strip { stripped: false };
        bare.visit(&mut strip)?;
        let bare = bare.to_string().to_lowercase();
        if let Some(known) = self.texts.insert(bare.clone(), text.clone()) {
            self.clash |= known != text && (strip.stripped || known != bare);
        }
        ControlFlow::Continue(())
    }
}

/// Writes columns and types that may be the same alike: `T.x` as `x`, `int4` as `INT`.
struct Alike;

impl VisitorMut for Alike {
    type Break = Error;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        if let Expr::CompoundIdentifier(parts) = expr
            && let Some(column) = parts.pop()
        {
            *expr = Expr::Identifier(column);
        }
        if let Expr::Cast { data_type, .. } = expr {
            *data_type =
                ast::DataType::Custom(ObjectName::from(vec![Ident::new(type_name(data_type))]), Vec::new());
        }
        ControlFlow::Continue(())
    }
}

/// A type's name, the same for all ways to write it.
fn type_name(data_type: &ast::DataType) -> String {
    let text = data_type.to_string().to_uppercase();
    let (name, rest) = text.split_at(text.find('(').unwrap_or(text.len()));
    let name = match name {
        "INTEGER" | "INT4" | "INT32" => "INT",
        "INT8" | "INT64" => "BIGINT",
        "INT2" | "INT16" => "SMALLINT",
        "DOUBLE" | "FLOAT" | "FLOAT8" | "FLOAT64" => "DOUBLE PRECISION",
        "FLOAT4" | "FLOAT32" => "REAL",
        "BOOL" => "BOOLEAN",
        "NUMERIC" | "DEC" => "DECIMAL",
        "CHARACTER VARYING" | "CHAR VARYING" | "NVARCHAR" => "VARCHAR",
        "CHARACTER" => "CHAR",
        "TIMESTAMP WITHOUT TIME ZONE" => "TIMESTAMP",
        "TIMESTAMP WITH TIME ZONE" => "TIMESTAMPTZ",
        name => name,
    };
    match (name, rest) {
        ("VARCHAR" | "STRING", "") => "TEXT".to_string(),
        _ => format!("{name}{rest}"),
    }
}

/// Takes casts and parentheses away.
struct Strip {
    stripped: bool,
}

impl VisitorMut for Strip {
    type Break = Error;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        self.stripped |= matches!(expr, Expr::Cast { .. });
        if let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = expr {
            *expr = std::mem::replace(inner, Expr::value(Value::Null));
        }
        ControlFlow::Continue(())
    }
}

/// Puts a cast into the function; other expressions stay.
fn wrap(expr: &mut Expr) -> Flow {
    let Expr::Cast { data_type, .. } = &*expr else { return ControlFlow::Continue(()) };
    let name = type_name(data_type).replace('\'', "''");
    match named(expr, &name) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

/// Puts an expression into the function, with a name in place of a type's.
///
/// # Errors
/// The name is no text between quotes.
pub(crate) fn named(expr: &mut Expr, name: &str) -> Result<()> {
    let mut wrapper = call(name)?;
    if let Some(place) = first_argument(&mut wrapper) {
        std::mem::swap(place, expr);
        *expr = wrapper;
    }
    Ok(())
}

/// A call of the function on NULL, with the name of a type.
fn call(data_type: &str) -> Result<Expr> {
    let query = crate::parse::query(&format!("SELECT \"{NAMED_CAST}\"(NULL, '{data_type}')"))?;
    match *query.body {
        SetExpr::Select(mut select) => match select.projection.pop() {
            Some(SelectItem::UnnamedExpr(call)) => Ok(call),
            _ => Err(Error::internal("a call that is none")),
        },
        _ => Err(Error::internal("a SELECT that is none")),
    }
}

fn first_argument(call: &mut Expr) -> Option<&mut Expr> {
    let Expr::Function(function) = call else { return None };
    let FunctionArguments::List(list) = &mut function.args else { return None };
    match list.args.first_mut() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))) => Some(argument),
        _ => None,
    }
}

/// The function, as the planner sees it.
pub(crate) fn function() -> ScalarUDF {
    ScalarUDF::from(NamedCast { signature: Signature::any(2, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NamedCast {
    signature: Signature,
}

impl ScalarUDFImpl for NamedCast {
    fn name(&self) -> &str {
        NAMED_CAST
    }

    fn schema_name(&self, args: &[Logical]) -> PlannerResult<String> {
        match args {
            [cast, Logical::Literal(ScalarValue::Utf8(Some(data_type)), _)] => {
                Ok(format!("CAST({} AS {data_type})", cast.schema_name()))
            }
            _ => internal_err!("a cast without a name"),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> PlannerResult<DataType> {
        match args.first() {
            Some(cast) => Ok(cast.clone()),
            None => internal_err!("a cast of nothing"),
        }
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> PlannerResult<ColumnarValue> {
        internal_err!("a name was evaluated")
    }
}
