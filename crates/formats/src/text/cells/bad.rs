//! Cells that are no values of their column's type, where their records are skipped.

use std::ops::Range;

use tessera_types::Atom;

use super::{BadCell, Cells};

/// The rows that are converted at once where some are bad.
const WINDOW_ROWS: usize = 256;

impl Cells {
    /// The rows that are NULL.
    pub(crate) fn nulls(&self) -> impl Iterator<Item = usize> {
        self.valid.iter().enumerate().filter(|(_, valid)| !**valid).map(|(row, _)| row)
    }

    /// Makes the cells NULL that are no values of a type, and returns them in order.
    pub fn take_bad(&mut self, atom: &Atom) -> Vec<BadCell> {
        let mut bad = Vec::new();
        for start in (0..self.len()).step_by(WINDOW_ROWS) {
            self.find_bad(start..(start + WINDOW_ROWS).min(self.len()), atom, &mut bad);
        }
        for cell in &bad {
            self.valid[cell.row] = false;
        }
        bad
    }

    /// Finds the bad cells of a few rows: each conversion ends at the next one.
    fn find_bad(&self, rows: Range<usize>, atom: &Atom, bad: &mut Vec<BadCell>) {
        let mut start = rows.start;
        while start < rows.end {
            let Err(error) = self.part(start..rows.end).to_array(atom) else { return };
            // Not all conversions know the row: then the first one is tried alone.
            let named = (start + error.row).min(rows.end - 1);
            let row = match self.part(named..named + 1).to_array(atom) {
                Err(error) => {
                    bad.push(BadCell { row: named, what: error.what });
                    named
                }
                Ok(_) => {
                    if let Err(error) = self.part(start..start + 1).to_array(atom) {
                        bad.push(BadCell { row: start, what: error.what });
                    }
                    start
                }
            };
            start = row + 1;
        }
    }

    /// Copies some rows.
    fn part(&self, rows: Range<usize>) -> Cells {
        let start = rows.start.checked_sub(1).map_or(0, |before| self.ends[before]);
        let end = rows.end.checked_sub(1).map_or(0, |last| self.ends[last]);
        Cells {
            data: self.data[start..end].to_vec(),
            ends: self.ends[rows.clone()].iter().map(|end| end - start).collect(),
            valid: self.valid[rows].to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_cells_become_null() {
        let list = "list<int64?>".parse::<Atom>().unwrap();
        let odd = |row: usize| row % 300 == 7 || row % 300 == 8 || row == 999;
        for (atom, good, bad) in [
            (Atom::Int64, "12", "x"),
            (Atom::Date, "2024-01-01", "2024-13-01"),
            (Atom::Decimal(4, 2), "1.25", "1.255"),
            (list, "[1, null]", "[1"),
            (Atom::Bytes, "all bytes", "all bytes"),
        ] {
            let mut cells = Cells::default();
            for row in 0..1_000 {
                match row % 5 {
                    0 if !odd(row) => cells.push_null(),
                    _ => cells.push(if odd(row) { bad } else { good }.as_bytes()),
                }
            }
            let found: Vec<usize> = cells.take_bad(&atom).iter().map(|cell| cell.row).collect();
            let expected = (0..1_000).filter(|row| odd(*row) && good != bad);
            assert_eq!(found, expected.collect::<Vec<_>>(), "{atom}");
            assert_eq!(cells.to_array(&atom).unwrap().len(), 1_000);
        }
    }
}
