//! Enums: where their values become text, and the functions over their labels.
//!
//! Comparisons, sorts, groups and joins take an enum as it is. Other functions take its labels.
//! What leaves a query has text in place of enums.

use sqlparser::ast::Query;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, EnumType, Error, Result, SqlState};

use super::table_function::list_of;
use super::typed::TypedExpr;
use super::{Binder, BoundQuery};
use crate::context::{PlanContext, PlannedQuery};

/// Functions that take enums; for others they become text.
const SCALARS: [&str; 6] = ["enum_code", "greatest", "least", "nullif", "pg_typeof", "typeof"];

/// Aggregates that take enums.
const AGGREGATES: [&str; 4] = ["any_value", "count", "max", "min"];

/// Window functions, beside aggregates, that take enums.
const WINDOWS: [&str; 5] = ["first_value", "lag", "last_value", "lead", "nth_value"];

/// The kinds of functions that an argument can be for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Called {
    Scalar,
    Aggregate,
    Window,
}

/// Functions over the labels of a type, which the binder computes.
pub(super) const NAMES: [&str; 4] =
    ["enum_first", "enum_last", "enum_range", "enum_range_boundary"];

impl Binder<'_> {
    /// Converts enums to text for a function that does not take them.
    pub(super) fn labeled(
        &self,
        called: Called,
        name: &str,
        args: Vec<TypedExpr>,
    ) -> Result<Vec<TypedExpr>> {
        let takes: &[&str] = match called {
            Called::Scalar => &SCALARS,
            Called::Aggregate => &AGGREGATES,
            Called::Window => &WINDOWS,
        };
        if takes.contains(&name) {
            return Ok(args);
        }
        self.replaced(args, Atom::without_enums)
    }

    /// Casts the values whose type `replace` changes.
    pub(super) fn replaced(
        &self,
        values: Vec<TypedExpr>,
        replace: fn(&Atom) -> Atom,
    ) -> Result<Vec<TypedExpr>> {
        let cast = |value: TypedExpr| {
            let atom = replace(&value.atom);
            if atom == value.atom { Ok(value) } else { self.cast_to(value, &atom, false) }
        };
        values.into_iter().map(cast).collect()
    }

    /// Binds a function over the labels of the type of its arguments.
    pub(super) fn enum_function(&self, name: &str, args: Vec<TypedExpr>) -> Result<TypedExpr> {
        let wrong = || {
            let takes =
                if name.starts_with("enum_range") { "one or two values" } else { "a value" };
            let types = args.iter().map(|arg| arg.atom.to_string()).collect::<Vec<_>>().join(", ");
            Error::semantic(format!(
                "function {name} does not take ({types}); it takes {takes} of one enum, such as NULL::mood"
            ))
            .with_state(SqlState::UNDEFINED_FUNCTION)
        };
        let of_type = args.iter().find_map(|arg| match &arg.atom {
            Atom::Enum(labels) => Some(labels.clone()),
            _ => None,
        });
        let Some(labels) = of_type else { return Err(wrong()) };
        let is_range = name.starts_with("enum_range");
        let count =
            if name == "enum_range_boundary" { 2..=2 } else { 1..=1 + usize::from(is_range) };
        let atom = Atom::Enum(labels.clone());
        let fits = |arg: &TypedExpr| arg.atom == atom || arg.is_null() || arg.unknown;
        if !count.contains(&args.len()) || !args.iter().all(fits) {
            return Err(wrong());
        }
        let (first, last) = (0, labels.labels().len() as i128 - 1);
        let label = |place: i128| {
            let value = Expr::Constant(Scalar::Integer(place), atom.clone());
            match last < 0 {
                true => Err(Error::semantic(format!("enum {} has no labels", labels.name()))
                    .with_state(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE)),
                false => Ok(TypedExpr::new(value, atom.clone())),
            }
        };
        match (name, args.len()) {
            ("enum_first", _) => label(first),
            ("enum_last", _) => label(last),
            (_, 1) => Ok(range(&labels, first, last)),
            _ => {
                let mut bounds = [first, last];
                for (bound, arg) in bounds.iter_mut().zip(args) {
                    match self.evaluated(self.cast_to(arg, &atom, false)?)?.expr {
                        Expr::Constant(Scalar::Integer(place), _) => *bound = place,
                        Expr::Constant(Scalar::Null, _) => {}
                        _ => {
                            return Err(Error::unsupported(format!(
                                "function {name} of values of rows is not supported; write labels"
                            )));
                        }
                    }
                }
                Ok(range(&labels, bounds[0], bounds[1]))
            }
        }
    }

    /// Converts what leaves a query and is text there: enums, bit strings, times with time zone.
    fn output_as_text(&mut self, query: BoundQuery) -> Result<BoundQuery> {
        let atoms = query.columns.iter().map(|column| column.atom.in_results()).collect();
        self.retyped_columns(query, atoms)
    }
}

/// The labels from one place to another, as a list of text.
fn range(labels: &EnumType, first: i128, last: i128) -> TypedExpr {
    let places = 0..labels.labels().len() as i128;
    let within = labels.labels().iter().zip(places).filter(|(_, at)| (first..=last).contains(at));
    let values = within.map(|(label, _)| Scalar::String(label.clone())).collect();
    let atom = list_of(Atom::String);
    TypedExpr::new(Expr::Constant(Scalar::Nested(values), atom.clone()), atom)
}

impl PlanContext<'_> {
    /// Binds and plans a query whose rows leave the engine; duplicate column names get a numeric
    /// suffix in its tuple. Enums, bit strings and times with time zone become text.
    ///
    /// # Errors
    /// A name is unknown or ambiguous, types do not match, or a construct is not supported.
    pub fn query(&self, query: &Query) -> Result<PlannedQuery> {
        let mut binder = self.binder();
        let bound = binder.statement(query)?;
        let bound = binder.output_as_text(bound)?;
        self.planned(binder, bound)
    }

    /// As [`PlanContext::query`], with all types as they are: for tables, and to describe columns.
    ///
    /// # Errors
    /// As [`PlanContext::query`].
    pub fn stored_query(&self, query: &Query) -> Result<PlannedQuery> {
        let mut binder = self.binder();
        let bound = binder.statement(query)?;
        self.planned(binder, bound)
    }
}
