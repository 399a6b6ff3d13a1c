//! Common table expressions: names in FROM that hide tables.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::rc::Rc;

use sqlparser::ast::{
    Cte, CteAsMaterialized, ObjectName, Query, SetExpr, SetOperator, TableAlias, Visit, Visitor,
    With,
};
use tessera_context::interrupt;
use tessera_optimizer::logical::relation::{Name, Relation};
use tessera_plan::Expr;
use tessera_types::{Atom, Error, Result, SqlState};

use super::from::Tables;
use super::scope::{OutputColumn, Scope};
use super::{Binder, BoundQuery, normalized, refuse, with_span};

/// The visible common table expressions, innermost first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Env(Option<Rc<Entry>>);

#[derive(Debug)]
struct Entry {
    name: String,
    meaning: Meaning,
    next: Env,
}

/// The meaning of a common table expression's name.
#[derive(Debug, Clone)]
pub(crate) enum Meaning {
    /// A query with its own environment.
    Query(Rc<CteDefinition>),
    /// Inside a recursive term: the tuples of the previous iteration.
    WorkTable(Rc<WorkTable>),
    /// Tables that are bound already.
    Tables(Rc<Tables>),
}

/// The definition of a common table expression.
#[derive(Debug)]
pub(crate) struct CteDefinition {
    pub(crate) alias: TableAlias,
    pub(crate) query: Query,
    pub(crate) env: Env,
    /// Whether the query reads itself.
    pub(crate) recursive: bool,
}

/// The tuples that the previous iteration of a recursive query produced.
#[derive(Debug)]
pub(crate) struct WorkTable {
    pub(crate) recursion: Name,
    /// The columns of the query's result.
    pub(crate) columns: Vec<OutputColumn>,
}

impl Env {
    /// Finds the meaning of a name.
    pub(crate) fn find(&self, name: &str) -> Option<Meaning> {
        let mut entry = self.0.as_ref();
        while let Some(current) = entry {
            if current.name == name {
                return Some(current.meaning.clone());
            }
            entry = current.next.0.as_ref();
        }
        None
    }

    /// Returns all names, innermost first, for messages.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut entry = self.0.as_ref();
        while let Some(current) = entry {
            names.push(current.name.clone());
            entry = current.next.0.as_ref();
        }
        names
    }

    /// Adds a name, which hides an earlier one.
    pub(crate) fn with(&self, name: String, meaning: Meaning) -> Env {
        Env(Some(Rc::new(Entry { name, meaning, next: self.clone() })))
    }

    /// Returns whether two environments are the same object.
    pub(crate) fn is_same(&self, other: &Env) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Binder<'_> {
    /// Adds the queries of WITH to an environment.
    pub(super) fn with(&self, with: &With, env: &Env) -> Result<Env> {
        let With { with_token: _, recursive, cte_tables } = with;
        let mut env = env.clone();
        let mut names: HashSet<String> = HashSet::new();
        for cte in cte_tables {
            interrupt::point();
            let Cte { alias, query, from, materialized, closing_paren_token: _ } = cte;
            let place = alias.name.span;
            refuse(from.is_some(), "FROM after a common table expression", place)?;
            match materialized {
                // The optimizer decides whether to materialize.
                None
                | Some(CteAsMaterialized::Materialized | CteAsMaterialized::NotMaterialized) => {}
            }
            check_alias(alias)?;
            let name = normalized(&alias.name);
            if !names.insert(name.clone()) {
                let message = format!("WITH query name {name} is used twice");
                return Err(with_span(
                    Error::semantic(message).with_state(SqlState::DUPLICATE_ALIAS),
                    place,
                ));
            }
            let recursive = *recursive
                && is_recursive(query, &name).map_err(|error| with_span(error, place))?;
            let query = (**query).clone();
            let definition =
                CteDefinition { alias: alias.clone(), query, env: env.clone(), recursive };
            env = env.with(name, Meaning::Query(Rc::new(definition)));
        }
        Ok(env)
    }

    /// Binds the query of a common table expression that FROM reads.
    pub(super) fn defined(
        &mut self,
        definition: Rc<CteDefinition>,
        outer: Option<&Scope<'_>>,
    ) -> Result<BoundQuery> {
        if let Some((_, bound)) =
            self.shared.iter().find(|(known, _)| Rc::ptr_eq(known, &definition))
        {
            let bound = bound.clone();
            return Ok(self.read_again(bound));
        }
        let before = self.volatile_calls.get();
        let bound = match definition.recursive {
            true => self.recursive(&definition, outer)?,
            false => self.query(&definition.query, outer, &definition.env)?,
        };
        let columns = renamed(bound.columns, &definition.alias)?;
        let bound = BoundQuery { columns, ..bound };
        // A cheap test first: inspecting the whole relation is slow for long chains of queries.
        if self.volatile_calls.get() == before {
            return Ok(bound);
        }
        let types = self.fields.types();
        if !types.is_volatile(&bound.relation) || !bound.relation.parameters().is_empty() {
            return Ok(bound);
        }
        // All references must read the same tuples.
        let id = self.fields.fresh("shared", Atom::Null);
        let relation = Relation::Shared { id, input: Box::new(bound.relation) };
        let bound = BoundQuery { relation, columns: bound.columns };
        self.shared.push((definition, bound.clone()));
        Ok(self.read_again(bound))
    }

    /// Reads a shared relation under fresh field names.
    fn read_again(&mut self, bound: BoundQuery) -> BoundQuery {
        let BoundQuery { relation, mut columns } = bound;
        let mut exprs = Vec::with_capacity(columns.len());
        for column in &mut columns {
            let field = self.fields.fresh(&column.name, column.atom.clone());
            let read = std::mem::replace(&mut column.field, field.clone());
            if let Some(collation) = self.collations.get(&read).cloned() {
                self.collations.insert(field.clone(), collation);
            }
            exprs.push((field, Expr::Field(read)));
        }
        BoundQuery { relation: Relation::Map { input: Box::new(relation), exprs }, columns }
    }

    /// The tuples that the previous iteration of a recursive query produced.
    pub(super) fn work_table(&mut self, work: &WorkTable) -> Result<BoundQuery> {
        let mut columns = Vec::with_capacity(work.columns.len());
        let mut outputs = Vec::with_capacity(work.columns.len());
        for (position, column) in work.columns.iter().enumerate() {
            let field = self.fields.fresh(&column.name, column.atom.clone());
            self.keep_collation(&field, [&Expr::Field(column.field.clone())])?;
            columns.push((field.clone(), position));
            outputs.push(OutputColumn { field, ..column.clone() });
        }
        let recursion = work.recursion.clone();
        Ok(BoundQuery { relation: Relation::WorkingTable { recursion, columns }, columns: outputs })
    }
}

