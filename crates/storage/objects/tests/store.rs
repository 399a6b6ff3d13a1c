//! Reading, listing and writing, with faults of every kind.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tessera_context::{FolderMode, RangeReader, Read, ReadBuffer};
use tessera_objects::{Edges, Objects};
use tessera_types::{Code, Result};

use crate::server::{Fault, Server, Tags};

fn bytes(len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn objects(server: &Server) -> Objects {
    let objects = Objects::new(server.settings());
    objects.begin(None);
    objects
}

fn read(reader: &dyn RangeReader, range: Range<u64>) -> Result<Vec<u8>> {
    loop {
        match reader.read_into(range.clone(), ReadBuffer::default())? {
            Read::Ready(bytes) => return Ok(bytes.to_vec()),
            Read::Blocked(token) => token.wait(Duration::from_secs(1)),
        }
    }
}

/// An object of `len` bytes, opened for reading.
fn opened(server: &Server, len: usize) -> (Objects, Arc<dyn RangeReader>, Vec<u8>) {
    let content = bytes(len);
    server.put("b/x.bin", content.clone());
    let objects = objects(server);
    let reader = objects.open("s3://b/x.bin").unwrap();
    (objects, reader, content)
}

#[test]
fn ranges_are_read_whole_and_in_parts() {
    let server = Server::start();
    let (_objects, reader, content) = opened(&server, 20 << 20);
    assert_eq!(reader.len(), 20 << 20);
    server.log();
    for range in
        [0..0, 5_000_000..5_000_001, 200_000..(19 << 20), 0..1_000, (20 << 20) - 8..20 << 20]
    {
        let expected = &content[range.start as usize..range.end as usize];
        assert!(read(&*reader, range.clone()).unwrap() == expected, "{range:?}");
    }
    let ranges: Vec<_> = server.log().iter().map(|r| r.range().unwrap().to_string()).collect();
    assert_eq!(ranges.len(), 6, "one byte, three parts of the long range, two edges: {ranges:?}");
    assert!(ranges.contains(&"bytes=0-65535".to_string()), "{ranges:?}");
    let error = reader.read_into(0..(20 << 20) + 1, ReadBuffer::default()).unwrap_err();
    assert!(error.message().contains("truncated or damaged"), "{error}");
    assert_eq!(reader.traffic().requests, 6);
}

#[test]
fn what_is_asked_for_early_is_under_way_together() {
    let server = Server::start();
    let (_objects, reader, content) = opened(&server, 8 << 20);
    // No request is answered before all ten have arrived.
    server.fail(|_| Fault::Together(10));
    let ranges: Vec<_> = (1..11).map(|i| i * 500_000..i * 500_000 + 1_000).collect();
    reader.prefetch(&ranges).unwrap();
    for range in &ranges {
        let expected = &content[range.start as usize..range.end as usize];
        assert!(read(&*reader, range.start..range.start + 10).unwrap() == expected[..10]);
        assert!(read(&*reader, range.start + 10..range.end).unwrap() == expected[10..]);
    }
    assert_eq!(reader.traffic().requests, 10);
}

#[test]
fn more_than_the_budget_is_read_in_turns() {
    let server = Server::start();
    let (objects, _, content) = opened(&server, 64 << 20);
    // Six readers that request 384 MiB before any takes a byte.
    let readers: Vec<_> = (0..6).map(|_| objects.open("s3://b/x.bin").unwrap()).collect();
    server.log();
    for reader in &readers {
        reader.prefetch(&[0..32 << 20, 32 << 20..64 << 20]).unwrap();
    }
    std::thread::sleep(Duration::from_millis(200));
    let requests = server.log().len();
    assert!(requests <= 32, "{requests} parts of 8 MiB, where 32 fit");
    for reader in readers.iter().rev() {
        for half in [32 << 20..64 << 20, 0..32 << 20] {
            assert!(
                read(&**reader, half.clone()).unwrap()
                    == content[half.start as usize..half.end as usize]
            );
        }
    }
}

#[test]
fn passing_faults_are_overcome() {
    for fault in [Fault::Status(503), Fault::Status(429), Fault::Reset, Fault::Cut, Fault::Short] {
        for tagged in [true, false] {
            let server = Server::start();
            if !tagged {
                server.set_tags(Tags::Missing);
            }
            let (_objects, reader, content) = opened(&server, 3 << 20);
            server.fail_reads(fault, 2);
            let got = read(&*reader, 100_000..3_000_000).unwrap();
            assert!(got == content[100_000..3_000_000], "{fault:?}");
            assert!(server.log().len() >= 4, "{fault:?}: a look, two that fail, one that does not");
        }
    }
}

#[test]
fn lasting_faults_are_one_clear_error() {
    for (fault, expected) in [
        (Fault::Status(503), "the server answers 503"),
        (Fault::Reset, "cannot read 's3://b/x.bin'"),
        (Fault::Cut, "cannot read 's3://b/x.bin'"),
        (Fault::Short, "the body ends early"),
        (Fault::Status(403), "permission denied; check AWS_ACCESS_KEY_ID"),
        (Fault::Status(404), "does not exist"),
    ] {
        let server = Server::start();
        let (_objects, reader, _) = opened(&server, 3 << 20);
        server.fail_reads(fault, usize::MAX);
        let error = read(&*reader, 100_000..3_000_000).unwrap_err();
        assert_eq!(error.code(), Code::Io, "{fault:?}");
        assert!(error.message().contains(expected), "{fault:?}: {error}");
        assert!(error.message().contains("s3://b/x.bin"), "{fault:?}: {error}");
    }
}

#[test]
fn an_object_that_is_replaced_is_told() {
    for tags in [Tags::Checked, Tags::Missing, Tags::Unchecked, Tags::Weak] {
        let server = Server::start();
        server.set_tags(tags);
        let (objects, reader, content) = opened(&server, 3 << 20);
        assert!(read(&*reader, 1_000_000..1_000_010).unwrap() == content[1_000_000..1_000_010]);
        // A tag or a time distinguishes contents of the same length.
        let other = bytes(4 << 20)[1 << 20..].to_vec();
        server.put("b/x.bin", other.clone());
        server.set_second(1);
        let error = read(&*reader, 100_000..200_000).unwrap_err();
        assert!(error.message().contains("changed while it was read"), "{error}");
        assert_eq!(
            objects.open("s3://b/x.bin").unwrap().len(),
            content.len() as u64,
            "as it was looked at"
        );
        objects.begin(None);
        assert_eq!(
            objects.stamp("s3://b/x.bin").unwrap().len,
            other.len() as u64,
            "looked at again"
        );
        let reader = objects.open("s3://b/x.bin").unwrap();
        assert!(read(&*reader, 100_000..200_000).unwrap() == other[100_000..200_000]);
    }
}

#[test]
fn waiting_ends_when_cancelled() {
    let server = Server::start();
    server.put("b/x.csv", bytes(100));
    const LATE: Duration = Duration::from_secs(60);
    server.fail(|_| Fault::Late(LATE));
    let objects = objects(&server);
    let interrupt = objects.interrupt();
    let started = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            interrupt.cancel();
        });
        let error = objects.expand("s3://b/x.csv", Edges::default()).unwrap_err();
        assert_eq!(error.code(), Code::Cancelled);
    });
    assert!(started.elapsed() < LATE, "it has waited for the answer");
    objects.begin(Some(Duration::from_millis(200)));
    let error = objects.expand("s3://b/x.csv", Edges::default()).unwrap_err();
    assert!(error.message().contains("deadline"), "{error}");
}

