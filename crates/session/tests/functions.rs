//! The reference table of functions, which `tests/functions/audit` writes, is complete.

use std::collections::BTreeSet;

use tessera_functions::Library;

const TABLE: &str = include_str!("../../../docs/reference/functions.md");

#[test]
fn the_table_names_every_function() {
    let names = TABLE.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let named: BTreeSet<&str> = names.map(|(name, _)| name).collect();
    let offered = Library::new().offered();
    let missing: Vec<&String> =
        offered.iter().filter(|name| !named.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "tests/functions/cases.txt lacks {missing:?}");
}
