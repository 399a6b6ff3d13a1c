//! The layout of device memory for a kernel: its parameters, then its outputs, then its inputs.
//! Also merges the outputs into the host's state.

use std::borrow::Cow;
use std::ops::Range;

use tessera_codegen::{
    InputCode, MachineType, RawInput, Select, StateCode, StepCode, Update, UpdateCode,
};
use tessera_context::{Place, Reservation, interrupt};
use tessera_types::{Error, Result};

use super::{Grid, OffloadedPiece, SCRATCHPAD_BYTES, Session};
use crate::compiler::Piece;
use crate::lower::identity;

/// Parameter words that all kernels share, and the totals for updates and predicates.
const COMMON: usize = 4;
const UPDATE_WORDS: usize = COMMON + 6;
const SELECT_WORDS: usize = COMMON + 4;

/// The most copies of its records in a block: one for each lane that runs at once.
const COPIES_MAX: u64 = 32;
/// The most bytes of scratchpad for more than one copy, so that several blocks fit on a
/// multiprocessor.
const COPIES_BYTES: u64 = 16 << 10;

/// Shorter parts are copied to the device in one batch.
const BATCHED_BYTES: usize = 256 << 10;

/// An image of the beginning of device memory: the kernel's parameters, then parts. Output-only
/// parts are reserved but not copied.
struct Image<'a> {
    base: u64,
    parameters: Vec<u64>,
    parts: Vec<(usize, Cow<'a, [u8]>)>,
    bytes: usize,
}

impl<'a> Image<'a> {
    fn new(base: u64, parameters: usize) -> Image<'a> {
        Image { base, parameters: vec![0; parameters], parts: Vec::new(), bytes: parameters * 8 }
    }

    /// Reserves bytes after all others, aligned for the widest values; returns their device
    /// address.
    fn reserve(&mut self, bytes: usize) -> u64 {
        let offset = self.bytes.next_multiple_of(16);
        self.bytes = offset + bytes;
        self.base + offset as u64
    }

    fn put(&mut self, bytes: impl Into<Cow<'a, [u8]>>) -> u64 {
        let bytes = bytes.into();
        let address = self.reserve(bytes.len());
        self.parts.push((self.offset(address), bytes));
        address
    }

    fn put_words(&mut self, words: impl IntoIterator<Item = u64>) -> u64 {
        self.put(bytes_of(words))
    }

    fn set(&mut self, parameter: usize, word: u64) {
        self.parameters[parameter] = word;
    }

    fn offset(&self, address: u64) -> usize {
        (address - self.base) as usize
    }

    /// Copies the image to the device.
    fn copy(&self, device: &mut dyn Session) -> Result<()> {
        let (mut first, mut batch) = (0, bytes_of(self.parameters.iter().copied()));
        for (offset, bytes) in &self.parts {
            let is_short = bytes.len() < BATCHED_BYTES;
            if !is_short || offset - first > batch.len() + BATCHED_BYTES {
                device.write(first, &batch)?;
                (first, batch) = (*offset, Vec::new());
            }
            match is_short {
                true => {
                    batch.resize(offset - first, 0);
                    batch.extend_from_slice(bytes);
                }
                false => {
                    device.write(*offset, bytes)?;
                    first += bytes.len();
                }
            }
        }
        device.write(first, &batch)
    }

    /// Adds the parameters that all kernels have.
    ///
    /// # Safety
    /// The contract of [`Update::run`] and [`Select::run`].
    unsafe fn put_common(
        &mut self,
        (codes, inputs): (&[InputCode], &[RawInput]),
        (positions, rows): (*const u32, usize),
        constants: &[u64],
    ) {
        let (mut at, mut stored) = (0, rows);
        if !positions.is_null() {
            // SAFETY: the caller passes `rows` positions.
            let positions = unsafe { std::slice::from_raw_parts(positions, rows) };
            stored = positions.iter().max().map_or(0, |last| *last as usize + 1);
            at = self.put(bytes_of_numbers(positions));
        }
        let mut words = Vec::with_capacity(inputs.len() * RawInput::WORDS);
        for (code, input) in codes.iter().zip(inputs) {
            let bits = |offset: u64| (offset as usize + stored).div_ceil(8);
            let offset = input.values_offset;
            let bytes = match code.machine {
                MachineType::Boolean => bits(offset),
                machine => stored * machine.bytes(),
            };
            // SAFETY: the caller passes a value at each position.
            words.push(self.put(unsafe { std::slice::from_raw_parts(input.values, bytes) }));
            words.push(match code.nullable {
                // SAFETY: as above, for validity bits.
                true => self.put(unsafe {
                    std::slice::from_raw_parts(input.validity, bits(input.validity_offset))
                }),
                false => 0,
            });
            words.extend([offset, input.validity_offset, 0]);
        }
        let addresses =
            [self.put_words(words), at, rows as u64, self.put_words(constants.iter().copied())];
        for (parameter, word) in addresses.into_iter().enumerate() {
            self.set(parameter, word);
        }
    }

    /// Runs a kernel on the image; returns the given range of the image afterwards, or `None` if
    /// the image does not fit.
    fn run(
        &self,
        device: &mut dyn Session,
        (kernel, grid): (u64, Grid),
        place: Place,
        results: Range<usize>,
    ) -> Result<Option<Vec<u8>>> {
        if self.bytes > device.size() {
            return Ok(None);
        }
        let _held = match interrupt::work() {
            Some(query) => {
                let mut held = Reservation::on(place, query);
                held.grow(self.bytes)?;
                Some(held)
            }
            None => None,
        };
        self.copy(device)?;
        device.launch(kernel, grid)?;
        let mut bytes = vec![0; results.len()];
        device.read(results.start, &mut bytes)?;
        Ok(Some(bytes))
    }
}

