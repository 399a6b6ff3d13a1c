//! Plans before and after each pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tessera_optimizer::physical;
use tessera_plan::{
    Descriptor, Edge, Inputs, Node, Order, Parallelism, Role, Rules, Traits, text, verify,
    verify_in,
};
use tessera_types::{Atom, Field, Result, Tuple};

use crate::common::{catalog, plan};

fn check(
    pass: impl Fn(&tessera_plan::Plan) -> tessera_types::Result<tessera_plan::Plan>,
    before: &str,
    after: &str,
) {
    let before = plan(before);
    let verified = verify(&before, &catalog()).unwrap_or_else(|error| panic!("{error}"));
    let found = pass(&before).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(text::print(&found), text::print(&plan(after)));
    let after = verify(&found, &catalog()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(verified.edges[before.root.index()].tuple, after.edges[found.root.index()].tuple);
}

#[test]
fn unread_columns_go() {
    check(
        |plan| physical::fuse(&physical::prune_columns(plan, &catalog())?, &catalog(), Rules::ALL),
        "plan {
          %0 = parquet_scan() {columns = <a: int64, b: int64, c: int64, d: string, e: string>}
          %1 = parquet_scan() {columns = <k: int64, l: int64, m: int64, n: string>, filter = m = 7}
          %2 = filter(%1) {predicate = l = 5}
          %3 = build(%2) {keys = [k]}
          %4 = probe(%3, %0) {keys = [a], join = :inner}
          %5 = map(%4) {exprs = {b = b, n = n, unused = c + 1}}
          %6 = sort(%5) {keys = [{field = b}]}
          %7 = projection(%6) {fields = [n]}
          return %7
        }",
        "plan {
          %0 = parquet_scan() {columns = <a: int64, b: int64>}
          %1 = parquet_scan() {columns = <k: int64, l: int64, m: int64, n: string>, filter = m = 7, fields = [k, l, n]}
          %2 = filter(%1) {predicate = l = 5}
          %3 = projection(%2) {fields = [k, n]}
          %4 = build(%3) {keys = [k]}
          %5 = probe(%4, %0) {keys = [a], join = :inner}
          %6 = map(%5) {exprs = {b = b, n = n}}
          %7 = sort(%6) {keys = [{field = b}]}
          %8 = projection(%7) {fields = [n]}
          return %8
        }",
    );
}

#[test]
fn inputs_of_a_union_stay_alike() {
    check(
        |plan| physical::fuse(&physical::prune_columns(plan, &catalog())?, &catalog(), Rules::ALL),
        "plan {
          %0 = parquet_scan() {columns = <a: int64, b: int64, c: int64>}
          %1 = parquet_scan() {columns = <a: int64, b: int64, c: int64>}
          %2 = filter(%1) {predicate = b = 5}
          %3 = union(%0, %2)
          %4 = map(%3) {exprs = {c = c}}
          return %4
        }",
        "plan {
          %0 = parquet_scan() {columns = <c: int64>}
          %1 = parquet_scan() {columns = <b: int64, c: int64>}
          %2 = filter(%1) {predicate = b = 5}
          %3 = projection(%2) {fields = [c]}
          %4 = union(%0, %3)
          %5 = map(%4) {exprs = {c = c}}
          return %5
        }"
        .replace("%5 = map(%4) {exprs = {c = c}}\n          return %5", "return %4")
        .as_str(),
    );
}

#[test]
fn predicates_go_into_the_scan_but_raising_ones_stay_behind() {
    check(
        |plan| physical::push_filters(plan, &catalog(), Rules::ALL),
        "plan {
          %0 = parquet_scan() {columns = <a: int64, b: int64>, filter = b = 3}
          %1 = filter(%0) {predicate = a > 5 AND (10 / b = 2 AND b < 7)}
          return %1
        }",
        "plan {
          %0 = parquet_scan() {columns = <a: int64, b: int64>, filter = b = 3 AND a > 5 AND TRY(10 / b = 2) AND b < 7}
          %1 = filter(%0) {predicate = 10 / b = 2}
          return %1
        }",
    );
}

#[test]
fn a_filter_stays_above_a_scan_that_others_read() {
    let text = "plan {
          %0 = parquet_scan() {columns = <a: int64>}
          %1 = filter(%0) {predicate = a > 5}
          %2 = union(%0, %1)
          return %2
        }";
    check(|plan| physical::push_filters(plan, &catalog(), Rules::ALL), text, text);
}

