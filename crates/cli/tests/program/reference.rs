//! The reference pages of settings and exit codes are up to date.

use std::fmt::Write;
use std::path::Path;

use crate::support::{compare_with_file, run};

/// The marks around the table in the page.
const BEGIN: &str = "<!-- begin: made by the test settings_page_is_not_stale -->\n";
const END: &str = "<!-- end -->\n";

/// Settings whose default depends on the machine.
const OF_THE_MACHINE: [&str; 3] = ["memory", "temp_directory", "threads"];

/// Set `TESSERA_WRITE_REFERENCE` to write the page.
#[test]
fn settings_page_is_not_stale() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/settings.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the table");
    let (_, after) = rest.split_once(END).expect("the table has an end");
    let mut table = String::from("| setting | default | meaning |\n|---|---|---|\n");
    let shown = run(&["-c", "show all", "--format", "json"]).ok();
    assert!(shown.lines().count() > 15, "{shown}");
    for line in shown.lines() {
        let setting: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| setting[key].as_str().unwrap().to_string();
        let default = match OF_THE_MACHINE.contains(&text("name").as_str()) {
            true => "of the machine".to_string(),
            false => format!("`{}`", text("value")),
        };
        writeln!(table, "| `{}` | {default} | {} |", text("name"), text("meaning")).unwrap();
    }
    compare_with_file(&format!("{before}{BEGIN}{table}{END}{after}"), &path);
}

#[test]
fn exit_codes_are_in_the_page_of_errors() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(root.join("src/lib.rs")).unwrap();
    let page = std::fs::read_to_string(root.join("../../docs/reference/errors.md")).unwrap();
    let (_, rest) = page.split_once("## Exit codes").expect("a section of exit codes");
    let (section, _) = rest.split_once("\n<!-- begin").expect("the section has an end");
    let listed = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
    let listed: Vec<&str> = listed.filter(|code| code.parse::<u8>().is_ok()).collect();
    let constants = source.lines().filter_map(|line| line.strip_prefix("const EXIT_"));
    let codes = constants.map(|line| line.rsplit(' ').next().unwrap().trim_end_matches(';'));
    assert_eq!(listed, std::iter::once("0").chain(codes).collect::<Vec<_>>());
}
