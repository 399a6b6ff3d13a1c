//! Tests what another user of this machine can reach: ports without the secrets, directories
//! without permission. docs/design/threat-model.md names these tests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;

use tessera_serverless_local::{Local, Options, TOKEN};

use crate::client::{ask, host, now, setting, signed};

const INVOKE: &str = "/2015-03-31/functions/worker/invocations";

fn services(store: bool, folder: &tempfile::TempDir) -> Local {
    let arguments = ["functions::worker_process", "--exact"].map(str::to_string).into();
    Local::start(Options {
        store,
        arguments,
        data: folder.path().join("data"),
        ..Options::default()
    })
    .unwrap()
}

/// With a remote store the services have no keys of their own, and workers would run with the
/// user's credentials.
#[test]
fn workers_run_for_nobody_without_the_token() {
    let folder = tempfile::tempdir().unwrap();
    for store in [true, false] {
        let local = services(store, &folder);
        let (host, token) = (host(&local, "AWS_ENDPOINT_URL_LAMBDA"), setting(&local, TOKEN));
        assert!(token.len() == 64 && !token.contains(' '));
        let key = local.settings().iter().find(|(name, _)| name == "AWS_ACCESS_KEY_ID");
        let key = key.map_or("", |(_, key)| key);
        let strangers = [
            String::new(),
            "Authorization: \r\n".to_string(),
            "Authorization: Bearer \r\n".to_string(),
            format!("Authorization: Bearer {}\r\n", &token[..63]),
            format!("Authorization: Bearer {token}0\r\n"),
            format!("Authorization: Basic {token}\r\n"),
            format!("Authorization: AWS4-HMAC-SHA256 Credential={key}/x\r\n"),
        ];
        let paths = [
            ("POST", INVOKE),
            ("GET", "/worker/1/2018-06-01/runtime/invocation/next"),
            ("POST", "/worker/1/2018-06-01/runtime/invocation/00000001/response"),
            ("POST", "/worker/1/2018-06-01/runtime/invocation/00000001/error"),
            ("GET", "/"),
        ];
        for shown in &strangers {
            for (method, path) in paths {
                assert_eq!(
                    ask(&host, method, path, shown, "hello").0,
                    403,
                    "{method} {path} {shown}"
                );
            }
        }
        assert_eq!(local.billed(), (0, 0));
        let (status, _, body) =
            ask(&host, "POST", INVOKE, &format!("Authorization: Bearer {token}\r\n"), "hello");
        assert!(status == 200 && body.ends_with("hello"), "{body}");
    }
}

#[test]
fn two_starts_have_other_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (services(true, &folder), services(true, &folder));
    for name in [TOKEN, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
        assert_ne!(setting(&one, name), setting(&other, name), "{name}");
    }
    let shown = format!("{one:?}");
    assert!(
        !shown.contains(&setting(&one, TOKEN))
            && !shown.contains(&setting(&one, "AWS_SECRET_ACCESS_KEY"))
    );
}

#[test]
fn the_store_answers_signatures_only() {
    let folder = tempfile::tempdir().unwrap();
    let local = services(true, &folder);
    let host = host(&local, "AWS_ENDPOINT_URL");
    let (key, secret) =
        (setting(&local, "AWS_ACCESS_KEY_ID"), setting(&local, "AWS_SECRET_ACCESS_KEY"));
    let keys = (key.as_str(), secret.as_str());
    let time = now();
    let put = ("PUT", "/b/a%20b", "");
    let at = (host.as_str(), time.as_str());
    assert_eq!(ask(&host, "PUT", "/b/a%20b", &signed(keys, at, put, None), "hello").0, 200);
    assert_eq!(
        ask(&host, "PUT", "/b/a%20b", &signed(keys, at, put, Some("hello")), "hello").0,
        200
    );
    let list = ("GET", "/b", "list-type=2&prefix=");
    let listed = ask(&host, "GET", "/b?prefix=&list-type=2", &signed(keys, at, list, None), "");
    assert!(listed.0 == 200 && listed.2.contains("<Key>a b</Key>"), "{listed:?}");
    let good = signed(keys, at, put, None);
    let altered = signed(keys, at, put, Some("hello"));
    let old = signed(keys, (&host, "20241121T235959Z"), put, None);
    for (shown, path, why) in [
        ("", "/b/a%20b", "unsigned"),
        (
            &format!("Authorization: AWS4-HMAC-SHA256 Credential={key}/x\r\n"),
            "/b/a%20b",
            "a key alone",
        ),
        (&signed((&key, "none"), at, put, None), "/b/a%20b", "another secret"),
        (&signed(("LOCAL0", &secret), at, put, None), "/b/a%20b", "another key"),
        (&good, "/b/other", "another object"),
        (&good, "/b/a%20b?uploads", "another kind of request"),
        (&format!("{good}X-Amz-Copy-Source: /b/x\r\n"), "/b/a%20b", "a header that is not signed"),
        (&old, "/b/a%20b", "an old request"),
    ] {
        assert_eq!(ask(&host, "PUT", path, shown, "other").0, 403, "{why}");
    }
    assert_eq!(ask(&host, "DELETE", "/b/a%20b", &good, "").0, 403, "another method");
    assert_eq!(ask(&host, "PUT", "/b/a%20b", &altered, "other").0, 400, "another body");
    let get = signed(keys, at, ("GET", "/b/a%20b", ""), None);
    assert_eq!(ask(&host, "GET", "/b/a%20b", &get, "").2, "hello", "nothing was written");
}

