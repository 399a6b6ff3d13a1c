//! Files that are compressed as a whole: `x.csv.gz`, `x.json.xz`.
//!
//! Scans read ranges, in any order and concurrently, which such files do not support. So a file is
//! decompressed once per statement into an unnamed file in the temporary directory, and read from
//! there. Memory stays bounded for any file content, and nothing remains when the program ends,
//! even by a crash.

mod xz;

use std::fs::File;
use std::io::{self, BufReader, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tessera_context::{Compression, RangeReader, Read, ReadBuffer};
use tessera_types::{Error, Result, io_cause};

use crate::reader::FileReader;

/// The bytes read and written at once.
const STEP_BYTES: usize = 1 << 20;
/// The number of concurrent reads of a remote object.
const READS_AHEAD: u64 = 8;

/// Decompresses a file into an unnamed file in `directory`. Calls `check` repeatedly to see whether
/// to continue. The dictionary of an `.xz` file, which may be large, counts for the memory of the
/// query that the thread works for.
///
/// # Errors
/// The file is damaged, the disk is full, the memory of the query is too small, or `check` fails.
pub fn decompress(
    source: Arc<dyn RangeReader>,
    compression: Compression,
    directory: &Path,
    check: &dyn Fn() -> Result<()>,
) -> Result<Arc<dyn RangeReader>> {
    let (path, modified) = (source.path().to_string(), source.modified());
    let no_room = |error: io::Error| {
        Error::io(format!(
            "'{path}' cannot be decompressed into the temporary directory '{}': {}; name another with \
             --temp-directory DIR (or SET temp_directory)",
            directory.display(),
            io_cause(&error)
        ))
    };
    let mut file = tempfile::tempfile_in(directory).map_err(no_room)?;
    let (mut failed, mut refused) = (None, None);
    let input = BufReader::with_capacity(
        STEP_BYTES,
        SequentialReader { source, position: 0, failed: &mut failed, check },
    );
    let unpacked = match compression {
        Compression::Gzip => unpack(flate2::bufread::MultiGzDecoder::new(input), &mut file, check),
        Compression::Zstandard => match zstd::stream::read::Decoder::with_buffer(input) {
            Ok(decoder) => unpack(decoder, &mut file, check),
            Err(error) => Err(DecompressError::Read(error)),
        },
        Compression::Bzip2 => unpack(bzip2::bufread::MultiBzDecoder::new(input), &mut file, check),
        Compression::Xz => unpack(xz::Decoder::new(input, &mut refused), &mut file, check),
    };
    match (unpacked, failed.or(refused.map(|error| error.context(format!("'{path}'"))))) {
        (Ok(len), _) => Ok(Arc::new(FileReader { path, file, len, modified, version: None })),
        (Err(_), Some(error)) | (Err(DecompressError::Interrupted(error)), None) => Err(error),
        (Err(DecompressError::Write(error)), None) => Err(no_room(error)),
        (Err(DecompressError::Read(error)), None) => Err(Error::data(format!(
            "cannot decompress '{path}': {error}; the file is damaged or was not written completely"
        ))),
    }
}

/// The reason for which decompression stopped.
enum DecompressError {
    Read(io::Error),
    Write(io::Error),
    Interrupted(Error),
}

/// Writes the output of a decoder to a file. Returns its length.
fn unpack(
    mut decoder: impl io::Read,
    file: &mut File,
    check: &dyn Fn() -> Result<()>,
) -> std::result::Result<u64, DecompressError> {
    let mut buffer = vec![0; STEP_BYTES];
    let mut len = 0;
    loop {
        check().map_err(DecompressError::Interrupted)?;
        let count = match decoder.read(&mut buffer) {
            Ok(0) => return Ok(len),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(DecompressError::Read(error)),
        };
        file.write_all(buffer.get(..count).unwrap_or_default()).map_err(DecompressError::Write)?;
        len += count as u64;
    }
}

/// Reads a file sequentially.
struct SequentialReader<'a> {
    source: Arc<dyn RangeReader>,
    position: u64,
    /// The read error, if any.
    failed: &'a mut Option<Error>,
    check: &'a dyn Fn() -> Result<()>,
}

impl SequentialReader<'_> {
    fn next(&mut self, len: usize) -> Result<Bytes> {
        let range = |ahead: u64| {
            let start = (self.position + ahead * len as u64).min(self.source.len());
            start..(start + len as u64).min(self.source.len())
        };
        let ahead: Vec<_> = (0..READS_AHEAD).map(range).filter(|range| !range.is_empty()).collect();
        if self.source.is_remote() {
            self.source.prefetch(&ahead)?;
        }
        loop {
            match self.source.read_into(range(0), ReadBuffer::default())? {
                Read::Ready(buffer) => return Ok(buffer.into_bytes()),
                Read::Blocked(token) => token.wait(Duration::from_millis(100)),
            }
            (self.check)()?;
        }
    }
}

