//! Google Cloud Storage: the tests of `store.rs` with `gs://` addresses.

use std::io::Write;
use std::time::Duration;

use tessera_context::{Read, ReadBuffer};
use tessera_objects::{Edges, Objects};

use crate::server::{Fault, Server};

fn objects(server: &Server) -> Objects {
    let objects = Objects::new(server.settings());
    objects.begin(None);
    objects
}

#[test]
fn listings_of_several_pages() {
    let server = Server::start();
    for number in 0..10 {
        server.put(&format!("b/t/k={}/{number}.csv", number % 2), "x\n1\n");
    }
    let objects = objects(&server);
    let all = objects.expand("gs://b/t", Edges::default()).unwrap();
    assert_eq!((all.addresses.len(), &*all.root), (10, "gs://b/t/"));
    assert_eq!(all.addresses[9], "gs://b/t/k=1/9.csv");
    assert_eq!(objects.expand("gs://b/t/k=1/*.csv", Edges::default()).unwrap().addresses.len(), 5);
    assert_eq!(*objects.entries("gs://b/t").unwrap(), ["k=0/".to_string(), "k=1/".to_string()]);
    assert!(server.log().len() >= 6, "three entries a page");
}

#[test]
fn reading_overcomes_faults_and_is_of_one_version() {
    let server = Server::start();
    server.put("b/x.bin", vec![7; 1 << 20]);
    server.fail_reads(Fault::Status(503), 2);
    let objects = objects(&server);
    let reader = objects.open("gs://b/x.bin").unwrap();
    let read = |range: std::ops::Range<u64>| loop {
        match reader.read_into(range.clone(), ReadBuffer::default())? {
            Read::Ready(buffer) => return Ok::<_, tessera_types::Error>(buffer.into_bytes()),
            Read::Blocked(token) => token.wait(Duration::from_secs(1)),
        }
    };
    assert_eq!(read(100_000..100_010).unwrap(), [7; 10][..]);
    server.put("b/x.bin", vec![8; 1 << 20]);
    let error = read(500_000..500_010).unwrap_err();
    assert!(error.message().contains("'gs://b/x.bin' changed while it was read"), "{error}");
}

#[test]
fn objects_appear_when_committed() {
    let server = Server::start();
    let objects = objects(&server);
    for len in [0, 1_000, (40 << 20) + 17] {
        let content: Vec<u8> = (0..len).map(|byte| (byte % 251) as u8).collect();
        let mut output = objects.create("gs://b/out/x.bin").unwrap();
        output.write_all(&content).unwrap();
        output.commit().unwrap();
        assert!(server.object("b/out/x.bin").unwrap() == content, "{len}");
    }
    let mut output = objects.create("gs://b/y.bin").unwrap();
    output.write_all(&vec![1; 40 << 20]).unwrap();
    drop(output);
    objects.settle();
    assert_eq!(
        (server.uploads(), server.paths().len()),
        ((0, 2), 1),
        "what is given up leaves nothing"
    );
    // No credentials were requested.
    assert!(server.log().iter().all(|request| request.path.starts_with("b/")));
}
