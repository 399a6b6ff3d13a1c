//! The assignment of rows to groups, and the loops over rows and states.

use arrow::array::{Array, ArrowPrimitiveType, PrimitiveArray};
use arrow::buffer::NullBuffer;

use tessera_types::Result;

use super::area::{Area, Pod};

/// The assignment of rows to groups.
#[derive(Debug, Clone, Copy)]
pub enum Shape<'a> {
    /// All rows belong to one group.
    One(u32),
    /// The group of each row.
    Each(&'a [u32]),
    /// Few groups: rows listed by group, so that a state stays in registers over a run.
    Clustered {
        /// The group of each row.
        groups: &'a [u32],
        /// Rows, ordered by group.
        order: &'a [u32],
        /// Group, and its range in `order`.
        runs: &'a [(u32, u32, u32)],
    },
}

/// The assignment of the rows of one chunk.
#[derive(Debug, Clone, Copy)]
pub struct Groups<'a> {
    /// The number of rows.
    pub rows: usize,
    /// Their groups.
    pub shape: Shape<'a>,
    /// The position of the rows in the source: the morsel, and the number of its rows before the
    /// first of these.
    pub position: (u64, u64),
}

impl<'a> Groups<'a> {
    /// Assigns all rows to one group.
    pub fn one(group: u32, rows: usize, position: (u64, u64)) -> Self {
        Groups { rows, shape: Shape::One(group), position }
    }

    /// Assigns each row to its own group.
    pub fn each(groups: &'a [u32], position: (u64, u64)) -> Self {
        Groups { rows: groups.len(), shape: Shape::Each(groups), position }
    }

    /// Returns the assignment of some of the rows.
    pub fn slice(&self, first: usize, rows: usize) -> Groups<'a> {
        let shape = match self.shape {
            Shape::One(group) => Shape::One(group),
            Shape::Each(groups) | Shape::Clustered { groups, .. } => {
                Shape::Each(&groups[first..first + rows])
            }
        };
        Groups { rows, shape, position: (self.position.0, self.position.1 + first as u64) }
    }

    /// Returns the group of a row.
    pub fn group(&self, row: usize) -> u32 {
        match self.shape {
            Shape::One(group) => group,
            Shape::Each(groups) | Shape::Clustered { groups, .. } => groups[row],
        }
    }
}

/// States of another table, and the groups to merge them into.
#[derive(Debug, Clone, Copy)]
pub struct Pairs<'a> {
    /// The groups to merge into, in the order of `rows`.
    pub into: &'a [u32],
    /// The area of the other table.
    pub from: &'a Area,
    /// The groups of the other table.
    pub rows: &'a [u32],
}

impl Pairs<'_> {
    /// Returns whether all groups have the same numbers in both tables.
    pub fn is_identity(&self) -> bool {
        self.into == self.rows
    }
}

impl Pairs<'_> {
    /// Iterates over pairs of a group and the group of the other table to merge into it.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.into.iter().copied().zip(self.rows.iter().copied())
    }
}

/// One step of an aggregate: folds a value into a state.
pub(super) trait Fold {
    /// The state.
    type State: Pod;
    /// The values.
    type Value: Copy;

    /// Folds a value into the state.
    ///
    /// # Errors
    /// The state would overflow.
    fn fold(&self, state: &mut Self::State, value: Self::Value) -> Result<()>;
}

/// Folds the value of every row that is not NULL into the state of its group.
pub(super) fn fold<F: Fold>(
    step: &F,
    area: &mut Area,
    offset: usize,
    groups: &Groups<'_>,
    nulls: Option<&NullBuffer>,
    value: impl Fn(usize) -> F::Value,
) -> Result<()> {
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => fold_rows(step, area, offset, groups, |_| true, value),
        Some(nulls) => fold_rows(step, area, offset, groups, |row| nulls.is_valid(row), value),
    }
}

/// Like [`fold`], for the values of an Arrow array.
pub(super) fn fold_array<T: ArrowPrimitiveType, F: Fold<Value = T::Native>>(
    step: &F,
    area: &mut Area,
    offset: usize,
    groups: &Groups<'_>,
    array: &PrimitiveArray<T>,
) -> Result<()> {
    let values = array.values();
    fold(step, area, offset, groups, array.nulls(), |row| values[row])
}

/// Merges the states of another table into those of their groups.
///
/// # Errors
/// As `step`.
#[inline(always)]
pub(super) fn merge<S: Pod>(
    area: &mut Area,
    offset: usize,
    pairs: &Pairs<'_>,
    step: impl Fn(&mut S, S) -> Result<()>,
) -> Result<()> {
    for (into, row) in pairs.iter() {
        let other = pairs.from.get::<S>(row, offset);
        step(area.get_mut::<S>(into, offset), other)?;
    }
    Ok(())
}

#[inline(always)]
fn fold_rows<F: Fold>(
    step: &F,
    area: &mut Area,
    offset: usize,
    groups: &Groups<'_>,
    counts: impl Fn(usize) -> bool,
    value: impl Fn(usize) -> F::Value,
) -> Result<()> {
    match groups.shape {
        Shape::One(group) => {
            let mut state = area.get::<F::State>(group, offset);
            for row in 0..groups.rows {
                if counts(row) {
                    step.fold(&mut state, value(row))?;
                }
            }
            *area.get_mut(group, offset) = state;
        }
        Shape::Clustered { order, runs, .. } => {
            for &(group, start, end) in runs {
                let mut state = area.get::<F::State>(group, offset);
                for &row in &order[start as usize..end as usize] {
                    if counts(row as usize) {
                        step.fold(&mut state, value(row as usize))?;
                    }
                }
                *area.get_mut(group, offset) = state;
            }
        }
        Shape::Each(list) => {
            for (row, &group) in list.iter().enumerate() {
                if counts(row) {
                    step.fold(area.get_mut(group, offset), value(row))?;
                }
            }
        }
    }
    Ok(())
}