#[test]
fn neighbors_fuse() {
    check(
        |plan| physical::fuse(plan, &catalog(), Rules::ALL),
        "plan {
          %0 = parquet_scan() {columns = <a: int64, b: int64>}
          %1 = projection(%0) {fields = [a, b]}
          %2 = filter(%1) {predicate = a > 5}
          %3 = filter(%2) {predicate = b > 5 AND a < 7}
          %4 = map(%3) {exprs = {x = a + 1, y = b, z = b}}
          %5 = projection(%4) {fields = [x, y]}
          %6 = map(%5) {exprs = {s = x + y, y = y}}
          return %6
        }",
        "plan {
          %0 = parquet_scan() {columns = <a: int64, b: int64>}
          %1 = filter(%0) {predicate = a > 5 AND b > 5 AND a < 7}
          %2 = map(%1) {exprs = {s = a + 1 + b, y = b}}
          return %2
        }",
    );
    // Aggregates compute the maps below them, unless they have a filter or a key is renamed.
    let aggregated = |above: &str| {
        format!(
            "plan {{
          %0 = parquet_scan() {{columns = <a: int64, b: int64>}}
          %1 = map(%0) {{exprs = {{a = a, x = a + 1, c = b}}}}
          %2 = {above}
          return %2
        }}"
        )
    };
    check(
        |plan| physical::fuse(plan, &catalog(), Rules::ALL),
        &aggregated("reduce_by_key(%1) {keys = [a], aggregates = {s = {function = :sum, args = [x * c]}, n = {function = :count, args = []}}}"),
        "plan {
          %0 = parquet_scan() {columns = <a: int64, b: int64>}
          %1 = reduce_by_key(%0) {keys = [a], aggregates = {s = {function = :sum, args = [(a + 1) * b]}, n = {function = :count, args = []}}}
          return %1
        }",
    );
    for kept in [
        "reduce_by_key(%1) {keys = [a], aggregates = {s = {function = :sum, args = [x], filter = c > 5}}}",
        "reduce_by_key(%1) {keys = [a], aggregates = {s = {function = :sum, args = [x]}, m = {function = :max, args = [x]}}}",
        "reduce_by_key(%1) {keys = [c], aggregates = {s = {function = :sum, args = [x]}}}",
    ] {
        check(
            |plan| physical::fuse(plan, &catalog(), Rules::ALL),
            &aggregated(kept),
            &aggregated(kept),
        );
    }
    // No fusion if work would be done twice.
    let twice = "plan {
          %0 = parquet_scan() {columns = <a: int64>}
          %1 = map(%0) {exprs = {x = a + 1}}
          %2 = map(%1) {exprs = {y = x * x}}
          return %2
        }";
    check(|plan| physical::fuse(plan, &catalog(), Rules::ALL), twice, twice);
}

#[test]
fn aggregates_over_all_tuples_take_filters_of_numbers() {
    let filtered = |plan: &tessera_plan::Plan| physical::filter_aggregates(plan, &catalog());
    check(
        filtered,
        "plan {
          %0 = parquet_scan() {columns = <a: int64, b: int64?>}
          %1 = filter(%0) {predicate = a < 5 AND b = 7}
          %2 = projection(%1) {fields = [a]}
          %3 = reduce(%2) {aggregates = {n = {function = count, args = []}, s = {function = sum, args = [a * 2]}}}
          return %3
        }",
        "plan {
          %0 = parquet_scan() {columns = <a: int64, b: int64?>}
          %1 = reduce(%0) {aggregates = {n = {function = count, args = [], filter = a < 5 AND b = 7}, s = {function = sum, args = [a * 2], filter = a < 5 AND b = 7}}}
          return %1
        }",
    );
    let stay = [
        // Not for strings, groups, many fields, aggregates with a filter, or library functions.
        ("<a: int64, t: string>", "t = 'x'", "reduce", "{n = {function = count, args = []}}"),
        ("<a: int64>", "a < 5", "reduce_by_key", "{n = {function = count, args = []}}"),
        (
            "<a: int64, b: int64, c: int64, d: int64>",
            "a < 5",
            "reduce",
            "{s = {function = sum, args = [b + c + d]}}",
        ),
        (
            "<a: int64, b: int64>",
            "a < 5",
            "reduce",
            "{s = {function = sum, args = [b], filter = b > 7}}",
        ),
        ("<a: int64, b: int64>", "a < 5", "reduce", "{s = {function = sum, args = [abs(b)]}}"),
        (
            "<a: int64, b: int64>",
            "a < 5",
            "reduce",
            "{s = {function = sum, args = [b], distinct = true}}",
        ),
    ];
    for (columns, predicate, reduce, aggregates) in stay {
        let keys = if reduce == "reduce" { "" } else { "keys = [a], " };
        let text = format!(
            "plan {{
              %0 = parquet_scan() {{columns = {columns}}}
              %1 = filter(%0) {{predicate = {predicate}}}
              %2 = {reduce}(%1) {{{keys}aggregates = {aggregates}}}
              return %2
            }}"
        );
        check(filtered, &text, &text);
    }
}

