//! Each sub-operator has an example in its documentation, and the reference has all of them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use tessera_testing::{run_text, standard_registry};

/// Sub-operators of which an example needs more than a plan: files, or tables that a session keeps.
/// `docs/guide/files.md` has statements for them.
const NOT_ALONE: [&str; 15] = [
    "arrow_to_collection",
    "block_materialize",
    "block_scan",
    "content_scan",
    "csv_materialize",
    "csv_scan",
    "ipc_materialize",
    "ipc_scan",
    "json_materialize",
    "json_scan",
    "parquet_materialize",
    "parquet_scan",
    "xlsx_scan",
    // Workers that share no memory have them; each platform tests its own.
    "exchange",
    "executor",
];

/// The marks around the examples in the page.
const BEGIN: &str = "<!-- begin: made by the test examples_are_in_the_reference -->\n";
const END: &str = "<!-- end -->\n";

/// An example in the documentation of a sub-operator.
#[derive(Debug)]
struct Example {
    /// The name of the struct that it documents.
    owner: String,
    nodes: String,
    rows: Vec<String>,
}

#[test]
fn each_sub_operator_has_an_example() {
    let registry = standard_registry();
    let examples = examples();
    let mut lacking = Vec::new();
    for descriptor in registry.catalog().iter() {
        let name = descriptor.name();
        let is_shown = || examples.iter().any(|example| example.shows(name));
        if registry.implementation(name).is_ok() && !NOT_ALONE.contains(&name) && !is_shown() {
            lacking.push(name);
        }
    }
    assert_eq!(lacking, Vec::<&str>::new(), "a doc example with run_text is missing");
}

#[test]
fn examples_give_their_rows() {
    let mut wrong = String::new();
    for Example { owner, nodes, rows } in examples() {
        let found = run_text(&nodes);
        if found != rows {
            writeln!(wrong, "{owner}: {found:?}, not {rows:?}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Set `TESSERA_WRITE_REFERENCE` to write the page.
#[test]
fn examples_are_in_the_reference() {
    let page = root().join("docs/reference/sub-operators.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the page has a place for the examples");
    let (_, after) = rest.split_once(END).expect("the examples have an end");
    let mut shown = String::new();
    for Example { owner, nodes, rows } in examples() {
        write!(shown, "### {owner}\n\n```\n{nodes}\n```\n\ngives").unwrap();
        for row in rows {
            write!(shown, " `{row}`,").unwrap();
        }
        shown.pop();
        shown.push_str(".\n\n");
    }
    let expected = format!("{before}{BEGIN}\n{shown}{END}{after}");
    if std::env::var_os("TESSERA_WRITE_REFERENCE").is_some() {
        std::fs::write(&page, &expected).unwrap();
    }
    assert!(
        text == expected || std::env::var_os("TESSERA_WRITE_REFERENCE").is_some(),
        "docs/reference/sub-operators.md is stale; run this test with TESSERA_WRITE_REFERENCE=1"
    );
}

impl Example {
    fn shows(&self, name: &str) -> bool {
        self.nodes.contains(&format!(" = {name}("))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the examples of sub-operators, by the name of what they document.
fn examples() -> Vec<Example> {
    let mut examples = Vec::new();
    for room in ["operators", "formats"] {
        read_folder(&root().join("crates").join(room).join("src"), &mut examples);
    }
    assert!(examples.len() > 30, "{} examples", examples.len());
    examples.sort_by(|a, b| a.owner.cmp(&b.owner));
    examples
}

fn read_folder(folder: &Path, examples: &mut Vec<Example>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_folder(&path, examples);
        } else if path.extension().is_some_and(|end| end == "rs") {
            examples.extend(read_file(&std::fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Reads the doc examples of a file that call `run_text` with one text and compare its rows.
fn read_file(text: &str) -> Vec<Example> {
    let mut examples = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("/// let rows = run_text(\n") {
        let (call, after) = after.split_once("/// );\n").expect("the end of run_text");
        let (compared, after) = after.split_once("]);\n").expect("the end of assert_eq");
        let (_, rows) = compared.split_once("assert_eq!(rows, [").expect("assert_eq");
        let (_, documented) = after.split_once("pub struct ").expect("a struct");
        let owner = documented.split(';').next().unwrap_or_default();
        let lines = call.lines().map(|line| line.trim_start_matches("///").trim_end());
        let lines: Vec<&str> = lines.map(|line| line.get(6..).unwrap_or_default()).collect();
        let nodes = lines.join("\n");
        let nodes = nodes.trim_end_matches(',').trim_end_matches('"');
        let quoted = rows.split('"').skip(1).step_by(2);
        examples.push(Example {
            owner: owner.to_string(),
            nodes: nodes.trim_start_matches('"').to_string(),
            rows: quoted.map(str::to_string).collect(),
        });
        rest = after;
    }
    examples
}
