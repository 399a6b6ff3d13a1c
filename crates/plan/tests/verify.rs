//! Tests of the verifier: what it accepts and rejects, and that it never panics.

use proptest::prelude::*;

use tessera_plan::{Builder, Expr, Params, Plan, Rules, text, verify};
use tessera_types::{Code, Tuple};

use crate::common::{catalog, plan};

fn error(text: &str) -> String {
    match verify(&plan(text), &catalog()) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// Returns a plan over scans `%l` and `%r` of a table `<a: int64, b: int64?>`.
fn over_scans(body: &str) -> String {
    format!(
        "plan {{
            %l = parquet_scan() {{paths = ['l'], columns = <a: int64, b: int64?>}}
            %r = parquet_scan() {{paths = ['r'], columns = <c: int64, d: int64?>}}
            {body}
        }}"
    )
}

/// Returns the same plan inside of an executor.
fn over_many(body: &str) -> String {
    format!("plan {{ %0 = executor() {{platform = :local}} {} return %0 }}", over_scans(body))
}

#[test]
fn messages_name_the_sub_operator_the_field_and_both_types() {
    for (body, message) in [
        (
            "%f = filter(%l) {predicate = a} return %f",
            "filter (%2): a predicate must be boolean, not int64",
        ),
        (
            "%f = filter(%l) {predicate = x = 1} return %f",
            "unknown field x in <a: int64, b: int64?>",
        ),
        (
            "%f: <a: int64> = filter(%l) {predicate = true::boolean} return %f",
            "declared type <a: int64> differs from derived type",
        ),
        (
            "%f: <a: int32, b: int64?> = filter(%l) {predicate = a = 1} return %f",
            "field 0 is declared as `a: int32` but is `a: int64`",
        ),
        ("%f = filter(%l, %r) {predicate = a = 1} return %f", "expected 1 inputs, found 2"),
        (
            "%f = filter(%l) {preticate = a = 1} return %f",
            "unknown parameter 'preticate'; did you mean 'predicate'?",
        ),
        ("%f = filtre(%l) return %f", "unknown sub-operator 'filtre'; did you mean 'filter'?"),
        (
            "%f = filter(%l) {predicate = RAW 'x'::boolean} return %f",
            "not a valid value of type boolean",
        ),
        ("%f = filter(%l) {predicate = a = 300::int8} return %f", "not a valid value of type int8"),
        ("%f = zip(%l, %l) return %f", "duplicate field a in"),
        ("%f = probe(%l, %r) {keys = [c], join = :outer} return %f", "join must be one of :inner"),
        (
            "%f = nested_map(%l) plan <a: int64> { %0 = parameter_lookup() return %0 } return %f",
            "passes <a: int64, b: int64?> to a nested plan that declares <a: int64>",
        ),
    ] {
        let found = error(&over_scans(body));
        assert!(found.contains(message), "{body}\n{found}");
    }
}

#[test]
fn a_trait_that_changes_wants_its_converter() {
    for (body, message) in [
        ("return %l", "has parallelism many, expected one; insert a merge"),
        ("%b = build(%r) {keys = [c]} return %b", "insert an exchange"),
        (
            "%e = exchange(%r) %m = merge(%l) %z = zip(%e, %m) return %z",
            "parallelism one, expected many as in input 0; insert a router",
        ),
        (
            "%e = exchange(%r) {keys = [c]} %z = zip(%l, %e) return %z",
            "has locality all, expected worker",
        ),
        ("%k = pack(%l) return %k", "has granularity packet, expected chunk; insert an unpack"),
        (
            "%k = pack(%l) %f = filter(%k) {predicate = a = 1} return %f",
            "sub-operator filter (%3): input 0 (%2) has granularity packet",
        ),
        (
            "%k = router(%l) {fan_out = 2} return %k",
            "has granularity chunk, expected packet; insert a pack",
        ),
        (
            "%k = pack(%l) %g = device_cross(%k) {to = :gpu} %u = unpack(%g) %m = merge(%u) return %m",
            "has device gpu, expected cpu; insert a device_cross",
        ),
        (
            "%k = pack(%l) %g = device_cross(%k) {to = :gpu} %u = unpack(%g) %z = zip(%r, %u) return %z",
            "has device gpu, expected cpu as in input 0; insert a device_cross",
        ),
        ("%k = pack(%l) %g = device_cross(%k) {to = :cpu} return %g", "already on device cpu"),
    ] {
        let found = error(&over_many(body));
        assert!(found.contains(message), "{body}\n{found}");
    }
}

#[test]
fn a_heterogeneous_plan_verifies_and_explains() {
    let written = plan(&over_many(
        "%k = pack(%l) {keys = [a]}
         %ro = router(%k) {fan_out = 4, keys = [a]}
         %mm = mem_move(%ro)
         %dc = device_cross(%mm) {to = :gpu}
         %u = unpack(%dc)
         %f = filter(%u) {predicate = a > 5}
         %k2 = pack(%f)
         %dc2 = device_cross(%k2) {to = :cpu}
         %u2 = unpack(%dc2)
         %m = merge(%u2)
         return %m",
    ));
    let verified = verify(&written, &catalog()).unwrap();
    let explained = text::explain(&written, &verified);
    assert!(
        explained.contains(
            "-- gpu/many/all/packet\n    %5: <a: int64, b: int64?> = device_cross(%4) {to = :gpu}"
        ),
        "{explained}"
    );
    let back = text::parse(&explained).unwrap();
    let again = verify(&back, &catalog()).unwrap();
    assert_eq!(text::explain(&back, &again), explained);
}

