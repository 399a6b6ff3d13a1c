//! Columns with bit strings or times with time zone: their cells are read as text first.

use arrow::array::{Array, ArrayRef};
use tessera_types::Atom;
use tessera_values::cast::cast;

use super::{BadCell, Cells, bad};

impl Cells {
    /// Converts the cells to values of a type with bit strings or times with time zone.
    pub(super) fn through_text(&self, atom: &Atom) -> Result<ArrayRef, BadCell> {
        let plain = atom.without_bits().without_timetz();
        let texts = self.to_array(&plain)?;
        let read = |texts: &ArrayRef| cast(texts, &plain, atom, false);
        read(&texts).map_err(|_| {
            let is_bad = |row: &usize| read(&texts.slice(*row, 1)).is_err();
            let row = (0..texts.len()).find(is_bad).unwrap_or(0);
            let cell = self.iter().nth(row).flatten().unwrap_or_default();
            bad(row, &String::from_utf8_lossy(cell), atom)
        })
    }
}
