//! Correlated subqueries with a LIMIT as plain joins: the values of the outer row that the subquery
//! reads, each combination once, are joined with what it reads; the limit then holds for each
//! combination, and the outer rows are joined with what is left. A table is read once and not again
//! for each outer row.
//!
//! (Neumann and Kemper, Unnesting Arbitrary Queries, 2015, for the subqueries that conditions alone
//! cannot be moved out of.)

use std::collections::{HashMap, HashSet};

use tessera_plan::{Expr, Functions, Rule, Scalar};
use tessera_types::{Atom, Slot};

use crate::logical::fields::Fields;
use crate::logical::relation::{
    Aggregate, Call, Join, Key, Kind, Name, Relation, covered, parameters, substitute_parameters,
};

/// The last element that a list may have.
const LIST_END: i64 = i32::MAX as i64;

/// The outer rows of a subquery: what it reads of them, and how often that may be computed.
struct Outer {
    /// The relation that gives them.
    rows: Relation,
    /// The fields that the subquery reads.
    read: Vec<Name>,
}

/// A part of a subquery beside the outer values that it belongs to.
struct Attached {
    relation: Relation,
    /// The field of each value, in the order of [`Outer::read`].
    values: Vec<Name>,
}

impl Attached {
    fn names(&self, outer: &Outer) -> HashMap<Name, Name> {
        outer.read.iter().cloned().zip(self.values.iter().cloned()).collect()
    }

    fn identity(&self) -> impl Iterator<Item = (Name, Expr)> {
        self.values.iter().map(|name| (name.clone(), Expr::Field(name.clone())))
    }
}

