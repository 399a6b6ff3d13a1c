//! Caches groups by dictionary codes: no hashing or comparing while the dictionaries stay the same.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::datatypes::{Int32Type, UInt32Type};
use tessera_types::Result;
use tessera_vector::Column;

/// The most combinations of codes for which an array of groups is allocated.
const COMBINATIONS_MAX: usize = 32_768;

const UNKNOWN: u32 = u32::MAX;

/// The group of every combination of codes seen.
#[derive(Debug, Default)]
pub(super) struct DictionaryGroups {
    dictionaries: Vec<ArrayRef>,
    groups: Vec<u32>,
    codes: Vec<u32>,
}

fn dictionary(column: &Column) -> Option<&ArrayRef> {
    match column {
        Column::Dictionary(array) => Some(array.as_any_dictionary_opt()?.values()),
        Column::Constant(value, _) => Some(value),
        _ => None,
    }
}

impl DictionaryGroups {
    /// Clears the cache: groups have new numbers.
    pub(super) fn clear(&mut self) {
        self.dictionaries.clear();
    }

    /// Looks up the groups of all rows; `None` if keys are not dictionary-encoded or have too many
    /// combinations. Returns the rows with unknown combinations, whose groups are then passed to
    /// [`DictionaryGroups::learn`].
    pub(super) fn assign(
        &mut self,
        columns: &[Column],
        rows: usize,
        groups: &mut Vec<u32>,
    ) -> Result<Option<UInt32Array>> {
        if columns.is_empty() {
            return Ok(None);
        }
        let Some(dictionaries) = columns.iter().map(dictionary).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let combinations = dictionaries
            .iter()
            .try_fold(1usize, |all, values| all.checked_mul(values.len() + 1))
            .filter(|all| *all <= COMBINATIONS_MAX);
        let Some(combinations) = combinations else { return Ok(None) };
        let same = self.dictionaries.len() == dictionaries.len()
            && self.dictionaries.iter().zip(&dictionaries).all(|(a, b)| Arc::ptr_eq(a, b));
        if !same {
            self.dictionaries = dictionaries.into_iter().cloned().collect();
            self.groups.clear();
            self.groups.resize(combinations, UNKNOWN);
        }
        self.codes.clear();
        self.codes.resize(rows, 0);
        for (column, values) in columns.iter().zip(&self.dictionaries) {
            let size = values.len() as u32 + 1;
            let Column::Dictionary(array) = column else {
                self.codes.iter_mut().for_each(|code| *code *= size);
                continue;
            };
            let nulls = array.nulls();
            let add = |(row, (code, key)): (usize, (&mut u32, u32))| {
                let valid = nulls.is_none_or(|nulls| nulls.is_valid(row));
                *code = *code * size + if valid { key.min(size - 1) } else { size - 1 };
            };
            if let Some(array) = array.as_dictionary_opt::<UInt32Type>() {
                self.codes
                    .iter_mut()
                    .zip(array.keys().values().iter().copied())
                    .enumerate()
                    .for_each(add);
            } else if let Some(array) = array.as_dictionary_opt::<Int32Type>() {
                let keys = array.keys().values().iter().map(|key| *key as u32);
                self.codes.iter_mut().zip(keys).enumerate().for_each(add);
            } else {
                return Ok(None);
            }
        }
        groups.clear();
        groups.extend(self.codes.iter().map(|&code| self.groups[code as usize]));
        let unknown = (0..rows as u32).filter(|&row| groups[row as usize] == UNKNOWN);
        Ok(Some(UInt32Array::from_iter_values(unknown)))
    }

    /// Caches the groups of rows that were unknown.
    pub(super) fn learn(&mut self, rows: &UInt32Array, found: &[u32], groups: &mut [u32]) {
        for (&row, &group) in rows.values().iter().zip(found) {
            groups[row as usize] = group;
            self.groups[self.codes[row as usize] as usize] = group;
        }
    }
}
