//! An object store in a directory, with the part of S3 that the engine uses.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use crate::date::{date, iso_date};
use crate::http::{Answer, Body, Request, Service, Sink, SpooledFile};
use crate::paths::{self, Scratch};
use crate::select::Selector;
use crate::xml::{escape, unescape};

/// The number of entries in a page of a listing.
const PAGE: usize = 1000;
/// The name of the bucket that outlives the process.
const DATA: &str = "data";
/// The maximum size of an object or part written by one request, as in Amazon's store.
const OBJECT_BYTES_MAX: u64 = 5 << 30;
/// The maximum body size of other requests.
const REQUEST_BYTES_MAX: u64 = 2 << 20;
/// The maximum number of a part.
const PARTS_MAX: u32 = 10_000;

/// The store: objects `bucket/key` are files below a directory.
#[derive(Debug)]
pub(crate) struct Store {
    scratch: PathBuf,
    data: PathBuf,
    selector: Option<Selector>,
    /// Multipart uploads by their names.
    uploads: Mutex<BTreeMap<String, Upload>>,
    names: AtomicU64,
    object_bytes_max: u64,
}

/// A multipart upload: the object's path and the files of its parts.
#[derive(Debug)]
struct Upload {
    path: String,
    parts: BTreeMap<u32, SpooledFile>,
}

fn io_error(io: &io::Error) -> Answer {
    match io.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory => {
            Answer::error(404, "NoSuchKey")
        }
        io::ErrorKind::InvalidFilename | io::ErrorKind::InvalidInput => {
            Answer::error(400, "InvalidURI")
        }
        _ => Answer::failed(io),
    }
}

impl Store {
    /// Returns a store with its buckets in `scratch`, and the bucket `data` in its own directory.
    ///
    /// # Errors
    /// A directory cannot be created.
    pub(crate) fn new(
        scratch: &Scratch,
        data: &Path,
        selector: Option<Selector>,
    ) -> io::Result<Store> {
        paths::create_private(data)?;
        let scratch = scratch.path().to_path_buf();
        for folder in ["buckets", "parts"] {
            paths::create_private(&scratch.join(folder))?;
        }
        Ok(Store {
            data: data.canonicalize()?,
            scratch: scratch.canonicalize()?,
            selector,
            uploads: Mutex::default(),
            names: AtomicU64::new(0),
            object_bytes_max: OBJECT_BYTES_MAX,
        })
    }

    /// Returns the directory of a bucket; `None` for an invalid bucket name.
    fn bucket(&self, bucket: &str) -> Option<PathBuf> {
        match bucket {
            DATA => Some(self.data.clone()),
            _ => (paths::is_name(bucket) && !bucket.starts_with('.'))
                .then(|| self.scratch.join("buckets").join(bucket)),
        }
    }

    /// Returns the file of an object. All paths from requests are resolved here.
    ///
    /// # Errors
    /// The path is not a valid object path.
    fn file(&self, path: &str) -> io::Result<PathBuf> {
        let refused = || io::Error::from(io::ErrorKind::InvalidInput);
        let (bucket, key) = path.split_once('/').ok_or_else(refused)?;
        paths::resolve(&self.bucket(bucket).ok_or_else(refused)?, key)
    }

