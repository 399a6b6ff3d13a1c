//! Timeouts: a server that stalls in any phase fails the statement after the time of a setting,
//! which the error names.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use tessera_session::{Config, Session};

/// The error of a request to a stalling server, and the time until it.
fn stalled(server: &TcpListener, settings: &[&str]) -> (String, Duration) {
    let stores = vec![("TESSERA_STORE_RETRIES".to_string(), "0".to_string())];
    let mut session = Session::new(Config { threads: 1, stores, ..Config::default() }).unwrap();
    for setting in settings {
        session.execute(setting).unwrap();
    }
    let address = server.local_addr().unwrap();
    let started = Instant::now();
    let error = session.execute(&format!("select * from 'http://{address}/x.csv'")).unwrap_err();
    // The session remains usable.
    session.execute("select 1").unwrap();
    (error.message().to_string(), started.elapsed())
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// A server that reads each request, sends `text` and then stalls.
fn answers(server: &TcpListener, text: &'static str) {
    let server = server.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for mut connection in server.incoming().flatten() {
            drop(connection.read(&mut [0; 4096]));
            drop(connection.write_all(text.as_bytes()));
            held.push(connection);
        }
    });
}

/// The truncated response to a range request.
const STOPS: &str = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-999/1000\r\nContent-Length: 1000\r\n\
                     Last-Modified: Fri, 02 Jan 2026 00:00:00 GMT\r\nETag: \"x\"\r\n\r\na,b\n1,2\n";

const SHORT: [&str; 3] =
    ["set connect_timeout = '0.2'", "set first_byte_timeout = '0.2'", "set stall_timeout = '0.2'"];

fn check((message, took): (String, Duration), setting: &str) {
    assert!(message.contains(&format!("(setting {setting})")), "{message}");
    assert!(message.contains("x.csv") && message.contains("0.2 s"), "{message}");
    assert!(
        (Duration::from_millis(200)..Duration::from_secs(5)).contains(&took),
        "{took:?}: {message}"
    );
}

#[test]
fn a_server_that_takes_no_connection() {
    let server = listener();
    // Two wait to be taken; the system lets no more wait.
    socket2::SockRef::from(&server).listen(0).unwrap();
    let address = server.local_addr().unwrap();
    let waiting: Vec<_> =
        (0..4).map(|_| TcpStream::connect_timeout(&address, Duration::from_millis(50))).collect();
    assert!(waiting.iter().any(Result::is_err), "the system takes every connection");
    check(stalled(&server, &["set connect_timeout = '0.2'"]), "connect_timeout");
}

#[test]
fn a_server_that_does_not_answer() {
    let server = listener();
    answers(&server, "");
    check(stalled(&server, &SHORT), "first_byte_timeout");
}

#[test]
fn a_server_that_stops_within_its_answer() {
    let server = listener();
    answers(&server, STOPS);
    check(stalled(&server, &["set stall_timeout = '0.2'"]), "stall_timeout");
}

#[test]
fn settings_are_shown_and_come_from_the_environments_names() {
    let stores = vec![("TESSERA_STALL_TIMEOUT".to_string(), "7".to_string())];
    let mut session = Session::new(Config { stores, ..Config::default() }).unwrap();
    let shown =
        |session: &mut Session| format!("{:?}", session.execute("show stall_timeout").unwrap());
    assert!(shown(&mut session).contains('7'), "{}", shown(&mut session));
    session.execute("set stall_timeout = none").unwrap();
    assert!(shown(&mut session).contains("none"), "{}", shown(&mut session));
    session.execute("reset stall_timeout").unwrap();
    assert!(shown(&mut session).contains('7'), "{}", shown(&mut session));
    let error = session.execute("set connect_timeout = 0").unwrap_err();
    assert!(error.message().contains("connect_timeout"), "{error}");
}
