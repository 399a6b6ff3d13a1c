//! Files and folders as tables.

use crate::support::{csv, file, folder, run, tpch};

#[test]
fn files_of_the_database() {
    assert_eq!(csv(tpch(), "select count(*) as n from lineitem").ok(), "n\n6005\n");
    assert_eq!(csv(tpch(), "select count(*) as n from \"region\"").ok(), "n\n5\n");
    let tables = csv(tpch(), "show tables").ok();
    assert!(tables.contains("lineitem,file\n") && tables.lines().count() == 9, "{tables}");
    let columns = csv(tpch(), "describe region").ok();
    assert!(columns.contains("r_name,string,"), "{columns}");
}

#[test]
fn paths_and_patterns() {
    let folder = folder();
    let first = file(&folder, "part-1.csv", "a,b\n1,x\n2,y\n");
    file(&folder, "part-2.csv", "a,b\n3,z\n");
    let database = folder.path();
    assert_eq!(csv(database, &format!("select a from '{first}'")).ok(), "a\n1\n2\n");
    let pattern = format!("{}/part-*.csv", database.display());
    assert_eq!(
        csv(database, &format!("select a, b from '{pattern}' order by a desc")).ok(),
        "a,b\n3,z\n2,y\n1,x\n"
    );
}

#[test]
fn folders_and_partitions() {
    let folder = folder();
    file(&folder, "events/year=2023/a.csv", "x\n1\n");
    file(&folder, "events/year=2024/b.csv", "x\n2\n3\n");
    file(&folder, "plain/1.json", "{\"a\": 1, \"b\": \"one\"}\n");
    file(&folder, "plain/2.json", "{\"a\": 2, \"b\": null}\n");
    let sql = "select year, sum(x) as s from events group by year order by year";
    assert_eq!(csv(folder.path(), sql).ok(), "year,s\n2023,1\n2024,5\n");
    assert_eq!(
        csv(folder.path(), "select count(*) as n from events where year = 2024").ok(),
        "n\n2\n"
    );
    assert_eq!(csv(folder.path(), "select a, b from plain order by a").ok(), "a,b\n1,one\n2,\n");
}

#[test]
fn files_of_a_folder_may_differ_where_one_type_holds_both() {
    let folder = folder();
    let copy = |sql: &str, name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        run(&["-c", &format!("copy ({sql}) to '{}'", path.display())]).ok();
    };
    copy("select cast(1 as integer) as a, cast(1.5 as decimal(4,1)) as d", "t/1.parquet");
    copy("select 3000000000 as a, cast(1.25 as decimal(9,2)) as d, 'x' as b", "t/2.parquet");
    let sql = "select a, d, b from t where a < 5000000000 and d > 1.2 order by a";
    assert_eq!(csv(folder.path(), sql).ok(), "a,d,b\n1,1.50,\n3000000000,1.25,x\n");
    assert_eq!(csv(folder.path(), "select a from t where d = 1.5").ok(), "a\n1\n");
    copy("select 'text' as a", "t/3.parquet");
    let error = csv(folder.path(), sql).error();
    assert!(error.contains("column a is int64 in") && error.contains("3.parquet"), "{error}");
}

#[test]
fn a_folder_above_is_no_partition() {
    let folder = folder();
    file(&folder, "run=3/t.csv", "x\n1\n");
    assert_eq!(csv(&folder.path().join("run=3"), "select * from t").ok(), "x\n1\n");
}

#[test]
fn external_tables_and_views() {
    let folder = folder();
    let path = file(&folder, "data.txt.csv", "1;one\n2;two\n");
    let sql = format!(
        "create external table t (id bigint, name varchar) stored as csv options ('delimiter' ';', 'header' 'false') \
         location '{path}'; create view v as select id from t where id > 1; select * from v; drop view v; \
         drop table t; select * from t"
    );
    let ran = run(&["--format", "csv", "-c", &sql]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), "id\n2\n"), "{}", ran.err);
    assert!(ran.err.contains(" t"), "{}", ran.err);
}

#[test]
fn create_table_as_is_refused_by_name() {
    assert!(csv(tpch(), "create table t as select 1").error().contains("CREATE TEMP TABLE"));
}

#[test]
fn a_file_that_changed_is_read_again() {
    let folder = folder();
    let path = file(&folder, "t.csv", "x\n1\n");
    let sql = format!(
        "select count(*) as n from t; copy (select 1 as x union all select 2) to '{path}'; select count(*) as n from t"
    );
    assert_eq!(csv(folder.path(), &sql).ok(), "n\n1\nn\n2\n");
}

#[test]
fn settings() {
    let sql = "set threads = 1; set chunk_rows = 7; show chunk_rows; reset chunk_rows; show chunk_rows; \
               select count(*) as n from lineitem";
    assert_eq!(csv(tpch(), sql).ok(), "chunk_rows\n7\nchunk_rows\n8192\nn\n6005\n");
    assert!(csv(tpch(), "set color = 'red'").error().contains("color"));
    assert!(csv(tpch(), "set chunk_rows = 0").error().contains("chunk_rows"));
    assert!(
        csv(tpch(), "set tier = vectorized; set device = 'virtual-gpu'")
            .error()
            .contains("--tier compiled")
    );
}
