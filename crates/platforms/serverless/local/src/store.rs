//! An object store in a directory: as much of S3 as the engine uses.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use crate::http::{Answer, Request, Service};
use crate::select::Selector;

/// Entries in a page of a listing.
const PAGE: usize = 1000;
/// What directories of this service are called, before something random.
const SCRATCH: &str = "tessera-serverless-";
/// The bucket that outlives the process.
const DATA: &str = "data";

/// A temporary directory that goes with the process; those of processes that were killed go with the next one.
///
/// It is locked while its process lives: numbers of processes are used again, and containers that share a directory have the same.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    pub(crate) fn new() -> io::Result<Scratch> {
        let all = std::env::temp_dir();
        for entry in fs::read_dir(&all)?.flatten() {
            if entry.file_name().to_str().is_some_and(is_scratch) {
                drop(remove_abandoned(&entry.path()));
            }
        }
        loop {
            let random = RandomState::new().build_hasher().finish();
            let path = all.join(format!("{SCRATCH}{random:016x}"));
            // Fails where there is one: it is not ours.
            DirBuilder::new().mode(0o700).create(&path)?;
            let lock = File::open(&path)?;
            // Another process may have taken it for abandoned before it was locked. Where a file system has no locks, none can.
            let taken = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
            if !taken && path.exists() {
                return Ok(Scratch { path, _lock: lock });
            }
        }
    }
}

fn is_scratch(name: &str) -> bool {
    let random = name.strip_prefix(SCRATCH).unwrap_or_default();
    random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Removes a directory of this user whose process has ended.
fn remove_abandoned(path: &Path) -> io::Result<()> {
    let directory =
        File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_DIRECTORY).open(path)?;
    // SAFETY: asks for a number.
    if directory.metadata()?.uid() != unsafe { libc::geteuid() } || directory.try_lock().is_err() {
        return Ok(());
    }
    fs::remove_dir_all(path)
}

/// Makes a directory for this user alone, and those above it that are missing.
fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.path));
    }
}

/// The store: `bucket/key` are files below a directory.
#[derive(Debug)]
pub(crate) struct Store {
    scratch: PathBuf,
    data: PathBuf,
    selector: Option<Selector>,
    /// Uploads in parts, by their names.
    uploads: Mutex<BTreeMap<String, BTreeMap<u32, Vec<u8>>>>,
    names: AtomicU64,
}

/// An error as S3 says it.
fn error(status: u16, code: &str) -> Answer {
    Answer::new(status, format!("<Error><Code>{code}</Code><Message>{code}</Message></Error>"))
}

fn of_io(io: &io::Error) -> Answer {
    match io.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory => {
            error(404, "NoSuchKey")
        }
        _ => Answer::new(500, format!("<Error><Code>InternalError</Code><Message>{io}</Message></Error>")),
    }
}

impl Store {
    pub(crate) fn new(scratch: &Scratch, data: PathBuf, selector: Option<Selector>) -> Store {
        let scratch = scratch.path.clone();
        Store { scratch, data, selector, uploads: Mutex::default(), names: AtomicU64::new(0) }
    }

    /// The file of an object, which is never outside its bucket.
    fn file(&self, path: &str) -> Option<PathBuf> {
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        let mut file =
            if bucket == DATA { self.data.clone() } else { self.scratch.join("buckets").join(bucket) };
        let safe = |part: &str| !matches!(part, "." | "..") && !part.contains('\0');
        if !safe(bucket) || bucket.is_empty() {
            return None;
        }
        for part in key.split('/').filter(|part| !part.is_empty()) {
            if !safe(part) {
                return None;
            }
            file.push(part);
        }
        Some(file)
    }

