//! `COPY (query) TO 'file'`.

use crate::support::{csv, folder, names, run, tpch};

const QUERY: &str = "select n_nationkey, n_name, cast(n_regionkey as decimal(10,2)) as amount, \
                     case when n_nationkey > 20 then null else n_comment end as note from nation";

#[test]
fn every_format_reads_back_the_same() {
    let folder = folder();
    let expected = csv(tpch(), &format!("{QUERY} order by n_nationkey")).ok();
    for extension in ["parquet", "csv", "json", "arrow"] {
        let path = format!("{}/out.{extension}", folder.path().display());
        csv(tpch(), &format!("copy ({QUERY}) to '{path}'")).ok();
        let again = csv(
            tpch(),
            &format!(
                "select n_nationkey, n_name, cast(amount as decimal(10,2)) as amount, note from '{path}' order by n_nationkey"
            ),
        );
        assert_eq!(again.ok(), expected, "{extension}");
    }
    assert_eq!(names(folder.path()), ["out.arrow", "out.csv", "out.json", "out.parquet"]);
}

#[test]
fn says_how_many_rows() {
    let folder = folder();
    let path = format!("{}/x.parquet", folder.path().display());
    let ran = run(&[tpch().to_str().unwrap(), "-c", &format!("copy nation to '{path}'")]);
    assert_eq!(ran.ok(), "COPY 25\n");
}

#[test]
fn a_format_that_is_unknown() {
    let message = csv(tpch(), "copy nation to '/tmp/x.xlsx'").error();
    assert!(message.contains("x.xlsx"), "{message}");
}
