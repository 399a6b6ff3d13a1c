use std::io::Read;
use std::os::unix::fs::symlink;

use super::*;

struct Fixture {
    store: Store,
    data: tempfile::TempDir,
    _scratch: Scratch,
}

impl Fixture {
    fn new() -> Fixture {
        let (scratch, data) = (Scratch::new().unwrap(), tempfile::tempdir().unwrap());
        let selector = Selector::new(|selection| Ok(fs::read(&selection.file).unwrap()));
        let store = Store::new(&scratch, data.path(), Some(selector)).unwrap();
        Fixture { store, data, _scratch: scratch }
    }

    /// Sends a request like `http` does: the store first chooses where the body goes.
    fn ask(&self, mut request: Request, body: &str) -> (u16, String) {
        let answer = match self.store.sink(&request) {
            Err(answer) => answer,
            Ok(sink) => {
                request.body = match sink {
                    Sink::Memory(_) => Body::Memory(body.into()),
                    Sink::File(spooled, mut file, _) => {
                        io::Write::write_all(&mut file, body.as_bytes()).unwrap();
                        Body::File(spooled)
                    }
                };
                self.store.answer(&request)
            }
        };
        let mut text = String::from_utf8(answer.body).unwrap();
        if let Some((file, len)) = answer.file {
            file.take(len).read_to_string(&mut text).unwrap();
        }
        (answer.status, text)
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.ask(request("GET", path, &[]), "")
    }

    fn list(&self, bucket: &str, query: &[(&str, &str)]) -> String {
        self.ask(request("GET", bucket, &[&[("list-type", "2")], query].concat()), "").1
    }
}

fn request(method: &str, path: &str, query: &[(&str, &str)]) -> Request {
    let query = query.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Request { method: method.to_string(), path: path.to_string(), query, ..Request::default() }
}

#[test]
fn objects_come_and_go() {
    let fixture = Fixture::new();
    for key in ["b/t/k=1/x&y.csv", "b/t/z.csv", "data/d.csv"] {
        assert_eq!(fixture.ask(request("PUT", key, &[]), "hello").0, 200);
    }
    assert_eq!(fs::read(fixture.data.path().join("d.csv")).unwrap(), b"hello");
    let again = |path: &str| {
        let mut again = request("PUT", path, &[]);
        again.headers.insert("if-none-match".to_string(), "*".to_string());
        fixture.ask(again, "other").0
    };
    assert_eq!((again("b/t/z.csv"), again("b/new")), (412, 200));
    assert_eq!(fixture.ask(request("DELETE", "b/new", &[]), "").0, 204);
    for (wanted, status, body) in
        [("1-2", 206, "el"), ("-2", 206, "lo"), ("3-", 206, "lo"), ("9-", 416, "")]
    {
        let mut range = request("GET", "b/t/z.csv", &[]);
        range.headers.insert("range".to_string(), format!("bytes={wanted}"));
        let got = fixture.ask(range, "");
        assert!(got.0 == status && (status == 416 || got.1 == body), "{wanted}: {got:?}");
    }
    assert_eq!(fixture.get("b/t/k=1/x&y.csv"), (200, "hello".to_string()));
    assert_eq!((fixture.get("b/t").0, fixture.get("b/none").0), (404, 404));
    let all = fixture.list("b", &[("prefix", "t/")]);
    assert!(
        all.contains("<Key>t/k=1/x&amp;y.csv</Key>") && all.contains("<Key>t/z.csv</Key>"),
        "{all}"
    );
    let folder = fixture.list("b/", &[("prefix", "t/"), ("delimiter", "/")]);
    assert!(folder.contains("<Prefix>t/k=1/</Prefix>") && !folder.contains("x&amp;y"), "{folder}");
    assert_eq!(fixture.list("b", &[("delimiter", "=é")]).matches("<Key>").count(), 2);
    let keys = "<Delete><Object><Key>t/k=1/x&amp;y.csv</Key></Object><Object><Key>t/z.csv</Key></Object></Delete>";
    assert_eq!(fixture.ask(request("POST", "b", &[("delete", "")]), keys).0, 200);
    assert!(!fixture.list("b", &[]).contains("Key"));
    assert_eq!(fixture.ask(request("DELETE", "data/d.csv", &[]), "").0, 204);
    assert_eq!(fs::read_dir(fixture.data.path()).unwrap().count(), 0);
}

