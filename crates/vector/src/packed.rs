//! Whole numbers in as few bits as the largest of them takes, one after the other, the lowest bits
//! first.

#[cfg(target_arch = "x86_64")]
mod avx512;

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::prefetch::prefetch;

/// The most bits of a number: eight bytes hold it wherever in a byte it begins.
pub(crate) const BITS_MAX: u32 = 56;

/// So many numbers are as many bytes as each has bits.
const GROUP: usize = 8;

/// Bytes after the last number, so that eight can be read at each.
const PAD_BYTES: usize = 8;

/// Of numbers at positions, which may lie far apart, how many are between the one that is read and
/// the one whose bytes are asked for.
const AHEAD: usize = 32;

/// Packed numbers.
#[derive(Debug)]
pub(crate) struct Packed {
    bits: u32,
    bytes: Box<[u8]>,
}

/// What is unpacked: a number that was packed as its difference from a base.
pub(crate) trait Number: Copy + 'static {
    /// The number.
    fn of(base: i64, difference: u64) -> Self;
}

macro_rules! numbers {
    ($($native:ty)*) => { $(impl Number for $native {
        #[inline(always)]
        fn of(base: i64, difference: u64) -> Self { base.wrapping_add(difference as i64) as $native }
    })* };
}
numbers!(i8 i16 i32 i64 i128 u32 u64);

/// Unpacks numbers of a fixed width from a position on.
type Unpack<N> = fn(&[u8], usize, i64, &mut [MaybeUninit<N>]);

struct Widths<N>(PhantomData<N>);

impl<N: Number> Widths<N> {
    /// One function for each width, so that shifts and masks are constants.
    const UNPACK: [Unpack<N>; BITS_MAX as usize + 1] = {
        macro_rules! widths {
            ($($bits:literal)*) => { [$(unpack::<N, $bits>),*] };
        }
        widths!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41
            42 43 44 45 46 47 48 49 50 51 52 53 54 55 56)
    };
}

impl Packed {
    /// Packs numbers of at most so many bits, which are at most [`BITS_MAX`].
    pub(crate) fn new(numbers: &[u64], bits: u32) -> Packed {
        debug_assert!(bits <= BITS_MAX && numbers.iter().all(|number| number >> bits == 0));
        let mut bytes = Vec::with_capacity(Packed::bytes_of(numbers.len(), bits));
        let (mut held, mut held_bits) = (0u64, 0);
        for number in numbers {
            held |= number << held_bits;
            held_bits += bits;
            while held_bits >= 8 {
                bytes.push(held as u8);
                held >>= 8;
                held_bits -= 8;
            }
        }
        if held_bits > 0 {
            bytes.push(held as u8);
        }
        bytes.extend([0; PAD_BYTES]);
        Packed { bits, bytes: bytes.into() }
    }

    /// `len` numbers from `start` on, each with the base.
    pub(crate) fn unpack<N: Number>(&self, start: usize, len: usize, base: i64) -> Vec<N> {
        let mut out = Vec::with_capacity(len);
        let slots = &mut out.spare_capacity_mut()[..len];
        #[cfg(target_arch = "x86_64")]
        let done = avx512::unpack(&self.bytes, start, (self.bits, base), slots);
        #[cfg(not(target_arch = "x86_64"))]
        let done = 0;
        Widths::<N>::UNPACK[self.bits as usize](
            &self.bytes,
            start + done,
            base,
            &mut slots[done..],
        );
        // SAFETY: there is room for `len` numbers, of which the first `done` are written, and
        // `unpack` writes every number of the slice that it is given.
        unsafe { out.set_len(len) };
        out
    }

