use super::*;

struct Any;

impl Service for Any {
    fn answer(&self, _request: &Request) -> Answer {
        Answer::default()
    }

    fn sink(&self, _request: &Request) -> Result<Sink, Answer> {
        Ok(Sink::Memory(5))
    }
}

fn read(text: &str) -> Result<Option<Request>, Refusal> {
    let access = Access::Token("secret".to_string());
    let text = text.replacen("\r\n", "\r\nAuthorization: Bearer secret\r\n", 1);
    read_request(&mut text.as_bytes(), &mut Vec::new(), &access, &Any)
}

fn status(text: &str) -> u16 {
    match read(text) {
        Err(Refusal::Answer(answer)) => answer.status,
        Err(Refusal::Lost(_)) => 0,
        Ok(_) => 200,
    }
}

#[test]
fn requests_are_read() {
    let text = "PUT /b/a%20b%2Bc?x=1&list-type HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let request = read(text).unwrap().unwrap();
    assert_eq!(
        (&*request.method, &*request.path, request.body.bytes()),
        ("PUT", "b/a b+c", &b"abcde"[..])
    );
    assert!(request.has("list-type") && request.query["x"] == "1");
    assert_eq!(status("PUT /b/k HTTP/1.1\r\nContent-Length: 4\r\n\r\nabc"), 0, "a truncated body");
    let access = Access::Token(String::new());
    assert!(read_request(&mut &b""[..], &mut Vec::new(), &access, &Any).unwrap().is_none());
}

#[test]
fn malformed_requests_are_refused() {
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(LINE_BYTES_MAX as usize));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(LINES_MAX));
    for (text, expected) in [
        ("PUT /b/k HTTP/1.1\r\nContent-Length: 6\r\n\r\nabcdef", 413),
        ("PUT /b/k HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n", 413),
        ("PUT /b/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nffffff\r\n", 413),
        ("PUT /b/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", 413),
        ("PUT /b/k HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
        ("PUT /b/k HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        ("GET b/k HTTP/1.1\r\n\r\n", 400),
        ("GET /b/%zz HTTP/1.1\r\n\r\n", 400),
        ("GET /b/%ff HTTP/1.1\r\n\r\n", 400),
        ("GET /b?prefix=%f HTTP/1.1\r\n\r\n", 400),
        ("GET /b HTTP/1.1\r\nno header\r\n\r\n", 400),
        (&long, 400),
        (&many, 400),
    ] {
        assert_eq!(status(text), expected, "{text:.80}");
    }
}

#[test]
fn nothing_is_read_for_others() {
    let access = Access::Token("secret".to_string());
    for shown in [
        "",
        "Authorization: Bearer other\r\n",
        "Authorization: secret\r\n",
        "Authorization: Bearer \r\n",
    ] {
        let text = format!("PUT /b/k HTTP/1.1\r\n{shown}Content-Length: 3\r\n\r\nabc");
        let mut input = text.as_bytes();
        let refused = read_request(&mut input, &mut Vec::new(), &access, &Any);
        assert!(matches!(refused, Err(Refusal::Answer(answer)) if answer.status == 403), "{shown}");
        assert_eq!(input, b"abc");
    }
}
