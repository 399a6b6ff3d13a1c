//! Merges the states of ranges of rows, for window frames.
//!
//! Ranges whose borders only grow cost about three merges each: the rows before a pivot are merged
//! backwards, those behind it forwards (the queue of two stacks of Tangwongsan et al., *General
//! incremental sliding-window aggregation*, 2015, §3). Other ranges use a segment tree (Leis et
//! al., *Efficient processing of window functions in analytical SQL queries*, 2015, §4.4).

use tessera_context::interrupt::check_here;
use tessera_types::Result;

use super::area::{Area, Pod};

/// Children of a node of the segment tree.
const FANOUT: usize = 16;
/// Ranges between two checks for an interrupt.
const CHECK_EVERY: usize = 1 << 14;

/// Half-open ranges of groups. An empty range merges nothing.
#[derive(Debug, Clone, Copy)]
pub struct Ranges<'a> {
    /// The first group of each range.
    pub starts: &'a [u32],
    /// The group after the last one of each range; may be less than the first.
    pub ends: &'a [u32],
}

impl Ranges<'_> {
    fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        let pairs = self.starts.iter().zip(self.ends);
        pairs.map(|(start, end)| (*start as usize, *end as usize))
    }

    /// Whether the borders of the ranges that are not empty only grow.
    fn is_monotone(&self) -> bool {
        let mut last = (0, 0);
        self.iter().filter(|(start, end)| start < end).all(|(start, end)| {
            let grows = last.0 <= start && last.1 <= end;
            last = (start, end);
            grows
        })
    }
}

/// Merges the states of each range of `from`, in order, into the state of its number in `into`.
///
/// # Errors
/// Those of `step`, and an interrupt.
pub(super) fn merge_ranges<S: Pod>(
    from: &Area,
    offset: usize,
    ranges: &Ranges<'_>,
    into: &mut Area,
    step: impl Fn(&mut S, S) -> Result<()>,
) -> Result<()> {
    let state = |group: usize| from.get::<S>(group as u32, offset);
    if ranges.is_monotone() {
        slide(state, offset, ranges, into, step)
    } else {
        search(state, offset, ranges, into, step)
    }
}

fn slide<S: Pod>(
    state: impl Fn(usize) -> S,
    offset: usize,
    ranges: &Ranges<'_>,
    into: &mut Area,
    step: impl Fn(&mut S, S) -> Result<()>,
) -> Result<()> {
    // `front[pivot - 1 - i]` is the state of the rows from `i` to the pivot; `back` that of the
    // rows from the pivot to `end`.
    let mut front: Vec<S> = Vec::new();
    let mut back: Option<S> = None;
    let (mut pivot, mut end) = (0, 0);
    let mut is_first = true;
    for (number, (start, upto)) in ranges.iter().enumerate() {
        if number % CHECK_EVERY == 0 {
            check_here()?;
        }
        if start >= upto {
            continue;
        }
        if is_first || start > pivot && start >= end {
            // Nothing of the last range is left.
            (pivot, end, back, is_first) = (start, start, None, false);
            front.clear();
        } else if start > pivot {
            (pivot, back) = (end, None);
            front.clear();
            for row in (start..end).rev() {
                let mut merged = state(row);
                if let Some(behind) = front.last() {
                    step(&mut merged, *behind)?;
                }
                front.push(merged);
            }
        }
        for row in end..upto {
            match &mut back {
                Some(back) => step(back, state(row))?,
                None => back = Some(state(row)),
            }
        }
        end = end.max(upto);
        let target = into.get_mut::<S>(number as u32, offset);
        if start < pivot {
            step(target, front[pivot - 1 - start])?;
        }
        if let Some(back) = back {
            step(target, back)?;
        }
    }
    Ok(())
}

fn search<S: Pod>(
    state: impl Fn(usize) -> S,
    offset: usize,
    ranges: &Ranges<'_>,
    into: &mut Area,
    step: impl Fn(&mut S, S) -> Result<()>,
) -> Result<()> {
    let filled = || ranges.iter().filter(|(start, end)| start < end);
    let first = filled().map(|(start, _)| start).min().unwrap_or(0);
    let last = filled().map(|(_, end)| end).max().unwrap_or(0);
    // Each level holds a node for `FANOUT` nodes of the level below; the lowest are the rows.
    let mut levels: Vec<Vec<S>> = vec![(first..last).map(&state).collect()];
    while let Some(below) = levels.last().filter(|below| below.len() > FANOUT) {
        let merged = |nodes: &[S]| -> Result<S> {
            let mut all = nodes[0];
            nodes[1..].iter().try_for_each(|node| step(&mut all, *node))?;
            Ok(all)
        };
        let level = below.chunks(FANOUT).map(merged).collect::<Result<_>>()?;
        check_here()?;
        levels.push(level);
    }
    for (number, (start, end)) in ranges.iter().enumerate() {
        if number % CHECK_EVERY == 0 {
            check_here()?;
        }
        if start < end {
            let target = into.get_mut::<S>(number as u32, offset);
            merge_nodes(&levels, start - first, end - first, target, &step)?;
        }
    }
    Ok(())
}

