//! Turns correlated subqueries with a LIMIT into joins. Each distinct combination of outer values
//! is joined with the subquery's input, the limit applies per combination, and the outer rows are
//! joined with the result. A table is then read once instead of once per outer row.
//!
//! The method follows Neumann and Kemper, Unnesting Arbitrary Queries, 2015. It is used where
//! moving conditions alone cannot decorrelate the subquery.

mod analysis;

use std::collections::{HashMap, HashSet};

use tessera_plan::{Expr, Functions, Rule, Scalar};
use tessera_types::Atom;

pub(super) use analysis::cheap;
use analysis::{
    finds, has_map, is_deterministic, limited, one_at_most, only_compared, rejected_nulls,
};

use crate::logical::fields::Fields;
use crate::logical::relation::{
    Aggregate, Call, Join, Key, Kind, Name, Relation, covered, substitute_parameters,
};

/// The maximum index of a list element.
const LIST_END: i64 = i32::MAX as i64;

/// The outer rows of a subquery.
struct OuterRows {
    /// The relation of the outer rows.
    rows: Relation,
    /// The fields that the subquery reads.
    read: Vec<Name>,
}

impl OuterRows {
    /// Whether a part of the subquery reads outer values.
    fn is_read_by(&self, part: &Relation) -> bool {
        let parameters = part.parameters();
        self.read.iter().any(|name| parameters.contains(name))
    }
}

/// A part of a subquery, extended by the outer values that each tuple belongs to.
struct AttachedRelation {
    relation: Relation,
    /// The fields of the outer values, in the order of [`OuterRows::read`].
    values: Vec<Name>,
}

impl AttachedRelation {
    fn names(&self, outer: &OuterRows) -> HashMap<Name, Name> {
        outer.read.iter().cloned().zip(self.values.iter().cloned()).collect()
    }

    fn identity(&self) -> impl Iterator<Item = (Name, Expr)> {
        self.values.iter().map(|name| (name.clone(), Expr::Field(name.clone())))
    }
}