/// Paths as sent over the wire: encoded once, twice, with duplicate slashes that other programs
/// merge.
#[test]
fn spelled_otherwise_nothing_outside_a_bucket_is_reached() {
    let folder = tempfile::tempdir().unwrap();
    let local = services(true, &folder);
    std::fs::write(folder.path().join("secret"), "secret").unwrap();
    let host = host(&local, "AWS_ENDPOINT_URL");
    let (key, secret) =
        (setting(&local, "AWS_ACCESS_KEY_ID"), setting(&local, "AWS_SECRET_ACCESS_KEY"));
    let time = now();
    let sign = |method: &str, path: &str, query: &str| {
        signed((&key, &secret), (&host, &time), (method, path, query), None)
    };
    let paths = [
        "/data/../secret",
        "/data/%2e%2e/secret",
        "/data/%2E%2E%2Fsecret",
        "/data%2f..%2fsecret",
        "/data/.%2e/secret",
        "/data/%252e%252e/secret",
        "/data//../secret",
        "//data/../secret",
        "/../data/secret",
        "/data/..%00/secret",
        "/data/%c0%ae%c0%ae/secret",
    ];
    for path in paths {
        for method in ["GET", "HEAD", "PUT", "DELETE"] {
            let (status, _, body) = ask(&host, method, path, &sign(method, path, ""), "gone");
            // A path encoded twice is the name of a folder, which may exist.
            let own = path.contains("%25") && matches!(status, 200 | 204 | 404);
            assert!(
                (own || status == 400 || status == 0) && body != "secret",
                "{method} {path}: {status}"
            );
        }
    }
    for prefix in ["..%2F", "%2Fetc%2F", "..%2F..%2F", "x%2F..%2F..%2F", "%2F", ".%2F..%2F"] {
        let query = format!("list-type=2&prefix={prefix}");
        let (status, _, body) =
            ask(&host, "GET", &format!("/data?{query}"), &sign("GET", "/data", &query), "");
        assert!(status == 200 && !body.contains("<Contents>"), "{prefix}: {body}");
    }
    assert_eq!(std::fs::read(folder.path().join("secret")).unwrap(), b"secret");
}

/// The declared length of a request is trusted neither in memory nor on disk.
#[test]
fn long_bodies_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let local = services(true, &folder);
    let (key, secret) =
        (setting(&local, "AWS_ACCESS_KEY_ID"), setting(&local, "AWS_SECRET_ACCESS_KEY"));
    let (store, functions) =
        (host(&local, "AWS_ENDPOINT_URL"), host(&local, "AWS_ENDPOINT_URL_LAMBDA"));
    let put = signed((&key, &secret), (&store, &now()), ("PUT", "/b/k", ""), None);
    let token = format!("Authorization: Bearer {}\r\n", setting(&local, TOKEN));
    for (host, method, path, headers, len) in [
        (&store, "PUT", "/b/k", &put, (5u64 << 30) + 1),
        (&functions, "POST", INVOKE, &token, (6 << 20) + 1),
        (&functions, "POST", "/worker/1/2018-06-01/runtime/invocation/1/response", &token, 5 << 30),
    ] {
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\n{headers}Content-Length: {len}\r\n\r\n")
            .unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 413", "{path}");
    }
}

#[test]
fn other_hosts_cannot_connect() {
    let folder = tempfile::tempdir().unwrap();
    let local = services(true, &folder);
    for name in ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_LAMBDA"] {
        let address: SocketAddr = host(&local, name).parse().unwrap();
        assert!(address.ip().is_loopback(), "{address}");
    }
}

#[test]
fn directories_are_the_users_own() {
    let folder = tempfile::tempdir().unwrap();
    let local = services(true, &folder);
    let mut seen = 0;
    for entry in std::fs::read_dir(std::env::temp_dir()).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("tessera-serverless-")
            && entry.path().join("buckets").exists()
        {
            let meta = entry.metadata().unwrap();
            assert_eq!(meta.permissions().mode() & 0o777, 0o700, "{:?}", entry.path());
            seen += 1;
        }
    }
    assert!(seen > 0);
    let data = std::fs::metadata(folder.path().join("data")).unwrap();
    assert_eq!(data.permissions().mode() & 0o777, 0o700);
    drop(local);
}
