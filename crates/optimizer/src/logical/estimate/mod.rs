//! Cardinality estimates: the number of tuples of a relation and of distinct values of its fields.
//! They determine join orders and build sides, never results.

mod component;
mod group;
mod index;
mod join;
mod key_range;
mod profile;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use tessera_plan::{ColumnStatistics, Expr, Scalar};
use tessera_types::Atom;

use crate::logical::relation::{Name, Relation};
use crate::table::Table;

use component::Component;
use group::group_profile;
use profile::{Column, bounded};

pub(crate) use join::join_profiles;
pub(crate) use profile::Profile;

/// The assumed number of rows of an unknown table.
const ROWS_UNKNOWN: f64 = 1_000.0;
/// The upper limit of estimated rows.
const ROWS_MOST: f64 = 1e100;

/// The assumed number of elements of a list.
const LIST_ELEMENTS: f64 = 4.0;

/// Fewer sampled rows than this are too few to estimate a fraction.
const FEW_ROWS: f64 = 10.0;

/// The assumed ratio of the result of a recursive query to its non-recursive term, and the assumed
/// size of its working table.
const RECURSION_GROWTH: f64 = 10.0;
const WORK_ROWS: f64 = 1_000.0;

/// The estimates of one statement. Profiles of tables are cached, and samples cache derived
/// components, because join ordering and lowering ask for the same estimates.
#[derive(Debug, Default)]
pub(crate) struct Estimates {
    tables: RefCell<HashMap<TableKey, (Arc<Table>, Profile)>>,
}

/// The address of a table, and the names of its columns.
type TableKey = (*const Table, Vec<(Name, usize)>);

impl Estimates {
    /// Estimates the profile of a relation.
    pub(crate) fn profile(&self, relation: &Relation) -> Profile {
        self.profile_with(relation, &mut |_, _| {})
    }

    /// Estimates the profiles of a relation and all its inputs, by their addresses.
    pub(crate) fn profiles_of_all(&self, relation: &Relation) -> HashMap<*const Relation, Profile> {
        let mut profiles = HashMap::new();
        self.profile_with(relation, &mut |relation, profile| {
            profiles.insert(std::ptr::from_ref(relation), profile.clone());
        });
        profiles
    }

    /// Estimates the number of tuples of a relation and all its inputs, by their addresses.
    pub(crate) fn rows_of_all(&self, relation: &Relation) -> HashMap<*const Relation, f64> {
        let mut rows = HashMap::new();
        self.profile_with(relation, &mut |relation, profile| {
            rows.insert(std::ptr::from_ref(relation), profile.rows);
        });
        rows
    }

    /// Estimates the profile of a relation; calls `seen` with it after the profiles of its inputs.
    fn profile_with(
        &self,
        relation: &Relation,
        seen: &mut dyn FnMut(&Relation, &Profile),
    ) -> Profile {
        let profile =
            derive_profile(relation, self, &mut |relation| self.profile_with(relation, seen));
        seen(relation, &profile);
        profile
    }

    /// Drops the profiles of tables: those from before their samples were loaded know less.
    pub(crate) fn forget_tables(&self) {
        self.tables.borrow_mut().clear();
    }

    /// Estimates the profile of a table; its sample must be loaded.
    fn table(&self, table: &Arc<Table>, columns: &[(Name, usize)]) -> Profile {
        let known = (Arc::as_ptr(table), columns.to_vec());
        if let Some((_, profile)) = self.tables.borrow().get(&known) {
            return profile.clone();
        }
        let profile = scan(table, columns);
        // The entry holds the table, so that no other table can reuse the address.
        self.tables.borrow_mut().insert(known, (table.clone(), profile.clone()));
        profile
    }
}