fn bytes_of(words: impl IntoIterator<Item = u64>) -> Vec<u8> {
    words.into_iter().flat_map(u64::to_ne_bytes).collect()
}

fn bytes_of_numbers(numbers: &[u32]) -> &[u8] {
    // SAFETY: a number is four bytes, and any byte is valid.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}

fn words_of(bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks_exact(8)
        .map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()))
        .collect()
}

/// Returns the initial record of a group; min and max states begin with their identity.
fn initial(code: &UpdateCode) -> Vec<u64> {
    let mut record = vec![0; code.stride];
    for state in code.stages.iter().flat_map(|stage| &stage.states) {
        if let (StepCode::Min | StepCode::Max, [arg]) = (state.step, &state.args[..]) {
            record[state.offset] = identity(state.step, arg.machine);
        }
    }
    record
}

/// Merges a device record into a host record; `None` if a sum overflows 128 bits.
fn merge(state: &StateCode, from: &[u64], to: &mut [u64]) -> Option<()> {
    let (from, to) = (&from[state.offset..], &mut to[state.offset..]);
    match state.step {
        StepCode::Count => to[0] += from[0],
        StepCode::ExactSum => {
            let long = |words: &[u64]| (u128::from(words[1]) << 64 | u128::from(words[0])) as i128;
            let sum = long(to).checked_add(long(from))? as u128;
            (to[0], to[1]) = (sum as u64, (sum >> 64) as u64);
            to[2] += from[2];
        }
        StepCode::FloatSum => {
            to[0] = (f64::from_bits(to[0]) + f64::from_bits(from[0])).to_bits();
            to[1] += from[1];
        }
        StepCode::Min | StepCode::Max => {
            let machine = state.args.first()?.machine;
            let closer = match state.step {
                StepCode::Min => is_less(machine, from[0], to[0]),
                _ => is_less(machine, to[0], from[0]),
            };
            if from[1] > 0 && (to[1] == 0 || closer) {
                (to[0], to[1]) = (from[0], 1);
            }
        }
    }
    Some(())
}

/// Returns how many copies of records of `words` words in total fit in a block's scratchpad (a
/// power of two, or 0) and their bytes. Each copy has an odd number of words, as kernels expect.
fn copy_count(words: usize) -> (u64, u64) {
    let bytes = (words as u64 | 1) * 8;
    let copies = match COPIES_BYTES / bytes {
        0 => u64::from(bytes <= SCRATCHPAD_BYTES),
        fit => 1 << fit.min(COPIES_MAX).ilog2(),
    };
    (copies, copies * bytes)
}

/// Compares two values by their bits; NaN sorts after all other numbers.
fn is_less(machine: MachineType, left: u64, right: u64) -> bool {
    let floats = |left: f64, right: f64| left < right || (right.is_nan() && !left.is_nan());
    match machine {
        MachineType::Integer { signed: true, .. } => (left as i64) < right as i64,
        MachineType::Integer { .. } | MachineType::Boolean => left < right,
        MachineType::Float32 => {
            floats(f32::from_bits(left as u32).into(), f32::from_bits(right as u32).into())
        }
        MachineType::Float64 => floats(f64::from_bits(left), f64::from_bits(right)),
    }
}

/// Returns the device's output, or `None` if a tuple may have raised an error.
fn unless_raised(results: Option<Vec<u8>>) -> Option<Vec<u8>> {
    results.filter(|bytes| bytes.first_chunk() == Some(&[0; 8]))
}

impl OffloadedPiece {
    /// Computes the records of all groups; returns them with the number of words of each.
    ///
    /// # Safety
    /// The contract of [`Update::run`].
    unsafe fn records(
        &self,
        (code, constants): (&UpdateCode, &[u64]),
        inputs: &[RawInput],
        (positions, rows): (*const u32, usize),
        groups: &[u32],
    ) -> Result<Option<Vec<u64>>> {
        let mut device = self.device.session()?;
        let count = groups.iter().max().map_or(1, |last| *last as usize + 1);
        let initial = initial(code);
        if count.saturating_mul(code.stride * 8) > device.size() / 2 {
            return Ok(None);
        }
        let mut image = Image::new(device.base(), UPDATE_WORDS);
        let raised = image.put(&[0; 16][..]);
        let area = image.put_words(std::iter::repeat_n(&initial, count).flatten().copied());
        let results = image.offset(raised)..image.offset(area) + count * code.stride * 8;
        let (copies, scratchpad_bytes) = copy_count(count * code.stride);
        let groups = image.put(bytes_of_numbers(groups));
        let initial = image.put_words(initial);
        let own = [groups, area, initial, count as u64, copies, raised];
        own.into_iter().enumerate().for_each(|(number, word)| image.set(COMMON + number, word));
        // SAFETY: guaranteed by the caller.
        unsafe { image.put_common((&code.inputs, inputs), (positions, rows), constants) };
        let grid = self.grid(rows, scratchpad_bytes);
        let results =
            image.run(&mut *device, (self.kernel_number()?, grid), self.place, results)?;
        Ok(unless_raised(results).map(|results| words_of(&results[16..])))
    }

