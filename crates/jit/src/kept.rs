//! Machine code that outlives the process: a file for each piece in a cache directory.
//!
//! A file is named by a hash of what its code was made of, and holds that too: the version of this
//! program's sources, the processor, and the piece. A file is read only if no other user can have
//! written it and its hash is right; any other file is ignored, and a file that cannot be written
//! is left out. Files appear whole, by renaming.
//!
//! Layout: [`MAGIC`]; length (8 bytes, the lowest first) and text of what it was made of; the
//! object; a hash of all that.

use std::fs::Metadata;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use tessera_vector::hash::word_of_bytes;

const MAGIC: &[u8; 8] = b"TESSCOD1";
/// The version of what makes code and of what it works on.
pub(crate) const VERSION: &str = env!("TESSERA_CODE_VERSION");
/// The most bytes of all files; when there are more, those go that were used longest ago.
const BYTES_MAX: u64 = 32 << 20;

/// A directory of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Files {
    directory: PathBuf,
    bytes_max: u64,
}

impl Files {
    /// The code in a directory, which need not exist.
    pub(crate) fn new(directory: &Path) -> Files {
        Files { directory: directory.to_path_buf(), bytes_max: BYTES_MAX }
    }

    fn file(&self, made_of: &str) -> PathBuf {
        self.directory.join(format!("{:016x}.code", word_of_bytes(made_of.as_bytes())))
    }

    /// The object that was made of this, if it is kept and not damaged.
    pub(crate) fn load(&self, made_of: &str) -> Option<Vec<u8>> {
        let file = self.file(made_of);
        // Opened first, and then asked whose it is: another file of this name could come between.
        let opened = open_own(&file).ok()?;
        let metadata = opened.metadata().ok()?;
        let is_ours =
            own(&std::fs::metadata(&self.directory).ok()?) && own(&metadata) && metadata.is_file();
        if !is_ours || metadata.len() > self.bytes_max {
            return None;
        }
        let mut bytes = Vec::with_capacity(metadata.len() as usize);
        (&opened).take(self.bytes_max).read_to_end(&mut bytes).ok()?;
        // When it was used last decides what goes first; no matter if that cannot be noted.
        let _ = opened.set_modified(SystemTime::now());
        object_in(&bytes, made_of).map(<[u8]>::to_vec)
    }

    /// Keeps an object; whether it could.
    pub(crate) fn save(&self, made_of: &str, object: &[u8]) -> bool {
        self.written(made_of, object).is_ok()
    }

    fn written(&self, made_of: &str, object: &[u8]) -> std::io::Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let known = with_version(made_of);
        let mut bytes = MAGIC.to_vec();
        bytes.extend((known.len() as u64).to_le_bytes());
        bytes.extend(known.as_bytes());
        bytes.extend(object);
        bytes.extend(word_of_bytes(&bytes).to_le_bytes());
        make_directory(&self.directory)?;
        let file = self.file(made_of);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let unfinished = file.with_extension(format!("{}.{number}.tmp", std::process::id()));
        let done =
            write_own(&unfinished, &bytes).and_then(|()| std::fs::rename(&unfinished, &file));
        if done.is_err() {
            drop(std::fs::remove_file(&unfinished));
        }
        done?;
        self.make_room()
    }

    /// Removes what was used longest ago, until the rest is not too much.
    fn make_room(&self) -> std::io::Result<()> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.directory)? {
            let (path, metadata) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
            // Unfinished ones of processes that have died count, too.
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
            // Another process may have been first.
            drop(std::fs::remove_file(path));
            bytes -= len;
        }
        Ok(())
    }
}

/// The object in the bytes of a file, if it was made of this and is not damaged.
pub(crate) fn object_in<'a>(bytes: &'a [u8], made_of: &str) -> Option<&'a [u8]> {
    let (body, hash) = bytes.split_last_chunk::<8>()?;
    if u64::from_le_bytes(*hash) != word_of_bytes(body) {
        return None;
    }
    let (length, rest) = body.strip_prefix(MAGIC)?.split_first_chunk::<8>()?;
    let (known, object) = rest.split_at_checked(u64::from_le_bytes(*length) as usize)?;
    (known == with_version(made_of).as_bytes()).then_some(object)
}

fn with_version(made_of: &str) -> String {
    format!("{VERSION}\n{made_of}")
}

#[cfg(unix)]
fn make_directory(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

#[cfg(unix)]
fn write_own(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?
        .write_all(bytes)
}

/// Opens a file, but not what a link leads to, and does not wait for one that is a FIFO.
#[cfg(unix)]
fn open_own(file: &Path) -> std::io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    std::fs::OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(file)
}

#[cfg(not(unix))]
fn open_own(file: &Path) -> std::io::Result<std::fs::File> {
    std::fs::File::open(file)
}

#[cfg(not(unix))]
fn write_own(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    std::fs::write(file, bytes)
}

#[cfg(not(unix))]
fn make_directory(directory: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)
}

/// Whether nobody else can have written it.
#[cfg(unix)]
fn own(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn own(_metadata: &Metadata) -> bool {
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
        let kept = Files::new(&folder.path().join("code"));
        assert_eq!(kept.load("a"), None);
        assert!(kept.save("a", b"object of a"));
        assert_eq!(kept.load("a").as_deref(), Some(&b"object of a"[..]));
        assert_eq!(kept.load("b"), None);
        // The file of another piece under its name.
        std::fs::copy(kept.file("a"), kept.file("b")).unwrap();
        assert_eq!(kept.load("b"), None);
        let whole = std::fs::read(kept.file("a")).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            std::fs::write(kept.file("a"), &damaged).unwrap();
            assert_eq!(kept.load("a"), None, "byte {at}");
            std::fs::write(kept.file("a"), &whole[..at]).unwrap();
            assert_eq!(kept.load("a"), None, "{at} bytes");
        }
        std::fs::write(kept.file("a"), &whole).unwrap();
        assert!(kept.load("a").is_some());
        for (path, mode) in [(kept.file("a"), 0o622), (kept.directory.clone(), 0o777)] {
            let before = if path == kept.directory { 0o700 } else { 0o600 };
            allow(&path, mode);
            assert_eq!(kept.load("a"), None, "{path:?}");
            allow(&path, before);
            assert!(kept.load("a").is_some());
        }
    }

    #[test]
    #[cfg(unix)]
    fn what_was_used_longest_ago_goes() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Files { bytes_max: 4_000, ..Files::new(folder.path()) };
        allow(folder.path(), 0o700);
        let pause = || std::thread::sleep(std::time::Duration::from_millis(20));
        for name in ["a", "b", "c"] {
            assert!(kept.save(name, &[7; 1_000]));
            pause();
        }
        assert!(kept.load("a").is_some());
        pause();
        assert!(kept.save("d", &[7; 1_000]));
        let there = ["a", "b", "c", "d"].map(|name| kept.load(name).is_some());
        assert_eq!(there, [true, false, true, true]);
    }
}
