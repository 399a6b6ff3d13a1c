//! `EXPLAIN`, and `tessera run`.

use crate::support::{csv, file, folder, run, tpch};

const QUERY: &str = "select n_regionkey, count(*) as n from nation where n_nationkey < 20 group by n_regionkey \
                     order by n_regionkey";

#[test]
fn explain_is_a_plan_that_runs() {
    let folder = folder();
    let expected = csv(tpch(), QUERY).ok();
    let database = tpch().to_str().unwrap();
    for explain in [
        "explain",
        "explain verbose",
        "explain (platform local)",
        "explain (platform local, verbose)",
    ] {
        let text = run(&[database, "-c", &format!("{explain} {QUERY}")]).ok();
        assert!(text.contains("parquet_scan("), "{text}");
        assert_eq!(text.contains("executor("), explain.contains("platform"), "{text}");
        let plan = file(&folder, "query.plan", &text);
        assert_eq!(run(&["run", &plan, "--format", "csv"]).ok(), expected, "{text}");
    }
}

#[test]
fn explain_analyze_measures() {
    let database = tpch().to_str().unwrap();
    let text = run(&[database, "-c", &format!("explain analyze {QUERY}")]).ok();
    for part in ["20 rows (", " estimated), ", "-- rows: 5", "-- time: ", "-- memory: ", " threads"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    let text = run(&[database, "-c", &format!("explain (analyze, format json) {QUERY}")]).ok();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["rows"], 5);
    assert_eq!(json["plan"]["nodes"][0]["operator"], "executor");
}

#[test]
fn a_plan_that_is_wrong() {
    let folder = folder();
    let plan = file(&folder, "wrong.plan", "plan {\n  %0 = no_such_operator()\n  return %0\n}\n");
    assert!(run(&["run", &plan]).error().contains("no_such_operator"));
    let plan = file(&folder, "syntax.plan", "plan {\n  %0 = = \n}\n");
    let message = run(&["run", &plan]).err;
    assert!(message.contains("(line 2, column 8)"), "{message}");
    assert!(message.contains("\nline 2:   %0 = =\n               ^"), "{message}");
    let secret = "plan {\n  %0 = csv_scan() {paths = ['https://me:secret@host/x.csv'] = }\n}\n";
    let message = run(&["run", &file(&folder, "secret.plan", secret)]).err;
    assert!(message.contains("(line 2, ") && !message.contains("secret@"), "{message}");
}

#[test]
fn platforms_that_are_not_there() {
    let message = csv(tpch(), "explain (platform moon) select 1").error();
    assert!(message.contains("moon") && message.contains("local"), "{message}");
}
