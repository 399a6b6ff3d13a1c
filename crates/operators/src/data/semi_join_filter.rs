//! `semi_join_filter`: drops tuples that cannot match a join further down the stream.

use std::sync::Arc;

use tessera_context::{Reservation, Run};
use tessera_operator::stream_util::{Transform, packed_transform_run};
use tessera_operator::{Lowering, Operator, Stream, StreamRun, SubOperator, describe};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_rows::Collected;
use tessera_state::join::select_positions;
use tessera_state::sideways::{KeyFilter, filter_keys};
use tessera_types::{Error, Result};
use tessera_vector::Chunk;

/// `semi_join_filter`: drops tuples of `T` whose `keys` are not among those of a build, except for
/// false positives.
///
/// * Inputs: a side of tuples from a `key_filter`, and `T`. Output `T`, order kept. Never blocks.
/// * `keys`: fields of `T`, of the types of the filter's keys, in their order. `told` = a name
///   (optional): scans that subscribe to this name drop such tuples before they decode the
///   remaining columns.
/// * Several tuples of the side are the filters of parts of the build. All tuples pass if the side
///   is empty or NULL, or once too few tuples are dropped.
/// * With the keys `3, 9, 4` on the side, `1, 3, 5, 9, 9` becomes `3, 9, 9`.
/// * Valid only before joins that drop tuples without a match: inner and semi joins.
/// * Memory: the filter's bytes; if the budget lacks them, all tuples pass.
/// * Source: the semi-join reduction of distributed databases; Bloom filters as in
///   `sideways/bloom.rs`.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%r = values() {columns = <j: int64, b: string>, rows = [[1, 'one'], [2, 'two'], [2,
///        'due']]}
///      %table = build(%r) {keys = [j]}
///      %found = key_filter(%table) {keys = [j]}
///      %l = values() {columns = <k: int64>, rows = [[1], [2], [400], [500]]}
///      %result = semi_join_filter(%found, %l) {keys = [k]}",
/// );
/// assert_eq!(rows, ["1", "2"]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SemiJoinFilter;

impl Descriptor for SemiJoinFilter {
    tessera_operator::describe!(
        "semi_join_filter",
        "Drops tuples whose keys a build does not have.",
        ["keys", "told"],
        2,
        2
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let [side, stream] = describe::edges(inputs)? else {
            return Err(Error::internal("a semi_join_filter without two inputs"));
        };
        let theirs = filter_keys(&side.tuple)?;
        let names = node.params.names("keys")?;
        let mine = describe::keys(&stream.tuple, &names, "key")?;
        filter_name(node)?;
        if mine.len() != theirs.len() {
            return Err(Error::semantic(format!(
                "semi_join_filter has {} keys and its filter {}; name as many",
                mine.len(),
                theirs.len()
            )));
        }
        for (key, theirs) in mine.iter().zip(&theirs) {
            let field = &stream.tuple.fields()[*key];
            if field.atom() != Some(theirs) {
                return Err(Error::semantic(format!(
                    "key {field} is compared with {theirs}; cast one of them, so that equal values have equal hashes"
                )));
            }
        }
        Ok(describe::passes(stream, stream.tuple.clone(), stream.order.clone()))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(1)
    }
}

/// Returns the name under which the filter is published to scans.
fn filter_name(node: &Node) -> Result<Option<Arc<str>>> {
    node.param("told").map(|_| node.params.name("told").cloned()).transpose()
}

impl SubOperator for SemiJoinFilter {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let keys = describe::keys(&lowering.inputs[1].tuple, &node.params.names("keys")?, "key")?;
        Ok(Operator::Stream(Arc::new(SemiJoinFilterOperator {
            node: lowering.inputs[0].tuple.clone(),
            keys,
            name: filter_name(node)?,
        })))
    }
}

#[derive(Debug)]
struct SemiJoinFilterOperator {
    node: tessera_types::Tuple,
    keys: Vec<usize>,
    name: Option<Arc<str>>,
}

