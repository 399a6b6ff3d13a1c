//! Uploads a local database for workers: once, and again only the files that changed.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use futures_util::{StreamExt, TryFutureExt, TryStreamExt};
use object_store::path::Path as ObjectPath;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use serde_json::{Map, Value as Json, json};
use tessera_types::{Error, Result};
use tokio::io::AsyncReadExt;

use crate::cloud::Cloud;
use crate::invoke::pause;

/// The maximum number of concurrent uploads.
const FILES_MAX: usize = 4;
/// The size of upload parts.
const PART_BYTES: usize = 8 << 20;
/// The maximum number of attempts at listing the uploaded files.
const LISTS_MAX: usize = 5;
/// The maximum depth of folders.
const DEPTH_MAX: usize = 32;

/// The size and modification time, in nanoseconds, that identify a version of a file.
type Stamp = (u64, u64);

/// The version of an uploaded file, and the store's tag of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct UploadRecord {
    stamp: Stamp,
    tag: Option<String>,
}

/// Uploads the files of a folder below an address unless they are there; `notes` is a folder for
/// records of uploads. Returns the address of the database. Of several processes with the same
/// folder, one uploads and the others wait, so files are not overwritten while they are read.
///
/// # Errors
/// A file cannot be read, or the store fails.
pub fn upload(cloud: &Cloud, folder: &Path, address: &str, notes: &Path) -> Result<String> {
    let folder = folder.canonicalize().map_err(|error| cannot_read(folder, &error))?;
    let mut files = BTreeMap::new();
    walk(&folder, "", 0, &mut files).map_err(|error| cannot_read(&folder, &error))?;
    let name = database_name(&folder, address);
    let database = format!("{}/{name}", address.trim_end_matches('/'));
    let note = notes.join(format!("{name}.json"));
    let cannot_note = |error| Error::io(format!("cannot write '{}': {error}", note.display()));
    let _lock = lock_upload(&notes.join(format!("{name}.lock"))).map_err(cannot_note)?;
    let noted = read_note(&note);
    let (store, prefix) = (cloud.connect)(&database)?;
    let wanted = files.keys().map(|key| Ok((join(&prefix, key)?, key.clone())));
    let wanted = wanted.collect::<Result<BTreeMap<ObjectPath, String>>>()?;
    let shown = folder.display().to_string();
    let stamps = files;
    let uploaded = cloud.wait(async move {
        let failed = |error| store_failed(&shown, error);
        let listed = list(&*store, &prefix).await.map_err(failed)?;
        let mut there: BTreeMap<_, _> = listed
            .into_iter()
            .map(|meta| (meta.location, (meta.size, unquoted(meta.e_tag))))
            .collect();
        let (mut uploaded, mut uploads) = (BTreeMap::new(), Vec::new());
        for (path, key) in wanted {
            let stamp = stamps[&key];
            let found = there.remove(&path).map(|(len, tag)| (len, UploadRecord { stamp, tag }));
            match (found, noted.get(&key)) {
                // The length and tag are compared too: another machine may have written to the same
                // place.
                (Some((len, found)), Some(noted)) if len == stamp.0 && found == *noted => {
                    uploaded.insert(key, found);
                }
                _ => {
                    let sent = send(store.clone(), path, folder.join(&key), stamp.0);
                    uploads.push(
                        sent.map_ok(move |tag| (key, UploadRecord { stamp, tag: unquoted(tag) })),
                    );
                }
            }
        }
        let sent: Vec<_> =
            futures_util::stream::iter(uploads).buffer_unordered(FILES_MAX).try_collect().await?;
        uploaded.extend(sent);
        for path in there.keys() {
            store.delete(path).await.map_err(failed)?;
        }
        Ok(uploaded)
    })?;
    write_note(&note, &uploaded).map_err(cannot_note)?;
    Ok(database)
}

/// Returns the name of a folder's database at an address. Later versions of the program must find
/// it again, so the hash is one with a definition: FNV-1a.
fn database_name(folder: &Path, address: &str) -> String {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    // No path has a zero byte.
    let key = folder.as_os_str().as_bytes().iter().chain(&[0]).chain(address.as_bytes());
    let hash = key.fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    format!("{hash:016x}")
}

/// Locks the upload of a folder; the lock ends with the file, also if the process is killed.
fn lock_upload(path: &Path) -> std::io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let file = File::create(path)?;
    file.lock()?;
    Ok(file)
}

