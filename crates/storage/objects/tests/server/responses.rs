//! The responses of the server.

use std::collections::BTreeMap;

use super::{Answer, Request, State, Tags};

pub(super) fn answer(request: &Request, state: &mut State) -> Answer {
    let key = request.path.clone();
    let upload = request.query.get("uploadId").cloned();
    match (request.method.as_str(), upload) {
        ("GET", _) if request.query.contains_key("list-type") => list(request, state),
        ("GET" | "HEAD", _) => read(request, state),
        ("POST", None) if request.is_select() => {
            if state.changes {
                state.objects.get_mut(&key).unwrap().push(b'\n');
            }
            Answer::new(200, state.selected.clone())
        }
        ("POST", None) if request.query.contains_key("delete") => {
            let text = String::from_utf8_lossy(&request.body).into_owned();
            let keys = text.split("<Key>").skip(1).filter_map(|rest| rest.split_once("</Key>"));
            let bucket = key.trim_end_matches('/');
            let mut deleted = String::new();
            for (key, _) in keys {
                state.objects.remove(&format!("{bucket}/{key}"));
                deleted += &format!("<Deleted><Key>{key}</Key></Deleted>");
            }
            Answer::new(200, format!("<DeleteResult>{deleted}</DeleteResult>"))
        }
        ("POST", None) if request.query.contains_key("uploads") => {
            state.uploads_begun += 1;
            let id = format!("upload-{}", state.uploads_begun);
            state.uploads.insert(id.clone(), BTreeMap::new());
            let (bucket, key) = key.split_once('/').unwrap();
            Answer::new(
                200,
                format!(
                    "<InitiateMultipartUploadResult><Bucket>{bucket}</Bucket><Key>{key}</Key><UploadId>{id}</UploadId>\
                     </InitiateMultipartUploadResult>"
                ),
            )
        }
        ("PUT", Some(id)) => {
            let part: u32 = request.query["partNumber"].parse().unwrap();
            let Some(parts) = state.uploads.get_mut(&id) else {
                return Answer::error(404, "NoSuchUpload");
            };
            parts.insert(part, request.body.clone());
            let mut answer = Answer::new(200, "");
            answer.headers.push(("ETag", format!("\"part-{part}\"")));
            answer
        }
        ("POST", Some(id)) => {
            let Some(parts) = state.uploads.remove(&id) else {
                return Answer::error(404, "NoSuchUpload");
            };
            let whole: Vec<u8> = parts.into_values().flatten().collect();
            let tag = tag(&whole);
            state.objects.insert(key, whole);
            Answer::new(
                200,
                format!(
                    "<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
                ),
            )
        }
        ("DELETE", Some(id)) => match state.uploads.remove(&id) {
            Some(_) => Answer::new(204, ""),
            None => Answer::error(404, "NoSuchUpload"),
        },
        ("PUT", None) => {
            let mut answer = Answer::new(200, "");
            answer.headers.push(("ETag", tag(&request.body)));
            state.objects.insert(key, request.body.clone());
            answer
        }
        _ => Answer::error(400, "BadRequest"),
    }
}

/// Encodes a message of an event stream; an error's payload is its code.
pub(super) fn message(kind: &str, payload: &[u8]) -> Vec<u8> {
    let code = String::from_utf8_lossy(payload).into_owned();
    let (headers, payload) = match kind {
        "error" => ([(":message-type", "error"), (":error-code", &*code)], &b""[..]),
        kind => ([(":message-type", "event"), (":event-type", kind)], payload),
    };
    let mut of_headers = Vec::new();
    for (name, value) in headers {
        of_headers.extend(
            [&[name.len() as u8], name.as_bytes(), &[7, 0, value.len() as u8], value.as_bytes()]
                .concat(),
        );
    }
    let total = (16 + of_headers.len() + payload.len()) as u32;
    let mut out = [total.to_be_bytes(), (of_headers.len() as u32).to_be_bytes()].concat();
    out.extend(crc32(&out).to_be_bytes());
    out.extend(of_headers);
    out.extend(payload);
    out.extend(crc32(&out).to_be_bytes());
    out
}