#[test]
fn equal_state_is_built_once() {
    check(
        |plan| physical::share_common(plan, &catalog()),
        "plan {
          %0 = parquet_scan() {columns = <a: int64>}
          %1 = reduce_by_key(%0) {keys = [a]}
          %2 = parquet_scan() {columns = <a: int64>}
          %3 = reduce_by_key(%2) {keys = [a]}
          %4 = union(%1, %3)
          return %4
        }",
        "plan {
          %0 = parquet_scan() {columns = <a: int64>}
          %1 = reduce_by_key(%0) {keys = [a]}
          %2 = union(%1, %1)
          return %2
        }",
    );
}

#[test]
fn many_meet_one_in_a_merge() {
    let start = Traits { parallelism: Parallelism::Many, ..Traits::DRIVER };
    let before = plan(
        "plan {
          %0 = parquet_scan() {columns = <a: int64>}
          %1 = parquet_scan() {columns = <b: int64>}
          %2 = sort(%0) {keys = [{field = a}]}
          %3 = zip(%1, %2)
          %4 = map(%1) {exprs = {a = b, b = b}}
          %5 = union(%4, %4)
          return %5
        }",
    );
    let after = physical::insert_merges(&before, &catalog(), start).unwrap();
    assert_eq!(
        text::print(&after),
        text::print(&plan(
            "plan {
          %0 = parquet_scan() {columns = <b: int64>}
          %1 = map(%0) {exprs = {a = b, b = b}}
          %2 = union(%1, %1)
          %3 = merge(%2)
          return %3
        }"
        ))
    );
    let zipped = tessera_plan::Plan { root: tessera_plan::NodeId(3), ..before };
    let after = physical::insert_merges(&zipped, &catalog(), start).unwrap();
    assert!(text::print(&after).contains("zip(%3, %2)"), "{}", text::print(&after));
    verify_in(&after, &catalog(), start).unwrap();
}

/// A leaf that counts how often it is verified.
#[derive(Debug, Clone, Default)]
struct Counted(Arc<AtomicUsize>);

impl Descriptor for Counted {
    fn name(&self) -> &'static str {
        "counted"
    }

    fn summary(&self) -> &'static str {
        "for tests"
    }

    fn parameters(&self) -> &'static [&'static str] {
        &[]
    }

    fn arity(&self) -> (usize, usize) {
        (0, 0)
    }

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let tuple = Tuple::new(vec![Field::new("x", Atom::Int64), Field::new("y", Atom::Int64)]);
        Ok(Edge { tuple, traits: inputs.edges[0].traits, order: Order::Source })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

/// Returns how often the passes verify a plan, and how often merges and key filters do.
fn verified(text: &str) -> (usize, usize) {
    let (counted, mut catalog) = (Counted::default(), catalog());
    catalog.register(Arc::new(counted.clone()));
    let passed = physical::optimize(&plan(text), &catalog, Rules::ALL).unwrap();
    let by_passes = counted.0.swap(0, Ordering::Relaxed);
    let filtered = physical::place_key_filters(&passed, &catalog, Traits::DRIVER).unwrap();
    let start = Traits { parallelism: Parallelism::Many, ..Traits::DRIVER };
    physical::insert_merges(&filtered, &catalog, start).unwrap();
    (by_passes, counted.0.load(Ordering::Relaxed))
}

#[test]
fn passes_share_what_the_verifier_says() {
    // Debug builds verify each changed plan.
    let checks = usize::from(cfg!(debug_assertions));
    // No pass changes the plan; inserting merges derives its edges.
    let same = "plan {%0 = counted() %1 = filter(%0) {predicate = x = y} return %1}";
    assert_eq!(verified(same), (1, 1 + checks));
    // Verified once before columns are pruned and once after; then the last projection is removed.
    let dropped = "plan {
      %0 = counted()
      %1 = sort(%0) {keys = [{field = x}]}
      %2 = projection(%1) {fields = [x]}
      return %2
    }";
    assert_eq!(verified(dropped), (2 + checks, 1 + checks));
}
