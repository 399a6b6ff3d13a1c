//! The bodies of fuzz targets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::Objects;
use crate::select::{Decoder, Event, element_text};
use crate::store::RETRIES;

/// Decodes a store's response to a selection, unchanged and with correct checksums.
pub fn select_events(data: &[u8]) {
    decode(data);
    let Some(([headers, lengths], rest)) = data.split_first_chunk::<2>() else { return };
    let headers = usize::from(*headers).min(rest.len());
    let total = (rest.len() + 16) as u32;
    // The lengths may be wrong as well.
    let (said, said_headers) = match lengths {
        0..4 => (u32::from(*lengths) * 5, headers as u32),
        4 => (total, u32::MAX),
        5 => (total - 1, headers as u32),
        _ => (total, headers as u32),
    };
    let mut frame = [said.to_be_bytes(), said_headers.to_be_bytes()].concat();
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(rest);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    decode(&frame);
    decode(&frame.repeat(2));
}

fn decode(bytes: &[u8]) {
    for step in [1usize, 7, usize::MAX] {
        let mut decoder = Decoder::default();
        for piece in bytes.chunks(step.min(bytes.len().max(1))) {
            decoder.push(piece);
            loop {
                match decoder.next() {
                    Ok(Some(Event::Records(records))) => assert!(records.len() <= bytes.len()),
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
        }
    }
    let text = String::from_utf8_lossy(bytes);
    assert!(element_text(&text, "BytesScanned").is_none_or(|number| number.len() <= text.len()));
}

/// Reads a store's response to a listing: an error, or keys below the requested prefix.
pub fn listings(data: &[u8]) {
    // The response, and the number of requests: a listing may name itself as its next page forever.
    static ANSWER: Mutex<(Vec<u8>, usize)> = Mutex::new((Vec::new(), 0));
    static STORE: OnceLock<Objects> = OnceLock::new();
    let store = STORE.get_or_init(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of this machine");
        let address = format!("http://{}", listener.local_addr().expect("a port has an address"));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || serve(stream, &ANSWER));
            }
        });
        let settings = [
            ("AWS_ENDPOINT_URL", address.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "none"),
            ("AWS_REGION", "local"),
            // No retries: a response that cannot be parsed is treated as cut and requested again.
            (RETRIES, "0"),
        ];
        Objects::new(settings.map(|(name, value)| (name.to_string(), value.to_string())).into())
    });
    *ANSWER.lock().unwrap_or_else(PoisonError::into_inner) = (data.to_vec(), 10);
    for address in ["s3://bucket/folder/*.csv", "s3://bucket/folder/"] {
        if let Ok(found) = store.expand(address, Default::default()) {
            let addresses = format!("{found:?}");
            assert!(!addresses.contains("/../"), "{addresses}");
        }
    }
}

fn serve(stream: TcpStream, answer: &Mutex<(Vec<u8>, usize)>) {
    let Ok(mut output) = stream.try_clone() else { return };
    let mut input = BufReader::new(stream);
    loop {
        let mut line = String::new();
        while !matches!(line.as_str(), "\r\n") {
            line.clear();
            if !matches!(input.by_ref().take(1 << 16).read_line(&mut line), Ok(1..)) {
                return;
            }
        }
        let body = {
            let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
            answer.1 = answer.1.saturating_sub(1);
            if answer.1 == 0 { Vec::new() } else { answer.0.clone() }
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        if output.write_all(&[head.as_bytes(), &body].concat()).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn select_events() {
        let header = |name: &str, value: &str| {
            let mut bytes = vec![name.len() as u8];
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(7);
            bytes.extend_from_slice(&(value.len() as u16).to_be_bytes());
            bytes.extend_from_slice(value.as_bytes());
            bytes
        };
        let of = |kind: &str, payload: &[u8]| {
            let headers = [header(":message-type", "event"), header(":event-type", kind)].concat();
            [&[headers.len() as u8, 9][..], &headers, payload].concat()
        };
        let stats =
            b"<Stats><BytesScanned>512</BytesScanned><BytesReturned>7</BytesReturned></Stats>";
        let seeds = [of("Records", b"1,2\n3"), of("Stats", stats), of("End", b"")];
        let seeds: Vec<&[u8]> = seeds.iter().map(Vec::as_slice).collect();
        tessera_fuzzing::mutate("select_events", &seeds, super::select_events);
    }

    #[test]
    fn listings() {
        let page = "<?xml version=\"1.0\"?><ListBucketResult><Name>bucket</Name><KeyCount>2</KeyCount>\
             <IsTruncated>false</IsTruncated><Contents><Key>folder/a.csv</Key><Size>7</Size>\
             <LastModified>2024-01-01T00:00:00.000Z</LastModified><ETag>\"x\"</ETag></Contents><Contents><Key>folder/b%20c.csv</Key>\
             <Size>9</Size><LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>\
             <CommonPrefixes><Prefix>folder/k=1/</Prefix></CommonPrefixes></ListBucketResult>";
        tessera_fuzzing::mutate("listings", &[page.as_bytes()], super::listings);
    }
}