    /// Creates a temporary file next to an object's file, so that a rename suffices to publish it.
    /// Listings skip it.
    fn temporary(&self, file: &Path) -> io::Result<(SpooledFile, File)> {
        let folder = file.parent().unwrap_or(file);
        let number = self.names.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".{}-{number}.tmp", std::process::id()));
        loop {
            paths::create_private(folder)?;
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                // Another request may delete an empty folder.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                created => return Ok((SpooledFile { path }, created?)),
            }
        }
    }

    /// Publishes a file as an object.
    fn put(&self, request: &Request, spooled: &SpooledFile) -> io::Result<Answer> {
        let file = self.file(&request.path)?;
        // A hard link fails if the name exists: of several writers, one succeeds.
        let result = match request.header("if-none-match") {
            Some("*") => {
                fs::hard_link(&spooled.path, &file).and_then(|()| fs::remove_file(&spooled.path))
            }
            _ => fs::rename(&spooled.path, &file),
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok(Answer::error(412, "PreconditionFailed"))
            }
            result => {
                result?;
                Ok(Answer::new(200, "").with("ETag", tag(&fs::symlink_metadata(&file)?)))
            }
        }
    }

    /// Opens an object, which must be a regular file.
    fn open(&self, path: &str) -> io::Result<(PathBuf, File)> {
        let file = self.file(path)?;
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
        let open = OpenOptions::new().read(true).custom_flags(flags).open(&file)?;
        if open.metadata()?.is_file() {
            Ok((file, open))
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn read(&self, request: &Request) -> io::Result<Answer> {
        let (_, mut file) = self.open(&request.path)?;
        let meta = file.metadata()?;
        let tag = tag(&meta);
        if request.header("if-match").is_some_and(|wanted| wanted != tag) {
            return Ok(Answer::error(412, "PreconditionFailed"));
        }
        let len = meta.len();
        let range =
            request.header("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
        let (status, start, end) = match range {
            None => (200, 0, len),
            Some((start, end)) => match (start.parse::<u64>(), end.parse::<u64>()) {
                (Ok(start), Ok(last)) => (206, start, last.saturating_add(1).min(len)),
                (Ok(start), Err(_)) => (206, start, len),
                (Err(_), Ok(last)) => (206, len.saturating_sub(last), len),
                _ => return Ok(Answer::error(400, "InvalidArgument")),
            },
        };
        if status == 206 && start >= end {
            return Ok(Answer::error(416, "InvalidRange"));
        }
        let mut answer = Answer::new(status, Vec::new());
        if request.method == "HEAD" {
            answer.headers.push(("Content-Length", (end - start).to_string()));
        } else {
            file.seek(SeekFrom::Start(start))?;
            answer.file = Some((file, end - start));
        }
        if status == 206 {
            answer.headers.push(("Content-Range", format!("bytes {start}-{}/{len}", end - 1)));
        }
        let changed = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(answer.with("ETag", tag).with("Last-Modified", date(changed)))
    }

    fn select(&self, request: &Request) -> io::Result<Answer> {
        let (file, _) = self.open(&request.path)?;
        Ok(match &self.selector {
            Some(selector) => crate::select::answer(selector, &file, request.body.bytes()),
            None => Answer::error(501, "NotImplemented"),
        })
    }

    fn delete(&self, path: &str) -> io::Result<()> {
        let file = self.file(path)?;
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // Removes empty folders, except the bucket.
        let bucket = self.bucket(path.split('/').next().unwrap_or_default());
        let mut folder = file.parent();
        while let Some(empty) = folder
            .filter(|folder| Some(*folder) != bucket.as_deref() && fs::remove_dir(folder).is_ok())
        {
            folder = empty.parent();
        }
        Ok(())
    }

    fn list(&self, request: &Request) -> io::Result<Answer> {
        let query = |name: &str| request.query.get(name).map(String::as_str).unwrap_or_default();
        let (prefix, delimiter) = (query("prefix"), query("delimiter"));
        let after = query("continuation-token").max(query("start-after"));
        let Some(root) = self.bucket(request.path.strip_suffix('/').unwrap_or(&request.path))
        else {
            return Ok(Answer::error(404, "NoSuchBucket"));
        };
        let mut found: BTreeMap<String, Option<fs::Metadata>> = BTreeMap::new();
        let mut visit = |key: &str, meta| {
            let Some(rest) = key.strip_prefix(prefix) else { return };
            match rest.find(delimiter).filter(|_| !delimiter.is_empty()) {
                Some(end) => {
                    found.insert(format!("{prefix}{}", &rest[..end + delimiter.len()]), None)
                }
                None => found.insert(key.to_string(), Some(meta)),
            };
        };
        // Walks only the folder that the prefix names. A prefix that is not a valid key matches no
        // object.
        match prefix.rsplit_once('/') {
            None => walk(&root, "", &mut visit)?,
            Some((below, _)) => match paths::resolve(&root, below) {
                Ok(folder) => walk(&folder, below, &mut visit)?,
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                Err(error) => return Err(error),
            },
        }
        let mut rest = found.into_iter().filter(|(key, _)| key.as_str() > after).peekable();
        let mut text = String::new();
        let mut last = String::new();
        for (key, meta) in rest.by_ref().take(PAGE) {
            text += &match meta {
                None => {
                    format!("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escape(&key))
                }
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
        let text = String::from_utf8_lossy(request.body.bytes());
        let mut rest = &text[..];
        let mut answer = String::new();
        while let Some((_, behind)) = rest.split_once("<Key>") {
            let Some((key, behind)) = behind.split_once("</Key>") else { break };
            let bucket = request.path.strip_suffix('/').unwrap_or(&request.path);
            answer += &match self.delete(&format!("{bucket}/{}", unescape(key))) {
                Ok(()) => format!("<Deleted><Key>{key}</Key></Deleted>"),
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    format!("<Error><Key>{key}</Key><Code>InvalidURI</Code></Error>")
                }
                Err(error) => return Err(error),
            };
            rest = behind;
        }
        Ok(Answer::new(200, format!("<DeleteResult>{answer}</DeleteResult>")))
    }

    fn begin_upload(&self, request: &Request) -> io::Result<Answer> {
        self.file(&request.path)?;
        let id = format!("upload-{}", self.names.fetch_add(1, Ordering::Relaxed));
        let upload = Upload { path: request.path.clone(), parts: BTreeMap::new() };
        self.lock().insert(id.clone(), upload);
        let (bucket, key) = request.path.split_once('/').unwrap_or_default();
        let text =
            format!("<Bucket>{bucket}</Bucket><Key>{}</Key><UploadId>{id}</UploadId>", escape(key));
        let text = format!("<InitiateMultipartUploadResult>{text}</InitiateMultipartUploadResult>");
        Ok(Answer::new(200, text))
    }

    /// Keeps the body of a part: renames its file, which would be deleted with the request.
    fn put_part(&self, request: &Request, id: &str) -> io::Result<Answer> {
        let number = request.query.get("partNumber").and_then(|number| number.parse().ok());
        let Some(number) = number.filter(|number| (1..=PARTS_MAX).contains(number)) else {
            return Ok(Answer::error(400, "InvalidArgument"));
        };
        let Body::File(spooled) = &request.body else {
            return Ok(Answer::error(404, "NoSuchUpload"));
        };
        let mut uploads = self.lock();
        let Some(upload) = uploads.get_mut(id).filter(|upload| upload.path == request.path) else {
            return Ok(Answer::error(404, "NoSuchUpload"));
        };
        let part = SpooledFile { path: spooled.path.with_extension("part") };
        fs::rename(&spooled.path, &part.path)?;
        upload.parts.insert(number, part);
        Ok(Answer::new(200, "").with("ETag", format!("\"part-{number}\"")))
    }

    fn end_upload(&self, request: &Request, id: &str) -> io::Result<Answer> {
        let upload = {
            let mut uploads = self.lock();
            let matches = uploads.get(id).is_some_and(|upload| upload.path == request.path);
            if matches { uploads.remove(id) } else { None }
        };
        let Some(upload) = upload else { return Ok(Answer::error(404, "NoSuchUpload")) };
        if request.method == "DELETE" {
            return Ok(Answer::new(204, ""));
        }
        let (spooled, mut whole) = self.temporary(&self.file(&request.path)?)?;
        for part in upload.parts.values() {
            io::copy(&mut File::open(&part.path)?, &mut whole)?;
        }
        let put = self.put(request, &spooled)?;
        if put.status != 200 {
            return Ok(put);
        }
        let tag = put.headers.first().map(|(_, tag)| escape(tag)).unwrap_or_default();
        let text = format!(
            "<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
        );
        Ok(Answer::new(200, text))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Upload>> {
        self.uploads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service for Store {
    fn answer(&self, request: &Request) -> Answer {
        let id = request.query.get("uploadId");
        let result = match (request.method.as_str(), id, &request.body) {
            ("GET", ..) if request.has("list-type") => self.list(request),
            ("GET" | "HEAD", ..) => self.read(request),
            ("POST", ..) if request.has("select") => self.select(request),
            ("POST", ..) if request.has("delete") => self.delete_several(request),
            ("POST", ..) if request.has("uploads") => self.begin_upload(request),
            ("PUT", Some(id), _) => self.put_part(request, id),
            ("POST" | "DELETE", Some(id), _) => self.end_upload(request, id),
            ("PUT", None, Body::File(spooled)) => self.put(request, spooled),
            ("DELETE", None, _) => self.delete(&request.path).map(|()| Answer::new(204, "")),
            _ => Ok(Answer::error(405, "MethodNotAllowed")),
        };
        result.unwrap_or_else(|error| io_error(&error))
    }

    /// Objects and parts are written to files, not held in memory.
    fn sink(&self, request: &Request) -> Result<Sink, Answer> {
        if request.method != "PUT" {
            return Ok(Sink::Memory(REQUEST_BYTES_MAX));
        }
        let file = self.file(&request.path);
        let made = file.and_then(|file| match request.query.get("uploadId") {
            None => self.temporary(&file),
            Some(_) => self.temporary(&self.scratch.join("parts").join("part")),
        });
        let (spooled, file) = made.map_err(|error| io_error(&error))?;
        Ok(Sink::File(spooled, file, self.object_bytes_max))
    }
}

/// Visits all objects below a folder; skips hidden files.
fn walk(folder: &Path, key: &str, visit: &mut dyn FnMut(&str, fs::Metadata)) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(());
        }
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        let below = if key.is_empty() { name.to_string() } else { format!("{key}/{name}") };
        // Skips entries deleted meanwhile, and symbolic links.
        let Ok(meta) = entry.metadata() else { continue };
        if meta.is_dir() {
            walk(&entry.path(), &below, visit)?;
        } else if meta.is_file() {
            visit(&below, meta);
        }
    }
    Ok(())
}

/// Returns a tag that changes when the object is written again.
fn tag(meta: &fs::Metadata) -> String {
    format!("\"{:x}-{:x}-{:x}-{:x}\"", meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec())
}

#[cfg(test)]
mod tests;
