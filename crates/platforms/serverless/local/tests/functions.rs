//! Tests the function service with this test program as the worker.

use std::time::{Duration, Instant};

use tessera_serverless_local::{Faults, Local, Options, TOKEN};

use crate::client::{ask, host, setting};

/// Not a test: the worker process that the service starts. It follows its orders.
#[test]
fn worker_process() {
    let Ok(api) = std::env::var("AWS_LAMBDA_RUNTIME_API") else { return };
    let (host, base) = api.split_once('/').unwrap();
    let base = format!("/{base}/2018-06-01/runtime/invocation");
    let token = format!("Authorization: Bearer {}\r\n", std::env::var(TOKEN).unwrap());
    loop {
        let (status, head, order) = ask(host, "GET", &format!("{base}/next"), &token, "");
        if status != 200 {
            return;
        }
        let id = head
            .lines()
            .find_map(|line| line.strip_prefix("Lambda-Runtime-Aws-Request-Id: "))
            .unwrap();
        let mut held = Vec::new();
        match order.split_once(' ').unwrap_or((&order, "")) {
            ("sleep", time) => std::thread::sleep(Duration::from_millis(time.parse().unwrap())),
            ("eat", mebibytes) => held.resize(mebibytes.parse::<usize>().unwrap() << 20, 1u8),
            ("exit", code) => std::process::exit(code.parse().unwrap()),
            _ => {}
        }
        // Waits until the service notices the memory and kills this process.
        if !held.is_empty() {
            std::thread::sleep(Duration::from_secs(60));
        }
        let answer = format!("{} {order}", std::process::id());
        ask(host, "POST", &format!("{base}/{id}/response"), &token, &answer);
    }
}

struct Service {
    local: Local,
    host: String,
    signed: String,
}

impl Service {
    fn start(change: impl FnOnce(&mut Options)) -> Service {
        let mut options = Options {
            arguments: ["functions::worker_process", "--exact"].map(str::to_string).into(),
            memory_mib: 200,
            cold_start: Duration::ZERO,
            ..Options::default()
        };
        change(&mut options);
        let local = Local::start(options).unwrap();
        let host = host(&local, "AWS_ENDPOINT_URL_LAMBDA");
        let signed = format!("Authorization: Bearer {}\r\n", setting(&local, TOKEN));
        Service { local, host, signed }
    }

    fn invoke(&self, headers: &str, order: &str) -> (u16, String, String) {
        let headers = format!("{}{headers}", self.signed);
        ask(&self.host, "POST", "/2015-03-31/functions/worker/invocations", &headers, order)
    }

    /// Runs an order and returns the process that ran it.
    fn process_of(&self, order: &str) -> i32 {
        let (status, head, body) = self.invoke("", order);
        assert!(
            status == 200 && !head.contains("Function-Error") && body.ends_with(order),
            "{head} {body}"
        );
        // The worker requests the next order, and the next invocation finds it idle.
        while self.local.idle_workers() == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        body.split(' ').next().unwrap().parse().unwrap()
    }

    fn failure(&self, order: &str) -> String {
        let (status, head, body) = self.invoke("", order);
        assert!(status == 200 && head.contains("X-Amz-Function-Error: Unhandled"), "{head} {body}");
        body
    }
}

#[test]
fn workers_stay_warm_and_are_billed() {
    let service = Service::start(|options| options.cold_start = Duration::from_millis(400));
    let started = Instant::now();
    let first = service.process_of("hello");
    assert!(started.elapsed() >= Duration::from_millis(400));
    // A cold start would use another process.
    assert_eq!(service.process_of("sleep 10"), first);
    let (invocations, mebibyte_milliseconds) = service.local.billed();
    assert_eq!(invocations, 2);
    assert!((200 * 10..200 * 60_000).contains(&mebibyte_milliseconds), "{mebibyte_milliseconds}");
}

#[test]
fn lost_workers_are_told_and_replaced() {
    let service = Service::start(|options| options.timeout = Duration::from_secs(6));
    service.process_of("hello");
    assert!(service.failure("exit 3").contains("exit status 3"));
    service.process_of("hello");
    let body = service.failure("eat 400");
    assert!(body.contains("Runtime.OutOfMemory") && body.contains("of 200 MiB"), "{body}");
    assert!(service.failure("sleep 60000").contains("timed out after 6.00 seconds"));
    service.process_of("hello");
}

#[test]
fn no_more_at_once_than_may_be() {
    let service = Service::start(|options| options.concurrency = 1);
    let (status, _, _) = service.invoke("X-Amz-Invocation-Type: Event\r\n", "sleep 3000");
    assert_eq!(status, 202);
    let (status, head, _) = service.invoke("", "hello");
    assert!(status == 429 && head.contains("TooManyRequestsException"));
    while service.invoke("", "hello").0 == 429 {
        std::thread::sleep(Duration::from_millis(10));
    }
    service.process_of("hello");
}

#[test]
fn faults_happen_to_those_who_may_ask() {
    let service = Service::start(|options| options.invoke_faults = Faults::parse("503=1").unwrap());
    assert_eq!(service.invoke("", "hello").0, 503);
    assert_eq!(service.local.billed(), (0, 0));
}

#[test]
fn everything_ends_with_the_service() {
    let service = Service::start(|_| {});
    let process = service.process_of("hello");
    assert!(std::path::Path::new(&format!("/proc/{process}")).exists());
    drop(service);
    assert!(!std::path::Path::new(&format!("/proc/{process}")).exists());
}
