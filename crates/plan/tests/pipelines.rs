//! Tests of the division into pipelines.

use tessera_plan::pipeline::{Chain, ChainStart, PipelineEnd, cut};

use crate::common::{catalog, plan};

/// Returns the pipelines of a plan over scans `%0` and `%1`, one per line: chains ` + ` chains ` ->
/// ` end.
fn pipelines(body: &str) -> Vec<String> {
    let text = format!(
        "plan {{
            %0 = parquet_scan() {{columns = <a: int64>}}
            %1 = parquet_scan() {{columns = <b: int64>}}
            {body}
        }}"
    );
    let plan = plan(&text);
    let catalog = catalog();
    tessera_plan::verify(&plan, &catalog).unwrap();
    let cut = cut(&plan, &catalog).unwrap();
    let chain = |chain: &Chain| {
        let start = match chain.start {
            ChainStart::Node(id) => format!("%{}", id.0),
            ChainStart::Pipeline(pipeline) => format!("pipeline {pipeline}"),
        };
        chain.streams.iter().fold(start, |text, id| format!("{text} %{}", id.0))
    };
    let mut out = Vec::new();
    for pipeline in &cut.pipelines {
        let chains: Vec<String> = pipeline.chains.iter().map(chain).collect();
        let end = match pipeline.end {
            PipelineEnd::Sink(id) => format!("sink %{}", id.0),
            PipelineEnd::Collect(id) => format!("collect %{}", id.0),
        };
        out.push(format!("{} -> {end}", chains.join(" + ")));
    }
    let mut sides: Vec<_> = cut.sides.iter().collect();
    sides.sort();
    out.extend(sides.into_iter().map(|(node, sides)| format!("sides of %{}: {sides:?}", node.0)));
    out
}

#[test]
fn streams_flow_to_the_result() {
    assert_eq!(
        pipelines("%2 = filter(%0) {predicate = a > 1} %3 = map(%2) {exprs = {x = a}} return %3"),
        ["%0 %2 %3 -> collect %3"]
    );
}

#[test]
fn a_sink_ends_a_pipeline_and_starts_the_next() {
    assert_eq!(
        pipelines(
            "%2 = sort(%0) {keys = [{field = a}]} %3 = filter(%2) {predicate = a > 1} return %3"
        ),
        ["%0 -> sink %2", "pipeline 0 %3 -> collect %3"]
    );
}

#[test]
fn a_union_has_a_chain_for_each_input() {
    assert_eq!(
        pipelines(
            "%2 = map(%1) {exprs = {a = b}} %3 = union(%0, %2) %4 = filter(%3) {predicate = a > 1}
             %5 = sort(%4) {keys = [{field = a}]} return %5"
        ),
        ["%0 %4 + %1 %2 %4 -> sink %5", "pipeline 0 -> collect %5"]
    );
}

#[test]
fn the_side_of_a_join_is_complete_before_its_stream_starts() {
    assert_eq!(
        pipelines(
            "%2 = build(%1) {keys = [b]} %3 = probe(%2, %0) {keys = [a], join = :inner} return %3"
        ),
        [
            "%1 -> sink %2",
            "pipeline 0 -> collect %2",
            "%0 %3 -> collect %3",
            "sides of %3: [(0, 1)]"
        ]
    );
}

#[test]
fn a_shared_node_is_collected_once() {
    assert_eq!(
        pipelines(
            "%2 = filter(%0) {predicate = a > 1} %3 = map(%2) {exprs = {c = a}} %4 = zip(%2, %3) return %4"
        ),
        [
            "%0 %2 -> collect %2",
            "pipeline 0 %3 -> collect %3",
            "%4 -> collect %4",
            "sides of %4: [(0, 0), (1, 1)]"
        ]
    );
    assert_eq!(
        pipelines(
            "%2 = build(%1) {keys = [b]}
                   %3 = probe(%2, %0) {keys = [a], join = :inner} %4 = map(%3) {exprs = {a = a}}
                   %5 = probe(%2, %4) {keys = [a], join = :inner} return %5"
        ),
        [
            "%1 -> sink %2",
            "pipeline 0 -> collect %2",
            "%0 %3 %4 %5 -> collect %5",
            "sides of %3: [(0, 1)]",
            "sides of %5: [(0, 1)]"
        ]
    );
}

#[test]
fn a_nested_plan_is_cut_by_itself() {
    assert_eq!(
        pipelines(
            "%2 = nested_map(%0) plan <a: int64> { %0 = parameter_lookup() return %0 } return %2"
        ),
        ["%0 %2 -> collect %2"]
    );
}
