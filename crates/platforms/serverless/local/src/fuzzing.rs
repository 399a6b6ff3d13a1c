//! Fuzz targets for the requests of the store and the function service.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::access::Access;
use crate::functions::Functions;
use crate::http::{Answer, Service, answer_all};
use crate::paths::Scratch;
use crate::select::Selector;
use crate::store::Store;
use crate::{Options, paths};

/// The header that authorizes requests to both services in these tests.
const TOKEN: &str = "Authorization: Bearer secret\r\n";
/// A file next to the buckets that no request may reach.
const SECRET: &str = "the secret beside the buckets";
/// The number of inputs after which the store is recreated.
const INPUTS_MAX: usize = 500;

/// A store with files around it.
struct Fixture {
    store: Store,
    scratch: Scratch,
    inputs: usize,
}

thread_local! {
    static STORE: RefCell<Fixture> = RefCell::new(Fixture::new());
}

impl Fixture {
    fn new() -> Fixture {
        let scratch = Scratch::new().expect("a directory");
        let data = scratch.path().join("home/data");
        paths::create_private(&data).expect("a directory");
        fs::write(data.join("a.csv"), "a\n1\n").expect("a file");
        fs::write(scratch.path().join("home/secret"), SECRET).expect("a file");
        fs::write(scratch.path().join("secret"), SECRET).expect("a file");
        let selector = Selector::new(|selection| Ok(selection.sql.clone().into_bytes()));
        let store = Store::new(&scratch, &data, Some(selector)).expect("a store");
        Fixture { store, scratch, inputs: 0 }
    }

    /// Panics if a file outside the buckets has changed.
    fn check(&self) {
        let names = |folder: &Path| -> BTreeSet<String> {
            let entries = fs::read_dir(folder).expect("the directory is there").flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        let root = self.scratch.path();
        assert!(names(root).iter().map(String::as_str).eq(["buckets", "home", "parts", "secret"]));
        assert!(names(&root.join("home")).iter().map(String::as_str).eq(["data", "secret"]));
        for secret in ["secret", "home/secret"] {
            assert_eq!(fs::read_to_string(root.join(secret)).expect("it is there"), SECRET);
        }
    }
}

/// Sends the data as requests on one connection: first without a token or signature, then with the
/// token added to each.
fn converse(data: &[u8], service: &impl Service) {
    let refused = |answer: Answer, _: &str| {
        assert_eq!(answer.status / 100, 4, "an unauthorized request is answered: {answer:?}")
    };
    let signed = Access::Signature { key: "key".to_string(), secret: "secret".to_string() };
    drop(answer_all(&mut &*data, &mut Vec::new(), &signed, service, refused));
    let text =
        String::from_utf8_lossy(data).replace(" HTTP/1.1\r\n", &format!(" HTTP/1.1\r\n{TOKEN}"));
    let answered = |answer: Answer, method: &str| {
        assert!(
            (200..600).contains(&answer.status) && !method.is_empty(),
            "{answer:?} to {method}"
        );
        let mut body = answer.body;
        if let Some((file, len)) = answer.file {
            drop(file.take(len).read_to_end(&mut body));
        }
        assert!(
            !String::from_utf8_lossy(&body).contains(SECRET),
            "a file outside the buckets is read"
        );
    };
    let opened = Access::Token("secret".to_string());
    drop(answer_all(&mut text.as_bytes(), &mut Vec::new(), &opened, service, answered));
}

/// Sends requests to the store and checks that nothing outside its buckets is read or changed.
pub fn store_requests(data: &[u8]) {
    STORE.with_borrow_mut(|fixture| {
        fixture.inputs += 1;
        if fixture.inputs > INPUTS_MAX {
            *fixture = Fixture::new();
        }
        converse(data, &fixture.store);
        fixture.check();
    });
}

/// Sends requests to the function service: invocations, and requests of a worker with a task.
pub fn function_requests(data: &[u8]) {
    let options = Options {
        program: "/no/such/program".into(),
        cold_start: Duration::ZERO,
        timeout: Duration::from_millis(1),
        concurrency: 2,
        ..Options::default()
    };
    let functions: Arc<Functions> = Functions::new(options, Vec::new()).expect("a service");
    functions.add_fake_worker("00000001", b"an order");
    converse(data, &*functions);
}

#[cfg(test)]
mod tests {
    #[test]
    fn store_requests() {
        tessera_fuzzing::mutate("store_requests", &[], super::store_requests);
    }

    #[test]
    fn function_requests() {
        tessera_fuzzing::mutate("function_requests", &[], super::function_requests);
    }
}
