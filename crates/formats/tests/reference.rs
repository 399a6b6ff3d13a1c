//! The page `docs/reference/formats.md` is made of what formats say of themselves.

use std::fmt::Write;

use tessera_operator::format::{FormatEntry, FormatOption, PATH_OPTIONS};

const HEAD: &str = "# File formats

What each file format says of itself; the test `the_page_of_formats_is_current` of
`crates/formats` makes this page. [Files](../guide/files.md) has examples, [the
dialect](../dialect.md#text-files) what is found from a sample.

`read_NAME('path')` takes a path, a pattern, a folder or a list of them, and options by name. The
rows of a list are in its order.
";

fn page() -> String {
    let mut page = HEAD.to_string();
    options(&mut page, "Options of reading that every format has", &PATH_OPTIONS);
    for format in tessera_testing::standard_registry().formats().iter() {
        let entry = format.entry();
        write!(page, "\n## {}\n\n{}\n\n", entry.name, entry.summary).unwrap();
        page.push_str(&facts(entry));
        options(&mut page, "Options of reading", entry.read_options);
        options(&mut page, "Options of writing", entry.write_options);
        if !format.fact_functions().is_empty() {
            let functions = format.fact_functions().iter().map(|name| format!("`{name}`"));
            let functions = functions.collect::<Vec<_>>().join(", ");
            writeln!(page, "\nFunctions about files: {functions}.").unwrap();
        }
    }
    page
}

fn facts(entry: &FormatEntry) -> String {
    let listed = |names: Vec<String>| match names.is_empty() {
        true => "none".to_string(),
        false => names.join(", "),
    };
    let extensions = entry.extensions.iter().chain(entry.aliases);
    let mut facts = String::from("| | |\n|---|---|\n");
    for (fact, names) in [
        ("file names end in", extensions.map(|name| format!("`.{name}`")).collect()),
        ("functions", entry.functions.iter().map(|name| format!("`{name}`")).collect()),
        (
            "sub-operators",
            [Some(entry.scan), entry.materialize]
                .iter()
                .flatten()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>(),
        ),
    ] {
        writeln!(facts, "| {fact} | {} |", listed(names)).unwrap();
    }
    facts
}

fn options(page: &mut String, title: &str, options: &[FormatOption]) {
    if options.is_empty() {
        return;
    }
    write!(page, "\n{title}:\n\n| option | also | meaning |\n|---|---|---|\n").unwrap();
    for option in options {
        let aliases: Vec<String> = option.aliases.iter().map(|name| format!("`{name}`")).collect();
        let default = match option.default {
            Some("\t") => "; a tab if absent".to_string(),
            Some(default) => format!("; `{default}` if absent"),
            None => String::new(),
        };
        let help = format!("{}{default}", option.help);
        writeln!(page, "| `{}` | {} | {help} |", option.name, aliases.join(", ")).unwrap();
    }
}

/// Writes the page if `TESSERA_WRITE_REFERENCE` is set.
#[test]
fn the_page_of_formats_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/formats.md");
    if std::env::var_os("TESSERA_WRITE_REFERENCE").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap_or_default() == page(),
        "set TESSERA_WRITE_REFERENCE=1 to write docs/reference/formats.md anew"
    );
}