impl Fields<'_> {
    /// The join without a subquery that is run for each row, where it has a LIMIT and equalities
    /// find its rows. `nested`: within another such subquery, which may be run many times.
    ///
    /// # Errors
    /// It is another join, which is given back.
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
        let outer = Outer { rows, read };
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

    /// The relation so that it can stand in two places and give the same tuples in both.
    fn twice(&mut self, relation: &Relation, nested: bool) -> Option<Relation> {
        let volatile = self.types().is_volatile(relation);
        if !volatile && (nested || cheap(relation)) {
            return same_each_time(relation).then(|| relation.clone());
        }
        // What is shared is computed in full, once; a nested plan cannot keep it.
        if nested || !relation.parameters().is_empty() {
            return None;
        }
        let id = self.fresh("shared", Atom::Null);
        Some(Relation::Shared { id, input: Box::new(relation.clone()) })
    }

    /// Whether a value can stand for all that are equal to it: of doubles, intervals and lists only
    /// where they are compared.
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

    /// The relation beside each combination of outer values for which it has tuples; none where
    /// that cannot be, or its rows would not be found by equalities. `found`: an equality above
    /// finds them.
    fn attach(&mut self, relation: Relation, outer: &Outer, found: bool) -> Option<Attached> {
        let reads = |relation: &Relation| {
            let parameters = relation.parameters();
            outer.read.iter().any(|name| parameters.contains(name))
        };
        if !reads(&relation) {
            return (found || one_row(&relation)).then(|| self.beside(relation, outer));
        }
        match relation {
            Relation::Filter { input, mut predicates } => {
                let found = found || finds(&predicates, &outer.read);
                let attached = self.attach(*input, outer, found)?;
                let names = attached.names(outer);
                predicates
                    .iter_mut()
                    .for_each(|predicate| substitute_parameters(predicate, &names));
                Some(Attached {
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
                Some(Attached { relation, values: attached.values })
            }
            Relation::Sort { input, offset: 0, limit: None, .. } => {
                self.attach(*input, outer, found)
            }
            Relation::Sort { input, keys, offset, limit } => {
                self.first_of_each((*input, Some(keys)), (offset, limit), Vec::new(), outer)
            }
            Relation::Limit { input, offset, limit } => {
                if offset == 0 && limit != Some(0) && one_row(&input) {
                    return self.attach(*input, outer, found);
                }
                let (input, keys, maps) = sorted(*input);
                self.first_of_each((input, keys), (offset, limit), maps, outer)
            }
            Relation::Unnest { input, lists, outer: false } => {
                let attached = self.attach(*input, outer, found)?;
                let relation =
                    Relation::Unnest { input: Box::new(attached.relation), lists, outer: false };
                Some(Attached { relation, values: attached.values })
            }
            Relation::Aggregate(mut aggregate)
                if aggregate.sets.is_none() && !aggregate.keys.is_empty() =>
            {
                let taken = std::mem::replace(&mut aggregate.input, Relation::nothing());
                let attached = self.attach(taken, outer, false)?;
                let names = attached.names(outer);
                aggregate.keys.extend(attached.identity());
                aggregate.input = attached.relation;
                let mut relation = Relation::Aggregate(aggregate);
                relation
                    .exprs_mut()
                    .into_iter()
                    .for_each(|expr| substitute_parameters(expr, &names));
                Some(Attached { relation, values: attached.values })
            }
            Relation::Join(join) => self.attach_join(*join, outer, found),
            _ => None,
        }
    }

    /// Both sides of a join belong to the values of its left one.
    fn attach_join(&mut self, mut join: Join, outer: &Outer, found: bool) -> Option<Attached> {
        let reads = |relation: &Relation| {
            let parameters = relation.parameters();
            outer.read.iter().any(|name| parameters.contains(name))
        };
        let inner = join.kind == Kind::Inner && !join.correlated;
        let own = finds(&join.conditions, &outer.read);
        if reads(&join.right) && !join.correlated {
            if !inner {
                return None;
            }
            if !reads(&join.left) {
                std::mem::swap(&mut join.left, &mut join.right);
            }
        }
        let left = std::mem::replace(&mut join.left, Relation::nothing());
        let attached = self.attach(left, outer, found || own && inner)?;
        let names = attached.names(outer);
        if reads(&join.right) {
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
        Some(Attached { relation: Relation::Join(Box::new(join)), values: attached.values })
    }

    /// All tuples of a relation beside each combination of outer values.
    fn beside(&mut self, relation: Relation, outer: &Outer) -> Attached {
        let mut keys = Vec::new();
        for name in &outer.read {
            let atom = self.atoms().get(name).cloned().unwrap_or(Atom::Null);
            keys.push((self.fresh(name, atom), Expr::Field(name.clone())));
        }
        let values = keys.iter().map(|(name, _)| name.clone()).collect();
        let input = outer.rows.clone();
        let each = Aggregate { input, keys, sets: None, grouping: None, calls: Vec::new() };
        let left = Relation::Aggregate(Box::new(each));
        Attached { relation: crossed(left, relation), values }
    }

    /// The first tuples for each combination of outer values, then mapped.
    fn first_of_each(
        &mut self,
        (input, order): (Relation, Option<Vec<Key>>),
        (offset, limit): (u64, Option<u64>),
        maps: Vec<Vec<(Name, Expr)>>,
        outer: &Outer,
    ) -> Option<Attached> {
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
        let Attached { relation, values } = self.attach(input, outer, false)?;
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
        Some(Attached { relation, values })
    }

    /// Tuples of each group from a place on and up to another, in order, by lists of them.
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
                // Without columns there are tuples all the same.
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

/// Moves predicates below joins to the rows that a correlated subquery is computed for, so that
/// these are few.
pub(crate) fn sink(
    relation: Relation,
    predicates: Vec<Expr>,
    stays: &dyn Fn(&Expr) -> bool,
) -> Relation {
    let Relation::Join(mut join) = relation else { return relation.filtered(predicates) };
    if join.kind == Kind::Full || !has_correlated(&join.left) && !join.correlated {
        return Relation::Join(join).filtered(predicates);
    }
    let names: HashSet<Name> = join.left.names().into_iter().collect();
    let (mut go, mut stay) = (Vec::new(), Vec::new());
    for predicate in predicates.iter().flat_map(Expr::conjuncts) {
        let moves =
            !predicate.fields().is_empty() && covered(&predicate, &names) && !stays(&predicate);
        if moves { go.push(predicate) } else { stay.push(predicate) }
    }
    if !go.is_empty() {
        let left = std::mem::replace(&mut join.left, Relation::nothing());
        join.left = sink(left, go, stays);
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

/// What is limited: without the sort below maps, its keys, and these maps, the highest first.
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

/// Whether a limit cuts the relation or a part of it.
fn limited(relation: &Relation) -> bool {
    match relation {
        Relation::Limit { .. } | Relation::Sort { limit: Some(_), .. } => true,
        Relation::Sort { offset, .. } if *offset > 0 => true,
        other => other.inputs().into_iter().any(limited),
    }
}

/// Whether each outer value has one tuple at most.
fn one_at_most(relation: &Relation) -> bool {
    match relation {
        Relation::Map { input, .. } | Relation::Filter { input, .. } => one_at_most(input),
        Relation::Unnest { input, lists, outer: false } => match (&**input, lists.as_slice()) {
            (Relation::Aggregate(aggregate), [(list, _)]) => {
                aggregate.calls.iter().any(|(name, call)| name == list && call.limit == Some(1))
            }
            _ => false,
        },
        _ => false,
    }
}

fn one_row(relation: &Relation) -> bool {
    match relation {
        Relation::Aggregate(aggregate) => aggregate.keys.is_empty() && aggregate.sets.is_none(),
        Relation::Map { input, .. } => one_row(input),
        Relation::Values { rows, .. } => rows.len() == 1,
        _ => false,
    }
}

/// Whether one of the conjuncts is an equality of what a tuple has with what an outer row has.
fn finds(predicates: &[Expr], read: &[Name]) -> bool {
    predicates.iter().flat_map(Expr::conjuncts).any(|conjunct| is_equality(&conjunct, read))
}

fn is_equality(conjunct: &Expr, read: &[Name]) -> bool {
    let Expr::Call { function, args } = conjunct else { return false };
    let ([a, b], "eq") = (args.as_slice(), &**function) else { return false };
    let of_outer = |expr: &Expr| {
        expr.fields().is_empty() && parameters(expr).iter().any(|name| read.contains(name))
    };
    let of_tuple = |expr: &Expr| !expr.fields().is_empty() && parameters(expr).is_empty();
    of_outer(a) && of_tuple(b) || of_tuple(a) && of_outer(b)
}

/// The outer values without which a subquery has no tuples when they are NULL.
fn rejected_nulls(relation: &Relation) -> HashSet<Name> {
    match relation {
        Relation::Filter { input, predicates } => {
            let mut names = rejected_nulls(input);
            names.extend(predicates.iter().flat_map(Expr::conjuncts).flat_map(compared));
            names
        }
        Relation::Map { input, .. }
        | Relation::Sort { input, .. }
        | Relation::Limit { input, .. }
        | Relation::Unnest { input, outer: false, .. } => rejected_nulls(input),
        Relation::Aggregate(aggregate) if !aggregate.keys.is_empty() => {
            rejected_nulls(&aggregate.input)
        }
        Relation::Join(join) if join.kind == Kind::Inner => {
            let mut names = rejected_nulls(&join.left);
            names.extend(rejected_nulls(&join.right));
            names.extend(join.conditions.iter().flat_map(Expr::conjuncts).flat_map(compared));
            names
        }
        _ => HashSet::new(),
    }
}

/// The parameters that a conjunct compares, so that it is not true when they are NULL.
fn compared(conjunct: Expr) -> Vec<Name> {
    let Expr::Call { function, args } = conjunct else { return Vec::new() };
    if !is_comparison(&function) {
        return Vec::new();
    }
    let name = |arg| if let Expr::Parameter(name) = arg { Some(name) } else { None };
    args.into_iter().filter_map(name).collect()
}

fn is_comparison(function: &str) -> bool {
    matches!(function, "eq" | "ne" | "lt" | "le" | "gt" | "ge")
}

/// Whether these parameters stand in comparisons only.
fn only_compared(relation: &Relation, odd: &HashSet<&Name>) -> bool {
    fn within(expr: &Expr, odd: &HashSet<&Name>) -> bool {
        match expr {
            Expr::Parameter(name) => !odd.contains(name),
            Expr::Call { function, args } if is_comparison(function) => {
                args.iter().all(|arg| matches!(arg, Expr::Parameter(_)) || within(arg, odd))
            }
            other => other.children().into_iter().all(|child| within(child, odd)),
        }
    }
    relation.exprs().into_iter().all(|expr| within(expr, odd))
        && relation.inputs().into_iter().all(|input| only_compared(input, odd))
}

/// Whether computing a relation twice costs little.
fn cheap(relation: &Relation) -> bool {
    match relation {
        Relation::Scan { .. } | Relation::Values { .. } | Relation::Shared { .. } => true,
        Relation::Filter { input, .. } | Relation::Map { input, .. } => cheap(input),
        _ => false,
    }
}

/// Whether each time that a relation is computed gives the same tuples, if nothing in it is
/// volatile: of a limit, or of what hangs on the order of its input, others may come.
fn same_each_time(relation: &Relation) -> bool {
    let simple = match relation {
        Relation::Scan { .. }
        | Relation::Values { .. }
        | Relation::Filter { .. }
        | Relation::Map { .. }
        | Relation::Shared { .. } => true,
        Relation::Join(join) => !join.correlated,
        _ => false,
    };
    simple && relation.inputs().into_iter().all(same_each_time)
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

fn has_map(atom: &Atom) -> bool {
    let of = |slot: &Slot| has_map(&slot.atom);
    match atom {
        Atom::Map(..) => true,
        Atom::List(slot) => of(slot),
        Atom::Struct(slots) => slots.iter().any(|(_, slot)| of(slot)),
        _ => false,
    }
}
