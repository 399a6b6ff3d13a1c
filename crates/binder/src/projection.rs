//! The results of a SELECT: the fields that are computed for them, and DISTINCT.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tessera_context::interrupt;
use tessera_optimizer::logical::relation::{Aggregate, Call, Key, Name, Relation};
use tessera_plan::Expr;
use tessera_types::{Atom, Result};

use super::Binder;
use super::collation::{Collation, is_marked, remove_marks, without_mark};
use super::order::SortKey;
use super::scope::OutputColumn;
use super::typed::TypedExpr;

/// The fields that a Map computes over a relation.
#[derive(Default)]
pub(super) struct Projection {
    fields: Vec<(Name, Expr)>,
    /// Positions in `fields` by the fingerprint of the expression.
    places: HashMap<u64, Vec<usize>>,
}

impl Projection {
    /// Returns the field of a value, reusing an existing field with an equal expression.
    pub(super) fn field(
        &mut self,
        binder: &mut Binder<'_>,
        name: &str,
        value: TypedExpr,
    ) -> Result<Name> {
        interrupt::point();
        if let Some(known) = self.find(&value.expr)
            && !binder.is_volatile(&value.expr)
        {
            return Ok(known.clone());
        }
        let field = match &value.expr {
            Expr::Field(field) => field.clone(),
            _ => binder.fields.fresh(name, value.atom.clone()),
        };
        self.places.entry(value.expr.fingerprint()).or_default().push(self.fields.len());
        if is_marked(&value.expr) {
            binder.keep_collation(&field, [&value.expr])?;
        }
        self.fields.push((field.clone(), value.expr));
        Ok(field)
    }

    /// Finds the field that computes an expression.
    fn find(&self, expr: &Expr) -> Option<&Name> {
        let places = self.places.get(&expr.fingerprint())?;
        let mut same = places.iter().filter_map(|place| self.fields.get(*place));
        same.find(|(_, known)| known == expr).map(|(name, _)| name)
    }

    pub(super) fn outputs(
        &mut self,
        binder: &mut Binder<'_>,
        list: Vec<(Rc<str>, TypedExpr)>,
    ) -> Result<Vec<OutputColumn>> {
        let output = |(name, value): (Rc<str>, TypedExpr)| {
            let literal = value.literal().map(Into::into);
            let atom = value.atom.clone();
            let field = self.field(binder, &name, value)?;
            Ok(OutputColumn { name: (*name).into(), field, atom, literal })
        };
        list.into_iter().map(output).collect()
    }

    /// Converts sort keys to fields and drops constants, which do not affect the order.
    pub(super) fn keys(
        &mut self,
        binder: &mut Binder<'_>,
        keys: Vec<SortKey>,
        columns: &[OutputColumn],
    ) -> Result<Vec<Key>> {
        let mut sorted: Vec<Key> = Vec::with_capacity(keys.len());
        for SortKey { value, item, descending, nulls_first, place: _ } in keys {
            if matches!(value.expr, Expr::Constant(..)) {
                continue;
            }
            let expr = match item.and_then(|at| columns.get(at)) {
                Some(column) => Expr::Field(column.field.clone()),
                None => Expr::Field(self.field(binder, "key", value)?),
            };
            sorted.push(Key { expr, descending, nulls_first });
        }
        Ok(sorted)
    }

    pub(super) fn is_constant(&self, name: &Name) -> bool {
        self.fields.iter().any(|(known, expr)| known == name && matches!(expr, Expr::Constant(..)))
    }

    /// Rewrites an expression over these fields; returns whether it reads nothing else.
    pub(super) fn rewrite(&self, expr: &mut Expr) -> bool {
        // A result with a collation is marked; its sort key reads the text.
        let of_text = || self.fields.iter().find(|(_, known)| without_mark(known) == expr);
        if let Some(name) = self.find(expr).or_else(|| of_text().map(|(name, _)| name)) {
            *expr = Expr::Field(name.clone());
            return true;
        }
        match expr {
            Expr::Field(_) => false,
            _ => expr.children_mut().into_iter().all(|child| self.rewrite(child)),
        }
    }

    pub(super) fn over(mut self, relation: Relation) -> Relation {
        for (_, expr) in self.fields.iter_mut().filter(|(_, expr)| is_marked(expr)) {
            remove_marks(expr);
        }
        match self.fields.iter().all(|(name, expr)| *expr == Expr::Field(name.clone())) {
            true => relation,
            false => Relation::Map { input: Box::new(relation), exprs: self.fields },
        }
    }
}

impl Binder<'_> {
    /// Removes duplicate tuples, in the collations of the columns. A text that stands for several
    /// is the first of them by its bytes; it has a new field, and the map has the new names.
    pub(super) fn distinct_tuples(
        &mut self,
        relation: Relation,
        columns: &mut [OutputColumn],
    ) -> Result<(Relation, HashMap<Name, Name>)> {
        let (mut keys, mut calls) = (Vec::new(), Vec::new());
        let mut renamed: HashMap<Name, Name> = HashMap::new();
        for column in columns.iter_mut() {
            let value = TypedExpr::new(Expr::Field(column.field.clone()), column.atom.clone());
            let collation = self.text_collation(&value)?.filter(Collation::joins_texts);
            let Some(collation) = collation else {
                keys.push((column.field.clone(), value.expr));
                continue;
            };
            if !renamed.contains_key(&column.field) {
                let key = self.finished(self.equal_key(value.clone(), &collation)?)?;
                keys.push((self.fields.fresh("key", Atom::String), key.expr));
                let text = self.fields.fresh(&column.name, Atom::String);
                self.keep_collation(&text, [&value.expr])?;
                calls.push((text.clone(), least(value.expr)));
                renamed.insert(column.field.clone(), text);
            }
            column.field = renamed[&column.field].clone();
        }
        if renamed.is_empty() {
            return Ok((distinct(relation, columns), renamed));
        }
        let mut seen = HashSet::new();
        keys.retain(|(name, _)| seen.insert(name.clone()));
        let groups = Aggregate { input: relation, keys, sets: None, grouping: None, calls };
        Ok((Relation::Aggregate(Box::new(groups)), renamed))
    }
}

/// Gives the fields of an expression their new names.
pub(super) fn rename(expr: &mut Expr, renamed: &HashMap<Name, Name>) {
    if let Expr::Field(name) = expr
        && let Some(new) = renamed.get(name)
    {
        *name = new.clone();
    }
    expr.children_mut().into_iter().for_each(|child| rename(child, renamed));
}

/// The call that gives the least text of a group by its bytes.
pub(super) fn least(text: Expr) -> Call {
    let (args, order_by) = (vec![text], Vec::new());
    Call { function: "min".into(), args, distinct: false, filter: None, order_by, limit: None }
}

/// Removes duplicate tuples by grouping by all columns.
fn distinct(relation: Relation, columns: &[OutputColumn]) -> Relation {
    let mut keys: Vec<(Name, Expr)> = Vec::new();
    for column in columns {
        if !keys.iter().any(|(known, _)| *known == column.field) {
            keys.push((column.field.clone(), Expr::Field(column.field.clone())));
        }
    }
    if keys.is_empty() {
        return Relation::Limit { input: Box::new(relation), offset: 0, limit: Some(1) };
    }
    let aggregate =
        Aggregate { input: relation, keys, sets: None, grouping: None, calls: Vec::new() };
    Relation::Aggregate(Box::new(aggregate))
}
