//! What kernels find in the device's memory, and what becomes of it: the words of their parameters
//! first, then what they write, then what they read.

use std::borrow::Cow;
use std::ops::Range;

use tessera_codegen::{
    InputCode, Machine, RawInput, Select, StateCode, StepCode, Update, UpdateCode,
};
use tessera_context::{Place, Reservation, interrupt};
use tessera_types::{Error, Result};

use super::{Grid, Offloaded, SCRATCHPAD_BYTES, Session};
use crate::compiler::Piece;
use crate::lower::furthest;

/// How many words a kernel's common parameters are, and those of updates and predicates.
const COMMON: usize = 4;
const UPDATE_WORDS: usize = COMMON + 6;
const SELECT_WORDS: usize = COMMON + 4;

/// How many copies of its records a block has at most: one for each lane that runs at once.
const COPIES_MOST: u64 = 32;
/// How much of its scratchpad more than one may take, for as many blocks to run at once as there is
/// else room for.
const COPIES_BYTES: u64 = 16 << 10;

/// Parts shorter than this are copied to the device together.
const BATCHED_BYTES: usize = 256 << 10;

/// The beginning of a device's memory, as it is to be: the words of a kernel's parameters, then
/// parts, of which those that are only written to are not copied.
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

    /// Leaves room for bytes behind all others; gives where it will be for the device. What wide
    /// values are made of is aligned.
    fn room(&mut self, bytes: usize) -> u64 {
        let offset = self.bytes.next_multiple_of(16);
        self.bytes = offset + bytes;
        self.base + offset as u64
    }

    fn put(&mut self, bytes: impl Into<Cow<'a, [u8]>>) -> u64 {
        let bytes = bytes.into();
        let address = self.room(bytes.len());
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

    /// Copies everything to the device.
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

    /// Puts what every kernel reads.
    ///
    /// # Safety
    /// As of [`Update::run`] and [`Select::run`].
    unsafe fn put_common(
        &mut self,
        (codes, inputs): (&[InputCode], &[RawInput]),
        (positions, rows): (*const u32, usize),
        given: &[u64],
    ) {
        let (mut at, mut stored) = (0, rows);
        if !positions.is_null() {
            // SAFETY: the caller gives so many positions.
            let positions = unsafe { std::slice::from_raw_parts(positions, rows) };
            stored = positions.iter().max().map_or(0, |last| *last as usize + 1);
            at = self.put(bytes_of_numbers(positions));
        }
        let mut words = Vec::with_capacity(inputs.len() * RawInput::WORDS);
        for (code, input) in codes.iter().zip(inputs) {
            let bits = |offset: u64| (offset as usize + stored).div_ceil(8);
            let offset = input.values_offset;
            let bytes = match code.machine {
                Machine::Boolean => bits(offset),
                machine => stored * machine.bytes(),
            };
            // SAFETY: the caller gives a value at each position.
            words.push(self.put(unsafe { std::slice::from_raw_parts(input.values, bytes) }));
            words.push(match code.nullable {
                // SAFETY: and validity.
                true => self.put(unsafe {
                    std::slice::from_raw_parts(input.validity, bits(input.validity_offset))
                }),
                false => 0,
            });
            words.extend([offset, input.validity_offset, 0]);
        }
        let addresses =
            [self.put_words(words), at, rows as u64, self.put_words(given.iter().copied())];
        for (parameter, word) in addresses.into_iter().enumerate() {
            self.set(parameter, word);
        }
    }

    /// Has a kernel work on it; gives what there is then at some bytes of the image, if there is
    /// room for all.
    fn run(
        &self,
        device: &mut dyn Session,
        (kernel, grid): (u64, Grid),
        results: Range<usize>,
    ) -> Result<Option<Vec<u8>>> {
        if self.bytes > device.size() {
            return Ok(None);
        }
        let _held = match interrupt::work() {
            Some(query) => {
                let mut held = Reservation::on(Place::Device, query);
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
    // SAFETY: a number is four bytes, each of which may be anything.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}

fn words_of(bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks_exact(8)
        .map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()))
        .collect()
}

/// A record of a group without tuples: of what keeps the smallest or largest value, one that is
/// further than any.
fn initial(code: &UpdateCode) -> Vec<u64> {
    let mut record = vec![0; code.stride];
    for state in code.stages.iter().flat_map(|stage| &stage.states) {
        if let (StepCode::Min | StepCode::Max, [arg]) = (state.step, &state.args[..]) {
            record[state.offset] = furthest(state.step, arg.machine);
        }
    }
    record
}

/// Adds what a device has come to to a record of the host; none where a sum leaves its 128 bits.
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

/// How many copies a block's scratchpad has of records of so many words in all, a power of two or
/// none, and the bytes that they take. Each is a word longer where that makes it odd, as kernels
/// have it.
fn copies(words: usize) -> (u64, u64) {
    let bytes = (words as u64 | 1) * 8;
    let copies = match COPIES_BYTES / bytes {
        0 => u64::from(bytes <= SCRATCHPAD_BYTES),
        fit => 1 << fit.min(COPIES_MOST).ilog2(),
    };
    (copies, copies * bytes)
}

/// Whether the value of some bits comes before that of others: NaN after every other number.
fn is_less(machine: Machine, left: u64, right: u64) -> bool {
    let floats = |left: f64, right: f64| left < right || (right.is_nan() && !left.is_nan());
    match machine {
        Machine::Integer { signed: true, .. } => (left as i64) < right as i64,
        Machine::Integer { .. } | Machine::Boolean => left < right,
        Machine::Float32 => {
            floats(f32::from_bits(left as u32).into(), f32::from_bits(right as u32).into())
        }
        Machine::Float64 => floats(f64::from_bits(left), f64::from_bits(right)),
    }
}

/// What a device has come to: nothing, where a tuple perhaps raises an error.
fn unless_raised(results: Option<Vec<u8>>) -> Option<Vec<u8>> {
    results.filter(|bytes| bytes.first_chunk() == Some(&[0; 8]))
}

impl Offloaded {
    /// The records of all groups that the tuples have, and the words of each.
    ///
    /// # Safety
    /// As of [`Update::run`].
    unsafe fn records(
        &self,
        (code, given): (&UpdateCode, &[u64]),
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
        let (copies, scratchpad_bytes) = copies(count * code.stride);
        let groups = image.put(bytes_of_numbers(groups));
        let initial = image.put_words(initial);
        let own = [groups, area, initial, count as u64, copies, raised];
        own.into_iter().enumerate().for_each(|(number, word)| image.set(COMMON + number, word));
        // SAFETY: the caller's promises.
        unsafe { image.put_common((&code.inputs, inputs), (positions, rows), given) };
        let grid = self.grid(rows, scratchpad_bytes);
        let results = image.run(&mut *device, (self.kernel_number()?, grid), results)?;
        Ok(unless_raised(results).map(|results| words_of(&results[16..])))
    }

    fn kernel_number(&self) -> Result<u64> {
        match self.kernel.get() {
            Some(Ok(kernel)) => Ok(kernel.number),
            Some(Err(error)) => Err(error.clone()),
            None => Err(Error::internal("a kernel runs before it is there")),
        }
    }
}

impl Update for Offloaded {
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
            // SAFETY: the caller gives a group for each tuple.
            false => unsafe { std::slice::from_raw_parts(groups, rows) },
        };
        // SAFETY: the caller's promises are the same.
        let records =
            unsafe { self.records((code, &self.given.words), inputs, (positions, rows), groups) };
        let Some(records) = self.noted(records) else { return Some(0) };
        let mut is_changed = vec![!code.grouped; records.len() / code.stride];
        groups.iter().for_each(|group| is_changed[*group as usize] = true);
        for (group, from) in
            records.chunks_exact(code.stride).enumerate().filter(|(group, _)| is_changed[*group])
        {
            // SAFETY: there is a record of each group that a tuple has, or the only one, and nobody
            // else uses it.
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

impl Offloaded {
    /// The positions of those tuples for which the predicate is true.
    ///
    /// # Safety
    /// As of [`Select::run`].
    unsafe fn found(
        &self,
        (codes, given): (&[InputCode], &[u64]),
        inputs: &[RawInput],
        (positions, rows): (*const u32, usize),
    ) -> Result<Option<Vec<u32>>> {
        let mut device = self.device.session()?;
        let (_, lanes) = self.device.grid();
        let grid = self.grid(rows, lanes * 8);
        let mut image = Image::new(device.base(), SELECT_WORDS);
        let raised = image.put(&[0; 16][..]);
        let (counts, out) = (image.room(grid.blocks as usize * 8), image.room(rows * 4));
        let results = image.offset(raised)..image.offset(out) + rows * 4;
        let flags = image.room(rows);
        let own = [out, counts, flags, raised];
        own.into_iter().enumerate().for_each(|(number, word)| image.set(COMMON + number, word));
        // SAFETY: the caller's promises.
        unsafe { image.put_common((codes, inputs), (positions, rows), given) };
        let (counts, out) =
            (image.offset(counts) - results.start, image.offset(out) - results.start);
        let results = image.run(&mut *device, (self.kernel_number()?, grid), results)?;
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

    /// What came of a run. A device that fails is told of when it is asked for next; until then,
    /// the vectorised tier does what it has not done.
    fn noted<T>(&self, result: Result<Option<T>>) -> Option<T> {
        result.unwrap_or_else(|error| {
            let _ = self.failed.set(error);
            None
        })
    }
}

impl Select for Offloaded {
    unsafe fn run(
        &self,
        inputs: &[RawInput],
        positions: *const u32,
        rows: usize,
        out: *mut u32,
    ) -> Option<usize> {
        let Piece::Select(code, _) = &self.piece else { return None };
        // SAFETY: the caller's promises are the same.
        let found =
            unsafe { self.found((&code.inputs, &self.given.words), inputs, (positions, rows)) };
        let found = self.noted(found)?;
        // SAFETY: there is room for as many as there are tuples.
        unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), out, found.len().min(rows)) };
        Some(found.len().min(rows))
    }
}
