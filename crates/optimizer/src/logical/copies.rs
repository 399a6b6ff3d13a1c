//! Copies of a part of a query, which are computed once: common table expressions and views with
//! several readers, subqueries that are written twice.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;
use std::sync::Arc;

use tessera_context::interrupt;
use tessera_plan::{Expr, Rule};

use super::estimate::Estimates;
use super::reduce::scanned;
use super::relation::{Aggregate, Join, Name, Relation, substitute};
use super::types::Types;
use super::window::Window;

/// A part is stored if it yields at most one tuple for so many scanned ones.
const SCANNED_PER_TUPLE: f64 = 4.0;

/// A part of the query, by its address.
type Place = *const Relation;

/// What takes the place of a part: the tuples of an equal one.
struct Reader {
    id: Name,
    input: Arc<Relation>,
    /// The fields of the part, and those of `input` that they are called after.
    names: HashMap<Name, Name>,
}

/// Lets equal joins, groupings and windows share their tuples if these are few compared with the
/// tables that are scanned for them. Parts are equal if renamed fields make them equal.
pub(crate) fn share_copies(
    mut relation: Relation,
    types: Types<'_>,
    estimates: &Estimates,
) -> Relation {
    if types.rules.has(Rule::ShareCopies) {
        let mut readers = readers(&relation, types, estimates);
        replace(&mut relation, &mut readers);
    }
    relation
}

/// Finds the parts to replace.
fn readers(relation: &Relation, types: Types<'_>, estimates: &Estimates) -> HashMap<Place, Reader> {
    let mut shapes = Shapes::default();
    shapes.add(relation);
    let mut groups: Vec<Vec<&Relation>> =
        shapes.parts.into_values().filter(|parts| parts.len() > 1).collect();
    let mut readers = HashMap::new();
    if groups.is_empty() {
        return readers;
    }
    // Larger parts first: what lies in a shared part needs no sharing. Positions make it repeatable.
    groups.sort_by_key(|group| {
        let (size, position) = shapes.sizes[&place(group[0])];
        (Reverse(size), position)
    });
    let rows = estimates.rows_of_all(relation);
    let mut covered = HashSet::new();
    for (number, group) in groups.into_iter().enumerate() {
        let mut parts = group.into_iter().filter(|part| !covered.contains(&place(part)));
        let Some(first) = parts.next() else { continue };
        let tuples = rows.get(&place(first)).copied().unwrap_or(f64::INFINITY);
        if tuples * SCANNED_PER_TUPLE > scanned(first)
            || types.is_volatile(first)
            || !first.parameters().is_empty()
        {
            continue;
        }
        let same = |part| {
            let mut names = HashMap::new();
            is_same(first, part, &mut names).then_some((part, names))
        };
        let copies: Vec<(&Relation, _)> = parts.filter_map(same).collect();
        if copies.is_empty() {
            continue;
        }
        let (id, input): (Name, _) = (format!("copy${number}").into(), Arc::new(first.clone()));
        let itself = first.names().into_iter().map(|name| (name.clone(), name)).collect();
        for (part, names) in std::iter::once((first, itself)).chain(copies) {
            cover(part, &mut covered);
            let (id, input) = (id.clone(), input.clone());
            readers.insert(place(part), Reader { id, input, names });
        }
    }
    readers
}

fn place(relation: &Relation) -> Place {
    std::ptr::from_ref(relation)
}

/// Adds a part and all its inputs.
fn cover(part: &Relation, covered: &mut HashSet<Place>) {
    covered.insert(place(part));
    part.inputs().into_iter().for_each(|input| cover(input, covered));
}

fn replace(relation: &mut Relation, readers: &mut HashMap<Place, Reader>) {
    let Some(Reader { id, input, names }) = readers.remove(&place(relation)) else {
        relation.inputs_mut().into_iter().for_each(|input| replace(input, readers));
        return;
    };
    let read = |name: Name| (name.clone(), Expr::Field(names.get(&name).cloned().unwrap_or(name)));
    let exprs = relation.names().into_iter().map(read).collect();
    let input = Relation::Shared { id, input: Box::new(Relation::clone(&input)) };
    *relation = Relation::Map { input: Box::new(input), exprs };
}

/// The parts that may be shared, by a hash that does not depend on the names of fields.
#[derive(Default)]
struct Shapes<'r> {
    parts: HashMap<u64, Vec<&'r Relation>>,
    /// The number of relations in each part, and its position in the query.
    sizes: HashMap<Place, (usize, usize)>,
}

impl<'r> Shapes<'r> {
    /// Adds a relation and its inputs; returns its hash and size.
    fn add(&mut self, relation: &'r Relation) -> (u64, usize) {
        interrupt::point();
        let (mut hasher, mut size) = (DefaultHasher::new(), 1);
        discriminant(relation).hash(&mut hasher);
        for (number, input) in relation.inputs().into_iter().enumerate() {
            // Nested plans would store the tuples again for each row.
            let is_nested = match relation {
                Relation::Join(join) => join.correlated && number == 1,
                Relation::Recursive(_) | Relation::Shared { .. } => true,
                _ => false,
            };
            if is_nested {
                place(input).hash(&mut hasher);
                continue;
            }
            let (hash, inner) = self.add(input);
            hash.hash(&mut hasher);
            size += inner;
        }
        if let Relation::Scan { table, columns, .. } = relation {
            Arc::as_ptr(table).hash(&mut hasher);
            columns.iter().for_each(|(_, column)| column.hash(&mut hasher));
        }
        for expr in relation.exprs() {
            expr.walk(&mut |expr| {
                discriminant(expr).hash(&mut hasher);
                match expr {
                    Expr::Call { function, .. } => function.hash(&mut hasher),
                    Expr::Constant(..) => expr.fingerprint().hash(&mut hasher),
                    _ => {}
                }
            });
        }
        let hash = hasher.finish();
        if matches!(relation, Relation::Join(_) | Relation::Aggregate(_) | Relation::Window(_)) {
            let position = self.sizes.len();
            self.sizes.insert(place(relation), (size, position));
            self.parts.entry(hash).or_default().push(relation);
        }
        (hash, size)
    }
}