/// Merges the rows of a range in order: up the left border of the tree, then down the right one.
fn merge_nodes<S: Pod>(
    levels: &[Vec<S>],
    mut start: usize,
    mut end: usize,
    target: &mut S,
    step: &impl Fn(&mut S, S) -> Result<()>,
) -> Result<()> {
    let mut right: Vec<&[S]> = Vec::new();
    for (number, level) in levels.iter().enumerate() {
        let (first, last) = (start.next_multiple_of(FANOUT), end / FANOUT * FANOUT);
        if first >= last || number + 1 == levels.len() {
            level[start..end].iter().try_for_each(|node| step(target, *node))?;
            break;
        }
        level[start..first].iter().try_for_each(|node| step(target, *node))?;
        right.push(&level[last..end]);
        (start, end) = (first / FANOUT, last / FANOUT);
    }
    right.into_iter().rev().flatten().try_for_each(|node| step(target, *node))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first and the last row of a range, counted from 1. Only neighbors merge, in order.
    fn append(state: &mut u64, other: u64) -> Result<()> {
        if *state == 0 {
            *state = other;
            return Ok(());
        }
        assert_eq!((*state & 0xffff_ffff) + 1, other >> 32);
        *state = (*state >> 32) << 32 | (other & 0xffff_ffff);
        Ok(())
    }

    fn merged(rows: u64, starts: &[u32], ends: &[u32]) -> Vec<u64> {
        let (mut from, mut into) = (Area::new(1), Area::new(1));
        for row in 1..=rows {
            from.push(&[row << 32 | row]);
        }
        starts.iter().for_each(|_| into.add());
        let ranges = Ranges { starts, ends };
        merge_ranges(&from, 0, &ranges, &mut into, append).unwrap();
        into.states::<u64>(0).collect()
    }

    fn expected(starts: &[u32], ends: &[u32]) -> Vec<u64> {
        let one = |(start, end): (&u32, &u32)| match start < end {
            true => (u64::from(*start) + 1) << 32 | u64::from(*end),
            false => 0,
        };
        starts.iter().zip(ends).map(one).collect()
    }

    #[test]
    fn ranges_that_slide() {
        for (starts, ends) in [
            (vec![0, 0, 0, 0, 0], vec![1, 2, 3, 4, 5]),
            (vec![0, 0, 1, 2, 3, 4, 5], vec![2, 3, 4, 5, 6, 6, 6]),
            (vec![0, 5, 5, 9, 9], vec![2, 5, 7, 10, 12]),
            (vec![3, 9, 9, 0], vec![3, 11, 12, 0]),
        ] {
            assert!(Ranges { starts: &starts, ends: &ends }.is_monotone());
            assert_eq!(merged(12, &starts, &ends), expected(&starts, &ends));
        }
    }

    #[test]
    fn ranges_in_any_order() {
        let (starts, ends) = (vec![595, 3, 250, 0, 17], vec![600, 3, 255, 6, 20]);
        assert!(!Ranges { starts: &starts, ends: &ends }.is_monotone());
        assert_eq!(merged(600, &starts, &ends), expected(&starts, &ends));
    }

    #[test]
    fn long_ranges_in_any_order_are_added() {
        let add = |state: &mut u64, other: u64| {
            *state += other;
            Ok(())
        };
        let (mut from, mut into) = (Area::new(1), Area::new(1));
        (0..10_000u64).for_each(|row| {
            from.push(&[row]);
        });
        let starts: Vec<u32> = (0..100).map(|i| i * 7_919 % 9_000).collect();
        let ends: Vec<u32> = starts.iter().map(|start| start + start % 1_000).collect();
        starts.iter().for_each(|_| into.add());
        let ranges = Ranges { starts: &starts, ends: &ends };
        merge_ranges(&from, 0, &ranges, &mut into, add).unwrap();
        let sum = |(start, end): (&u32, &u32)| (u64::from(*start)..u64::from(*end)).sum::<u64>();
        let expected: Vec<u64> = starts.iter().zip(&ends).map(sum).collect();
        assert_eq!(into.states::<u64>(0).collect::<Vec<_>>(), expected);
    }
}
