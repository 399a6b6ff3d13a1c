//! Text files that are compressed as a whole while they are written: `x.csv.gz`, `x.json.zst`.
//!
//! Memory, counted: the window and the tables of the compressor.

use std::fmt;
use std::io::{self, Write};

use flate2::write::GzEncoder;
use zstd::stream::write::Encoder as ZstdEncoder;

use tessera_context::{Compression, Reservation, Run};
use tessera_operator::format::compression_of;
use tessera_plan::Node;
use tessera_types::{Error, Result};

use super::{TrackedOutput, partitioned};

/// The memory of a compressor, rounded up.
const GZIP_BYTES: usize = 512 << 10;
const ZSTD_BYTES: usize = 4 << 20;

/// Returns how a sub-operator compresses the files of text that it writes, by its option or by the
/// ends of their names.
///
/// # Errors
/// The option is malformed, or names a compression that is not written.
pub(crate) fn written_compression(node: &Node) -> Result<Option<Compression>> {
    let path = match partitioned::file_name(node) {
        Some(name) => name,
        None => node.params.string("path")?,
    };
    match compression_of(&node.params, path)? {
        Some(Compression::Bzip2 | Compression::Xz) => Err(Error::unsupported(format!(
            "cannot write '{path}': files compressed with bz2 or xz can be read but not written; \
             name a file that ends in .gz or .zst"
        ))),
        written => Ok(written),
    }
}

/// The output of a text file.
pub(super) enum TextOutput {
    Plain(TrackedOutput),
    Gzip { encoder: GzipOutput, _memory: Reservation },
    Zstandard { encoder: ZstdEncoder<'static, TrackedOutput>, _memory: Reservation },
}

/// Compresses with gzip.
pub(super) struct GzipOutput(GzEncoder<Gate>);

/// An output that can be closed, because a dropped [`GzEncoder`] writes an end, which would make a
/// part of a file look complete.
struct Gate(Option<TrackedOutput>);

impl TextOutput {
    pub(super) fn new(
        out: TrackedOutput,
        compression: Option<Compression>,
        run: &Run,
    ) -> Result<TextOutput> {
        let reserve = |bytes| {
            let mut memory = Reservation::new(run.context.clone());
            memory.grow(bytes).map(|()| memory)
        };
        match compression {
            None => Ok(TextOutput::Plain(out)),
            Some(Compression::Gzip) => {
                let encoder = GzEncoder::new(Gate(Some(out)), flate2::Compression::default());
                Ok(TextOutput::Gzip { encoder: GzipOutput(encoder), _memory: reserve(GZIP_BYTES)? })
            }
            Some(Compression::Zstandard) => {
                let _memory = reserve(ZSTD_BYTES)?;
                let level = zstd::DEFAULT_COMPRESSION_LEVEL;
                let encoder = ZstdEncoder::new(out, level).map_err(super::unwritten)?;
                Ok(TextOutput::Zstandard { encoder, _memory })
            }
            Some(Compression::Bzip2 | Compression::Xz) => {
                Err(Error::internal("a file is to be written with bz2 or xz"))
            }
        }
    }

    /// Writes the end of the file.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self {
            TextOutput::Plain(out) => out.flush(),
            TextOutput::Gzip { encoder: GzipOutput(encoder), .. } => {
                encoder.try_finish()?;
                encoder.get_mut().flush()
            }
            TextOutput::Zstandard { encoder, .. } => {
                encoder.do_finish()?;
                encoder.get_mut().flush()
            }
        }
    }
}

impl fmt::Debug for TextOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TextOutput::Plain(_) => "TextOutput::Plain",
            TextOutput::Gzip { .. } => "TextOutput::Gzip",
            TextOutput::Zstandard { .. } => "TextOutput::Zstandard",
        })
    }
}

impl Write for TextOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            TextOutput::Plain(out) => out.write(bytes),
            TextOutput::Gzip { encoder: GzipOutput(encoder), .. } => encoder.write(bytes),
            TextOutput::Zstandard { encoder, .. } => encoder.write(bytes),
        }
    }

    /// Does nothing: a compressor that is flushed compresses worse.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for GzipOutput {
    fn drop(&mut self) {
        self.0.get_mut().0 = None;
    }
}

impl Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Some(out) => out.write(bytes),
            None => Err(io::Error::other("the file was not completed")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Write::flush)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::{Arc, Mutex};

    use tessera_context::testing::TestContext;
    use tessera_context::{Output, lock};

    use super::*;

    /// An output in memory.
    #[derive(Debug, Clone, Default)]
    struct Bytes(Arc<Mutex<Vec<u8>>>);

    impl Write for Bytes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            lock(&self.0).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Output for Bytes {
        fn commit(self: Box<Self>) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn only_a_finished_file_is_complete() {
        let text = "0123456789".repeat(50_000);
        let context = TestContext::with_budget(7, 1, 64 << 20);
        let run = Run::new(context.clone());
        for finishes in [true, false] {
            for compression in [Compression::Gzip, Compression::Zstandard] {
                let bytes = Bytes::default();
                let out = TrackedOutput::new(Box::new(bytes.clone()));
                let mut written = TextOutput::new(out, Some(compression), &run).unwrap();
                assert!(context.used() > 0, "the compressor counts");
                written.write_all(text.as_bytes()).unwrap();
                if finishes {
                    written.finish().unwrap();
                }
                drop(written);
                let packed = lock(&bytes.0).clone();
                let mut unpacked = String::new();
                let read = match compression {
                    Compression::Gzip => {
                        flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut unpacked)
                    }
                    _ => zstd::Decoder::new(&packed[..])
                        .and_then(|mut decoder| decoder.read_to_string(&mut unpacked)),
                };
                assert_eq!(read.is_ok() && unpacked == text, finishes, "{compression:?}");
            }
        }
        assert_eq!(context.used(), 0);
    }
}