#[test]
fn parts_become_an_object() {
    let fixture = Fixture::new();
    let begun = fixture.ask(request("POST", "b/k", &[("uploads", "")]), "").1;
    let id = begun.split_once("<UploadId>").unwrap().1.split_once('<').unwrap().0;
    let part = |path: &str, number: &str| {
        request("PUT", path, &[("uploadId", id), ("partNumber", number)])
    };
    for (number, body) in [("2", "world"), ("1", "gone"), ("1", "hello ")] {
        assert_eq!(fixture.ask(part("b/k", number), body).0, 200);
    }
    assert_eq!(fixture.ask(part("b/k", "0"), "x").0, 400);
    assert_eq!(fixture.ask(part("b/other", "3"), "x").0, 404);
    assert_eq!(fixture.ask(request("POST", "b/other", &[("uploadId", id)]), "").0, 404);
    assert_eq!(fixture.ask(request("POST", "b/k", &[("uploadId", id)]), "").0, 200);
    assert_eq!(fixture.get("b/k").1, "hello world");
    assert_eq!(fixture.ask(request("POST", "b/k", &[("uploadId", id)]), "").0, 404);
    assert_eq!(fs::read_dir(fixture.store.scratch.join("parts")).unwrap().count(), 0);
}

/// Sends every kind of request with keys that lead out of the bucket.
#[test]
fn nothing_outside_a_bucket_is_reached() {
    let fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    let inside = fixture.data.path().join("folder");
    fs::create_dir(&inside).unwrap();
    symlink(outside.path(), fixture.data.path().join("link")).unwrap();
    symlink(outside.path().join("secret"), inside.join("file")).unwrap();
    fixture.ask(request("PUT", "b/object", &[]), "object");
    let name = outside.path().file_name().unwrap().to_str().unwrap();
    let absolute = outside.path().to_str().unwrap();
    let keys = [
        format!("../{name}/secret"),
        format!("folder/../../{name}/secret"),
        format!("./../{name}/secret"),
        format!("{absolute}/secret"),
        format!("folder//../../{name}/secret"),
        "link/secret".to_string(),
        "folder/file".to_string(),
        "folder/file\0".to_string(),
        "a//b".to_string(),
        "a/".to_string(),
        String::new(),
    ];
    let select = "<SelectRequest><Expression>x</Expression><InputSerialization><CSV/></InputSerialization>\
                  <OutputSerialization><CSV/></OutputSerialization></SelectRequest>";
    let kinds: [(&str, &[(&str, &str)], &str); 7] = [
        ("GET", &[], ""),
        ("HEAD", &[], ""),
        ("PUT", &[], "written"),
        ("DELETE", &[], ""),
        ("POST", &[("uploads", "")], ""),
        ("PUT", &[("uploadId", "x"), ("partNumber", "1")], "written"),
        ("POST", &[("select", "")], select),
    ];
    for key in &keys {
        for (method, query, body) in &kinds {
            let (status, text) = fixture.ask(request(method, &format!("data/{key}"), query), body);
            assert!(
                status == 400 && !text.contains("secret"),
                "{method} {query:?} '{key}': {status} {text}"
            );
        }
        let several = format!("<Delete><Object><Key>{key}</Key></Object></Delete>");
        let (_, text) = fixture.ask(request("POST", "data", &[("delete", "")]), &several);
        assert!(text.contains("InvalidURI"), "'{key}': {text}");
        for prefix in
            [key.clone(), format!("{}/", key.rsplit_once('/').map_or("", |(folder, _)| folder))]
        {
            let text = fixture.list("data", &[("prefix", &prefix)]);
            assert!(!text.contains("<Contents>"), "'{prefix}': {text}");
        }
    }
    assert!(!fixture.list("data", &[]).contains("<Contents>"), "links are no objects");
    for bucket in ["..", ".", "", "../buckets", "\0", ".hidden", "b/../b"] {
        assert_eq!(
            fixture.ask(request("GET", bucket, &[("list-type", "2")]), "").0,
            404,
            "'{bucket}'"
        );
        let status = fixture.get(&format!("{bucket}/object")).0;
        assert_eq!(status, 400, "'{bucket}'");
    }
    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"secret");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    assert!(fixture.get("b/object").1 == "object");
}

/// A pipe or device in the bucket's directory is not an object: reading one would block.
#[test]
fn what_is_no_file_is_no_object() {
    let fixture = Fixture::new();
    let pipe = std::ffi::CString::new(fixture.data.path().join("pipe").to_str().unwrap()).unwrap();
    // SAFETY: the path is a string that ends with a zero byte and outlives the call.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    assert_eq!(fixture.get("data/pipe").0, 404);
    assert!(!fixture.list("data", &[]).contains("pipe"));
}