/// Returns whether a query reads itself by this name, which only the second term of a UNION may do.
fn is_recursive(query: &Query, name: &str) -> Result<bool> {
    if !reads(query, name) {
        return Ok(false);
    }
    let message = match &*query.body {
        SetExpr::SetOperation { op: SetOperator::Union, left, .. } if !reads(&**left, name) => {
            return Ok(true);
        }
        SetExpr::SetOperation { op: SetOperator::Union, .. } => {
            format!(
                "the first term of recursive query {name}, to the left of UNION, must not read {name}"
            )
        }
        _ => format!("recursive query {name} must be a UNION of a first term and a recursive term"),
    };
    Err(Error::semantic(message).with_state(SqlState::INVALID_RECURSION))
}

/// Returns whether a part of a query reads the relation `name`, ignoring nested queries that
/// redefine the name.
fn reads(part: &impl Visit, name: &str) -> bool {
    struct Reads<'n> {
        name: &'n str,
        /// The number of enclosing queries that redefine the name.
        hidden: usize,
    }
    impl Reads<'_> {
        fn hides(&self, query: &Query) -> bool {
            let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
            ctes.into_iter().any(|cte| normalized(&cte.alias.name) == self.name)
        }
    }
    impl Visitor for Reads<'_> {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            self.hidden += usize::from(self.hides(query));
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            self.hidden -= usize::from(self.hides(query));
            ControlFlow::Continue(())
        }

        fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
            match relation.0.as_slice() {
                [part] if self.hidden == 0 => match part.as_ident() {
                    Some(ident) if normalized(ident) == self.name => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                },
                _ => ControlFlow::Continue(()),
            }
        }
    }
    part.visit(&mut Reads { name, hidden: 0 }).is_break()
}

/// Rejects an alias with column types or AT.
pub(super) fn check_alias(alias: &TableAlias) -> Result<()> {
    let TableAlias { explicit: _, name, columns, at } = alias;
    refuse(at.is_some(), "AT after an alias", name.span)?;
    super::list::check_quotes(name)?;
    match columns.iter().find(|column| column.data_type.is_some()) {
        Some(column) => {
            let message = "a table alias cannot set column types; write CAST in the query";
            Err(with_span(Error::new(tessera_types::Code::Syntax, message), column.name.span))
        }
        None => Ok(()),
    }
}

/// Renames the first columns as an alias lists.
pub(super) fn renamed(
    mut columns: Vec<OutputColumn>,
    alias: &TableAlias,
) -> Result<Vec<OutputColumn>> {
    if alias.columns.len() > columns.len() {
        let message = format!(
            "table {} has {} columns, but its alias names {}",
            alias.name.value,
            columns.len(),
            alias.columns.len()
        );
        let error = Error::semantic(message).with_state(SqlState::INVALID_COLUMN_REFERENCE);
        return Err(with_span(error, alias.name.span));
    }
    for (column, name) in columns.iter_mut().zip(&alias.columns) {
        column.name = normalized(&name.name).into();
    }
    Ok(columns)
}