#[test]
fn what_is_given_up_is_not_requested() {
    let server = Server::start();
    let (objects, reader, _) = opened(&server, 64 << 20);
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = requests.clone();
    server.fail(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Fault::Late(Duration::from_millis(100))
    });
    // The second reader's ranges fit only after the first's are cancelled.
    let others: Vec<_> = (0..8).map(|_| objects.open("s3://b/x.bin").unwrap()).collect();
    reader.prefetch(&[0..64 << 20]).unwrap();
    others.iter().for_each(|other| other.prefetch(&[0..64 << 20]).unwrap());
    drop(reader);
    drop(others);
    let again = objects.open("s3://b/x.bin").unwrap();
    assert_eq!(read(&*again, 100_000..100_004).unwrap().len(), 4, "the budget was given back");
    assert!(requests.load(Ordering::Relaxed) <= 4 * 8 + 1, "{requests:?} of 73 parts");
}

#[test]
fn prefixes_patterns_and_single_objects() {
    let server = Server::start();
    for path in [
        "b/t/a.csv",
        "b/t/k=1/b.csv",
        "b/t/k=2/c.csv",
        "b/t/_SUCCESS",
        "b/t/.x.csv",
        "b/u.csv",
        "b/t/d.csv",
    ] {
        server.put(path, "x\n1\n");
    }
    let objects = objects(&server);
    let expand = |address: &str| objects.expand(address, Edges::default());
    let all = expand("s3://b/t").unwrap();
    let expected = ["s3://b/t/a.csv", "s3://b/t/d.csv", "s3://b/t/k=1/b.csv", "s3://b/t/k=2/c.csv"];
    assert_eq!((all.addresses, &*all.root), (expected.map(String::from).to_vec(), "s3://b/t/"));
    let some = expand("s3://b/t/k=*/*.csv").unwrap();
    assert_eq!((some.addresses.len(), &*some.root), (2, "s3://b/t/"));
    let one = expand("s3://b/u.csv").unwrap();
    assert_eq!((one.addresses, &*one.root), (vec!["s3://b/u.csv".to_string()], "s3://b/"));
    for (address, expected) in [
        ("s3://b/none", "the object or prefix does not exist"),
        ("s3://b/none.csv", "the object or prefix does not exist"),
        ("s3://b/z*.csv", "no object matches"),
    ] {
        let error = expand(address).unwrap_err();
        assert!(error.message().contains(expected) && error.message().contains(address), "{error}");
    }
    assert_eq!(*objects.entries("s3://b").unwrap(), ["t/".to_string(), "u.csv".to_string()]);
    assert_eq!(objects.entries("s3://b/t/").unwrap().len(), 6);
}