impl io::Read for SequentialReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = match self.next(buffer.len()) {
            Ok(bytes) => bytes,
            Err(error) => {
                *self.failed = Some(error);
                return Err(io::Error::other("the file cannot be read"));
            }
        };
        let count = bytes.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), bytes.get(..count)) {
            to.copy_from_slice(from);
        }
        self.position += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::interrupt::within;
    use tessera_context::testing::TestContext;
    use tessera_types::Code;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn bzip2(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn xz(bytes: &[u8]) -> Vec<u8> {
        let options = lzma_rust2::XzOptions::with_preset(1);
        let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    fn unpacked(bytes: &[u8], compression: Compression) -> Result<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.packed");
        std::fs::write(&path, bytes).unwrap();
        let source = crate::open(path.to_str().unwrap())?;
        let reader = decompress(source, compression, folder.path(), &|| Ok(()))?;
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        match reader.read_into(0..reader.len(), ReadBuffer::default())? {
            Read::Ready(bytes) => Ok(bytes.to_vec()),
            Read::Blocked(_) => panic!("local files never block"),
        }
    }

    #[test]
    fn members_and_frames_follow_each_other() {
        let long = b"0123456789".repeat(300_000);
        let two = [gzip(&long), gzip(b"end")].concat();
        assert_eq!(unpacked(&two, Compression::Gzip).unwrap(), [&long[..], b"end"].concat());
        let frame = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
        let two = [frame(&long), frame(b"end")].concat();
        assert_eq!(unpacked(&two, Compression::Zstandard).unwrap(), [&long[..], b"end"].concat());
        assert_eq!(unpacked(&gzip(b""), Compression::Gzip).unwrap(), b"");
        let two = [bzip2(&long), bzip2(b""), bzip2(b"end")].concat();
        assert_eq!(unpacked(&two, Compression::Bzip2).unwrap(), [&long[..], b"end"].concat());
        // Between streams of xz, there may be zeros.
        let two = [&xz(&long)[..], &[0; 8], &xz(b""), &xz(b"end"), &[0; 4]].concat();
        assert_eq!(unpacked(&two, Compression::Xz).unwrap(), [&long[..], b"end"].concat());
    }

    #[test]
    fn damaged_files_are_errors() {
        let text = b"0123456789".repeat(1_000);
        let wholes = [
            (Compression::Gzip, gzip(&text)),
            (Compression::Zstandard, zstd::encode_all(&text[..], 1).unwrap()),
            (Compression::Bzip2, bzip2(&text)),
            (Compression::Xz, xz(&text)),
        ];
        for (compression, whole) in wholes {
            let behind = [&whole[..], b"a,b\n1,2\n"].concat();
            let (half, short) = (&whole[..whole.len() / 2], &whole[..whole.len() - 1]);
            for bytes in [half, short, &behind, b"a,b\n1,2\n"] {
                let error = unpacked(bytes, compression).unwrap_err();
                assert!(error.message().contains("x.packed"), "{compression:?}: {error}");
                assert!(error.message().contains("cannot decompress"), "{compression:?}: {error}");
            }
        }
    }

    #[test]
    fn a_dictionary_beyond_the_budget_is_refused() {
        let mut options = lzma_rust2::XzOptions::with_preset(1);
        options.lzma_options.dict_size = 256 << 20;
        let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
        writer.write_all(b"a few bytes").unwrap();
        let bytes = writer.finish().unwrap();
        let within = |budget| {
            let context = TestContext::with_budget(7, 1, budget);
            let shared: Arc<dyn tessera_context::Context> = context.clone();
            let unpacked = within(&shared, || unpacked(&bytes, Compression::Xz));
            assert_eq!(context.used(), 0);
            unpacked
        };
        assert_eq!(within(300 << 20).unwrap(), b"a few bytes");
        let error = within(200 << 20).unwrap_err();
        assert_eq!(error.code(), Code::Limit);
        let message = error.to_string();
        assert!(message.contains("x.packed") && message.contains("dictionary"), "{message}");
    }

    #[test]
    fn it_ends_when_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.gz");
        std::fs::write(&path, gzip(b"x")).unwrap();
        let source = crate::open(path.to_str().unwrap()).unwrap();
        let stop = || Err(Error::internal("stop"));
        let error = decompress(source, Compression::Gzip, folder.path(), &stop).unwrap_err();
        assert!(error.message().contains("stop"), "{error}");
    }
}
