//! Snapshots of the plans of the benchmarks' queries on each platform, in `tests/plans`.
//!
//! A change of the optimizer or of a platform's pass shows there in a review.

use std::fmt::Write;
use std::path::Path;

use tessera_generate::{Options, Suite};

use crate::support::{compare_with_file, file, folder, run};

/// Set `TESSERA_WRITE_REFERENCE` to write the snapshots.
#[test]
fn plans_of_the_benchmarks_are_those_of_the_snapshots() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = folder();
    for (name, suite) in [("tpch", Suite::Tpch), ("ssb", Suite::Ssb)] {
        let data = folder.path().join(name);
        tessera_generate::generate(suite, 0.01, &data, &Options::default()).unwrap();
        let queries = queries(&root.join("queries").join(name));
        assert!(queries.len() > 12, "{queries:?}");
        for platform in ["local", "mpi", "serverless"] {
            let mut script = String::new();
            for (_, sql) in &queries {
                writeln!(script, "explain (platform {platform}) {sql};").unwrap();
            }
            let script = file(&folder, "explain.sql", &script);
            let data = data.to_str().unwrap();
            let arguments =
                [data, "--threads", "2", "--statistics-cache", "off", "-f", script.as_str()];
            let plans = run(&arguments).ok().replace(data, "DIR");
            compare(&root.join(format!("tests/plans/{name}.{platform}.txt")), &queries, &plans);
        }
    }
}

/// The queries of a folder by name, each without its semicolon.
fn queries(folder: &Path) -> Vec<(String, String)> {
    let mut queries: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_string();
            let sql = std::fs::read_to_string(&path).unwrap();
            (name, sql.trim_end().trim_end_matches(';').to_string())
        })
        .collect();
    queries.sort();
    queries
}

fn compare(path: &Path, queries: &[(String, String)], plans: &str) {
    let plans: Vec<&str> = plans.split_inclusive("\n}\n").collect();
    assert_eq!(plans.len(), queries.len(), "a plan for each query");
    let mut page = String::new();
    for ((name, _), plan) in queries.iter().zip(plans) {
        writeln!(page, "-- {name}\n{}\n", plan.trim()).unwrap();
    }
    compare_with_file(&page, path);
}
