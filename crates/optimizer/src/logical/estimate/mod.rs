//! How many tuples a relation has, and how many distinct values its fields: estimates that order
//! joins and choose the side that is built. Answers never depend on them.

mod component;
mod group;
mod join;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use tessera_plan::{Expr, Scalar};
use tessera_types::Atom;

use crate::logical::relation::{Name, Relation};
use crate::table::{ColumnStatistics, Table};

use component::Component;
use group::{Spread, grouped};

pub(crate) use join::join_profiles;

/// Rows of a table nothing is known of.
const ROWS_UNKNOWN: f64 = 1_000.0;
/// The share that passes an inequality nothing is known of.
const RANGE_SHARE: f64 = 1.0 / 3.0;
/// The share that passes a predicate nothing is known of.
const OTHER_SHARE: f64 = 0.25;
/// The share that matches a pattern with a fixed beginning, and one without.
const PREFIX_SHARE: f64 = 0.02;
const PATTERN_SHARE: f64 = 0.06;
/// The share of groups kept by a condition on an aggregate's result.
const LEAST_SHARE: f64 = 1e-9;

/// The most rows that a relation is believed to have.
const ROWS_MOST: f64 = 1e100;

/// How many elements a list has that nothing is known of.
const LIST_ELEMENTS: f64 = 4.0;

/// Fewer rows of a sample than this say little about a share.
const FEW_ROWS: f64 = 10.0;

/// What is believed of a relation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Profile {
    pub rows: f64,
    columns: HashMap<Name, Column>,
    /// Samples of it, each of the fields of some of its tables; what is in two of them is taken to
    /// be independent.
    components: Vec<Rc<Component>>,
}

/// How many times the tuples of its first term a recursion is believed to give, and how many tuples
/// one of its runs reads.
const RECURSION_GROWTH: f64 = 10.0;
const WORK_ROWS: f64 = 1_000.0;

/// What is believed of a field.
#[derive(Debug, Clone)]
struct Column {
    /// Distinct values among the tuples that are left.
    distinct: f64,
    /// Distinct values before anything was filtered away.
    domain: f64,
    /// Tuples before anything was filtered away.
    base: f64,
    min: Option<f64>,
    max: Option<f64>,
    nulls: f64,
    /// Of sums and counts: how they are distributed.
    spread: Option<Spread>,
    /// Of the smallest and largest values of groups: how many tuples a group has.
    group_rows: Option<f64>,
}

/// Estimates of one statement. What samples say of tables is kept, and with each sample what was
/// made of it: the same is asked while joins are ordered and again when the plan is made.
#[derive(Debug, Default)]
pub(crate) struct Estimates {
    tables: RefCell<HashMap<TableOf, (Arc<Table>, Profile)>>,
}

/// Where a table is, and the names of its columns.
type TableOf = (*const Table, Vec<(Name, usize)>);

impl Estimates {
    /// What is believed of a relation.
    pub(crate) fn profile(&self, relation: &Relation) -> Profile {
        self.visited(relation, &mut |_, _| {})
    }

    /// How many tuples a relation and all that it is made of are believed to have, by where they
    /// are.
    pub(crate) fn rows_of_all(&self, relation: &Relation) -> HashMap<*const Relation, f64> {
        let mut rows = HashMap::new();
        self.visited(relation, &mut |relation, profile| {
            rows.insert(std::ptr::from_ref(relation), profile.rows);
        });
        rows
    }

    /// The profile of a relation; `seen` is told it, and before those of the relations that it is
    /// made of.
    fn visited(&self, relation: &Relation, seen: &mut dyn FnMut(&Relation, &Profile)) -> Profile {
        let profile = profiled(relation, self, &mut |relation| self.visited(relation, seen));
        seen(relation, &profile);
        profile
    }

    /// What is believed of a table whose samples have been drawn.
    fn table(&self, table: &Arc<Table>, columns: &[(Name, usize)]) -> Profile {
        let known = (Arc::as_ptr(table), columns.to_vec());
        if let Some((_, profile)) = self.tables.borrow().get(&known) {
            return profile.clone();
        }
        let profile = scan(table, columns);
        // It keeps the table, so that no other one is ever at its place.
        self.tables.borrow_mut().insert(known, (table.clone(), profile.clone()));
        profile
    }
}

