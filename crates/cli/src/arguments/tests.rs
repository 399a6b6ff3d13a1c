use super::*;

#[test]
fn the_definition_is_sound() {
    definition().debug_assert();
}

#[test]
fn inputs_keep_their_order() {
    let line = ["tessera", "db", "-c", "a", "-f", "b", "-c", "c", "-f", "-", "--threads", "2"];
    let (Command::Query(query), place) = parse_from(line).unwrap() else { panic!("not a query") };
    assert_eq!(place.launcher.name(), "local");
    let expected =
        [Input::Text("a".into()), Input::File("b".into()), Input::Text("c".into()), Input::Stdin];
    assert_eq!(query.inputs, expected);
    assert_eq!((query.config.threads, query.config.database), (2, Some("db".into())));
}

#[test]
fn samples_are_kept_where_the_user_keeps_caches() {
    let directory = |cache: Option<&str>, home: Option<&str>| {
        cache_directory(cache.map(OsString::from), home.map(OsString::from))
    };
    assert_eq!(directory(Some("/c"), Some("/h")), Some("/c/tessera".into()));
    assert_eq!(directory(Some("c"), Some("/h")), Some("/h/.cache/tessera".into()));
    assert_eq!(directory(None, None), None);
    let (Command::Query(query), _) = parse_from(["tessera", "--statistics-cache", "off"]).unwrap()
    else {
        panic!("not a query")
    };
    assert_eq!(query.config.statistics_cache, None);
}

#[test]
fn nonsense_is_rejected() {
    for line in [
        vec!["tessera", "--threads", "0"],
        vec!["tessera", "--memory", "much"],
        vec!["tessera", "--chunk-rows", "65537"],
        vec!["tessera", "--format", "xml"],
        vec!["tessera", "generate", "tpch"],
        vec!["tessera", "--worker-memory", "64MiB"],
        vec!["tessera", "--smart-storage", "perhaps"],
    ] {
        assert_eq!(parse_from(line.clone()).unwrap_err().exit_code(), 2, "{line:?}");
    }
    assert!(settings().count() > 0);
    for setting in settings() {
        let line = ["tessera", &format!("--{}", setting.name.replace('_', "-")), "sideways"];
        assert_eq!(parse_from(line).unwrap_err().exit_code(), 2, "{line:?}");
    }
}
