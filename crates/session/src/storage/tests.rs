//! Opening of files and streams.

use super::*;

#[test]
fn streams_are_refused_where_processes_cannot_share_them() {
    let refused =
        Storage::new(Vec::new(), StreamAccess::Refused("far".to_string()), Formats::default());
    for path in ["/dev/null", "/dev/stdin", "/dev/fd/0"] {
        let message = refused.open(path).unwrap_err().message().to_string();
        assert!(message.contains(path) && message.contains("platform far"), "{message}");
    }
    let storage = Storage::new(Vec::new(), StreamAccess::NotStandardInput, Formats::default());
    assert_eq!(storage.open("/dev/null").unwrap().len(), 0);
    let message = storage.open("/proc/self/fd/0").unwrap_err().message().to_string();
    assert!(message.contains("SQL statements are read from it"), "{message}");
}

#[test]
fn roots() {
    assert_eq!(root("/d=1/x.csv"), "/d=1/");
    assert_eq!(root("x.csv"), "");
    assert_eq!(root("/d/year=*/x.csv"), "/d/");
    let folder = std::env::temp_dir();
    assert!(root(folder.to_str().unwrap()).ends_with('/'));
}