/// Returns a tag without quotes, which some listings omit.
fn unquoted(tag: Option<String>) -> Option<String> {
    tag.map(|tag| tag.trim_matches('"').to_string())
}

fn store_failed(shown: &str, error: object_store::Error) -> Error {
    Error::io(format!("cannot upload '{shown}': {error}"))
}

/// Lists the uploaded files; retries if a listing fails.
async fn list(
    store: &dyn ObjectStore,
    prefix: &ObjectPath,
) -> object_store::Result<Vec<ObjectMeta>> {
    let mut attempt = 0;
    loop {
        match store.list(Some(prefix)).try_collect().await {
            Err(_) if attempt + 1 < LISTS_MAX => tokio::time::sleep(pause(attempt)).await,
            listed => return listed,
        }
        attempt += 1;
    }
}

/// Uploads a file; returns the store's tag of it.
async fn send(
    store: Arc<dyn ObjectStore>,
    path: ObjectPath,
    file: PathBuf,
    len: u64,
) -> Result<Option<String>> {
    let shown = file.display().to_string();
    let failed = |error| store_failed(&shown, error);
    let cannot = |error| cannot_read(&file, &error);
    let mut input = tokio::fs::File::open(&file).await.map_err(cannot)?;
    if len <= PART_BYTES as u64 {
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes).await.map_err(cannot)?;
        return store.put(&path, bytes.into()).await.map(|put| put.e_tag).map_err(failed);
    }
    let mut upload = store.put_multipart(&path).await.map_err(failed)?;
    let sent = async {
        loop {
            let mut part = Vec::with_capacity(PART_BYTES);
            (&mut input).take(PART_BYTES as u64).read_to_end(&mut part).await.map_err(cannot)?;
            if part.is_empty() {
                return Ok(());
            }
            upload.put_part(part.into()).await.map_err(failed)?;
        }
    };
    match sent.await {
        Ok(()) => upload.complete().await.map(|put| put.e_tag).map_err(failed),
        Err(error) => {
            drop(upload.abort().await);
            Err(error)
        }
    }
}

fn cannot_read(path: &Path, error: &std::io::Error) -> Error {
    Error::io(format!("cannot read '{}': {error}", path.display()))
}

fn join(prefix: &ObjectPath, key: &str) -> Result<ObjectPath> {
    ObjectPath::parse(format!("{prefix}/{key}"))
        .map_err(|error| Error::io(format!("invalid object name for the file '{key}': {error}")))
}

/// Collects the data files below a folder by relative name; skips hidden ones.
fn walk(
    folder: &Path,
    key: &str,
    depth: usize,
    files: &mut BTreeMap<String, Stamp>,
) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        let below = if key.is_empty() { name.to_string() } else { format!("{key}/{name}") };
        // Follows symbolic links, as reads do.
        let meta = std::fs::metadata(entry.path())?;
        if meta.is_dir() && depth < DEPTH_MAX {
            walk(&entry.path(), &below, depth + 1, files)?;
        } else if meta.is_file() {
            let changed = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            files.insert(below, (meta.len(), changed.as_nanos() as u64));
        }
    }
    Ok(())
}

fn read_note(note: &PathBuf) -> BTreeMap<String, UploadRecord> {
    let text = std::fs::read(note).unwrap_or_default();
    let files: Map<String, Json> = serde_json::from_slice(&text).unwrap_or_default();
    let noted = |value: &Json| {
        let tag = value[2].as_str().map(str::to_string);
        Some(UploadRecord { stamp: (value[0].as_u64()?, value[1].as_u64()?), tag })
    };
    files.iter().filter_map(|(key, value)| Some((key.clone(), noted(value)?))).collect()
}

fn write_note(note: &PathBuf, files: &BTreeMap<String, UploadRecord>) -> std::io::Result<()> {
    let value = |noted: &UploadRecord| json!([noted.stamp.0, noted.stamp.1, noted.tag]);
    let files: Map<String, Json> =
        files.iter().map(|(key, noted)| (key.clone(), value(noted))).collect();
    let temporary = note.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&temporary, Json::Object(files).to_string())?;
    std::fs::rename(&temporary, note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_database_depends_on_its_folder_and_address_only() {
        let name = |folder: &str, address: &str| database_name(Path::new(folder), address);
        assert_eq!(name("/data", "s3://bucket/x"), "cac00af01b8707ad");
        assert_ne!(name("/data", "s3://bucket/x"), name("/datas3://", "bucket/x"));
    }
}