#[test]
fn a_look_brings_the_footer() {
    let server = Server::start();
    let content = bytes(200_000);
    server.put("b/x.parquet", content.clone());
    server.put("b/empty.parquet", "");
    let objects = objects(&server);
    objects.expand("s3://b/x.parquet", Edges { head: false, tail: true }).unwrap();
    let reader = objects.open("s3://b/x.parquet").unwrap();
    assert!(read(&*reader, 199_000..199_500).unwrap() == content[199_000..199_500]);
    assert!(read(&*reader, 199_992..200_000).unwrap() == content[199_992..]);
    assert_eq!(server.log().len(), 1);
    objects.expand("s3://b/empty.parquet", Edges { head: false, tail: true }).unwrap();
    assert!(objects.open("s3://b/empty.parquet").unwrap().is_empty());
}

#[test]
fn files_of_a_web_server() {
    let server = Server::start();
    server.put("data/a b.csv", bytes(1_000));
    let objects = objects(&server);
    let address = format!("{}/data/a%20b.csv", server.address());
    assert_eq!(*objects.expand(&address, Edges::default()).unwrap().addresses, [address.as_str()]);
    assert!(read(&*objects.open(&address).unwrap(), 10..20).unwrap() == bytes(1_000)[10..20]);
    for wrong in ["data/*.csv", "data/", "x.csv?y=1"] {
        let error =
            objects.expand(&format!("{}/{wrong}", server.address()), Edges::default()).unwrap_err();
        assert!(error.message().contains("no listing"), "{error}");
    }
    assert!(objects.create(&address).unwrap_err().message().contains("read-only"));
}

#[test]
fn objects_appear_when_committed() {
    for len in [0, 1_000, 16 << 20, (70 << 20) + 17] {
        let server = Server::start();
        let objects = objects(&server);
        let content = bytes(len);
        let mut output = objects.create("s3://b/out/x.bin").unwrap();
        output.write_all(&content).unwrap();
        assert!(server.paths().is_empty());
        output.commit().unwrap();
        assert!(server.object("b/out/x.bin").unwrap() == content, "{len}");
        assert_eq!(server.uploads().0, 0);
    }
}

#[test]
fn what_is_not_committed_leaves_nothing() {
    let server = Server::start();
    let objects = objects(&server);
    let mut output = objects.create("s3://b/x.bin").unwrap();
    output.write_all(&bytes(40 << 20)).unwrap();
    assert_eq!(server.uploads().1, 1, "an upload was begun");
    drop(output);
    objects.settle();
    assert_eq!((server.uploads().0, server.paths().len()), (0, 0));

    // A part, and then a completion, that is refused permanently.
    for method in ["PUT", "POST"] {
        server.fail(move |request| {
            match request.method == method && request.query.contains_key("uploadId") {
                true => Fault::Status(403),
                false => Fault::None,
            }
        });
        let mut output = objects.create("s3://b/x.bin").unwrap();
        let written = output.write_all(&bytes(40 << 20));
        let error = match written {
            Ok(()) => output.commit().unwrap_err().to_string(),
            Err(error) => {
                drop(output);
                error.to_string()
            }
        };
        assert!(error.contains("cannot write 's3://b/x.bin': permission denied"), "{error}");
        objects.settle();
        assert_eq!((server.uploads().0, server.paths().len()), (0, 0), "{method}");
    }
}