    fn put(&self, request: &Request, bytes: &[u8]) -> io::Result<Answer> {
        let Some(file) = self.file(&request.path) else { return Ok(error(400, "InvalidURI")) };
        let is_new = request.header("if-none-match") == Some("*");
        let folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
        let number = self.names.fetch_add(1, Ordering::Relaxed);
        // Beside the object, so that a name is all that moves; a hidden one is in no listing.
        let temporary = |folder: &Path| folder.join(format!(".{}-{number}.tmp", std::process::id()));
        let done = loop {
            make_directory(&folder)?;
            let temporary = temporary(&folder);
            // Another request may delete a folder that is empty.
            let mut options = File::options();
            let mut out = match options.write(true).create(true).truncate(true).mode(0o600).open(&temporary) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                out => out?,
            };
            out.write_all(bytes)?;
            // A link fails where the name is taken: of several writers one is first.
            let done = if is_new { fs::hard_link(&temporary, &file) } else { fs::rename(&temporary, &file) };
            if is_new {
                fs::remove_file(&temporary)?;
            }
            break done;
        };
        match done {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok(self::error(412, "PreconditionFailed"))
            }
            done => {
                done?;
                Ok(Answer::new(200, "").with("ETag", tag(&fs::metadata(&file)?)))
            }
        }
    }

    fn read(&self, request: &Request) -> io::Result<Answer> {
        let file = self.file(&request.path).filter(|file| file.is_file());
        let Some(file) = file else { return Ok(error(404, "NoSuchKey")) };
        let mut file = File::open(file)?;
        let meta = file.metadata()?;
        let tag = tag(&meta);
        if request.header("if-match").is_some_and(|wanted| wanted != tag) {
            return Ok(error(412, "PreconditionFailed"));
        }
        let len = meta.len();
        let range = request.header("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
        let (status, start, end) = match range {
            None => (200, 0, len),
            Some((start, end)) => match (start.parse::<u64>(), end.parse::<u64>()) {
                (Ok(start), Ok(last)) => (206, start, last.saturating_add(1).min(len)),
                (Ok(start), Err(_)) => (206, start, len),
                (Err(_), Ok(last)) => (206, len.saturating_sub(last), len),
                _ => return Ok(error(400, "InvalidArgument")),
            },
        };
        if status == 206 && start >= end {
            return Ok(error(416, "InvalidRange"));
        }
        let mut answer = Answer::new(status, Vec::new());
        if request.method == "HEAD" {
            answer.headers.push(("Content-Length", (end - start).to_string()));
        } else {
            file.seek(SeekFrom::Start(start))?;
            file.take(end - start).read_to_end(&mut answer.body)?;
        }
        if status == 206 {
            answer.headers.push(("Content-Range", format!("bytes {start}-{}/{len}", end - 1)));
        }
        let changed = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(answer.with("ETag", tag).with("Last-Modified", date(changed)))
    }

    fn select(&self, request: &Request) -> Answer {
        let file = self.file(&request.path).filter(|file| file.is_file());
        match (file, &self.selector) {
            (Some(file), Some(selector)) => crate::select::answer(selector, &file, &request.body),
            (None, _) => error(404, "NoSuchKey"),
            (_, None) => error(501, "NotImplemented"),
        }
    }

    fn delete(&self, path: &str) -> io::Result<()> {
        let Some(file) = self.file(path) else { return Ok(()) };
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // Folders are not there when nothing is in them; the bucket is.
        let bucket = self.file(path.split('/').next().unwrap_or_default());
        let mut folder = file.parent();
        while let Some(empty) =
            folder.filter(|folder| Some(*folder) != bucket.as_deref() && fs::remove_dir(folder).is_ok())
        {
            folder = empty.parent();
        }
        Ok(())
    }

    fn list(&self, request: &Request) -> io::Result<Answer> {
        let query = |name: &str| request.query.get(name).map(String::as_str).unwrap_or_default();
        let (prefix, delimiter) = (query("prefix"), query("delimiter"));
        let after = query("continuation-token").max(query("start-after"));
        let Some(root) = self.file(request.path.trim_end_matches('/')) else {
            return Ok(error(404, "NoSuchBucket"));
        };
        let mut found: BTreeMap<String, Option<fs::Metadata>> = BTreeMap::new();
        // Only the folder that the prefix names is walked.
        let below = prefix.rfind('/').map_or("", |slash| &prefix[..slash]);
        walk(&root.join(below), below, &mut |key, meta| {
            let Some(rest) = key.strip_prefix(prefix) else { return };
            match rest.find(delimiter).filter(|_| !delimiter.is_empty()) {
                Some(end) => found.insert(format!("{prefix}{}", &rest[..=end]), None),
                None => found.insert(key.to_string(), Some(meta)),
            };
        })?;
        let mut rest = found.into_iter().filter(|(key, _)| key.as_str() > after).peekable();
        let mut text = String::new();
        let mut last = String::new();
        for (key, meta) in rest.by_ref().take(PAGE) {
            text += &match meta {
                None => format!("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escape(&key)),
                Some(meta) => {
                    let changed = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
                    format!(
                        "<Contents><Key>{}</Key><LastModified>{}</LastModified><Size>{}</Size><ETag>{}</ETag></Contents>",
                        escape(&key),
                        iso_date(changed),
                        meta.len(),
                        escape(&tag(&meta)),
                    )
                }
            };
            last = key;
        }
        let more = rest.peek().is_some();
        if more {
            text += &format!("<NextContinuationToken>{}</NextContinuationToken>", escape(&last));
        }
        Ok(Answer::new(
            200,
            format!("<ListBucketResult><IsTruncated>{more}</IsTruncated>{text}</ListBucketResult>"),
        ))
    }

    fn delete_several(&self, request: &Request) -> io::Result<Answer> {
        let text = String::from_utf8_lossy(&request.body);
        let mut rest = &text[..];
        let mut answer = String::new();
        while let Some((_, behind)) = rest.split_once("<Key>") {
            let Some((key, behind)) = behind.split_once("</Key>") else { break };
            self.delete(&format!("{}/{}", request.path.trim_end_matches('/'), unescape(key)))?;
            answer += &format!("<Deleted><Key>{key}</Key></Deleted>");
            rest = behind;
        }
        Ok(Answer::new(200, format!("<DeleteResult>{answer}</DeleteResult>")))
    }

    fn upload(&self, request: &Request, id: Option<&String>) -> io::Result<Answer> {
        let mut uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(id) = id else {
            let id = format!("upload-{}", self.names.fetch_add(1, Ordering::Relaxed));
            uploads.insert(id.clone(), BTreeMap::new());
            let (bucket, key) = request.path.split_once('/').unwrap_or_default();
            let text =
                format!("<Bucket>{bucket}</Bucket><Key>{}</Key><UploadId>{id}</UploadId>", escape(key));
            let text = format!("<InitiateMultipartUploadResult>{text}</InitiateMultipartUploadResult>");
            return Ok(Answer::new(200, text));
        };
        match request.method.as_str() {
            "PUT" => {
                let number = request.query.get("partNumber").and_then(|number| number.parse().ok());
                let (Some(parts), Some(number)) = (uploads.get_mut(id), number) else {
                    return Ok(error(404, "NoSuchUpload"));
                };
                parts.insert(number, request.body.clone());
                Ok(Answer::new(200, "").with("ETag", format!("\"part-{number}\"")))
            }
            "POST" => {
                let Some(parts) = uploads.remove(id) else { return Ok(error(404, "NoSuchUpload")) };
                drop(uploads);
                let whole: Vec<u8> = parts.into_values().flatten().collect();
                let put = self.put(request, &whole)?;
                if put.status != 200 {
                    return Ok(put);
                }
                let tag = put.headers.first().map(|(_, tag)| escape(tag)).unwrap_or_default();
                let text = format!(
                    "<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
                );
                Ok(Answer::new(200, text))
            }
            _ => {
                uploads.remove(id);
                Ok(Answer::new(204, ""))
            }
        }
    }
}

impl Service for Store {
    fn answer(&self, request: &Request) -> Answer {
        let id = request.query.get("uploadId");
        let done = match request.method.as_str() {
            "GET" if request.has("list-type") => self.list(request),
            "GET" | "HEAD" => self.read(request),
            "POST" if request.has("select") => Ok(self.select(request)),
            "POST" if request.has("delete") => self.delete_several(request),
            _ if id.is_some() || request.has("uploads") => self.upload(request, id),
            "PUT" => self.put(request, &request.body),
            "DELETE" => self.delete(&request.path).map(|()| Answer::new(204, "")),
            _ => Ok(error(405, "MethodNotAllowed")),
        };
        done.unwrap_or_else(|error| of_io(&error))
    }
}

/// Visits all objects below a folder; hidden files are none.
fn walk(folder: &Path, key: &str, visit: &mut dyn FnMut(&str, fs::Metadata)) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(());
        }
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        let below = if key.is_empty() { name.to_string() } else { format!("{key}/{name}") };
        // What is deleted meanwhile is not there.
        let Ok(meta) = entry.metadata() else { continue };
        if meta.is_dir() {
            walk(&entry.path(), &below, visit)?;
        } else {
            visit(&below, meta);
        }
    }
    Ok(())
}

