//! The reference page of settings is up to date.

use std::fmt::Write;
use std::path::Path;

use crate::support::run;

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
    let (written, after) = rest.split_once(END).expect("the table has an end");
    let mut table = String::from("| setting | default | meaning |\n|---|---|---|\n");
    let shown = run(&["-c", "show all", "--format", "csv"]);
    let mut lines = csv(&shown.out);
    lines.remove(0);
    assert!(lines.len() > 15, "{lines:?}");
    for line in lines {
        let [name, value, meaning] = &line[..] else { panic!("{line:?}") };
        let default = match OF_THE_MACHINE.contains(&name.as_str()) {
            true => "of the machine".to_string(),
            false => format!("`{value}`"),
        };
        writeln!(table, "| `{name}` | {default} | {meaning} |").unwrap();
    }
    if std::env::var_os("TESSERA_WRITE_REFERENCE").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(written, table, "set TESSERA_WRITE_REFERENCE=1 to write {}", path.display());
    }
}

/// Parses CSV lines with quoted fields.
fn csv(text: &str) -> Vec<Vec<String>> {
    let field = |line: &str| {
        let (mut fields, mut quoted) = (vec![String::new()], false);
        for character in line.chars() {
            match character {
                '"' => quoted = !quoted,
                ',' if !quoted => fields.push(String::new()),
                other => fields.last_mut().unwrap().push(other),
            }
        }
        fields
    };
    text.lines().map(field).collect()
}