impl Fields<'_> {
    /// Rewrites the join with a subquery that has a LIMIT and selects its rows by equalities. With
    /// `nested`, it is within another such subquery, which may run many times.
    ///
    /// # Errors
    /// Returns the join itself if it has another form.
    pub fn limit_by_value(&mut self, join: Join, nested: bool) -> Result<Relation, Box<Join>> {
        let applies = self.types().uses(Rule::LateralLimit)
            && join.kind != Kind::Full
            && !join.null_aware
            && limited(&join.right);
        if !applies {
            return Err(Box::new(join));
        }
        let names = join.left.names();
        let wanted = join.right.parameters();
        let read: Vec<Name> = names.iter().filter(|name| wanted.contains(*name)).cloned().collect();
        if read.is_empty() || !self.equal_is_same(&join.right, &read) {
            return Err(Box::new(join));
        }
        let Some(rows) = self.twice(&join.left, nested) else { return Err(Box::new(join)) };
        let outer = OuterRows { rows, read };
        let Some(attached) = self.attach(join.right.clone(), &outer, false) else {
            return Err(Box::new(join));
        };
        let known = rejected_nulls(&join.right);
        let function = match outer.read.iter().all(|name| known.contains(name)) {
            true => "eq",
            false => "is_not_distinct",
        };
        let Join { mut kind, left: _, right: _, mut conditions, mark, null_aware, correlated: _ } =
            join;
        for (name, value) in outer.read.iter().zip(&attached.values) {
            let same = vec![Expr::Field(name.clone()), Expr::Field(value.clone())];
            conditions.push(Expr::call(function, same));
        }
        if kind == Kind::Single && one_at_most(&attached.relation) {
            kind = Kind::Left;
        }
        Ok(Relation::Join(Box::new(Join {
            kind,
            left: outer.rows,
            right: attached.relation,
            conditions,
            mark,
            null_aware,
            correlated: false,
        })))
    }

    /// Returns the relation in a form that can be used twice and yields the same tuples both times.
    pub(super) fn twice(&mut self, relation: &Relation, nested: bool) -> Option<Relation> {
        let volatile = self.types().is_volatile(relation);
        if !volatile && (nested || cheap(relation)) {
            return is_deterministic(relation).then(|| relation.clone());
        }
        // A shared relation is computed once, completely; a nested plan cannot keep it.
        if nested || !relation.parameters().is_empty() {
            return None;
        }
        let id = self.fresh("shared", Atom::Null);
        Some(Relation::Shared { id, input: Box::new(relation.clone()) })
    }

    /// Whether a value can represent all values equal to it. Floats, intervals and nested values
    /// can only if they are merely compared.
    fn equal_is_same(&self, relation: &Relation, read: &[Name]) -> bool {
        let odd: HashSet<&Name> = read
            .iter()
            .filter(|name| {
                let plain = |atom: &Atom| {
                    !matches!(atom, Atom::Float32 | Atom::Float64 | Atom::Interval)
                        && !atom.is_nested()
                };
                !self.atoms().get(*name).is_some_and(plain)
            })
            .collect();
        odd.is_empty() || only_compared(relation, &odd)
    }

    /// Extends the relation by the combinations of outer values for which it has tuples. Returns
    /// `None` if this is impossible, or if equalities do not select its rows. With `found`, an
    /// equality above selects them.
    fn attach(
        &mut self,
        relation: Relation,
        outer: &OuterRows,
        found: bool,
    ) -> Option<AttachedRelation> {
        if !outer.is_read_by(&relation) {
            return (found || relation.has_one_row()).then(|| self.beside(relation, outer));
        }
        match relation {
            Relation::Filter { input, mut predicates } => {
                let found = found || finds(&predicates, &outer.read);
                let attached = self.attach(*input, outer, found)?;
                let names = attached.names(outer);
                predicates
                    .iter_mut()
                    .for_each(|predicate| substitute_parameters(predicate, &names));
                Some(AttachedRelation {
                    relation: attached.relation.filtered(predicates),
                    values: attached.values,
                })
            }
            Relation::Map { input, mut exprs } => {
                let attached = self.attach(*input, outer, found)?;
                let names = attached.names(outer);
                exprs.iter_mut().for_each(|(_, expr)| substitute_parameters(expr, &names));
                exprs.extend(attached.identity());
                let relation = Relation::Map { input: Box::new(attached.relation), exprs };
                Some(AttachedRelation { relation, values: attached.values })
            }
            Relation::Sort { input, offset: 0, limit: None, .. } => {
                self.attach(*input, outer, found)
            }
            Relation::Sort { input, keys, offset, limit } => {
                self.first_of_each((*input, Some(keys)), (offset, limit), Vec::new(), outer)
            }
            Relation::Limit { input, offset, limit } => {
                if offset == 0 && limit != Some(0) && input.has_one_row() {
                    return self.attach(*input, outer, found);
                }
                let (input, keys, maps) = sorted(*input);
                self.first_of_each((input, keys), (offset, limit), maps, outer)
            }
            Relation::Unnest { input, lists, outer: false } => {
                let attached = self.attach(*input, outer, found)?;
                let relation =
                    Relation::Unnest { input: Box::new(attached.relation), lists, outer: false };
                Some(AttachedRelation { relation, values: attached.values })
            }
            Relation::Aggregate(mut aggregate)
                if aggregate.sets.is_none() && !aggregate.keys.is_empty() =>
            {
                let taken = std::mem::replace(&mut aggregate.input, Relation::placeholder());
                let attached = self.attach(taken, outer, false)?;
                let names = attached.names(outer);
                aggregate.keys.extend(attached.identity());
                aggregate.input = attached.relation;
                let mut relation = Relation::Aggregate(aggregate);
                relation
                    .exprs_mut()
                    .into_iter()
                    .for_each(|expr| substitute_parameters(expr, &names));
                Some(AttachedRelation { relation, values: attached.values })
            }
            Relation::Window(mut window) => {
                let taken = std::mem::replace(&mut window.input, Relation::placeholder());
                let attached = self.attach(taken, outer, false)?;
                let names = attached.names(outer);
                window.exprs_mut().for_each(|expr| substitute_parameters(expr, &names));
                // Each combination of outer values has its own partitions.
                window.partition.extend(attached.identity().map(|(_, field)| field));
                window.input = attached.relation;
                Some(AttachedRelation {
                    relation: Relation::Window(window),
                    values: attached.values,
                })
            }
            Relation::Join(join) => self.attach_join(*join, outer, found),
            _ => None,
        }
    }

    /// Attaches outer values to both sides of a join.
    fn attach_join(
        &mut self,
        mut join: Join,
        outer: &OuterRows,
        found: bool,
    ) -> Option<AttachedRelation> {
        let inner = join.kind == Kind::Inner && !join.correlated;
        let own = finds(&join.conditions, &outer.read);
        if outer.is_read_by(&join.right) && !join.correlated {
            if !inner {
                return None;
            }
            if !outer.is_read_by(&join.left) {
                std::mem::swap(&mut join.left, &mut join.right);
            }
        }
        let left = std::mem::replace(&mut join.left, Relation::placeholder());
        let attached = self.attach(left, outer, found || own && inner)?;
        let names = attached.names(outer);
        if outer.is_read_by(&join.right) {
            if join.correlated {
                rename_parameters(&mut join.right, &names);
            } else {
                let right = self.attach(join.right, outer, false)?;
                for (a, b) in attached.values.iter().zip(&right.values) {
                    let same = vec![Expr::Field(a.clone()), Expr::Field(b.clone())];
                    join.conditions.push(Expr::call("is_not_distinct", same));
                }
                join.right = right.relation;
            }
        }
        join.conditions.iter_mut().for_each(|condition| substitute_parameters(condition, &names));
        join.left = attached.relation;
        Some(AttachedRelation { relation: Relation::Join(Box::new(join)), values: attached.values })
    }

    /// Joins each combination of outer values with all tuples of a relation.
    fn beside(&mut self, relation: Relation, outer: &OuterRows) -> AttachedRelation {
        let mut keys = Vec::new();
        for name in &outer.read {
            let atom = self.atoms().get(name).cloned().unwrap_or(Atom::Null);
            keys.push((self.fresh(name, atom), Expr::Field(name.clone())));
        }
        let values = keys.iter().map(|(name, _)| name.clone()).collect();
        let input = outer.rows.clone();
        let each = Aggregate { input, keys, sets: None, grouping: None, calls: Vec::new() };
        let left = Relation::Aggregate(Box::new(each));
        AttachedRelation { relation: crossed(left, relation), values }
    }

    /// Selects the first tuples for each combination of outer values, then applies `maps`.
    fn first_of_each(
        &mut self,
        (input, order): (Relation, Option<Vec<Key>>),
        (offset, limit): (u64, Option<u64>),
        maps: Vec<Vec<(Name, Expr)>>,
        outer: &OuterRows,
    ) -> Option<AttachedRelation> {
        let columns: Vec<Name> = match maps.last() {
            Some(lowest) => {
                let mut read: Vec<Name> = Vec::new();
                for name in lowest.iter().flat_map(|(_, expr)| expr.fields()) {
                    if !read.contains(&name) {
                        read.push(name);
                    }
                }
                read
            }
            None => input.names(),
        };
        let AttachedRelation { relation, values } = self.attach(input, outer, false)?;
        let names: HashMap<Name, Name> =
            outer.read.iter().cloned().zip(values.iter().cloned()).collect();
        let mut order = order.unwrap_or_default();
        order.iter_mut().for_each(|key| substitute_parameters(&mut key.expr, &names));
        let last = limit.and_then(|limit| limit.checked_add(offset));
        if limit == Some(0) || limit.is_some() && last.is_none() || offset >= LIST_END as u64 {
            return None;
        }
        let mut relation = self.gathered(relation, &columns, &values, order, (offset, last))?;
        for mut exprs in maps.into_iter().rev() {
            exprs.iter_mut().for_each(|(_, expr)| substitute_parameters(expr, &names));
            exprs.extend(values.iter().map(|name| (name.clone(), Expr::Field(name.clone()))));
            relation = Relation::Map { input: Box::new(relation), exprs };
        }
        Some(AttachedRelation { relation, values })
    }

    /// Selects the tuples of each group between two positions, in order, by collecting them in
    /// lists.
    fn gathered(
        &mut self,
        input: Relation,
        columns: &[Name],
        groups: &[Name],
        order_by: Vec<Key>,
        (offset, last): (u64, Option<u64>),
    ) -> Option<Relation> {
        let slot = |at: usize| Expr::string(&format!("c{at}"));
        let element = match columns {
            [only] => Expr::Field(only.clone()),
            columns => {
                // Without columns, the tuples must still be counted.
                let mut args = Vec::with_capacity(2 * columns.len().max(1));
                for (at, name) in columns.iter().enumerate() {
                    args.extend([slot(at), Expr::Field(name.clone())]);
                }
                if columns.is_empty() {
                    args.extend([slot(0), Expr::boolean(true)]);
                }
                Expr::call("named_struct", args)
            }
        };
        let atom = self.atom_of(&element).ok()?;
        if has_map(&atom) {
            return None;
        }
        let function = "array_agg";
        let (list_atom, _) =
            self.library.aggregate(function, &[(atom.clone(), true)], false).ok()?;
        let list = self.fresh("firsts", list_atom.clone());
        let call = Call {
            function: function.into(),
            args: vec![element],
            distinct: false,
            filter: None,
            order_by,
            limit: last,
        };
        let field = |name: &Name| (name.clone(), Expr::Field(name.clone()));
        let keys: Vec<(Name, Expr)> = groups.iter().map(field).collect();
        let calls = vec![(list.clone(), call)];
        let mut relation = Relation::Aggregate(Box::new(Aggregate {
            input,
            keys,
            sets: None,
            grouping: None,
            calls,
        }));
        let mut cut = list.clone();
        if offset > 0 {
            cut = self.fresh("firsts", list_atom);
            let bound = |value: i64| Expr::Constant(Scalar::Integer(value.into()), Atom::Int64);
            let args = vec![Expr::Field(list), bound(offset as i64 + 1), bound(LIST_END)];
            let mut exprs: Vec<(Name, Expr)> = groups.iter().map(field).collect();
            exprs.push((cut.clone(), Expr::call("array_slice", args)));
            relation = Relation::Map { input: Box::new(relation), exprs };
        }
        let one = self.fresh("first", atom);
        relation = Relation::Unnest {
            input: Box::new(relation),
            lists: vec![(cut, one.clone())],
            outer: false,
        };
        let mut exprs: Vec<(Name, Expr)> = groups.iter().map(field).collect();
        match columns {
            [only] => exprs.push((only.clone(), Expr::Field(one))),
            columns => {
                for (at, name) in columns.iter().enumerate() {
                    let value = Expr::call("get_field", vec![Expr::Field(one.clone()), slot(at)]);
                    if self.atom_of(&value).ok().as_ref() != self.atoms().get(name) {
                        return None;
                    }
                    exprs.push((name.clone(), value));
                }
            }
        }
        Some(Relation::Map { input: Box::new(relation), exprs })
    }
}

