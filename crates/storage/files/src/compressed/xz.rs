//! Decompression of `.xz` files. A file says how large a dictionary its decoder needs, up to 4 GiB.

use std::io::{self, BufRead, ErrorKind, Read};

use lzma_rust2::{Action, Status, XzStream};
use tessera_context::{Reservation, interrupt};
use tessera_types::Error;

/// Decompresses one or more streams.
pub(super) struct Decoder<'a, R> {
    input: R,
    stream: XzStream,
    /// The memory of the decoder.
    memory: Option<Reservation>,
    /// Why memory was refused, if it was.
    refused: &'a mut Option<Error>,
    is_done: bool,
}

impl<'a, R: BufRead> Decoder<'a, R> {
    pub(super) fn new(input: R, refused: &'a mut Option<Error>) -> Decoder<'a, R> {
        // Without a limit of its own, so that each block tells what it needs.
        let stream = XzStream::new_mem_limit(true, 0);
        let memory = interrupt::work().map(Reservation::new);
        Decoder { input, stream, memory, refused, is_done: false }
    }

    /// Counts the memory that the next block needs, and permits it.
    fn permit(&mut self) -> io::Result<()> {
        let needed = self.stream.memory_usage().unwrap_or(u32::MAX);
        if let Some(memory) = &mut self.memory
            && let Err(error) = memory.resize(needed as usize * 1024)
        {
            let what = format!("its dictionary needs {} MiB", needed.div_ceil(1024));
            *self.refused = Some(error.context(what));
            return Err(io::Error::from(ErrorKind::OutOfMemory));
        }
        self.stream.set_mem_limit(needed);
        Ok(())
    }
}

impl<R: BufRead> Read for Decoder<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.is_done {
            let input = self.input.fill_buf()?;
            let action = if input.is_empty() { Action::Finish } else { Action::Run };
            let (known, before) = (self.stream.mem_limit(), self.stream.total_in());
            let step = match self.stream.process(input, buffer, action) {
                Ok(step) => step,
                Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                    if self.stream.memory_usage().is_none_or(|needed| needed <= known) {
                        return Err(error);
                    }
                    // What it has taken of the input is in its state.
                    let taken = self.stream.total_in() - before;
                    self.input.consume(taken as usize);
                    self.permit()?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let is_stuck = input.is_empty() && step.bytes_produced == 0;
            self.input.consume(step.bytes_consumed);
            self.is_done = step.status == Status::StreamEnd;
            if step.bytes_produced > 0 {
                return Ok(step.bytes_produced);
            }
            if is_stuck && !self.is_done {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(0)
    }
}