impl Stream for SemiJoinFilterOperator {
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        let side =
            sides.first().ok_or_else(|| Error::internal("a semi_join_filter without a side"))?;
        let filter = KeyFilter::of_side(side, &filter_keys(&self.node)?)?;
        let mut memory = Reservation::new(run.context.clone());
        let filter =
            filter.filter(|filter| memory.grow(filter.memory_bytes()).is_ok()).map(Arc::new);
        if let (Some(name), Some(filter)) = (&self.name, &filter) {
            run.board.publish(name, filter.clone());
        }
        let dropping = SemiJoinFilterRun {
            filter,
            keys: self.keys.clone(),
            run: run.clone(),
            _memory: memory,
        };
        Ok(packed_transform_run(dropping, run.context.chunk_rows()))
    }
}

#[derive(Debug)]
struct SemiJoinFilterRun {
    filter: Option<Arc<KeyFilter>>,
    keys: Vec<usize>,
    run: Run,
    _memory: Reservation,
}

impl Transform for SemiJoinFilterRun {
    fn apply(&self, chunk: Chunk) -> Result<Chunk> {
        let Some(filter) =
            self.filter.as_ref().filter(|filter| filter.is_on() && !filter.is_applied())
        else {
            return Ok(chunk);
        };
        self.run.context.check()?;
        let keys = self.keys.iter().map(|key| chunk.column(*key)).collect::<Result<Vec<_>>>()?;
        let passed = filter.select(&keys, chunk.rows(), &mut Vec::new())?;
        Ok(select_positions(&chunk, &passed))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tessera_context::testing::{Numbers, TestContext, batch, rows, same};
    use tessera_operator::testing::{SETTINGS, TestPlan, names};
    use tessera_plan::{NodeId, Params, Value};

    use crate::testing::test_plan;

    fn keys(list: &[&str]) -> Params {
        Params::new().with("keys", names(list))
    }

    /// Adds a filter to a stream that drops tuples without a match in the build.
    fn filtered(
        plan: &mut TestPlan,
        (table, of_table): (NodeId, &[&str]),
        (stream, of_stream): (NodeId, &[&str]),
    ) -> NodeId {
        let filter = plan.add("key_filter", &[table], keys(of_table));
        plan.add("semi_join_filter", &[filter, stream], keys(of_stream))
    }

    #[test]
    fn what_matches_nothing_is_dropped() {
        let mut plan = test_plan();
        let stream = plan.table(batch("<a: int64?>", "1|3|NULL|5|9|9"));
        let build = plan.table(batch("<k: int64>", "3|9|4|3|7"));
        let table = plan.add("build", &[build], keys(&["k"]));
        let root = filtered(&mut plan, (table, &["k"]), (stream, &["a"]));
        for (chunk, workers) in SETTINGS {
            same(&plan.run(root, chunk, workers).unwrap(), "<a: int64?>", "3|9|9");
        }
        let filter = plan.add("key_filter", &[table], keys(&["k"]));
        let ends = plan.add(
            "projection",
            &[filter],
            Params::new().with("fields", names(&["least_k", "greatest_k"])),
        );
        same(&plan.run(ends, 2_048, 1).unwrap(), "<least_k: int64?, greatest_k: int64?>", "3 9");
    }

    #[test]
    fn joins_find_the_same() {
        let mut numbers = Numbers::new(11);
        let mut text = |count: u64, below: u64| {
            let mut value = || {
                if numbers.below(9) == 0 {
                    "NULL".to_string()
                } else {
                    numbers.below(below).to_string()
                }
            };
            let line = (0..count).map(|i| format!("{} {} x{} {i}", value(), value(), value()));
            line.collect::<Vec<_>>().join("|")
        };
        let (left, right) = (text(4_000, 400), text(90, 500));
        for null_equal in [false, true] {
            for list in [&["a"][..], &["s"], &["a", "b"], &["b", "s", "a"]] {
                let mut plan = test_plan();
                let stream =
                    plan.table(batch("<a: int64?, b: decimal(9,2)?, s: string?, i: int64>", &left));
                let build = plan
                    .table(batch("<a: int64?, b: decimal(9,2)?, s: string?, j: int64>", &right));
                let table = plan.add("build", &[build], keys(list).with("null_equal", null_equal));
                let dropped = filtered(&mut plan, (table, list), (stream, list));
                let semi = keys(list).with("join", Value::name("semi"));
                let with = plan.add("probe", &[table, dropped], semi.clone());
                let without = plan.add("probe", &[table, stream], semi);
                for (chunk, workers) in SETTINGS {
                    let sorted = |root| {
                        let mut rows = rows(&plan.run(root, chunk, workers).unwrap());
                        rows.sort();
                        rows
                    };
                    let expected = sorted(without);
                    assert!(list.len() > 1 || !expected.is_empty());
                    assert_eq!(
                        sorted(with),
                        expected,
                        "{list:?} null_equal {null_equal} chunks {chunk}"
                    );
                    // NULLs pass if the build has NULLs.
                    let left = plan.run(dropped, chunk, workers).unwrap().num_rows();
                    assert!(
                        left < expected.len() + 700,
                        "{left} of 4,000 are left, {} have matches",
                        expected.len()
                    );
                }
            }
        }
    }

    #[test]
    fn an_empty_build_drops_all_and_an_unknown_one_nothing() {
        let mut plan = test_plan();
        let stream = plan.table(batch("<a: int64>", "1|2"));
        let none = plan.table(batch("<k: int64>", ""));
        let table = plan.add("build", &[none], keys(&["k"]));
        let root = filtered(&mut plan, (table, &["k"]), (stream, &["a"]));
        assert_eq!(plan.run(root, 2_048, 1).unwrap().num_rows(), 0);
        for unknown in ["NULL NULL NULL", ""] {
            let side =
                plan.table(batch("<filter: bytes?, least_k: int64?, greatest_k: int64?>", unknown));
            let root = plan.add("semi_join_filter", &[side, stream], keys(&["a"]));
            assert_eq!(plan.run(root, 2_048, 1).unwrap().num_rows(), 2);
        }
    }

    #[test]
    fn keys_that_have_left_memory_are_known() {
        let text = |numbers: &mut dyn Iterator<Item = u64>| {
            numbers.map(|number| number.to_string()).collect::<Vec<_>>().join("|")
        };
        let mut plan = test_plan();
        let stream = plan.table(batch("<a: int64>", &text(&mut (0..40_000))));
        let build = plan.table(batch("<k: int64>", &text(&mut (0..20_000).map(|i| 2 * i + 100))));
        let table = plan.add("build", &[build], keys(&["k"]));
        let root = filtered(&mut plan, (table, &["k"]), (stream, &["a"]));
        for (chunk, workers) in [(2_048, 1), (1_000, 2)] {
            let context = TestContext::with_state_budget(chunk, workers, 256 << 10);
            let found = rows(&plan.run_in(root, context.clone()).unwrap());
            assert!(context.spilled() > 0);
            let found: HashSet<u64> = found.iter().map(|row| row.parse().unwrap()).collect();
            assert!((0..19_950).all(|i| found.contains(&(2 * i + 100))));
            assert!(found.len() < 19_950 + 2_000, "{} are left", found.len());
        }
    }

    #[test]
    fn filters_of_parts_are_one() {
        let mut plan = test_plan();
        let stream = plan.table(batch("<a: int64>", "1|2|3|4|5|6"));
        let parts = ["2", "", "5|6"].map(|part| {
            let build = plan.table(batch("<k: int64>", part));
            let table = plan.add("build", &[build], keys(&["k"]));
            plan.add("key_filter", &[table], keys(&["k"]))
        });
        let all = plan.add("union", &parts, Params::new());
        let root = plan.add("semi_join_filter", &[all, stream], keys(&["a"]));
        same(&plan.run(root, 2_048, 1).unwrap(), "<a: int64>", "2|5|6");
    }

    #[test]
    fn keys_have_to_fit() {
        let refused = |of_table: &[&str], of_stream: &[&str], part: &str| {
            let mut plan = test_plan();
            let stream = plan.table(batch("<a: int32, b: int64>", ""));
            let build = plan.table(batch("<k: int64, l: int64>", ""));
            let table = plan.add("build", &[build], keys(&["k"]));
            let root = match of_table {
                [] => plan.add("semi_join_filter", &[build, stream], keys(of_stream)),
                _ => filtered(&mut plan, (table, of_table), (stream, of_stream)),
            };
            let error = plan.verify(root).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        refused(&["k"], &["a"], "cast one of them");
        refused(&["k"], &["b", "a"], "name as many");
        refused(&["l"], &["b"], "the keys of the build");
        refused(&[], &["b"], "not a key filter");
    }
}