#[test]
fn passing_faults_of_writing_are_overcome() {
    let server = Server::start();
    let mut left = 3;
    server.fail(move |request| match request.method == "PUT" && left > 0 {
        true => {
            left -= 1;
            [Fault::Status(503), Fault::Reset, Fault::Status(500)][left]
        }
        false => Fault::None,
    });
    let objects = objects(&server);
    let mut output = objects.create("s3://b/x.bin").unwrap();
    output.write_all(&bytes(40 << 20)).unwrap();
    output.commit().unwrap();
    assert!(server.object("b/x.bin").unwrap() == bytes(40 << 20));
}

/// Writes objects below a prefix and drops it or makes them visible.
fn write_folder(objects: &Arc<Objects>, mode: FolderMode, files: &[(&str, &str)]) -> Result<()> {
    let is_data = Box::new(|path: &str| path.ends_with(".csv"));
    let mut folder = objects.create_folder("s3://b/out", mode, is_data)?;
    for (name, text) in files {
        let mut file = folder.create(name)?;
        file.write_all(text.as_bytes()).unwrap();
        file.commit()?;
    }
    folder.commit()
}

#[test]
fn objects_of_a_prefix_appear_together_or_not_at_all() {
    let server = Server::start();
    let objects = Arc::new(objects(&server));
    let files: Vec<(String, String)> =
        (0..40).map(|number| (format!("a={number}/x.csv"), format!("{number}\n"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
    let mut folder =
        objects.create_folder("s3://b/out/", FolderMode::New, Box::new(|_| true)).unwrap();
    for (name, text) in &files {
        let mut file = folder.create(name).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.commit().unwrap();
    }
    assert_eq!((server.uploads().0, server.paths().len()), (40, 0));
    drop(folder);
    objects.settle();
    assert_eq!((server.uploads().0, server.paths().len()), (0, 0), "dropped before the commit");

    // A completion that is refused takes the others back.
    let mut completions = 0;
    server.fail(move |request| {
        let completes = request.method == "POST" && request.query.contains_key("uploadId");
        completions += usize::from(completes);
        if completes && completions == 20 { Fault::Status(403) } else { Fault::None }
    });
    let refused = write_folder(&objects, FolderMode::New, &files).unwrap_err();
    let message = refused.message();
    assert!(message.contains("cannot write 's3://b/out/a="), "{message}");
    assert!(message.contains("permission denied"), "{message}");
    objects.settle();
    assert_eq!((server.uploads().0, server.paths().len()), (0, 0));
    server.fail(|_| Fault::None);
    write_folder(&objects, FolderMode::New, &files).unwrap();
    assert_eq!((server.uploads().0, server.paths().len()), (0, 40));
    assert_eq!(server.object("b/out/a=7/x.csv").unwrap(), b"7\n");
}

#[test]
fn modes_of_prefixes_with_objects() {
    let server = Server::start();
    let objects = Arc::new(objects(&server));
    for name in ["out/a=1/x.csv", "out/a=9/x.csv", "out/README", "outer/x.csv"] {
        server.put(&format!("b/{name}"), "old");
    }
    let run = |mode, name: &str| write_folder(&objects, mode, &[(name, "new")]);
    let refused = run(FolderMode::New, "a=2/x.csv").unwrap_err();
    assert!(refused.message().contains("'s3://b/out' is not empty"), "{refused}");
    let taken = run(FolderMode::Append, "a=1/x.csv").unwrap_err();
    assert!(taken.message().contains("its file a=1/x.csv exists"), "{taken}");
    objects.settle();
    assert_eq!(server.object("b/out/a=1/x.csv").unwrap(), b"old");
    run(FolderMode::Append, "a=1/y.csv").unwrap();
    run(FolderMode::Replace, "a=1/x.csv").unwrap();
    assert_eq!(server.object("b/out/a=1/x.csv").unwrap(), b"new");
    assert_eq!(server.paths().len(), 5);
    run(FolderMode::Overwrite, "a=2/x.csv").unwrap();
    assert_eq!(server.paths(), ["b/out/README", "b/out/a=2/x.csv", "b/outer/x.csv"]);
    assert_eq!(server.uploads().0, 0);
    let web = format!("{}/out", server.address());
    let refused = objects.create_folder(&web, FolderMode::New, Box::new(|_| true)).unwrap_err();
    assert!(refused.message().contains("read-only"), "{refused}");
}
