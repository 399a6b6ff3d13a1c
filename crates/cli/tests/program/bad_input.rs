//! Invalid and unusual input: each gives one clear error or a result, and the shell continues.

use std::path::Path;

use crate::support::{csv, file, folder, names, run, run_with_input, tpch};

fn error(sql: &str) -> String {
    csv(tpch(), sql).error()
}

#[test]
fn files_that_are_missing() {
    assert!(error("select * from '/no/such/file.parquet'").contains("/no/such/file.parquet"));
    assert!(error("select * from '/no/such/*.csv'").contains("/no/such/*.csv"));
    assert!(error("select * from no_such_table").contains("no_such_table"));
    assert!(run(&["/no/such/folder", "-c", "select 1"]).error().contains("/no/such/folder"));
    assert!(run(&["run", "/no/such.plan"]).error().contains("/no/such.plan"));
}

#[test]
fn truncated_and_false_parquet() {
    let whole = std::fs::read(tpch().join("orders.parquet")).unwrap();
    let folder = folder();
    file(&folder, "good.csv", "x\n1\n");
    file(&folder, "half.parquet", &whole[..whole.len() / 2]);
    file(&folder, "empty.parquet", "");
    file(&folder, "text.parquet", "this is no Parquet file at all");
    // The footer is intact, the pages are damaged.
    let mut hole = whole.clone();
    hole[4..whole.len() / 2].fill(0xff);
    file(&folder, "hole.parquet", &hole);
    for name in ["half", "empty", "text", "hole"] {
        let message = csv(folder.path(), &format!("select * from {name}")).error();
        assert!(message.contains(&format!("{name}.parquet")), "{message}");
    }
    assert_eq!(csv(folder.path(), "select x from good").ok(), "x\n1\n", "others are not touched");
}

#[test]
fn text_files_that_break_their_own_rules() {
    let folder = folder();
    file(&folder, "wide.csv", "a,b\n1,2\n3,4,5\n");
    let message = csv(folder.path(), "select * from wide").error();
    assert!(message.contains("wide.csv") && message.contains('3'), "{message}");
    file(&folder, "latin.csv", b"a\ncaf\xe9\n");
    assert!(csv(folder.path(), "select * from latin").error().contains("UTF-8"));
    file(&folder, "broken.json", "{\"a\": 1}\n{\"a\": \n");
    assert!(csv(folder.path(), "select * from broken").error().contains("broken.json"));
}

#[test]
fn arithmetic_that_has_no_answer() {
    assert!(error("select 1 / 0").contains("division by zero"));
    assert!(
        error("select l_orderkey / (l_linenumber - l_linenumber) from lineitem")
            .contains("division by zero")
    );
    assert!(error("select 9223372036854775807 + 1").contains("out of range"));
    assert!(
        error("select sum(l_orderkey * 9223372036854775807) from lineitem")
            .contains("out of range")
    );
    assert!(error("select cast('x' as integer)").contains('x'));
}

#[test]
fn a_row_that_was_rejected_never_raises() {
    let sql = "select count(*) as n from lineitem where l_linenumber > 100 and 1 / (l_linenumber - l_linenumber) = 1";
    assert_eq!(csv(tpch(), sql).ok(), "n\n0\n");
}

#[test]
fn many_terms_and_deep_parentheses() {
    let sum = vec!["1"; 900].join(" + ");
    assert_eq!(csv(tpch(), &format!("select {sum} as x")).ok(), "x\n900\n");
    let any: Vec<String> = (0..900).map(|n| format!("n_nationkey = {n}")).collect();
    let sql = format!("select count(*) as n from nation where {}", any.join(" or "));
    assert_eq!(csv(tpch(), &sql).ok(), "n\n25\n");
    let deep = format!("select {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    assert!(error(&deep).contains("SQL_DEPTH_MAX"));
}

#[test]
fn empty_directories() {
    let folder = folder();
    assert_eq!(csv(folder.path(), "select 1 as x").ok(), "x\n1\n");
    assert_eq!(csv(folder.path(), "show tables").ok(), "name,kind\n");
    std::fs::create_dir(folder.path().join("nothing")).unwrap();
    assert!(csv(folder.path(), "select * from nothing").error().contains("contains no data files"));
}

#[test]
fn the_shell_goes_on() {
    let statements = [
        "select 1 / 0",
        "select * from '/no/such.csv'",
        "selec 1",
        "select no_such_column from nation",
        "select 9223372036854775807 + 1",
    ];
    let input: String = statements.iter().map(|sql| format!("{sql};\nselect 42 as x;\n")).collect();
    let ran = run_with_input(&[tpch().to_str().unwrap(), "--format", "csv"], &input);
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.out, "x\n42\n".repeat(statements.len()));
    let errors = ran.err.lines().filter(|line| line.starts_with("error: "));
    assert_eq!(errors.count(), statements.len(), "{}", ran.err);
}

#[test]
fn nothing_is_left_behind() {
    let folder = folder();
    let target = folder.path().join("out.parquet");
    let copy = format!(
        "copy (select l_orderkey / (l_orderkey - 33) as x from lineitem) to '{}'",
        target.display()
    );
    assert!(error(&copy).contains("division by zero"));
    assert_eq!(names(folder.path()), [""; 0]);
    assert!(!Path::new(&target).exists());
}
