//! Bit-packed integers: each takes as many bits as the largest one, lowest bits first.

#[cfg(target_arch = "x86_64")]
mod avx512;

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::prefetch::prefetch;

/// The maximum width: eight bytes hold such a number at any bit offset within a byte.
pub(crate) const BITS_MAX: u32 = 56;

/// A group of this many numbers takes as many bytes as each number has bits.
const GROUP: usize = 8;

/// Padding after the last number, so that eight bytes can be read at every number.
const PAD_BYTES: usize = 8;

/// Prefetch distance for random access, in numbers.
const AHEAD: usize = 32;

/// Bit-packed integers.
#[derive(Debug)]
pub(crate) struct PackedNumbers {
    bits: u32,
    bytes: Box<[u8]>,
}

/// A target type of unpacking. A number is stored as its difference from a base.
pub(crate) trait Number: Copy + 'static {
    /// Returns `base + difference`.
    fn of(base: i64, difference: u64) -> Self;
}

macro_rules! numbers {
    ($($native:ty)*) => { $(impl Number for $native {
        #[inline(always)]
        fn of(base: i64, difference: u64) -> Self { base.wrapping_add(difference as i64) as $native }
    })* };
}
numbers!(i8 i16 i32 i64 i128 u32 u64);

/// Unpacks numbers of a fixed width, from a position on.
type Unpack<N> = fn(&[u8], usize, i64, &mut [MaybeUninit<N>]);

struct Widths<N>(PhantomData<N>);

impl<N: Number> Widths<N> {
    /// One function per width, so that shifts and masks are constants.
    const UNPACK: [Unpack<N>; BITS_MAX as usize + 1] = {
        macro_rules! widths {
            ($($bits:literal)*) => { [$(unpack::<N, $bits>),*] };
        }
        widths!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41
            42 43 44 45 46 47 48 49 50 51 52 53 54 55 56)
    };
}

impl PackedNumbers {
    /// Packs numbers of at most `bits` bits; `bits` is at most [`BITS_MAX`].
    pub(crate) fn new(numbers: &[u64], bits: u32) -> PackedNumbers {
        debug_assert!(bits <= BITS_MAX && numbers.iter().all(|number| number >> bits == 0));
        let mut bytes = Vec::with_capacity(PackedNumbers::bytes_of(numbers.len(), bits));
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
        PackedNumbers { bits, bytes: bytes.into() }
    }

    /// Unpacks `len` numbers from `start` and adds the base.
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
        // SAFETY: the capacity is at least `len`; the first `done` numbers are initialized, and
        // `unpack` initializes every number of the slice that it receives.
        unsafe { out.set_len(len) };
        out
    }

    /// Unpacks the numbers at these positions and adds the base.
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

    /// The size in bytes of `len` packed numbers.
    pub(crate) fn bytes_of(len: usize, bits: u32) -> usize {
        (len * bits as usize).div_ceil(8) + PAD_BYTES
    }
}

/// Unpacks numbers and initializes all of `out`.
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
            let packed = PackedNumbers::new(&numbers, bits);
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
