//! The plans in `plans/` and in the documentation parse and round-trip.

use std::path::Path;

use tessera_plan::text;

#[test]
fn plans_by_hand_round_trip() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut seen = 0;
    for entry in std::fs::read_dir(root.join("plans")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "plan") {
            let written = std::fs::read_to_string(&path).unwrap();
            let plan =
                text::parse(&written).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(text::parse(&text::print(&plan)).unwrap(), plan);
            seen += 1;
        }
    }
    assert!(seen >= 6, "{seen}");
    let page = std::fs::read_to_string(root.join("docs/reference/plan-language.md")).unwrap();
    let example = page.split("```").nth(1).unwrap();
    text::parse(example).unwrap_or_else(|error| panic!("docs/reference/plan-language.md: {error}"));
}