    fn kernel_number(&self) -> Result<u64> {
        match self.kernel.get() {
            Some(Ok(kernel)) => Ok(kernel.number),
            Some(Err(error)) => Err(error.clone()),
            None => Err(Error::internal("a kernel runs before it is compiled")),
        }
    }
}

impl Update for OffloadedPiece {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        groups: *const u32,
        area: *mut u64,
    ) -> Option<usize> {
        let Piece::Update(code, _) = &self.piece else { return Some(0) };
        let groups = match !code.grouped || rows == 0 {
            true => &[],
            // SAFETY: the caller passes a group for each tuple.
            false => unsafe { std::slice::from_raw_parts(groups, rows) },
        };
        // SAFETY: the same contract.
        let records = unsafe {
            self.records((code, &self.constants.words), inputs, (positions, rows), groups)
        };
        let Some(records) = self.store_error(records) else { return Some(0) };
        let mut is_changed = vec![!code.grouped; records.len() / code.stride];
        groups.iter().for_each(|group| is_changed[*group as usize] = true);
        for (group, from) in
            records.chunks_exact(code.stride).enumerate().filter(|(group, _)| is_changed[*group])
        {
            // SAFETY: the area holds a record of each group of the tuples (or the only record), and
            // no other thread uses it.
            let to = unsafe {
                std::slice::from_raw_parts_mut(area.add(group * code.stride), code.stride)
            };
            for state in code.stages.iter().flat_map(|stage| &stage.states) {
                merge(state, from, to)?;
            }
        }
        Some(rows)
    }
}

impl OffloadedPiece {
    /// Returns the positions of the tuples for which the predicate is true.
    ///
    /// # Safety
    /// The contract of [`Select::run`].
    unsafe fn selected_positions(
        &self,
        (codes, constants): (&[InputCode], &[u64]),
        inputs: &[RawInput],
        (positions, rows): (*const u32, usize),
    ) -> Result<Option<Vec<u32>>> {
        let mut device = self.device.session()?;
        let (_, lanes) = self.device.grid();
        let grid = self.grid(rows, lanes * 8);
        let mut image = Image::new(device.base(), SELECT_WORDS);
        let raised = image.put(&[0; 16][..]);
        let (counts, out) = (image.reserve(grid.blocks as usize * 8), image.reserve(rows * 4));
        let results = image.offset(raised)..image.offset(out) + rows * 4;
        let flags = image.reserve(rows);
        let own = [out, counts, flags, raised];
        own.into_iter().enumerate().for_each(|(number, word)| image.set(COMMON + number, word));
        // SAFETY: guaranteed by the caller.
        unsafe { image.put_common((codes, inputs), (positions, rows), constants) };
        let (counts, out) =
            (image.offset(counts) - results.start, image.offset(out) - results.start);
        let results =
            image.run(&mut *device, (self.kernel_number()?, grid), self.place, results)?;
        let Some(results) = unless_raised(results) else { return Ok(None) };
        let share = rows.div_ceil(grid.blocks as usize);
        let mut found = Vec::with_capacity(rows);
        for (block, count) in
            words_of(&results[counts..][..grid.blocks as usize * 8]).into_iter().enumerate()
        {
            let first = out + (block * share).min(rows) * 4;
            let bytes = results[first..].chunks_exact(4).take(count as usize);
            found.extend(
                bytes.map(|position| u32::from_ne_bytes(position.try_into().unwrap_or_default())),
            );
        }
        Ok(Some(found))
    }

    /// Stores the error of a failed run, which the next `get` returns; meanwhile the vectorized
    /// tier processes the tuples.
    fn store_error<T>(&self, result: Result<Option<T>>) -> Option<T> {
        result.unwrap_or_else(|error| {
            let _ = self.failed.set(error);
            None
        })
    }
}

impl Select for OffloadedPiece {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        out: *mut u32,
    ) -> Option<usize> {
        let Piece::Select(code, _) = &self.piece else { return None };
        // SAFETY: the same contract.
        let found = unsafe {
            self.selected_positions(
                (&code.inputs, &self.constants.words),
                inputs,
                (positions, rows),
            )
        };
        let found = self.store_error(found)?;
        // SAFETY: `out` has room for all tuples.
        unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), out, found.len().min(rows)) };
        Some(found.len().min(rows))
    }
}