/// Derives the profile of a relation; `profile` estimates those of its inputs.
fn derive_profile(
    relation: &Relation,
    estimates: &Estimates,
    profile: &mut dyn FnMut(&Relation) -> Profile,
) -> Profile {
    match relation {
        Relation::Scan { table, columns, predicates } => {
            let mut profile = estimates.table(table, columns);
            profile.apply_all(predicates);
            for component in &mut profile.components {
                *component = component.thinned();
            }
            profile
        }
        Relation::Values { tuple, rows } => {
            let count = rows.len() as f64;
            let mut profile = Profile { rows: count, ..Profile::default() };
            for field in tuple.fields() {
                profile.columns.insert(field.name.clone(), Column::unknown(count));
            }
            profile
        }
        Relation::Filter { input, predicates } => {
            let mut profile = profile(input);
            profile.apply_all(predicates);
            profile
        }
        Relation::Map { input, exprs } => {
            let input = profile(input);
            let columns =
                exprs.iter().map(|(name, expr)| (name.clone(), input.column_of(expr))).collect();
            let renamed: Vec<(Name, Name)> = exprs
                .iter()
                .filter_map(|(name, expr)| match expr {
                    Expr::Field(field) => Some((name.clone(), field.clone())),
                    _ => None,
                })
                .collect();
            let components =
                input.components.iter().filter_map(|part| part.renamed(&renamed)).collect();
            Profile { rows: input.rows, columns, components }
        }
        Relation::Join(join) => {
            let (left, right) = (profile(&join.left), profile(&join.right));
            let conditions: Vec<&Expr> = join.conditions.iter().collect();
            join_profiles(&left, &right, join.kind, &conditions, join.mark.as_ref())
        }
        Relation::AsOf(join) => {
            // Most left tuples have a match, and none has two.
            let (mut profile, right) = (profile(&join.left), profile(&join.right));
            profile.columns.extend(right.columns);
            profile.cap();
            profile
        }
        Relation::Positional { left, right } => {
            let (mut profile, right) = (profile(left), profile(right));
            profile.components.clear();
            profile.columns.extend(right.columns);
            profile.rows = profile.rows.max(right.rows);
            profile
        }
        Relation::Aggregate(aggregate) => group_profile(&profile(&aggregate.input), aggregate),
        Relation::Window(window) => {
            let mut profile = profile(&window.input);
            for (name, _) in &window.calls {
                profile.columns.insert(name.clone(), Column::unknown(profile.rows));
            }
            profile
        }
        Relation::Sort { input, offset: 0, limit: None, .. } | Relation::Shared { input, .. } => {
            profile(input)
        }
        Relation::Sort { input, offset, limit, .. } | Relation::Limit { input, offset, limit } => {
            let mut profile = profile(input);
            profile.components.clear();
            let left = (profile.rows - *offset as f64).max(0.0);
            profile.rows = limit.map_or(left, |limit| left.min(limit as f64));
            profile.cap();
            profile
        }
        Relation::Sample { input, percent, .. } => {
            let mut profile = profile(input);
            profile.components.clear();
            profile.rows *= percent / 100.0;
            profile.cap();
            profile
        }
        Relation::Union { inputs, names } => {
            let profiles: Vec<(Profile, &Vec<Name>)> =
                inputs.iter().map(|(input, given)| (profile(input), given)).collect();
            let rows = profiles.iter().map(|(profile, _)| profile.rows).sum();
            let column = |position: usize| {
                let of = |(profile, given): &(Profile, &Vec<Name>)| {
                    given.get(position).map_or(1.0, |name| profile.distinct(name))
                };
                let distinct = profiles.iter().map(of).sum::<f64>();
                Column { distinct, domain: distinct, ..Column::unknown(rows) }
            };
            let columns =
                names.iter().enumerate().map(|(i, name)| (name.clone(), column(i))).collect();
            Profile { rows, columns, components: Vec::new() }
        }
        Relation::Recursive(recursive) => {
            let rows = finite(profile(&recursive.base.0).rows * RECURSION_GROWTH);
            unknown(&mut recursive.names.iter(), rows)
        }
        Relation::WorkingTable { columns, .. } => {
            unknown(&mut columns.iter().map(|(name, _)| name), WORK_ROWS)
        }
        Relation::Unnest { input, lists, .. } => {
            let mut profile = profile(input);
            let each = lists.iter().filter_map(|(list, _)| elements(input, list)).reduce(f64::max);
            profile.rows = finite(profile.rows * each.unwrap_or(LIST_ELEMENTS));
            for (_, element) in lists {
                profile.columns.insert(element.clone(), Column::unknown(profile.rows));
            }
            profile
        }
    }
}