/// A tag that differs when the content was written again.
fn tag(meta: &fs::Metadata) -> String {
    format!("\"{:x}-{:x}-{:x}-{:x}\"", meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn unescape(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'");
    text.replace("&amp;", "&")
}

/// Year, month, day of a number of days since 1970 (Hinnant's algorithm).
fn civil(days: i64) -> (i64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day = shifted.rem_euclid(146_097) as u64;
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year as i64 + era * 400 + i64::from(month <= 2), month, of_month)
}

fn time(since: Duration) -> (i64, u64, u64, u64, u64, u64, i64) {
    let seconds = since.as_secs();
    let days = (seconds / 86_400) as i64;
    let (year, month, day) = civil(days);
    (year, month, day, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60, days)
}

fn date(since: Duration) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (year, month, day, hour, minute, second, days) = time(since);
    let (weekday, month) = (DAYS[days.rem_euclid(7) as usize], MONTHS[month as usize - 1]);
    format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT")
}

fn iso_date(since: Duration) -> String {
    let (year, month, day, hour, minute, second, _) = time(since);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_directories_are_private_and_go_when_nobody_has_them() {
        let one = Scratch::new().unwrap();
        assert_eq!(fs::metadata(&one.path).unwrap().mode() & 0o777, 0o700);
        fs::write(one.path.join("x"), "x").unwrap();
        let left = std::env::temp_dir().join(format!("{SCRATCH}00000000000000ab"));
        let of_users = std::env::temp_dir().join(format!("{SCRATCH}notes-{}", std::process::id()));
        for path in [&left, &of_users] {
            fs::create_dir_all(path.join("deep")).unwrap();
        }
        let other = Scratch::new().unwrap();
        assert!(one.path.join("x").exists() && other.path != one.path);
        assert!(!left.exists() && of_users.exists());
        fs::remove_dir_all(of_users).unwrap();
        let path = one.path.clone();
        drop(one);
        assert!(!path.exists());
    }

    fn request(method: &str, path: &str, query: &[(&str, &str)]) -> Request {
        let query = query.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Request { method: method.to_string(), path: path.to_string(), query, ..Request::default() }
    }

    #[test]
    fn dates() {
        let time = Duration::from_secs(1_732_233_599);
        assert_eq!(date(time), "Thu, 21 Nov 2024 23:59:59 GMT");
        assert_eq!(iso_date(time), "2024-11-21T23:59:59.000Z");
    }

    #[test]
    fn objects_come_and_go() {
        let scratch = Scratch::new().unwrap();
        let data = tempfile::tempdir().unwrap();
        let store = Store::new(&scratch, data.path().to_path_buf(), None);
        for key in ["b/t/k=1/x&y.csv", "b/t/z.csv", "data/d.csv"] {
            let put = Request { body: b"hello".to_vec(), ..request("PUT", key, &[]) };
            assert_eq!(store.answer(&put).status, 200);
        }
        assert_eq!(fs::read(data.path().join("d.csv")).unwrap(), b"hello");
        let mut again = Request { body: b"other".to_vec(), ..request("PUT", "b/t/z.csv", &[]) };
        again.headers.insert("if-none-match".to_string(), "*".to_string());
        assert_eq!(store.answer(&again).status, 412);
        again.path = "b/new".to_string();
        assert_eq!(store.answer(&again).status, 200);
        assert_eq!(store.answer(&request("DELETE", "b/new", &[])).status, 204);
        let mut range = request("GET", "b/t/z.csv", &[]);
        for (wanted, status, body) in
            [("1-2", 206, "el"), ("-2", 206, "lo"), ("3-", 206, "lo"), ("9-", 416, "")]
        {
            range.headers.insert("range".to_string(), format!("bytes={wanted}"));
            let got = store.answer(&range);
            assert_eq!(got.status, status);
            assert!(status == 416 || got.body == body.as_bytes());
        }
        let got = store.answer(&request("GET", "b/t/k=1/x&y.csv", &[]));
        assert_eq!((got.status, &got.body[..]), (200, &b"hello"[..]));
        assert_eq!(store.answer(&request("GET", "b/t", &[])).status, 404);
        assert_eq!(store.answer(&request("GET", "b/../x", &[])).status, 404);
        let listed = |query: &[(&str, &str)]| {
            let answer = store.answer(&request("GET", "b", &[&[("list-type", "2")], query].concat()));
            String::from_utf8(answer.body).unwrap()
        };
        let all = listed(&[("prefix", "t/")]);
        assert!(all.contains("<Key>t/k=1/x&amp;y.csv</Key>") && all.contains("<Key>t/z.csv</Key>"), "{all}");
        let folder = listed(&[("prefix", "t/"), ("delimiter", "/")]);
        assert!(folder.contains("<Prefix>t/k=1/</Prefix>") && !folder.contains("x&amp;y"), "{folder}");
        let keys = "<Delete><Object><Key>t/k=1/x&amp;y.csv</Key></Object><Object><Key>t/z.csv</Key></Object></Delete>";
        let delete = Request { body: keys.into(), ..request("POST", "b", &[("delete", "")]) };
        assert_eq!(store.answer(&delete).status, 200);
        assert!(!listed(&[]).contains("Key"));
        assert_eq!(store.answer(&request("DELETE", "data/d.csv", &[])).status, 204);
        assert!(data.path().is_dir());
    }

    #[test]
    fn parts_become_an_object() {
        let scratch = Scratch::new().unwrap();
        let store = Store::new(&scratch, std::env::temp_dir(), None);
        let begun = store.answer(&request("POST", "b/k", &[("uploads", "")]));
        let text = String::from_utf8(begun.body).unwrap();
        let id = text.split_once("<UploadId>").unwrap().1.split_once('<').unwrap().0.to_string();
        for (number, body) in [("2", "world"), ("1", "hello ")] {
            let part = request("PUT", "b/k", &[("uploadId", &id), ("partNumber", number)]);
            assert_eq!(store.answer(&Request { body: body.into(), ..part }).status, 200);
        }
        assert_eq!(store.answer(&request("POST", "b/k", &[("uploadId", &id)])).status, 200);
        assert_eq!(store.answer(&request("GET", "b/k", &[])).body, b"hello world");
        assert_eq!(store.answer(&request("POST", "b/k", &[("uploadId", &id)])).status, 404);
    }
}
