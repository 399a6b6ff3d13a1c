//! The compression of whole files: `x.csv.gz`, `x.json.xz`.

/// The compression of a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// `.gz`, with one or more members.
    Gzip,
    /// `.zst`, with one or more frames.
    Zstandard,
    /// `.bz2`, with one or more streams.
    Bzip2,
    /// `.xz`, with one or more streams.
    Xz,
}

/// Each compression with its extension and its other names in options.
const KNOWN: [(Compression, &str, &[&str]); 4] = [
    (Compression::Gzip, "gz", &["gzip"]),
    (Compression::Zstandard, "zst", &["zstd"]),
    (Compression::Bzip2, "bz2", &["bzip2"]),
    (Compression::Xz, "xz", &[]),
];

impl Compression {
    /// The extensions of compressed files, for messages.
    pub const EXTENSIONS: &str = ".gz, .zst, .bz2 or .xz";

    /// Returns the compression by the extension of a path.
    pub fn of_path(path: &str) -> Option<Compression> {
        let extension = path.rsplit_once('.')?.1;
        let known = KNOWN.iter().find(|(_, known, _)| known.eq_ignore_ascii_case(extension));
        known.map(|(compression, ..)| *compression)
    }

    /// Returns the compression with this name: `gzip`, `bz2`.
    pub fn named(name: &str) -> Option<Compression> {
        let is_name = |known: &&str| known.eq_ignore_ascii_case(name);
        let known = KNOWN
            .iter()
            .find(|(_, extension, names)| is_name(extension) || names.iter().any(is_name));
        known.map(|(compression, ..)| *compression)
    }

    /// Returns the extension of files with this compression.
    pub fn extension(self) -> &'static str {
        let known = KNOWN.iter().find(|(compression, ..)| *compression == self);
        known.map_or("", |(_, extension, _)| extension)
    }

    /// Removes the extension of the compression from a path.
    pub fn strip(path: &str) -> &str {
        match Compression::of_path(path) {
            Some(_) => path.rsplit_once('.').map_or(path, |(stem, _)| stem),
            None => path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_and_names_tell_the_compression() {
        assert_eq!(Compression::of_path("a.csv.GZ"), Some(Compression::Gzip));
        assert_eq!(Compression::of_path("a.json.zst"), Some(Compression::Zstandard));
        assert_eq!(Compression::of_path("a.bz2"), Some(Compression::Bzip2));
        assert_eq!(Compression::of_path("a.gz/b.csv"), None);
        assert_eq!(Compression::named("BZIP2"), Some(Compression::Bzip2));
        assert_eq!(Compression::named("xz"), Some(Compression::Xz));
        assert_eq!(Compression::named("none"), None);
        assert_eq!(Compression::Zstandard.extension(), "zst");
        assert_eq!(Compression::strip("a.csv.xz"), "a.csv");
        assert_eq!(Compression::strip("a.csv"), "a.csv");
    }
}
