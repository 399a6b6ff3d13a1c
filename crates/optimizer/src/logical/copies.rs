//! Copies of a part of a query, which are computed once: common table expressions and views with
//! several readers, subqueries that are written twice.

mod filtered;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;
use std::sync::Arc;

use tessera_context::interrupt;
use tessera_plan::{Expr, Rule};

use self::filtered::{ScanPredicates, scans, united};
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
    /// What selects the tuples of the part among those of `input`, of which it has the fields.
    selecting: Vec<Expr>,
}

/// Lets equal joins, groupings and windows share their tuples if these are few compared with the
/// tables that are scanned for them. Parts are equal if renamed fields make them equal; groupings
/// also if the predicates of their scans differ.
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
    // Larger parts first: what lies in a shared part needs no sharing. With positions, the order is
    // always the same.
    groups.sort_by_key(|group| {
        let (size, position) = shapes.sizes[&place(group[0])];
        (Reverse(size), position)
    });
    let rows = estimates.rows_of_all(relation);
    let mut covered = HashSet::new();
    for mut parts in groups {
        parts.retain(|part| !covered.contains(&place(part)));
        while parts.len() > 1 {
            let first = parts.remove(0);
            if types.is_volatile(first) || !first.parameters().is_empty() {
                continue;
            }
            let few = |copies: &[Copy<'_>]| {
                let tuples = copies.iter().map(|copy| rows.get(&place(copy.part)));
                let tuples = tuples.map(|rows| rows.copied().unwrap_or(f64::INFINITY));
                tuples.sum::<f64>() * SCANNED_PER_TUPLE <= scanned(first)
            };
            let Some((input, copies)) = shared(first, &parts, &few) else { continue };
            parts.retain(|part| !copies.iter().any(|copy| std::ptr::eq(copy.part, *part)));
            let id: Name = format!("copy${}", readers.len()).into();
            let input = Arc::new(input);
            for Copy { part, names, selecting, .. } in copies {
                cover(part, &mut covered);
                let (id, input) = (id.clone(), input.clone());
                readers.insert(place(part), Reader { id, input, names, selecting });
            }
        }
    }
    readers
}