/// Whether two relations are equal if fields of the second are renamed. Adds those fields to
/// `names`, each with its field of the first.
fn is_same(a: &Relation, b: &Relation, names: &mut HashMap<Name, Name>) -> bool {
    let (inputs, others) = (a.inputs(), b.inputs());
    inputs.len() == others.len()
        && inputs.into_iter().zip(others).all(|(a, b)| is_same(a, b, names))
        && is_same_node(a, b, names)
}

fn is_same_node(a: &Relation, b: &Relation, names: &mut HashMap<Name, Name>) -> bool {
    let renamed = |expr: &Expr, names: &HashMap<Name, Name>| {
        let mut expr = expr.clone();
        substitute(&mut expr, &|name| names.get(name).cloned().map(Expr::Field));
        expr
    };
    let mut define = |a: &Name, b: &Name| drop(names.insert(b.clone(), a.clone()));
    if let (Relation::Scan { columns, .. }, Relation::Scan { columns: others, .. }) = (a, b) {
        columns.iter().zip(others).for_each(|((a, _), (b, _))| define(a, b));
    }
    let (exprs, others) = (a.exprs(), b.exprs());
    if exprs.len() != others.len()
        || !exprs.into_iter().zip(others).all(|(a, b)| *a == renamed(b, names))
    {
        return false;
    }
    let mut define = |a: &Name, b: &Name| drop(names.insert(b.clone(), a.clone()));
    match (a, b) {
        (
            Relation::Scan { table, columns, .. },
            Relation::Scan { table: other, columns: others, .. },
        ) => {
            let positions = |columns: &[(Name, usize)]| -> Vec<usize> {
                columns.iter().map(|(_, position)| *position).collect()
            };
            Arc::ptr_eq(table, other) && positions(columns) == positions(others)
        }
        (Relation::Filter { .. }, Relation::Filter { .. }) => true,
        (Relation::Map { exprs, .. }, Relation::Map { exprs: others, .. }) => {
            exprs.iter().zip(others).for_each(|((a, _), (b, _))| define(a, b));
            true
        }
        (Relation::Join(a), Relation::Join(b)) => {
            a.mark.iter().zip(&b.mark).for_each(|(a, b)| define(a, b));
            let form = |join: &Join| (join.kind, join.null_aware, join.correlated);
            form(a) == form(b) && !a.correlated
        }
        (Relation::Aggregate(a), Relation::Aggregate(b)) => {
            let fields = |aggregate: &Aggregate| -> Vec<Name> {
                let keys = aggregate.keys.iter().map(|(name, _)| name);
                let calls = aggregate.calls.iter().map(|(name, _)| name);
                let grouping = aggregate.grouping.iter().map(|(name, _)| name);
                keys.chain(calls).chain(grouping).cloned().collect()
            };
            let form = |aggregate: &Aggregate| {
                let calls = aggregate.calls.iter().map(|(_, call)| {
                    let mut call = call.clone();
                    call.exprs_mut().for_each(|expr| *expr = Expr::boolean(true));
                    call
                });
                let grouping = aggregate.grouping.as_ref().map(|(_, atom)| atom.clone());
                (aggregate.keys.len(), aggregate.sets.clone(), grouping, calls.collect::<Vec<_>>())
            };
            fields(a).iter().zip(&fields(b)).for_each(|(a, b)| define(a, b));
            form(a) == form(b)
        }
        (Relation::Window(a), Relation::Window(b)) => {
            let form = |window: &Window| {
                let order = window.order.iter().map(|key| (key.descending, key.nulls_first));
                let calls = window.calls.iter().map(|(_, call)| {
                    let mut call = call.clone();
                    call.exprs_mut().for_each(|expr| *expr = Expr::boolean(true));
                    call
                });
                let order: Vec<_> = order.collect();
                (window.partition.len(), order, calls.collect::<Vec<_>>(), window.limit)
            };
            a.calls.iter().zip(&b.calls).for_each(|((a, _), (b, _))| define(a, b));
            form(a) == form(b)
        }
        (
            Relation::Union { inputs, names: fields },
            Relation::Union { inputs: others, names: other_fields },
        ) => {
            let same = |((_, a), (_, b)): (&(Relation, Vec<Name>), &(Relation, Vec<Name>))| {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| names.get(b) == Some(a))
            };
            let is_same = inputs.iter().zip(others).all(same);
            for (a, b) in fields.iter().zip(other_fields) {
                names.insert(b.clone(), a.clone());
            }
            is_same
        }
        _ => false,
    }
}
