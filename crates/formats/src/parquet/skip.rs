//! Skips rows by statistics of row groups and pages, and orders row groups.

use std::cmp::Ordering;
use std::ops::Range;

use tessera_plan::{Expr, Scalar, SortKey};
use tessera_types::Atom;
use tessera_values::scalar::compare;

use super::{FileState, SourceColumn};
use crate::file::FileScan;
use crate::prune::{Bounds, may_be_true};

/// A row group: the file, and the group's position in the file.
pub(super) type Place<'a> = (&'a FileState, usize);

/// Returns all rows of a row group.
pub(super) fn all_rows(file: &FileState, group: usize) -> Vec<Range<usize>> {
    let rows = file.metadata.parquet.row_group(group).num_rows() as usize;
    if rows > 0 { std::iter::once(0..rows).collect() } else { Vec::new() }
}

/// Returns the row ranges on which a predicate may be true according to statistics, ascending.
pub(super) fn rows_to_read(
    scan: &FileScan,
    place: Place<'_>,
    predicate: &Expr,
) -> Vec<Range<usize>> {
    let (file, group) = place;
    let mut ranges = all_rows(file, group);
    if ranges.is_empty() || !may_be_true(predicate, &|name| bounds(scan, place, name)) {
        return Vec::new();
    }
    let conjuncts = match predicate {
        Expr::And(list) => &list[..],
        other => std::slice::from_ref(other),
    };
    for conjunct in conjuncts {
        let [name] = &conjunct.fields()[..] else { continue };
        if let Some(kept) = pages_to_read(scan, file, group, name, conjunct) {
            ranges = intersect(&ranges, &kept);
        }
    }
    ranges
}

/// Returns the statistics of a scan column in a row group.
fn bounds(scan: &FileScan, (file, group): Place<'_>, name: &str) -> Option<Bounds> {
    let column = scan.columns.index_of(name)?;
    match &file.columns[column] {
        SourceColumn::File { root, found } => {
            // Statistics in another type than the declared one are usable for integers only.
            let declared = scan.columns.fields()[column].atom()?;
            let bounds = file.metadata.bounds(group, *root)?;
            let usable = found == declared || (found.is_integer() && declared.is_integer());
            usable.then(|| Bounds { atom: declared.clone(), ..bounds })
        }
        SourceColumn::RowNumber => {
            let first = file.metadata.rows_before(group);
            let rows = file.metadata.parquet.row_group(group).num_rows();
            let value = |number: i64| Some(Scalar::Integer(number.into()));
            Some(Bounds {
                atom: Atom::Int64,
                min: value(first),
                max: value(first + rows - 1),
                some_null: false,
                some_value: rows > 0,
            })
        }
        SourceColumn::Constant(_) => {
            let (_, scalar, atom) =
                scan.partitions.get(file.position)?.iter().find(|(n, ..)| &**n == name)?;
            let value = Some(scalar.clone()).filter(|scalar| !scalar.is_null());
            Some(Bounds {
                atom: atom.clone(),
                some_null: value.is_none(),
                some_value: value.is_some(),
                min: value.clone(),
                max: value,
            })
        }
    }
}

/// Returns the rows of the pages of a column on which the conjunct may be true, or `None` without a
/// page index.
fn pages_to_read(
    scan: &FileScan,
    file: &FileState,
    group: usize,
    name: &str,
    conjunct: &Expr,
) -> Option<Vec<Range<usize>>> {
    let column = scan.columns.index_of(name)?;
    let SourceColumn::File { root, found } = &file.columns[column] else { return None };
    let declared = scan.columns.fields()[column].atom()?;
    if found != declared {
        return None;
    }
    let leaf = file.metadata.flat_leaf(*root)?;
    let rows = file.metadata.parquet.row_group(group).num_rows() as usize;
    let locations = file.metadata.locations(group, leaf)?;
    let mut kept: Vec<Range<usize>> = Vec::new();
    for (page, location) in locations.iter().enumerate() {
        let bounds = file.metadata.page_bounds(group, *root, page)?;
        if may_be_true(conjunct, &|_| Some(bounds.clone())) {
            let start = location.first_row_index as usize;
            let end = locations.get(page + 1).map_or(rows, |next| next.first_row_index as usize);
            match kept.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => kept.push(start..end),
            }
        }
    }
    Some(kept)
}

/// Orders row groups by the value that sorts first in them. Groups without statistics come first.
pub(super) fn best_first<'a>(
    scan: &FileScan,
    key: &SortKey,
    places: impl Iterator<Item = Place<'a>>,
) -> Vec<usize> {
    let best = |place| -> Option<(bool, Option<Scalar>)> {
        let bounds = bounds(scan, place, &key.field)?;
        let value = if key.descending { bounds.max } else { bounds.min };
        // A group without values has no bound; one with values but without bounds is unknown.
        (value.is_some() || !bounds.some_value).then_some((bounds.some_null, value))
    };
    let best: Vec<_> = places.map(best).collect();
    let directed = |order: Ordering| if key.descending { order.reverse() } else { order };
    let mut order: Vec<usize> = (0..best.len()).collect();
    order.sort_by(|a, b| match (&best[*a], &best[*b]) {
        (Some((a_null, a)), Some((b_null, b))) => {
            let nulls = if key.nulls_first { b_null.cmp(a_null) } else { Ordering::Equal };
            let values = match (a, b) {
                (Some(a), Some(b)) => directed(total(a, b)),
                (a, b) => b.is_some().cmp(&a.is_some()),
            };
            nulls.then(values)
        }
        (a, b) => a.is_some().cmp(&b.is_some()),
    });
    order
}

/// A total order of values of one type.
fn total(a: &Scalar, b: &Scalar) -> Ordering {
    match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) => a.total_cmp(b),
        (a, b) => compare(a, b).unwrap_or(Ordering::Equal),
    }
}

/// Returns the number of rows.
pub(super) fn rows(ranges: &[Range<usize>]) -> usize {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// Returns the rows that are in both lists of ranges.
pub(super) fn intersect(left: &[Range<usize>], right: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(a), Some(b)) = (left.get(i), right.get(j)) {
        let both = a.start.max(b.start)..a.end.min(b.end);
        if both.start < both.end {
            out.push(both);
        }
        if a.end < b.end { i += 1 } else { j += 1 }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_intersect() {
        let both = intersect(&[0..10, 20..30, 40..50], &[5..25, 29..41]);
        assert_eq!(both, [5..10, 20..25, 29..30, 40..41]);
        assert!(intersect(&[], &[0..1]).is_empty());
    }
}