#[test]
fn nesting_is_bounded() {
    let mut inner = Builder::new(Tuple::empty());
    let id = inner.add("parameter_lookup", &[], Params::new());
    let mut plan = inner.finish(id);
    for _ in 0..100 {
        let mut outer = Builder::new(Tuple::empty());
        let start = outer.add("parameter_lookup", &[], Params::new());
        let id = outer.add_nested("nested_map", &[start], Params::new(), vec![plan]);
        plan = outer.finish(id);
    }
    let error = verify(&plan, &catalog()).unwrap_err();
    assert_eq!(error.code(), Code::Limit);
    assert!(error.message().contains("PLAN_DEPTH_MAX"), "{error}");
    assert!(text::parse(&text::print(&plan)).unwrap_err().message().contains("PLAN_DEPTH_MAX"));
    let deep = (0..3_000).fold(Expr::field("a"), |e, _| Expr::Not(Box::new(e)));
    let mut plan = Builder::new(Tuple::empty());
    let id = plan.add("filter", &[], Params::new().with("predicate", deep));
    assert!(verify(&plan.finish(id), &catalog()).is_err());
}

const SOURCES: &[&str] = &[
    "plan {
  %0 = parquet_scan() {paths = ['l'], columns = <a: int64, b: decimal(15,2)?>, filter = a > 5 AND b IS NOT NULL}
  %1 = parquet_scan() {paths = ['r'], columns = <c: int64, d: date>}
  %2 = filter(%1) {predicate = d <= '1998-09-02'::date OR NOT c = -5}
  %3: <table: hash_table<c: int64, d: date>> = build(%2) {keys = [c]}
  %4 = probe(%3, %0) {keys = [a], join = :inner, residual = CASE WHEN a > c THEN true ELSE false END}
  %5 = map(%4) {exprs = {a = a, twice = COALESCE(a + a, 1), d = d, at = CAST(a AS float64), x = 0.5}}
  %6 = sort(%5) {keys = [{field = a, descending = true}, {field = d}]}
  return %6
}",
    "plan {
  %0 = executor() {platform = :local} plan {
    %0 = parquet_scan() {paths = ['l', 'it''s'], columns = <a: int64, \"b c\": list<int32?>?>}
    %1 = exchange(%0) {keys = [a]}
    %2 = nested_map(%1) plan <a: int64, \"b c\": list<int32?>?> {
      %0 = parameter_lookup()
      %1 = map(%0) {exprs = {a = $a * 2, l = ITEMS[1, NULL]::list<int64?>, t = '12:00:00'::time(us)}}
      return %1
    }
    %3 = union(%2, %2)
    %4 = pack(%3)
    %5 = router(%4) {fan_out = 3}
    %6 = unpack(%5)
    %7 = merge(%6)
    return %7
  }
  return %0
}",
];

/// Parses, verifies, explains, divides and rewrites a text; each step may fail but not panic.
fn try_all(written: &str) {
    let Ok(plan) = text::parse(written) else { return };
    try_plan(&plan);
}

fn try_plan(plan: &Plan) {
    let catalog = catalog();
    let Ok(verified) = verify(plan, &catalog) else {
        let _ = text::print(plan);
        return;
    };
    let explained = text::explain(plan, &verified);
    assert!(text::parse(&explained).is_ok(), "{explained}");
    tessera_plan::pipeline::cut(plan, &catalog).unwrap();
    let optimized = tessera_optimizer::physical::optimize(plan, &catalog, Rules::ALL)
        .unwrap_or_else(|e| panic!("{e}\n{explained}"));
    let after =
        verify(&optimized, &catalog).unwrap_or_else(|e| panic!("{e}\n{}", text::print(&optimized)));
    assert_eq!(
        after.edges[optimized.root.index()].tuple,
        verified.edges[plan.root.index()].tuple,
        "{explained}\n{}",
        text::print(&optimized)
    );
}

#[test]
fn the_sources_of_mutations_verify() {
    for source in SOURCES {
        verify(&plan(source), &catalog()).unwrap_or_else(|error| panic!("{error}"));
        try_all(source);
    }
}

/// Splits a text at token boundaries.
fn tokens(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let end = if word > 0 { word } else { rest.chars().next().map_or(0, char::len_utf8) };
        out.push(&rest[..end]);
        rest = &rest[end..];
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Drops, doubles and swaps tokens: removes fields, changes types, moves edges.
    #[test]
    fn mutated_plans_never_panic(
        source in 0..SOURCES.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4u8), 1..4),
    ) {
        let mut words = tokens(SOURCES[source]);
        for (at, from, what) in changes {
            let (at, from) = (at.index(words.len()), from.index(words.len()));
            match what {
                0 => drop(words.remove(at)),
                1 => words.insert(at, words[from]),
                2 => words[at] = words[from],
                _ => words.swap(at, from),
            }
            if words.is_empty() {
                break;
            }
        }
        try_all(&words.concat());
    }

    #[test]
    fn random_bytes_never_panic(
        source in 0..SOURCES.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = SOURCES[source].as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        try_all(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_text_never_panics(text in "\\PC{0,80}") {
        try_all(&text);
        try_all(&format!("plan {{ %0 = f() {{p = {text}}} return %0 }}"));
    }

    /// Moves edges and results in the plan itself, also out of range.
    #[test]
    fn moved_edges_never_panic(
        source in 0..SOURCES.len(),
        moves in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..12u32), 1..4),
        root in proptest::option::of(0..12u32),
    ) {
        let mut moved = plan(SOURCES[source]);
        for (node, input, to) in moves {
            let node = node.index(moved.nodes.len());
            let inputs = &mut moved.nodes[node].inputs;
            if !inputs.is_empty() {
                let at = input.index(inputs.len());
                inputs[at].0 = if to == 11 { u32::MAX } else { to };
            }
        }
        if let Some(root) = root {
            moved.root.0 = root;
        }
        try_plan(&moved);
    }
}
