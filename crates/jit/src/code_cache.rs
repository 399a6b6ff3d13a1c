//! The on-disk cache of machine code: one file for each piece in a cache directory.
//!
//! A file is named by a hash of its key: the version of the sources, the processor and the piece.
//! The file also stores the key. It is read only if no other user can have written it and its hash
//! is right; other files are ignored, and write errors are ignored too. Files are renamed into
//! place, so they are always complete.
//!
//! Layout: [`MAGIC`], the length of the key (8 bytes, little-endian), the key, the object, and a
//! hash of all preceding bytes.

use std::fs::Metadata;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use tessera_vector::hash::word_of_bytes;

const MAGIC: &[u8; 8] = b"TESSCOD1";
/// A hash of the sources that define how code is generated and the state that it works on.
pub(crate) const VERSION: &str = env!("TESSERA_CODE_VERSION");
/// The most bytes of all files; above it the least recently used are removed.
const BYTES_MAX: u64 = 32 << 20;

/// A directory of machine code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeCache {
    directory: PathBuf,
    bytes_max: u64,
}

impl CodeCache {
    /// Returns the cache in a directory, which need not exist.
    pub(crate) fn new(directory: &Path) -> CodeCache {
        CodeCache { directory: directory.to_path_buf(), bytes_max: BYTES_MAX }
    }

    fn file(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{:016x}.code", word_of_bytes(key.as_bytes())))
    }

    /// Returns the object for a key, if it is cached and intact.
    pub(crate) fn load(&self, key: &str) -> Option<Vec<u8>> {
        let file = self.file(key);
        // The ownership check uses the open file: another process could replace the path in
        // between.
        let opened = open_file(&file).ok()?;
        let metadata = opened.metadata().ok()?;
        let is_private_file = is_private(&std::fs::metadata(&self.directory).ok()?)
            && is_private(&metadata)
            && metadata.is_file();
        if !is_private_file || metadata.len() > self.bytes_max {
            return None;
        }
        let mut bytes = Vec::with_capacity(metadata.len() as usize);
        (&opened).take(self.bytes_max).read_to_end(&mut bytes).ok()?;
        // The modification time orders eviction; a failure to set it is harmless.
        let _ = opened.set_modified(SystemTime::now());
        object_in(&bytes, key).map(<[u8]>::to_vec)
    }

    /// Stores an object; returns whether that succeeded.
    pub(crate) fn save(&self, key: &str, object: &[u8]) -> bool {
        self.write_file(key, object).is_ok()
    }

    fn write_file(&self, key: &str, object: &[u8]) -> std::io::Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let stored_key = versioned_key(key);
        let mut bytes = MAGIC.to_vec();
        bytes.extend((stored_key.len() as u64).to_le_bytes());
        bytes.extend(stored_key.as_bytes());
        bytes.extend(object);
        bytes.extend(word_of_bytes(&bytes).to_le_bytes());
        make_directory(&self.directory)?;
        let file = self.file(key);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let unfinished = file.with_extension(format!("{}.{number}.tmp", std::process::id()));
        let done =
            write_private(&unfinished, &bytes).and_then(|()| std::fs::rename(&unfinished, &file));
        if done.is_err() {
            drop(std::fs::remove_file(&unfinished));
        }
        done?;
        self.make_room()
    }

    /// Removes the least recently used files until the size limit holds.
    fn make_room(&self) -> std::io::Result<()> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.directory)? {
            let (path, metadata) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
            // Temporary files of crashed processes count too.
            if metadata.is_file() && path.extension().is_some_and(|of| of == "code" || of == "tmp")
            {
                files.push((metadata.modified()?, path, metadata.len()));
            }
        }
        files.sort();
        let mut bytes: u64 = files.iter().map(|(_, _, len)| len).sum();
        for (_, path, len) in files {
            if bytes <= self.bytes_max {
                break;
            }
            // Another process may have removed it already.
            drop(std::fs::remove_file(path));
            bytes -= len;
        }
        Ok(())
    }
}

/// Returns the object in the bytes of a file, if the key matches and the file is intact.
pub(crate) fn object_in<'a>(bytes: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let (body, hash) = bytes.split_last_chunk::<8>()?;
    if u64::from_le_bytes(*hash) != word_of_bytes(body) {
        return None;
    }
    let (length, rest) = body.strip_prefix(MAGIC)?.split_first_chunk::<8>()?;
    let (stored_key, object) = rest.split_at_checked(u64::from_le_bytes(*length) as usize)?;
    (stored_key == versioned_key(key).as_bytes()).then_some(object)
}

fn versioned_key(key: &str) -> String {
    format!("{VERSION}\n{key}")
}

#[cfg(unix)]
fn make_directory(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

#[cfg(unix)]
fn write_private(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?
        .write_all(bytes)
}

/// Opens a file without following symbolic links; does not block on a FIFO.
#[cfg(unix)]
fn open_file(file: &Path) -> std::io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    std::fs::OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(file)
}

#[cfg(not(unix))]
fn open_file(file: &Path) -> std::io::Result<std::fs::File> {
    std::fs::File::open(file)
}

#[cfg(not(unix))]
fn write_private(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    std::fs::write(file, bytes)
}

#[cfg(not(unix))]
fn make_directory(directory: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)
}

/// Returns whether only this user can have written the file or directory.
#[cfg(unix)]
fn is_private(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn is_private(_metadata: &Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    fn allow(path: &Path, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn only_what_is_whole_and_ones_own_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let cache = CodeCache::new(&folder.path().join("code"));
        assert_eq!(cache.load("a"), None);
        assert!(cache.save("a", b"object of a"));
        assert_eq!(cache.load("a").as_deref(), Some(&b"object of a"[..]));
        assert_eq!(cache.load("b"), None);
        // The file of another key under this name.
        std::fs::copy(cache.file("a"), cache.file("b")).unwrap();
        assert_eq!(cache.load("b"), None);
        let whole = std::fs::read(cache.file("a")).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            std::fs::write(cache.file("a"), &damaged).unwrap();
            assert_eq!(cache.load("a"), None, "byte {at}");
            std::fs::write(cache.file("a"), &whole[..at]).unwrap();
            assert_eq!(cache.load("a"), None, "{at} bytes");
        }
        std::fs::write(cache.file("a"), &whole).unwrap();
        assert!(cache.load("a").is_some());
        for (path, mode) in [(cache.file("a"), 0o622), (cache.directory.clone(), 0o777)] {
            let before = if path == cache.directory { 0o700 } else { 0o600 };
            allow(&path, mode);
            assert_eq!(cache.load("a"), None, "{path:?}");
            allow(&path, before);
            assert!(cache.load("a").is_some());
        }
    }

    #[test]
    #[cfg(unix)]
    fn what_was_used_longest_ago_goes() {
        let folder = tempfile::tempdir().unwrap();
        let cache = CodeCache { bytes_max: 4_000, ..CodeCache::new(folder.path()) };
        allow(folder.path(), 0o700);
        let pause = || std::thread::sleep(std::time::Duration::from_millis(20));
        for name in ["a", "b", "c"] {
            assert!(cache.save(name, &[7; 1_000]));
            pause();
        }
        assert!(cache.load("a").is_some());
        pause();
        assert!(cache.save("d", &[7; 1_000]));
        let there = ["a", "b", "c", "d"].map(|name| cache.load(name).is_some());
        assert_eq!(there, [true, false, true, true]);
    }
}