/// Moves predicates below joins, to the rows for which a correlated subquery is computed, so that
/// it runs for fewer rows.
pub(crate) fn sink(
    relation: Relation,
    predicates: Vec<Expr>,
    must_stay: &dyn Fn(&Expr) -> bool,
) -> Relation {
    let Relation::Join(mut join) = relation else { return relation.filtered(predicates) };
    if join.kind == Kind::Full || !has_correlated(&join.left) && !join.correlated {
        return Relation::Join(join).filtered(predicates);
    }
    let names: HashSet<Name> = join.left.names().into_iter().collect();
    let (mut go, mut stay) = (Vec::new(), Vec::new());
    for predicate in predicates.iter().flat_map(Expr::conjuncts) {
        let moves =
            !predicate.fields().is_empty() && covered(&predicate, &names) && !must_stay(&predicate);
        if moves { go.push(predicate) } else { stay.push(predicate) }
    }
    if !go.is_empty() {
        let left = std::mem::replace(&mut join.left, Relation::placeholder());
        join.left = sink(left, go, must_stay);
    }
    Relation::Join(join).filtered(stay)
}

fn has_correlated(relation: &Relation) -> bool {
    match relation {
        Relation::Join(join) => join.correlated || has_correlated(&join.left),
        _ => false,
    }
}

