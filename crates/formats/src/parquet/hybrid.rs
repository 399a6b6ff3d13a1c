//! Parquet's hybrid of run-length and bit-packed encoding, for dictionary codes and definition
//! levels.

use bytes::Bytes;

use super::unpack::unpack;

/// A decoder of a hybrid stream of values of one bit width. Errors are texts; the caller adds file
/// and column.
#[derive(Debug)]
pub(super) struct Hybrid {
    data: Bytes,
    position: usize,
    width: usize,
    run: Run,
}

#[derive(Debug, Clone, Copy)]
enum Run {
    /// A run-length value and its remaining count.
    Repeated { value: u32, left: usize },
    /// Bit-packed values that start at byte `start`; the next one is number `next` of `len`.
    Packed { start: usize, next: usize, len: usize },
}

impl Hybrid {
    /// Creates a decoder of values of `width` bits.
    pub(super) fn new(data: Bytes, width: u8) -> Result<Hybrid, String> {
        if width > 32 {
            return Err(format!("unsupported code width of {width} bits"));
        }
        Ok(Hybrid {
            data,
            position: 0,
            width: width.into(),
            run: Run::Repeated { value: 0, left: 0 },
        })
    }

    /// Begins the next run.
    fn advance(&mut self) -> Result<(), String> {
        let mut header = 0u64;
        let mut shift = 0;
        loop {
            let byte =
                *self.data.get(self.position).ok_or("a page ends in the middle of its codes")?;
            self.position += 1;
            header |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
            shift += 7;
            if shift > 35 {
                return Err("a run of codes has a malformed length".to_string());
            }
        }
        let count = (header >> 1) as usize;
        if header & 1 == 1 {
            let bytes = count.checked_mul(self.width).ok_or("a run of codes is too long")?;
            let start = self.position;
            // The last run of a page may be truncated; the missing values are padding.
            let available = bytes.min(self.data.len() - start);
            let len = (available * 8).checked_div(self.width).unwrap_or(count * 8);
            self.position = start + available;
            self.run = Run::Packed { start, next: 0, len: len.min(count * 8) };
        } else {
            let bytes = self.width.div_ceil(8);
            let slice = self
                .data
                .get(self.position..self.position + bytes)
                .ok_or("a page ends in a run of codes")?;
            let mut value = [0; 4];
            value[..bytes].copy_from_slice(slice);
            self.position += bytes;
            self.run = Run::Repeated { value: u32::from_le_bytes(value), left: count };
        }
        Ok(())
    }

    fn left(&self) -> usize {
        match self.run {
            Run::Repeated { left, .. } => left,
            Run::Packed { next, len, .. } => len - next,
        }
    }

    /// Takes `count` values if they are all `value` and in one run; otherwise takes none.
    pub(super) fn take_repeated(&mut self, wanted: u32, count: usize) -> Result<bool, String> {
        while self.left() == 0 {
            self.advance()?;
        }
        match &mut self.run {
            Run::Repeated { value, left } if *value == wanted && *left >= count => {
                *left -= count;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Fills `out` with the next values.
    pub(super) fn read(&mut self, out: &mut [u32]) -> Result<(), String> {
        let mut filled = 0;
        while filled < out.len() {
            let left = self.left();
            if left == 0 {
                self.advance()?;
                continue;
            }
            let count = left.min(out.len() - filled);
            let target = &mut out[filled..filled + count];
            match &mut self.run {
                Run::Repeated { value, left } => {
                    target.fill(*value);
                    *left -= count;
                }
                Run::Packed { start, next, .. } => {
                    unpack(&self.data[*start..], self.width, *next, target);
                    *next += count;
                }
            }
            filled += count;
        }
        Ok(())
    }

    /// Skips `count` values.
    pub(super) fn skip(&mut self, mut count: usize) -> Result<(), String> {
        while count > 0 {
            let passed = self.left().min(count);
            if passed == 0 {
                self.advance()?;
                continue;
            }
            match &mut self.run {
                Run::Repeated { left, .. } => *left -= passed,
                Run::Packed { next, .. } => *next += passed,
            }
            count -= passed;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs runs as a writer does: `Ok` bit-packed (a multiple of eight values), `Err` repeated.
    fn encode(runs: &[Result<Vec<u32>, (u32, usize)>], width: usize) -> Bytes {
        let mut out = Vec::new();
        let varint = |out: &mut Vec<u8>, mut value: usize| {
            while value >= 0x80 {
                out.push(value as u8 | 0x80);
                value >>= 7;
            }
            out.push(value as u8);
        };
        for run in runs {
            match run {
                Ok(values) => {
                    varint(&mut out, (values.len() / 8) << 1 | 1);
                    let mut bits = vec![false; values.len() * width];
                    for (i, value) in values.iter().enumerate() {
                        (0..width).for_each(|bit| bits[i * width + bit] = value >> bit & 1 == 1);
                    }
                    out.extend(bits.chunks(8).map(|byte| {
                        byte.iter().enumerate().fold(0u8, |sum, (i, bit)| sum | (*bit as u8) << i)
                    }));
                }
                Err((value, count)) => {
                    varint(&mut out, count << 1);
                    out.extend(&value.to_le_bytes()[..width.div_ceil(8)]);
                }
            }
        }
        out.into()
    }

    #[test]
    fn every_width_in_pieces_of_every_size() {
        for width in 0..=32usize {
            let mask = if width == 32 { u32::MAX } else { (1u32 << width) - 1 };
            let packed: Vec<u32> =
                (0..136u32).map(|i| i.wrapping_mul(2_654_435_761) & mask).collect();
            let data = encode(&[Ok(packed.clone()), Err((mask, 50)), Ok(packed.clone())], width);
            let expected: Vec<u32> =
                packed.iter().copied().chain([mask; 50]).chain(packed.iter().copied()).collect();
            for piece in [1, 3, 8, 17, 64, 322] {
                let mut hybrid = Hybrid::new(data.clone(), width as u8).unwrap();
                let mut out = vec![0; expected.len()];
                out.chunks_mut(piece).for_each(|piece| hybrid.read(piece).unwrap());
                assert_eq!(out, expected, "width {width}, pieces of {piece}");
                let mut hybrid = Hybrid::new(data.clone(), width as u8).unwrap();
                hybrid.skip(piece).unwrap();
                let mut rest = vec![0; expected.len() - piece];
                hybrid.read(&mut rest).unwrap();
                assert_eq!(rest, expected[piece..], "width {width}, {piece} skipped");
            }
        }
    }

    #[test]
    fn damaged_streams_are_errors() {
        let mut hybrid = Hybrid::new(encode(&[Err((1, 4))], 3), 3).unwrap();
        assert!(hybrid.read(&mut [0; 5]).is_err());
        assert!(Hybrid::new(Bytes::new(), 3).unwrap().read(&mut [0]).is_err());
        assert!(Hybrid::new(Bytes::from_static(&[0xff; 12]), 3).unwrap().read(&mut [0]).is_err());
        assert!(Hybrid::new(Bytes::new(), 33).is_err());
    }
}