/// Returns the number of elements of a list that is constant or a series between constants.
fn elements(input: &Relation, list: &Name) -> Option<f64> {
    let Relation::Map { exprs, .. } = input else { return None };
    let (_, expr) = exprs.iter().find(|(name, _)| name == list)?;
    if let Expr::Constant(Scalar::Nested(items), _) = expr {
        return Some(items.len() as f64);
    }
    let Expr::Call { function, args } = expr else { return None };
    if !matches!(&**function, "generate_series" | "range") {
        return None;
    }
    let number = |expr: &Expr| match expr {
        Expr::Constant(value, atom) if atom.is_integer() => number(value, Some(atom)),
        _ => None,
    };
    let numbers = args.iter().map(number).collect::<Option<Vec<f64>>>()?;
    let (start, stop, step) = match numbers[..] {
        [stop] => (0.0, stop, 1.0),
        [start, stop] => (start, stop, 1.0),
        [start, stop, step] => (start, stop, step),
        _ => return None,
    };
    Some(((stop - start) / step + 1.0).floor().max(0.0)).filter(|count| count.is_finite())
}

fn unknown(names: &mut dyn Iterator<Item = &Name>, rows: f64) -> Profile {
    let columns = names.map(|name| (name.clone(), Column::unknown(rows))).collect();
    Profile { rows, columns, components: Vec::new() }
}

fn scan(table: &Table, columns: &[(Name, usize)]) -> Profile {
    let sample = table.sample.as_ref().and_then(|sample| Some((sample, sample.size()?)));
    let sampled_rows = sample.map(|(_, size)| size.table_rows);
    let rows = sampled_rows.or(table.statistics.rows).unwrap_or(ROWS_UNKNOWN);
    let unknown = ColumnStatistics::default();
    let column = |index: usize| {
        let known = table.statistics.columns.get(index).unwrap_or(&unknown);
        let atom = table.tuple.fields().get(index).and_then(|field| field.atom());
        let min = known.min.as_ref().and_then(|value| number(value, atom));
        let max = known.max.as_ref().and_then(|value| number(value, atom));
        let whole = atom.is_some_and(|atom| atom.is_integer() || matches!(atom, Atom::Date));
        let range = match (min, max, atom) {
            (Some(min), Some(max), _) if whole => Some(max - min + 1.0),
            (Some(min), Some(max), Some(Atom::Decimal(_, scale))) => {
                Some((max - min) * 10_f64.powi((*scale).into()) + 1.0)
            }
            _ => None,
        };
        let guess = match atom {
            Some(Atom::String | Atom::Bits) => rows.sqrt().max(10.0),
            Some(Atom::Boolean) => 2.0,
            _ => rows,
        };
        let values = sample.and_then(|(sample, _)| sample.values(index));
        let whole = sample.is_some_and(|(_, size)| size.whole());
        let distinct = values
            .filter(|values| whole || values.counted || known.distinct.is_none())
            .map(|values| values.distinct)
            .or(known.distinct)
            .or(range)
            .unwrap_or(guess)
            .min(range.unwrap_or(f64::MAX))
            .clamp(1.0, rows.max(1.0));
        let nulls = known.null_fraction.unwrap_or(0.0);
        Column { min, max, nulls, ..Column::plain(distinct, rows) }
    };
    let component = sample.and_then(|(sample, _)| Component::of(sample, columns));
    let columns = columns.iter().map(|(name, index)| (name.clone(), column(*index))).collect();
    Profile { rows, columns, components: component.into_iter().map(Rc::new).collect() }
}

/// Returns a constant as a number, for ranges; `None` for infinity and NaN, which bound no range.
fn number(value: &Scalar, atom: Option<&Atom>) -> Option<f64> {
    let number = match (value, atom) {
        (Scalar::Integer(digits), Some(Atom::Decimal(_, scale))) => {
            Some(*digits as f64 / 10_f64.powi((*scale).into()))
        }
        (Scalar::Integer(number), _) => Some(*number as f64),
        (Scalar::Float(number), _) => Some(*number),
        (Scalar::Boolean(flag), _) => Some(f64::from(u8::from(*flag))),
        _ => None,
    };
    number.filter(|number| number.is_finite())
}

/// Limits a number of rows so that costs can be computed: no NaN, and far below the largest float.
fn finite(rows: f64) -> f64 {
    if rows.is_nan() { 0.0 } else { rows.clamp(0.0, ROWS_MOST) }
}
