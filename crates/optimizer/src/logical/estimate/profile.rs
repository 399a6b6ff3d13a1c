//! The estimated properties of a relation and its fields, and the selectivity of predicates.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tessera_plan::{Expr, Scalar};
use tessera_types::Atom;

use super::component::Component;
use super::group::NormalDistribution;
use super::{FEW_ROWS, finite, number};
use crate::logical::relation::Name;

/// The assumed selectivity of an inequality.
const RANGE_SHARE: f64 = 1.0 / 3.0;
/// The assumed selectivity of any other predicate.
const OTHER_SHARE: f64 = 0.25;
/// The assumed selectivity of a LIKE pattern with and without a fixed prefix.
const PREFIX_SHARE: f64 = 0.02;
const PATTERN_SHARE: f64 = 0.06;
/// The lower limit of a selectivity.
const LEAST_SHARE: f64 = 1e-9;

/// The estimated properties of a relation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Profile {
    pub rows: f64,
    pub(super) columns: HashMap<Name, Column>,
    /// Samples of the relation, each with the fields of some of its tables. Fields in different
    /// components are assumed to be independent.
    pub(super) components: Vec<Rc<Component>>,
}

/// The estimated properties of a field.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// The number of distinct values.
    pub(super) distinct: f64,
    /// The number of distinct values before any filter.
    pub(super) domain: f64,
    /// The number of tuples before any filter.
    pub(super) base: f64,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) nulls: f64,
    /// For sums, counts and averages: their distribution.
    pub(super) spread: Option<NormalDistribution>,
    /// For minima and maxima of groups: the number of tuples per group.
    pub(super) group_rows: Option<f64>,
}

impl Column {
    pub(super) fn unknown(rows: f64) -> Self {
        Column::plain(rows.max(1.0), rows)
    }

    /// Creates a column of which only the number of distinct values is known.
    pub(super) fn plain(distinct: f64, rows: f64) -> Self {
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
    /// The number of distinct values of a field.
    pub(crate) fn distinct(&self, name: &str) -> f64 {
        self.columns
            .get(name)
            .map_or(self.rows.sqrt(), |column| column.distinct)
            .clamp(1.0, self.rows.max(1.0))
    }

    /// The fraction of a field's values that predicates and joins have left.
    pub(crate) fn share_left(&self, name: &str) -> f64 {
        self.columns
            .get(name)
            .map_or(1.0, |column| column.distinct / column.domain.min(column.base).max(1.0))
    }

    pub(super) fn column_of(&self, expr: &Expr) -> Column {
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

    /// Limits distinct values to the number of tuples.
    pub(super) fn cap(&mut self) {
        let rows = self.rows.max(1.0);
        for column in self.columns.values_mut() {
            column.distinct = column.distinct.min(rows);
        }
    }

    /// Reduces the relation to this fraction of its tuples.
    pub(super) fn scale(&mut self, share: f64) {
        let share = if share.is_nan() { LEAST_SHARE } else { share.clamp(LEAST_SHARE, 1.0) };
        let before = self.rows.max(1.0);
        self.rows *= share;
        for column in self.columns.values_mut() {
            // A random selection misses a value with probability (1 - share)^(tuples per value).
            let per_value = (before / column.distinct).max(1.0);
            column.distinct *= 1.0 - (1.0 - share).powf(per_value);
            column.distinct = column.distinct.clamp(1.0, self.rows.max(1.0));
        }
    }

    /// Applies a conjunction of predicates.
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

    /// Filters the sample that has the predicate's fields and returns the selectivity. If few
    /// sampled rows are left, the sample only limits the estimate `estimate`.
    fn apply_to_sample(&mut self, predicate: &Expr, estimate: f64) -> Option<f64> {
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
            bounded(estimate, after, before)
        })
    }

    /// Estimates the selectivity of a predicate.
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

    /// Estimates the selectivity of `left < right`, where one is a field with a known range or
    /// distribution and the other a constant.
    fn below(&self, left: &Expr, right: &Expr) -> Option<f64> {
        let share = |name: &Name, value: &Scalar, atom: &Atom| {
            let (column, value) = (self.columns.get(name)?, number(value, Some(atom))?);
            if let Some(spread) = column.spread {
                return Some(spread.below(value));
            }
            let (min, max) = (column.min?, column.max?);
            // Halved, because the difference may exceed the largest float.
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

    pub(super) fn merged(&self, other: &Profile, rows: f64) -> Profile {
        let mut columns = self.columns.clone();
        columns.extend(other.columns.iter().map(|(name, column)| (name.clone(), column.clone())));
        let components = self.components.iter().chain(&other.components).cloned().collect();
        let mut profile = Profile { rows: finite(rows), columns, components };
        profile.cap();
        profile
    }

    /// Reduces the profile to these fields.
    pub(crate) fn only(mut self, needed: &HashSet<Name>) -> Profile {
        self.columns.retain(|name, _| needed.contains(name));
        self.components =
            self.components.iter().filter_map(|component| component.only(needed)).collect();
        self
    }

    /// Returns the index of the component that has a field.
    pub(super) fn component_of(&self, name: &Name) -> Option<usize> {
        self.components.iter().position(|component| component.has(name))
    }
}

/// Limits the estimate `estimate` to about two standard deviations around the observed fraction
/// `drawn` of `draws`.
pub(super) fn bounded(estimate: f64, drawn: f64, draws: f64) -> f64 {
    let (least, most) = (drawn - 2.0 * drawn.sqrt(), drawn + 2.0 * (drawn + 1.0).sqrt());
    estimate.clamp((least / draws).clamp(0.0, 1.0), (most / draws).clamp(0.0, 1.0))
}