fn crc32(bytes: &[u8]) -> u32 {
    let bit = |sum: u32| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), |sum, _| bit(sum)))
}

fn tag(bytes: &[u8]) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("\"{:x}\"", hasher.finish())
}

fn read(request: &Request, state: &State) -> Answer {
    let Some(object) = state.objects.get(&request.path) else {
        return Answer::error(404, "NoSuchKey");
    };
    let tag = match state.tags {
        Tags::Weak => format!("W/{}", tag(object)),
        _ => tag(object),
    };
    let matches = |wanted: &String| *wanted == tag && state.tags != Tags::Weak;
    if state.tags != Tags::Unchecked
        && request.headers.get("if-match").is_some_and(|wanted| !matches(wanted))
    {
        return Answer::error(412, "PreconditionFailed");
    }
    let mut answer = match request.range().and_then(|range| range.strip_prefix("bytes=")) {
        None => Answer::new(200, object.clone()),
        Some(range) => {
            let (start, end) = range.split_once('-').unwrap();
            let len = object.len();
            let (start, end) = match (start.parse::<usize>(), end.parse::<usize>()) {
                (Ok(start), Ok(end)) => (start, (end + 1).min(len)),
                (Ok(start), Err(_)) => (start, len),
                (Err(_), Ok(last)) => (len.saturating_sub(last), len),
                _ => return Answer::error(400, "InvalidRange"),
            };
            if start >= end {
                return Answer::error(416, "InvalidRange");
            }
            let mut answer = Answer::new(206, &object[start..end]);
            answer.headers.push(("Content-Range", format!("bytes {start}-{}/{len}", end - 1)));
            answer
        }
    };
    if state.tags != Tags::Missing {
        answer.headers.push(("ETag", tag));
    }
    answer
        .headers
        .push(("Last-Modified", format!("Sun, 22 Nov 2020 00:00:{:02} GMT", state.second)));
    answer
}

/// A text within XML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn list(request: &Request, state: &State) -> Answer {
    let bucket = request.path.trim_end_matches('/');
    let query = |name: &str| request.query.get(name).cloned().unwrap_or_default();
    let (prefix, delimiter, after) =
        (query("prefix"), query("delimiter"), query("continuation-token"));
    let mut entries: BTreeMap<String, Option<usize>> = BTreeMap::new();
    for (path, bytes) in &state.objects {
        let Some(key) = path.strip_prefix(&format!("{bucket}/")) else { continue };
        let Some(below) = key.strip_prefix(&prefix) else { continue };
        match below.find(&delimiter).filter(|_| !delimiter.is_empty()) {
            Some(end) => entries.insert(format!("{prefix}{}", &below[..=end]), None),
            None => entries.insert(key.to_string(), Some(bytes.len())),
        };
    }
    let mut text = String::new();
    let rest: Vec<_> = entries.into_iter().filter(|(key, _)| *key > after).collect();
    for (key, len) in rest.iter().take(state.page) {
        let tag = state.objects.get(&format!("{bucket}/{key}")).map(|object| tag(object));
        let key = escape(key);
        text += &match len {
            None => format!("<CommonPrefixes><Prefix>{key}</Prefix></CommonPrefixes>"),
            Some(len) => format!(
                "<Contents><Key>{key}</Key><LastModified>2020-11-22T00:00:00.000Z</LastModified><Size>{len}</Size>\
                 <ETag>{}</ETag></Contents>",
                tag.unwrap_or_default()
            ),
        };
    }
    let more = rest.len() > state.page;
    if more {
        text += &format!(
            "<NextContinuationToken>{}</NextContinuationToken>",
            escape(&rest[state.page - 1].0)
        );
    }
    Answer::new(
        200,
        format!("<ListBucketResult><IsTruncated>{more}</IsTruncated>{text}</ListBucketResult>"),
    )
}
