//! Common table expressions: what names in FROM stand for before tables are looked at.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast::{
    Cte, CteAsMaterialized, ObjectName, Query, SetExpr, SetOperator, TableAlias, Visit, Visitor,
    With,
};
use tessera_optimizer::logical::relation::{Name, Relation};
use tessera_plan::Expr;
use tessera_types::{Atom, Error, Result, SqlState};

use super::scope::{Output, Scope};
use super::{Binder, Bound, normalized, placed, refuse};

/// The common table expressions that can be read, the innermost first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Env(Option<Rc<Entry>>);

#[derive(Debug)]
struct Entry {
    name: String,
    meaning: Meaning,
    next: Env,
}

/// What a name stands for.
#[derive(Debug, Clone)]
pub(crate) enum Meaning {
    /// A query, with what it can read itself.
    Query(Rc<Definition>),
    /// In the step of a recursive query: the tuples that the last time gave.
    Work(Rc<Work>),
}

/// A query under a name.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) alias: TableAlias,
    pub(crate) query: Query,
    pub(crate) env: Env,
    /// It reads itself.
    pub(crate) recursive: bool,
}

/// The tuples that the last run of a recursive query gave.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) recursion: Name,
    pub(crate) columns: Vec<(Arc<str>, Atom)>,
}

impl Env {
    /// What a name stands for.
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

    /// The same with one more name.
    pub(crate) fn with(&self, name: String, meaning: Meaning) -> Env {
        Env(Some(Rc::new(Entry { name, meaning, next: self.clone() })))
    }

    /// Whether names stand for the very same.
    pub(crate) fn is_same(&self, other: &Env) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Binder<'_> {
    /// What can be read after WITH.
    pub(super) fn with(&self, with: &With, env: &Env) -> Result<Env> {
        let With { with_token: _, recursive, cte_tables } = with;
        let mut env = env.clone();
        let mut names: Vec<String> = Vec::new();
        for cte in cte_tables {
            let Cte { alias, query, from, materialized, closing_paren_token: _ } = cte;
            let place = alias.name.span;
            refuse(from.is_some(), "FROM after a common table expression", place)?;
            match materialized {
                // Where it is computed is for the optimizer to say.
                None
                | Some(CteAsMaterialized::Materialized | CteAsMaterialized::NotMaterialized) => {}
            }
            check_alias(alias)?;
            let name = normalized(&alias.name);
            if names.contains(&name) {
                let message = format!("WITH names {name} twice");
                return Err(placed(
                    Error::semantic(message).with_state(SqlState::DUPLICATE_ALIAS),
                    place,
                ));
            }
            let recursive =
                *recursive && is_recursive(query, &name).map_err(|error| placed(error, place))?;
            let query = (**query).clone();
            let definition =
                Definition { alias: alias.clone(), query, env: env.clone(), recursive };
            env = env.with(name.clone(), Meaning::Query(Rc::new(definition)));
            names.push(name);
        }
        Ok(env)
    }

    /// The query that a name in FROM stands for.
    pub(super) fn defined(
        &mut self,
        definition: Rc<Definition>,
        outer: Option<&Scope<'_>>,
    ) -> Result<Bound> {
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
        let bound = Bound { columns, ..bound };
        // Looking at the whole relation each time would take long for a chain of many.
        if self.volatile_calls.get() == before {
            return Ok(bound);
        }
        let types = self.fields.types();
        if !types.is_volatile(&bound.relation) || !bound.relation.parameters().is_empty() {
            return Ok(bound);
        }
        // Whatever reads it reads the same tuples.
        let id = self.fields.fresh("shared", Atom::Null);
        let relation = Relation::Shared { id, input: Box::new(bound.relation) };
        let bound = Bound { relation, columns: bound.columns };
        self.shared.push((definition, bound.clone()));
        Ok(self.read_again(bound))
    }

    /// The same tuples, with fields of their own.
    fn read_again(&mut self, bound: Bound) -> Bound {
        let Bound { relation, mut columns } = bound;
        let mut exprs = Vec::with_capacity(columns.len());
        for column in &mut columns {
            let field = self.fields.fresh(&column.name, column.atom.clone());
            let read = std::mem::replace(&mut column.field, field.clone());
            exprs.push((field, Expr::Field(read)));
        }
        Bound { relation: Relation::Map { input: Box::new(relation), exprs }, columns }
    }

    /// The tuples that the last run of a recursive query gave.
    pub(super) fn work_table(&mut self, work: &Work) -> Bound {
        let mut columns = Vec::with_capacity(work.columns.len());
        let mut outputs = Vec::with_capacity(work.columns.len());
        for (position, (name, atom)) in work.columns.iter().enumerate() {
            let field = self.fields.fresh(name, atom.clone());
            columns.push((field.clone(), position));
            outputs.push(Output { name: name.clone(), field, atom: atom.clone(), literal: None });
        }
        let recursion = work.recursion.clone();
        Bound { relation: Relation::Work { recursion, columns }, columns: outputs }
    }
}

/// Whether a query reads itself under this name, which the second term of a UNION may do.
fn is_recursive(query: &Query, name: &str) -> Result<bool> {
    if !reads(query, name) {
        return Ok(false);
    }
    let message = match &*query.body {
        SetExpr::SetOperation { op: SetOperator::Union, left, .. } if !reads(&**left, name) => {
            return Ok(true);
        }
        SetExpr::SetOperation { op: SetOperator::Union, .. } => {
            format!("the recursive query {name} is read in its first term, to the left of UNION")
        }
        _ => format!("the recursive query {name} is no UNION of a first term and a recursive one"),
    };
    Err(Error::semantic(message).with_state(SqlState::INVALID_RECURSION))
}

/// Whether a part of a query reads what is called so, and not another query of that name inside of
/// it.
fn reads(part: &impl Visit, name: &str) -> bool {
    struct Reads<'n> {
        name: &'n str,
        /// Queries around that give the name another meaning.
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

/// Refuses an alias that gives columns types, or a time.
pub(super) fn check_alias(alias: &TableAlias) -> Result<()> {
    let TableAlias { explicit: _, name, columns, at } = alias;
    refuse(at.is_some(), "AT after an alias", name.span)?;
    super::list::check_quotes(name)?;
    match columns.iter().find(|column| column.data_type.is_some()) {
        Some(column) => {
            let message = "an alias names columns and does not type them; write CAST in the query";
            Err(placed(Error::new(tessera_types::Code::Syntax, message), column.name.span))
        }
        None => Ok(()),
    }
}

/// Columns under the names that an alias gives to the first of them.
pub(super) fn renamed(mut columns: Vec<Output>, alias: &TableAlias) -> Result<Vec<Output>> {
    if alias.columns.len() > columns.len() {
        let message = format!(
            "{} has {} columns, and the alias names {}",
            alias.name.value,
            columns.len(),
            alias.columns.len()
        );
        let error = Error::semantic(message).with_state(SqlState::INVALID_COLUMN_REFERENCE);
        return Err(placed(error, alias.name.span));
    }
    for (column, name) in columns.iter_mut().zip(&alias.columns) {
        column.name = normalized(&name.name).into();
    }
    Ok(columns)
}
