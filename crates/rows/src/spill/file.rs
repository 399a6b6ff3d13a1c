//! Compressed, checksummed blocks of bytes in a scratch file.

use std::sync::{Arc, Mutex};

use tessera_context::{Context, Counters, Run, Scratch, lock};
use tessera_types::{Code, Error, Result};

/// A scratch file, created when the first block is written.
#[derive(Debug)]
pub struct SpillFile {
    context: Arc<dyn Context>,
    counters: Arc<Counters>,
    file: Mutex<Option<Arc<dyn Scratch>>>,
}

/// The location, length and checksum of a block.
#[derive(Debug, Clone, Copy)]
pub struct SpillBlock {
    start: u64,
    stored_bytes: u32,
    bytes: u32,
    checksum: u32,
}

impl SpillBlock {
    /// The number of bytes when decompressed.
    pub fn bytes(&self) -> usize {
        self.bytes as usize
    }
}

impl SpillFile {
    /// Creates no file yet; written bytes are counted for the run's node.
    pub fn new(run: &Run) -> Arc<SpillFile> {
        Arc::new(SpillFile {
            context: run.context.clone(),
            counters: run.counters.clone(),
            file: Mutex::default(),
        })
    }

    /// Writes a block.
    ///
    /// # Errors
    /// There is no temporary directory, or it is full or gone; the block has 2 GiB or more.
    pub fn write(&self, bytes: &[u8]) -> Result<SpillBlock> {
        self.context.check()?;
        if bytes.len() > i32::MAX as usize {
            let message = "a tuple of 2 GiB or more cannot be spilled; raise --memory SIZE";
            return Err(Error::new(Code::Limit, message));
        }
        let stored = lz4_flex::block::compress(bytes);
        let start = self.file()?.append(&stored)?;
        self.counters.add("spilled_bytes", stored.len() as u64);
        Ok(SpillBlock {
            start,
            stored_bytes: stored.len() as u32,
            bytes: bytes.len() as u32,
            checksum: crc32fast::hash(&stored),
        })
    }

    /// Reads a block.
    ///
    /// # Errors
    /// The block cannot be read, or its checksum is wrong.
    pub fn read(&self, block: &SpillBlock) -> Result<Vec<u8>> {
        self.context.check()?;
        let stored = self.file()?.read(block.start, block.stored_bytes as usize)?;
        let damaged = || {
            Error::io(
                "a block in the temporary directory is damaged; check its disk, or choose another with --temp-directory DIR",
            )
        };
        if crc32fast::hash(&stored) != block.checksum {
            return Err(damaged());
        }
        lz4_flex::block::decompress(&stored, block.bytes()).map_err(|_| damaged())
    }

    fn file(&self) -> Result<Arc<dyn Scratch>> {
        let mut file = lock(&self.file);
        if let Some(file) = &*file {
            return Ok(file.clone());
        }
        Ok(file.insert(self.context.scratch()?).clone())
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{TestContext, run_in};

    use super::*;

    #[test]
    fn blocks_come_back_and_damaged_ones_are_errors() {
        let context = TestContext::new(2048, 1);
        let file = SpillFile::new(&run_in(&context));
        let bytes: Vec<u8> = (0..10_000u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
        let blocks =
            [file.write(&bytes).unwrap(), file.write(&[]).unwrap(), file.write(b"more").unwrap()];
        assert_eq!(file.read(&blocks[0]).unwrap(), bytes);
        assert_eq!(file.read(&blocks[1]).unwrap(), b"");
        assert_eq!(file.read(&blocks[2]).unwrap(), b"more");
        for at in [0, 100, blocks[0].stored_bytes as usize - 1] {
            context.damage(at);
            let message = file.read(&blocks[0]).unwrap_err().to_string();
            assert!(message.contains("damaged"), "{message}");
            context.damage(at);
        }
        assert!(file.read(&blocks[0]).is_ok());
    }
}