/// The profile of a relation, given `profile` of those that it is made of.
fn profiled(
    relation: &Relation,
    estimates: &Estimates,
    profile: &mut dyn FnMut(&Relation) -> Profile,
) -> Profile {
    match relation {
        Relation::Scan { table, columns, predicates } => {
            let mut profile = estimates.table(table, columns);
            profile.apply_all(predicates);
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
        Relation::Aggregate(aggregate) => grouped(&profile(&aggregate.input), aggregate),
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
        Relation::Work { columns, .. } => {
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

/// How many elements a list has that is a constant, or a series of numbers between constants.
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
            Some(Atom::String) => rows.sqrt().max(10.0),
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

/// A constant as a finite number, for ranges: infinity and NaN bound none.
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

/// A number of rows that costs can be computed of: not NaN, and far from the largest number.
fn finite(rows: f64) -> f64 {
    if rows.is_nan() { 0.0 } else { rows.clamp(0.0, ROWS_MOST) }
}

impl Column {
    fn unknown(rows: f64) -> Self {
        Column::plain(rows.max(1.0), rows)
    }

    /// Of which only the number of distinct values is known.
    fn plain(distinct: f64, rows: f64) -> Self {
        let (domain, base) = (distinct, rows);
        Column {
            distinct,
            domain,
            base,
            min: None,
            max: None,
            nulls: 0.0,
            spread: None,
            group_rows: None,
        }
    }
}

impl Profile {
    /// Distinct values of a field.
    pub(crate) fn distinct(&self, name: &str) -> f64 {
        self.columns
            .get(name)
            .map_or(self.rows.sqrt(), |column| column.distinct)
            .clamp(1.0, self.rows.max(1.0))
    }

    /// The share of a field's values that predicates and joins have left.
    pub(crate) fn share_left(&self, name: &str) -> f64 {
        self.columns
            .get(name)
            .map_or(1.0, |column| column.distinct / column.domain.min(column.base).max(1.0))
    }

    fn column_of(&self, expr: &Expr) -> Column {
        if let Expr::Field(name) = expr
            && let Some(column) = self.columns.get(name)
        {
            return column.clone();
        }
        let mut distinct: f64 = expr.fields().iter().map(|name| self.distinct(name)).product();
        if let Expr::Call { function, args } = expr
            && matches!(&**function, "date_part" | "extract" | "date_trunc")
            && let Some(Column { min: Some(min), max: Some(max), .. }) = args
                .iter()
                .find_map(|arg| arg.fields().first().and_then(|name| self.columns.get(name)))
        {
            distinct = distinct.min((max - min) / 365.0 + 1.0);
        }
        Column::plain(distinct.clamp(1.0, self.rows.max(1.0)), self.rows)
    }

    /// No field has more distinct values than there are tuples.
    fn cap(&mut self) {
        let rows = self.rows.max(1.0);
        for column in self.columns.values_mut() {
            column.distinct = column.distinct.min(rows);
        }
    }

    /// Only this share of the tuples is left.
    fn scale(&mut self, share: f64) {
        let share = if share.is_nan() { LEAST_SHARE } else { share.clamp(LEAST_SHARE, 1.0) };
        let before = self.rows.max(1.0);
        self.rows *= share;
        for column in self.columns.values_mut() {
            // Drawing a share of the tuples leaves a value out with probability (1 - share)^(tuples
            // per value).
            let per_value = (before / column.distinct).max(1.0);
            column.distinct *= 1.0 - (1.0 - share).powf(per_value);
            column.distinct = column.distinct.clamp(1.0, self.rows.max(1.0));
        }
    }

    /// Tuples that satisfy all these predicates are left.
    pub(crate) fn apply_all(&mut self, predicates: &[Expr]) {
        for predicate in predicates {
            self.apply(predicate);
        }
    }

    fn apply(&mut self, predicate: &Expr) {
        if let Expr::And(list) = predicate {
            return self.apply_all(list);
        }
        let share = self.share(predicate);
        let share = self.apply_to_sample(predicate, share).unwrap_or(share);
        self.scale(share);
        let Expr::Call { function, args } = predicate else { return };
        if let [Expr::Field(name), Expr::Constant(value, atom)] = args.as_slice()
            && let Some(column) = self.columns.get_mut(name)
        {
            let value = number(value, Some(atom));
            match &**function {
                "eq" => {
                    column.distinct = 1.0;
                    (column.min, column.max) = (value, value);
                }
                "lt" | "lt_eq" => column.max = value.or(column.max),
                "gt" | "gt_eq" => column.min = value.or(column.min),
                _ => {}
            }
        }
    }

    /// Filters the sample that has the predicate's fields; the share that is left. Where that is of
    /// few rows, it bounds what is believed without it.
    fn apply_to_sample(&mut self, predicate: &Expr, believed: f64) -> Option<f64> {
        let fields = predicate.fields();
        let holds = |component: &&mut Rc<Component>| fields.iter().all(|name| component.has(name));
        let component = self.components.iter_mut().find(holds)?;
        let (before, whole) = (component.rows as f64, component.whole);
        let kept = component.filtered(predicate)?;
        let after = kept.rows as f64;
        *component = kept;
        if before == 0.0 {
            return None;
        }
        Some(if whole || after >= FEW_ROWS {
            after / before
        } else {
            bounded(believed, after, before)
        })
    }

    /// The share of tuples that satisfy a predicate.
    pub(crate) fn share(&self, predicate: &Expr) -> f64 {
        match predicate {
            Expr::And(list) => {
                let mut copy =
                    Profile { rows: 1e12, columns: self.columns.clone(), components: Vec::new() };
                copy.apply_all(list);
                copy.rows / 1e12
            }
            Expr::Or(list) => 1.0 - list.iter().map(|item| 1.0 - self.share(item)).product::<f64>(),
            Expr::Not(inner) => (1.0 - self.share(inner)).max(0.01),
            Expr::IsNull(inner) => match &**inner {
                Expr::Field(name) => self.columns.get(name).map_or(0.05, |column| column.nulls),
                _ => 0.05,
            },
            Expr::Constant(Scalar::Boolean(flag), _) => f64::from(u8::from(*flag)),
            Expr::Constant(Scalar::Null, _) => 0.0,
            Expr::Coalesce(list) | Expr::Call { args: list, .. } if list.is_empty() => OTHER_SHARE,
            Expr::Coalesce(list) => self.share(&list[0]),
            Expr::Try(inner) => self.share(inner),
            Expr::Call { function, args } => self.call_share(function, args),
            Expr::Field(_) => 0.5,
            _ => OTHER_SHARE,
        }
    }

    fn call_share(&self, function: &str, args: &[Expr]) -> f64 {
        let [left, right] = args else { return OTHER_SHARE };
        let equal = || match (left, right) {
            (Expr::Constant(..), other) | (other, Expr::Constant(..)) => {
                1.0 / self.column_of(other).distinct
            }
            (a, b) => 1.0 / self.column_of(a).distinct.max(self.column_of(b).distinct),
        };
        match function {
            "eq" | "is_not_distinct" => equal(),
            "not_eq" | "is_distinct" => 1.0 - equal(),
            "lt" | "lt_eq" => self.below(left, right).unwrap_or(RANGE_SHARE),
            "gt" | "gt_eq" => self.below(left, right).map_or(RANGE_SHARE, |share| 1.0 - share),
            "any_eq" => match right {
                Expr::Constant(Scalar::Nested(items), _) => {
                    (items.len() as f64 / self.column_of(left).distinct).min(1.0)
                }
                _ => OTHER_SHARE,
            },
            "like" | "ilike" => match right {
                Expr::Constant(Scalar::String(pattern), _) if !pattern.starts_with('%') => {
                    PREFIX_SHARE
                }
                _ => PATTERN_SHARE,
            },
            _ => OTHER_SHARE,
        }
    }

    /// The share of tuples for which `left < right`, where one is a field of known range or
    /// distribution and the other a constant.
    fn below(&self, left: &Expr, right: &Expr) -> Option<f64> {
        let share = |name: &Name, value: &Scalar, atom: &Atom| {
            let (column, value) = (self.columns.get(name)?, number(value, Some(atom))?);
            if let Some(spread) = column.spread {
                return Some(spread.below(value));
            }
            let (min, max) = (column.min?, column.max?);
            // Halves: the distance between two numbers may be beyond the largest one.
            let width = (max / 2.0 - min / 2.0).max(f64::MIN_POSITIVE);
            Some(((value / 2.0 - min / 2.0) / width).clamp(0.0, 1.0))
        };
        match (left, right) {
            (Expr::Field(name), Expr::Constant(value, atom)) => share(name, value, atom),
            (Expr::Constant(value, atom), Expr::Field(name)) => {
                share(name, value, atom).map(|share| 1.0 - share)
            }
            _ => None,
        }
    }

    fn merged(&self, other: &Profile, rows: f64) -> Profile {
        let mut columns = self.columns.clone();
        columns.extend(other.columns.iter().map(|(name, column)| (name.clone(), column.clone())));
        let components = self.components.iter().chain(&other.components).cloned().collect();
        let mut profile = Profile { rows: finite(rows), columns, components };
        profile.cap();
        profile
    }

    /// What is believed of these fields alone.
    pub(crate) fn only(mut self, needed: &HashSet<Name>) -> Profile {
        self.columns.retain(|name, _| needed.contains(name));
        self.components =
            self.components.iter().filter_map(|component| component.only(needed)).collect();
        self
    }

    /// The sample that has a field.
    fn component_of(&self, name: &Name) -> Option<usize> {
        self.components.iter().position(|component| component.has(name))
    }
}

/// A share of which only some of so many draws are known, and what is believed without them: not
/// further from what was drawn than chance brings it, some two standard deviations.
fn bounded(believed: f64, drawn: f64, draws: f64) -> f64 {
    let (least, most) = (drawn - 2.0 * drawn.sqrt(), drawn + 2.0 * (drawn + 1.0).sqrt());
    believed.clamp((least / draws).clamp(0.0, 1.0), (most / draws).clamp(0.0, 1.0))
}
