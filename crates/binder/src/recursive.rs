//! Recursive common table expressions.

use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast::{Query, SetExpr, SetQuantifier};
use tessera_optimizer::logical::relation::{Name, Recursive, Relation};
use tessera_plan::Expr;
use tessera_types::{Atom, Error, Result, SqlState};
use tessera_values::types::common_type;

use super::cte::{CteDefinition, Meaning, WorkTable};
use super::scope::{OutputColumn, Scope};
use super::typed::TypedExpr;
use super::{Binder, BoundQuery, normalized, refuse, with_span};

impl Binder<'_> {
    /// Binds a recursive query: a first term, and a recursive term over the tuples of the previous
    /// iteration.
    pub(super) fn recursive(
        &mut self,
        definition: &CteDefinition,
        outer: Option<&Scope<'_>>,
    ) -> Result<BoundQuery> {
        let CteDefinition { alias, query, env, recursive: _ } = definition;
        let place = alias.name.span;
        super::query::check(query)?;
        let Query { with, body, order_by, limit_clause, fetch, .. } = query;
        refuse(order_by.is_some(), "ORDER BY in a recursive query", place)?;
        refuse(limit_clause.is_some() || fetch.is_some(), "LIMIT in a recursive query", place)?;
        refuse(with.is_some(), "WITH inside a recursive query (put it before)", place)?;
        let SetExpr::SetOperation { left, right, set_quantifier, .. } = &**body else {
            return Err(Error::internal("recursive query without UNION"));
        };
        let distinct = match set_quantifier {
            SetQuantifier::All => false,
            SetQuantifier::Distinct | SetQuantifier::None => true,
            _ => {
                refuse(true, "BY NAME in a recursive query", place)?;
                false
            }
        };
        let base = self.term(left, outer, env)?;
        for column in base.columns.iter().filter(|_| distinct) {
            let value = TypedExpr::new(Expr::Field(column.field.clone()), column.atom.clone());
            self.refuse_joined("UNION in WITH RECURSIVE", &[value])?;
        }
        let collated: Vec<Expr> =
            base.columns.iter().map(|column| Expr::Field(column.field.clone())).collect();
        let base_columns = super::cte::renamed(base.columns.clone(), alias)?;
        let columns: Vec<OutputColumn> = base_columns
            .into_iter()
            .map(|column| {
                let atom = known_atom(&column.atom);
                let field = self.fields.fresh(&column.name, atom.clone());
                OutputColumn { field, atom, literal: None, ..column }
            })
            .collect();
        for (column, value) in columns.iter().zip(&collated) {
            self.keep_collation(&column.field, [value])?;
        }
        let atoms: Vec<Atom> = columns.iter().map(|column| column.atom.clone()).collect();
        let base = self.with_types(base, &atoms)?;
        self.recursions += 1;
        let name = normalized(&alias.name);
        let id: Name = Arc::from(format!("{name}${}", self.recursions));
        let work = WorkTable { recursion: id.clone(), columns: columns.clone() };
        let work = Meaning::WorkTable(Rc::new(work));
        let inner = env.with(name.clone(), work);
        self.open_recursions += 1;
        let step = self.term(right, outer, &inner);
        self.open_recursions -= 1;
        let step = step?;
        check_terms(&name, &columns, &step.columns).map_err(|error| with_span(error, place))?;
        let step = self.with_types(step, &atoms)?;
        let names = columns.iter().map(|column| column.field.clone()).collect();
        let recursive = Recursive { id, base, step, names, distinct };
        Ok(BoundQuery { relation: Relation::Recursive(Box::new(recursive)), columns })
    }
}

/// Checks that the columns of the recursive term fit those of the first term.
fn check_terms(name: &str, first: &[OutputColumn], recursive: &[OutputColumn]) -> Result<()> {
    if recursive.len() != first.len() {
        let message = format!(
            "recursive query {name} has {} columns in its first term but {} in its recursive term",
            first.len(),
            recursive.len()
        );
        return Err(Error::semantic(message).with_state(SqlState::SYNTAX_ERROR));
    }
    let fails = |(column, next): &(&OutputColumn, &OutputColumn)| {
        next.literal.is_none() && !fits(&next.atom, &column.atom)
    };
    match first.iter().zip(recursive).find(fails) {
        Some((column, next)) => {
            let message = format!(
                "column {} of recursive query {name} is {} in its first term but {} in its recursive term; \
                 cast one of them",
                column.name, column.atom, next.atom
            );
            Err(Error::semantic(message).with_state(SqlState::DATATYPE_MISMATCH))
        }
        None => Ok(()),
    }
}

/// Returns the type of a column, taking an untyped NULL as text.
fn known_atom(atom: &Atom) -> Atom {
    match atom {
        Atom::Null => Atom::String,
        other => other.clone(),
    }
}

/// Returns whether a type converts to another implicitly and without rounding.
fn fits(from: &Atom, to: &Atom) -> bool {
    match (from, to) {
        (Atom::Null, _) => true,
        (Atom::Decimal(_, from), Atom::Decimal(_, to)) => from <= to,
        _ => common_type(from, to).as_ref() == Some(to),
    }
}
