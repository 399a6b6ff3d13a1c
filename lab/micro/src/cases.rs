//! The measured cases: sub-operators of micro-operators, Figs 4.1 and 4.2, as plans, and the
//! same computations in plain Rust.

use std::hint::black_box;

use crate::column::Columns;

/// A measured case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    /// The name in the thesis, if it is there.
    pub(crate) name: &'static str,
    /// The plan over `lab_column`'s tuples `<k, a>`.
    pub(crate) plan: &'static str,
    /// The same computation with the same memory accesses and checks; returns the same number.
    pub(crate) plain: fn(&Columns) -> i128,
}

/// The thesis's cases over tuples of two 32-bit numbers. `[Scalar]` cases end in a register, the
/// others in memory.
pub(crate) const NARROW: [Case; 10] = [
    Case {
        name: "Add [Scalar]",
        plan: "plan {
          %t = lab_column()
          %a = map(%t) {exprs = {b = a + 1000::int32}}
          %b = map(%a) {exprs = {c = b + 300::int32}}
          %c = map(%b) {exprs = {d = c + 30::int32}}
          %d = map(%c) {exprs = {e = d + 7::int32}}
          %s = reduce(%d) {aggregates = {s = {function = sum, args = [e]}}}
          return %s
        }",
        plain: |columns| sum(columns, |a| a.overflowing_add(1_337)),
    },
    Case {
        name: "Double [Scalar]",
        plan: "plan {
          %t = lab_column()
          %a = map(%t) {exprs = {b = a * 2::int32}}
          %s = reduce(%a) {aggregates = {s = {function = sum, args = [b]}}}
          return %s
        }",
        plain: |columns| sum(columns, |a| a.overflowing_mul(2)),
    },
    Case {
        name: "Filter [Scalar]",
        plan: "plan {
          %t = lab_column()
          %f = filter(%t) {predicate = a < 500000::int32}
          %s = reduce(%f) {aggregates = {s = {function = sum, args = [a]}}}
          return %s
        }",
        plain: |columns| {
            let add = |sum: i64, &a: &i32| sum + if a < 500_000 { i64::from(a) } else { 0 };
            columns.narrow().fold(0, |sum, (_, numbers)| numbers.iter().fold(sum, add)).into()
        },
    },
    Case { name: "Sum", plan: SUM, plain: |columns| sum(columns, |a| (a, false)) },
    Case {
        name: "Count",
        plan: "plan {
          %t = lab_column()
          %f = filter(%t) {predicate = a < 500000::int32}
          %s = reduce(%f) {aggregates = {n = {function = count, args = []}}}
          return %s
        }",
        plain: |columns| {
            columns.narrow().map(|(_, a)| a.iter().filter(|a| **a < 500_000).count() as i128).sum()
        },
    },
    Case {
        name: "Max",
        plan: "plan {
          %t = lab_column()
          %s = reduce(%t) {aggregates = {m = {function = max, args = [a]}}}
          return %s
        }",
        plain: |columns| {
            let of = |numbers: &[i32]| numbers.iter().copied().fold(i32::MIN, i32::max);
            columns.narrow().map(|(_, numbers)| of(numbers)).max().unwrap_or(0).into()
        },
    },
    Case {
        name: "Min",
        plan: "plan {
          %t = lab_column()
          %s = reduce(%t) {aggregates = {m = {function = min, args = [a]}}}
          return %s
        }",
        plain: |columns| {
            let of = |numbers: &[i32]| numbers.iter().copied().fold(i32::MAX, i32::min);
            columns.narrow().map(|(_, numbers)| of(numbers)).min().unwrap_or(0).into()
        },
    },
    Case {
        name: "Materialize",
        plan: "plan {
          %t = lab_column()
          %m = rows_materialize(%t)
          return %m
        }",
        plain: |columns| materialized(columns, |k, a| ((k, a), true)),
    },
    Case {
        name: "Add",
        plan: "plan {
          %t = lab_column()
          %a = map(%t) {exprs = {k = k, b = a + 1337::int32}}
          %m = rows_materialize(%a)
          return %m
        }",
        plain: |columns| {
            materialized(columns, |k, a| {
                let (a, wrong) = a.overflowing_add(1_337);
                ((k, a), !wrong)
            })
        },
    },
    Case {
        name: "Filter",
        plan: "plan {
          %t = lab_column()
          %f = filter(%t) {predicate = a < 500000::int32}
          %m = rows_materialize(%f)
          return %m
        }",
        plain: |columns| materialized(columns, |k, a| ((k, a), a < 500_000)),
    },
];

/// The sum of many 64-bit numbers.
pub(crate) const WIDE: [Case; 1] = [Case {
    name: "Scan and sum",
    plan: SUM,
    plain: |columns| columns.wide().flatten().fold(0i64, |sum, a| sum.wrapping_add(*a)).into(),
}];

const SUM: &str = "plan {
  %t = lab_column()
  %s = reduce(%t) {aggregates = {s = {function = sum, args = [a]}}}
  return %s
}";

/// Sums the computed numbers; each comes with whether it overflowed. Returns 0 after an overflow.
fn sum(columns: &Columns, of: impl Fn(i32) -> (i32, bool)) -> i128 {
    let (mut sum, mut wrong) = (0, false);
    for (_, numbers) in columns.narrow() {
        for &number in numbers {
            let (number, is_wrong) = of(number);
            sum += i64::from(number);
            wrong |= is_wrong;
        }
    }
    if wrong { 0 } else { sum.into() }
}

/// Writes the computed tuples with a true second part to memory, morsel by morsel; returns their
/// number.
fn materialized(columns: &Columns, of: impl Fn(i32, i32) -> ((i32, i32), bool)) -> i128 {
    let morsel = |(keys, numbers): (&[i32], &[i32])| {
        let (mut rows, mut count) = (vec![(0, 0); keys.len()], 0);
        for (&key, &number) in keys.iter().zip(numbers) {
            let (row, is_kept) = of(key, number);
            rows[count] = row;
            count += usize::from(is_kept);
        }
        rows.truncate(count);
        rows
    };
    let all: Vec<Vec<(i32, i32)>> = columns.narrow().map(morsel).collect();
    all.iter().map(|rows| black_box(rows).len() as i128).sum()
}
