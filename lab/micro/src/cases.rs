//! What is measured: sub-operators of 003's Figs 4.1 and 4.2 as plans, and the same in plain Rust.

use std::hint::black_box;

use crate::column::Columns;

/// Something to be measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    /// As in the thesis, where it is there.
    pub(crate) name: &'static str,
    /// Over `lab_column`'s tuples `<k, a>`.
    pub(crate) plan: &'static str,
    /// The same with the same accesses to memory and the same checks; gives the same number.
    pub(crate) plain: fn(&Columns) -> i128,
}

/// 003's cases over tuples of two 32-bit numbers. `[Scalar]` ends in a register, the others in memory.
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
        plain: |columns| sum(columns, |a| a.checked_add(1_337)),
    },
    Case {
        name: "Double [Scalar]",
        plan: "plan {
          %t = lab_column()
          %a = map(%t) {exprs = {b = a * 2::int32}}
          %s = reduce(%a) {aggregates = {s = {function = sum, args = [b]}}}
          return %s
        }",
        plain: |columns| sum(columns, |a| a.checked_mul(2)),
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
            let keep = |sum: i64, &a: &i32| if a < black_box(500_000) { sum + i64::from(a) } else { sum };
            columns.narrow().map(|(_, a)| a.iter().fold(0, keep)).map(i128::from).sum()
        },
    },
    Case { name: "Sum", plan: SUM, plain: |columns| sum(columns, Some) },
    Case {
        name: "Count",
        plan: "plan {
          %t = lab_column()
          %f = filter(%t) {predicate = a < 500000::int32}
          %s = reduce(%f) {aggregates = {n = {function = count, args = []}}}
          return %s
        }",
        plain: |columns| {
            let most = black_box(500_000);
            columns.narrow().map(|(_, a)| a.iter().filter(|a| **a < most).count() as i128).sum()
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
            columns.narrow().filter_map(|(_, a)| a.iter().max()).max().map_or(0, |m| (*m).into())
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
            columns.narrow().filter_map(|(_, a)| a.iter().min()).min().map_or(0, |m| (*m).into())
        },
    },
    Case {
        name: "Materialize",
        plan: "plan {
          %t = lab_column()
          %m = rows_materialize(%t)
          return %m
        }",
        plain: |columns| materialised(columns, |k, a| Some((k, a))),
    },
    Case {
        name: "Add",
        plan: "plan {
          %t = lab_column()
          %a = map(%t) {exprs = {k = k, b = a + 1337::int32}}
          %m = rows_materialize(%a)
          return %m
        }",
        plain: |columns| materialised(columns, |k, a| Some((k, a.checked_add(1_337)?))),
    },
    Case {
        name: "Filter",
        plan: "plan {
          %t = lab_column()
          %f = filter(%t) {predicate = a < 500000::int32}
          %m = rows_materialize(%f)
          return %m
        }",
        plain: |columns| materialised(columns, |k, a| (a < black_box(500_000)).then_some((k, a))),
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

/// The sum of what is made of each number; 0 where something leaves its type.
fn sum(columns: &Columns, of: impl Fn(i32) -> Option<i32>) -> i128 {
    let (mut sum, mut fits) = (0, true);
    for (_, numbers) in columns.narrow() {
        for &number in numbers {
            match of(number) {
                Some(number) => sum += i64::from(number),
                None => fits = false,
            }
        }
    }
    if fits { sum.into() } else { 0 }
}

/// How many tuples were written to memory, morsel by morsel.
fn materialised(columns: &Columns, of: impl Fn(i32, i32) -> Option<(i32, i32)>) -> i128 {
    let morsel = |(keys, numbers): (&[i32], &[i32])| {
        let mut rows = Vec::with_capacity(keys.len());
        rows.extend(keys.iter().zip(numbers).filter_map(|(&key, &number)| of(key, number)));
        rows
    };
    let all: Vec<Vec<(i32, i32)>> = columns.narrow().map(morsel).collect();
    all.iter().map(|rows| black_box(rows).len() as i128).sum()
}