    /// The numbers at these positions, each with the base.
    pub(crate) fn unpack_at<N: Number>(&self, positions: &[u32], base: i64) -> Vec<N> {
        let (bits, mask) = (self.bits as usize, (1u64 << self.bits) - 1);
        let number = |position: &u32| {
            let bit = *position as usize * bits;
            let eight = self.bytes[bit / 8..].first_chunk::<8>().copied().unwrap_or_default();
            N::of(base, u64::from_le_bytes(eight) >> (bit % 8) & mask)
        };
        let ask = |position: &u32| {
            prefetch(self.bytes.as_ptr().wrapping_add(*position as usize * bits / 8))
        };
        let mut out = Vec::with_capacity(positions.len());
        let (first, ahead) = positions.split_at(AHEAD.min(positions.len()));
        first.iter().for_each(ask);
        out.extend(positions.iter().zip(ahead).map(|(position, ahead)| {
            ask(ahead);
            number(position)
        }));
        out.extend(positions[ahead.len()..].iter().map(number));
        out
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that so many numbers of so many bits take.
    pub(crate) fn bytes_of(len: usize, bits: u32) -> usize {
        (len * bits as usize).div_ceil(8) + PAD_BYTES
    }
}

/// Writes every number of `out`.
fn unpack<N: Number, const BITS: usize>(
    bytes: &[u8],
    start: usize,
    base: i64,
    out: &mut [MaybeUninit<N>],
) {
    let mask = (1u64 << BITS) - 1;
    let number = |bytes: &[u8], at: usize| {
        let bit = at * BITS;
        let eight = bytes[bit / 8..].first_chunk::<8>().copied().unwrap_or_default();
        N::of(base, u64::from_le_bytes(eight) >> (bit % 8) & mask)
    };
    let head = start.next_multiple_of(GROUP).min(start + out.len()) - start;
    let (head, rest) = out.split_at_mut(head);
    for (at, out) in head.iter_mut().enumerate() {
        out.write(number(bytes, start + at));
    }
    let mut bytes = &bytes[(start + head.len()) * BITS / 8..];
    let mut groups = rest.chunks_exact_mut(GROUP);
    for group in &mut groups {
        let (eight, behind) = (&bytes[..BITS + PAD_BYTES - 1], &bytes[BITS..]);
        for (at, out) in group.iter_mut().enumerate() {
            let bit = at * BITS;
            let word = eight[bit / 8..].first_chunk::<8>().copied().unwrap_or_default();
            out.write(N::of(base, u64::from_le_bytes(word) >> (bit % 8) & mask));
        }
        bytes = behind;
    }
    for (at, out) in groups.into_remainder().iter_mut().enumerate() {
        out.write(number(bytes, at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_comes_back_from_everywhere() {
        for bits in 0..=BITS_MAX {
            let largest = (1u64 << bits) - 1;
            let number = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17) & largest;
            let numbers: Vec<u64> =
                (0..101).map(|i| if i % 10 == 0 { largest } else { number(i) }).collect();
            let packed = Packed::new(&numbers, bits);
            assert_eq!(packed.bytes(), (101 * bits as usize).div_ceil(8) + PAD_BYTES);
            for (start, len) in
                [(0, 101), (0, 0), (1, 100), (7, 3), (8, 64), (8, 90), (13, 80), (99, 2), (101, 0)]
            {
                let expected = &numbers[start..start + len];
                assert_eq!(
                    packed.unpack::<u64>(start, len, 0),
                    expected,
                    "{bits} bits, {len} from {start}"
                );
                let lower: Vec<i128> =
                    expected.iter().map(|number| i128::from(*number) - 9).collect();
                assert_eq!(
                    packed.unpack::<i128>(start, len, -9),
                    lower,
                    "{bits} bits, {len} from {start}"
                );
                let short: Vec<i32> = expected.iter().map(|number| i32::of(-9, *number)).collect();
                assert_eq!(
                    packed.unpack::<i32>(start, len, -9),
                    short,
                    "{bits} bits, {len} from {start}"
                );
                let positions: Vec<u32> = (start as u32..(start + len) as u32).collect();
                assert_eq!(
                    packed.unpack_at::<i128>(&positions, -9),
                    lower,
                    "{bits} bits, {len} from {start}"
                );
            }
        }
    }
}