fn crossed(left: Relation, right: Relation) -> Relation {
    Relation::Join(Box::new(Join {
        kind: Kind::Inner,
        left,
        right,
        conditions: Vec::new(),
        mark: None,
        null_aware: false,
        correlated: false,
    }))
}

/// Splits the input of a limit into the relation below the sort, the sort keys, and the maps above
/// the sort, the highest first.
fn sorted(relation: Relation) -> (Relation, Option<Vec<Key>>, Vec<Vec<(Name, Expr)>>) {
    match relation {
        Relation::Sort { input, keys, offset: 0, limit: None } => (*input, Some(keys), Vec::new()),
        Relation::Map { input, exprs } => {
            let (input, keys, mut maps) = sorted(*input);
            maps.insert(0, exprs);
            (input, keys, maps)
        }
        other => (other, None, Vec::new()),
    }
}

fn rename_parameters(relation: &mut Relation, names: &HashMap<Name, Name>) {
    fn within(expr: &mut Expr, names: &HashMap<Name, Name>) {
        if let Expr::Parameter(name) = expr {
            if let Some(new) = names.get(name) {
                *name = new.clone();
            }
            return;
        }
        expr.children_mut().into_iter().for_each(|child| within(child, names));
    }
    relation.exprs_mut().into_iter().for_each(|expr| within(expr, names));
    relation.inputs_mut().into_iter().for_each(|input| rename_parameters(input, names));
}