/// Returns what the first part and some of the others can read, and these copies; `None` if they
/// have nothing to share. `few` tells whether parts are worth storing together.
fn shared<'r>(
    first: &'r Relation,
    others: &[&'r Relation],
    few: &dyn Fn(&[Copy<'_>]) -> bool,
) -> Option<(Relation, Vec<Copy<'r>>)> {
    let mut copies = vec![Copy::of_itself(first)];
    copies.extend(others.iter().filter_map(|part| Copy::of(first, part)));
    let predicates: Vec<ScanPredicates> = copies.iter().map(|copy| copy.scans.clone()).collect();
    let is_same = |scans: &ScanPredicates| *scans == predicates[0];
    if matches!(first, Relation::Aggregate(_))
        && !predicates.iter().all(is_same)
        && few(&copies)
        && let Some((input, selecting)) = united(first, &predicates)
    {
        for (copy, selecting) in copies.iter_mut().zip(selecting) {
            copy.selecting = selecting;
        }
        return Some((input, copies));
    }
    copies.retain(|copy| is_same(&copy.scans));
    (copies.len() > 1 && few(&copies[..1])).then(|| (first.clone(), copies))
}

/// A part that is equal to another one but for the predicates of its scans.
struct Copy<'r> {
    part: &'r Relation,
    names: HashMap<Name, Name>,
    /// Its predicates, with the fields of the other part.
    scans: ScanPredicates,
    /// See [`Reader::selecting`].
    selecting: Vec<Expr>,
}

impl<'r> Copy<'r> {
    fn of_itself(part: &'r Relation) -> Copy<'r> {
        let names = part.names().into_iter().map(|name| (name.clone(), name)).collect();
        Copy { part, names, scans: scans(part), selecting: Vec::new() }
    }

    fn of(first: &Relation, part: &'r Relation) -> Option<Copy<'r>> {
        let (mut names, mut scans) = (HashMap::new(), Vec::new());
        let is_same = is_same(first, part, &mut names, &mut scans);
        is_same.then_some(Copy { part, names, scans, selecting: Vec::new() })
    }
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
    let Some(Reader { id, input, names, selecting }) = readers.remove(&place(relation)) else {
        relation.inputs_mut().into_iter().for_each(|input| replace(input, readers));
        return;
    };
    let read = |name: Name| (name.clone(), Expr::Field(names.get(&name).cloned().unwrap_or(name)));
    let exprs = relation.names().into_iter().map(read).collect();
    let input = Relation::Shared { id, input: Box::new(Relation::clone(&input)) };
    *relation = Relation::Map { input: Box::new(input.filtered(selecting)), exprs };
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
        // The predicates of scans may differ.
        let is_scan = matches!(relation, Relation::Scan { .. });
        for expr in relation.exprs().into_iter().filter(|_| !is_scan) {
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

/// Whether two relations are equal but for the predicates of scans if fields of the second are
/// renamed. Adds those fields to `names`, each with its field of the first, and the predicates of
/// the second, renamed, to `scans`.
fn is_same(
    a: &Relation,
    b: &Relation,
    names: &mut HashMap<Name, Name>,
    scans: &mut ScanPredicates,
) -> bool {
    let (inputs, others) = (a.inputs(), b.inputs());
    inputs.len() == others.len()
        && inputs.into_iter().zip(others).all(|(a, b)| is_same(a, b, names, scans))
        && is_same_node(a, b, names, scans)
}

/// As [`is_same`], without the inputs.
fn is_same_node(
    a: &Relation,
    b: &Relation,
    names: &mut HashMap<Name, Name>,
    scans: &mut ScanPredicates,
) -> bool {
    let (Some(fields), Some(others)) = (defined(a), defined(b)) else { return false };
    let is_union_same = match (a, b) {
        (Relation::Union { inputs, .. }, Relation::Union { inputs: others, .. }) => {
            let read = |inputs: &[(Relation, Vec<Name>)]| -> Vec<Name> {
                inputs.iter().flat_map(|(_, fields)| fields).cloned().collect()
            };
            let (read, others) = (read(inputs), read(others));
            read.len() == others.len()
                && read.iter().zip(&others).all(|(a, b)| names.get(b) == Some(a))
        }
        _ => true,
    };
    let pairs: Vec<(Name, Name)> =
        others.iter().copied().cloned().zip(fields.iter().copied().cloned()).collect();
    // Predicates of a scan read its own fields. Others read those of the input, and a projection
    // passes them on under the same names, perhaps in another order.
    if matches!(a, Relation::Scan { .. }) {
        names.extend(pairs.iter().cloned());
    }
    let renamed = |expr: &Expr| {
        let mut expr = expr.clone();
        substitute(&mut expr, &|name| names.get(name).cloned().map(Expr::Field));
        expr
    };
    let (mut exprs, mut other_exprs) = (a.exprs(), b.exprs());
    if matches!(a, Relation::Scan { .. }) {
        scans.push(other_exprs.drain(..).map(renamed).collect());
        exprs.clear();
    }
    let is_same = is_union_same
        && fields.len() == others.len()
        && exprs.len() == other_exprs.len()
        && exprs.into_iter().zip(other_exprs).all(|(a, b)| *a == renamed(b))
        && has_same_form(a, b);
    names.extend(pairs);
    is_same
}

/// The fields that a relation adds to those of its inputs or has instead of them; `None` for a kind
/// of relation that is not compared.
fn defined(relation: &Relation) -> Option<Vec<&Name>> {
    Some(match relation {
        Relation::Scan { columns, .. } => columns.iter().map(|(name, _)| name).collect(),
        Relation::Filter { .. } => Vec::new(),
        Relation::Map { exprs, .. } => exprs.iter().map(|(name, _)| name).collect(),
        Relation::Join(join) => join.mark.iter().collect(),
        Relation::Aggregate(aggregate) => {
            let keys = aggregate.keys.iter().map(|(name, _)| name);
            let calls = aggregate.calls.iter().map(|(name, _)| name);
            let grouping = aggregate.grouping.iter().map(|(name, _)| name);
            keys.chain(calls).chain(grouping).collect()
        }
        Relation::Window(window) => window.calls.iter().map(|(name, _)| name).collect(),
        Relation::Union { names, .. } => names.iter().collect(),
        _ => return None,
    })
}

/// Whether two relations are equal but for their fields, expressions and inputs.
fn has_same_form(a: &Relation, b: &Relation) -> bool {
    match (a, b) {
        (
            Relation::Scan { table, columns, .. },
            Relation::Scan { table: other, columns: others, .. },
        ) => {
            let positions = columns.iter().map(|(_, position)| position);
            Arc::ptr_eq(table, other) && positions.eq(others.iter().map(|(_, position)| position))
        }
        (Relation::Join(a), Relation::Join(b)) => {
            let form = |join: &Join| (join.kind, join.null_aware, join.correlated);
            form(a) == form(b) && !a.correlated
        }
        (Relation::Aggregate(a), Relation::Aggregate(b)) => {
            let form = |aggregate: &Aggregate| {
                let calls = aggregate.calls.iter().map(|(_, call)| {
                    let mut call = call.clone();
                    call.exprs_mut().for_each(|expr| *expr = Expr::boolean(true));
                    call
                });
                let grouping = aggregate.grouping.as_ref().map(|(_, atom)| atom.clone());
                (aggregate.keys.len(), aggregate.sets.clone(), grouping, calls.collect::<Vec<_>>())
            };
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
            form(a) == form(b)
        }
        (a, b) => discriminant(a) == discriminant(b),
    }
}

#[cfg(test)]
mod tests {
    use tessera_plan::{Params, Statistics};
    use tessera_types::{Atom, Field, Tuple};

    use super::*;
    use crate::table::Table;

    /// A projection of two fields of a scan.
    fn map(table: &Arc<Table>, fields: [&str; 2], read: [&str; 2]) -> Relation {
        let columns = (0..).zip(fields).map(|(position, name)| (name.into(), position)).collect();
        let scan = Relation::Scan { table: table.clone(), columns, predicates: Vec::new() };
        let exprs = read.into_iter().map(|name| (name.into(), Expr::field(name))).collect();
        Relation::Map { input: Box::new(scan), exprs }
    }

    #[test]
    fn fields_in_another_order_are_not_the_same() {
        let table = Arc::new(Table {
            name: "t".to_string(),
            tuple: Tuple::new(vec![Field::new("p", Atom::Int64), Field::new("q", Atom::Int64)]),
            operator: "values".into(),
            params: Params::new(),
            filters: false,
            statistics: Statistics::default(),
            sample: None,
            row_numbers: None,
        });
        let first = map(&table, ["x", "y"], ["x", "y"]);
        let same = |other: &Relation| {
            let mut names = HashMap::new();
            is_same(&first, other, &mut names, &mut Vec::new()).then_some(names)
        };
        let names = same(&map(&table, ["u", "v"], ["u", "v"])).unwrap();
        assert_eq!((&*names["u"], &*names["v"]), ("x", "y"));
        assert!(same(&map(&table, ["u", "v"], ["v", "u"])).is_none());
    }
}
