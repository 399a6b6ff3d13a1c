//! Unpacks bit-packed integers, least significant bit first.

/// Wider values are unpacked one by one: no dictionary has so many values.
const WIDTH_MAX: usize = 24;
/// The bytes loaded at once for each half of a group of eight values, which may end after the
/// group.
const LOAD_BYTES: usize = 16;

/// Unpacks the values from number `first` on of bit-packed `data`, which contains all of them.
pub(super) fn unpack(data: &[u8], width: usize, first: usize, out: &mut [u32]) {
    if width == 0 {
        out.fill(0);
        return;
    }
    // One by one up to a byte boundary, then eight at a time, then one by one again.
    let head = first.next_multiple_of(8).min(first + out.len()) - first;
    let (before, rest) = out.split_at_mut(head);
    one_by_one(data, width, first, before);
    let start = (first + head) / 8 * width;
    let behind = data.len().saturating_sub(start);
    let groups = match width {
        1..=WIDTH_MAX if behind >= width / 2 + LOAD_BYTES => {
            ((behind - width / 2 - LOAD_BYTES) / width + 1).min(rest.len() / 8)
        }
        _ => 0,
    };
    let (grouped, after) = rest.split_at_mut(groups * 8);
    unpack_groups(data.get(start..).unwrap_or_default(), width, grouped);
    one_by_one(data, width, first + head + groups * 8, after);
}

fn one_by_one(data: &[u8], width: usize, first: usize, out: &mut [u32]) {
    let mask = if width == 32 { u32::MAX } else { (1u32 << width) - 1 };
    for (i, value) in out.iter_mut().enumerate() {
        let bit = (first + i) * width;
        let mut word = [0; 8];
        let tail = &data[bit / 8..];
        let len = tail.len().min(8);
        word[..len].copy_from_slice(&tail[..len]);
        *value = (u64::from_le_bytes(word) >> (bit % 8)) as u32 & mask;
    }
}

/// Unpacks groups of eight values from the start of `data`. [`LOAD_BYTES`] must be readable from
/// the second half of each group.
fn unpack_groups(data: &[u8], width: usize, out: &mut [u32]) {
    macro_rules! widths {
        ($run:ident: $($width:literal)*) => {
            match width {
                $($width => $run!($width),)*
                _ => one_by_one(data, width, 0, out),
            }
        };
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        macro_rules! wide {
            ($width:literal) => {
                // SAFETY: the processor has AVX2.
                unsafe { avx2::groups::<$width>(data, out) }
            };
        }
        return widths!(wide: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24);
    }
    macro_rules! plain {
        ($width:literal) => {
            portable::<$width>(data, out)
        };
    }
    widths!(plain: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24)
}

fn portable<const WIDTH: usize>(data: &[u8], out: &mut [u32]) {
    let mask = (1u32 << WIDTH) - 1;
    for (group, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let bytes = &data[group * WIDTH..group * WIDTH + WIDTH / 2 + LOAD_BYTES];
        for (i, value) in out.iter_mut().enumerate() {
            let bit = i * WIDTH;
            let mut word = [0; 4];
            word.copy_from_slice(&bytes[bit / 8..bit / 8 + 4]);
            *value = (u32::from_le_bytes(word) >> (bit % 8)) & mask;
        }
    }
}

/// Eight values at a time (Lemire and Boytsov, Decoding billions of integers per second through
/// vectorization, 2015): a shuffle moves the four bytes that contain a value into a lane; a shift
/// and a mask extract the value.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_loadu_si256, _mm256_set_m128i,
        _mm256_set1_epi32, _mm256_shuffle_epi8, _mm256_srlv_epi32, _mm256_storeu_si256,
    };

    use super::LOAD_BYTES;

    struct Lanes<const WIDTH: usize>;

    impl<const WIDTH: usize> Lanes<WIDTH> {
        /// The offset from which the second half of a group is loaded; the first is loaded from its
        /// start.
        const HALF: usize = WIDTH / 2;
        /// For each byte of each lane, its source byte in its half.
        const BYTES: [u8; 32] = {
            let mut bytes = [0; 32];
            let mut i = 0;
            while i < 32 {
                let value = i / 4;
                let start = value * WIDTH / 8 - if value < 4 { 0 } else { Self::HALF };
                bytes[i] = (start + i % 4) as u8;
                i += 1;
            }
            bytes
        };
        /// The bit offset of each value in its lane.
        const SHIFTS: [u32; 8] = {
            let mut shifts = [0; 8];
            let mut i = 0;
            while i < 8 {
                shifts[i] = (i * WIDTH % 8) as u32;
                i += 1;
            }
            shifts
        };
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn groups<const WIDTH: usize>(data: &[u8], out: &mut [u32]) {
        // SAFETY: constants of 32 bytes each.
        let (bytes, shifts): (__m256i, __m256i) = unsafe {
            (
                _mm256_loadu_si256(Lanes::<WIDTH>::BYTES.as_ptr().cast()),
                _mm256_loadu_si256(Lanes::<WIDTH>::SHIFTS.as_ptr().cast()),
            )
        };
        let mask = _mm256_set1_epi32((1 << WIDTH) - 1);
        for (group, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let from = &data[group * WIDTH..group * WIDTH + Lanes::<WIDTH>::HALF + LOAD_BYTES];
            // SAFETY: `from` holds 16 bytes from its start and from HALF, `out` eight values of
            // four bytes.
            unsafe {
                let low = _mm_loadu_si128(from.as_ptr().cast());
                let high = _mm_loadu_si128(from.as_ptr().add(Lanes::<WIDTH>::HALF).cast());
                let lanes = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), bytes);
                let values = _mm256_and_si256(_mm256_srlv_epi32(lanes, shifts), mask);
                _mm256_storeu_si256(out.as_mut_ptr().cast(), values);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_what_single_values_are() {
        for width in 1..=32 {
            let data: Vec<u8> = (0..40 * width).map(|i| (i * 73 + i / 7) as u8).collect();
            let count = data.len() * 8 / width;
            let mut expected = vec![0; count];
            one_by_one(&data, width, 0, &mut expected);
            for first in [0, 1, 7, 8, 100] {
                let mut out = vec![0; count - first];
                unpack(&data, width, first, &mut out);
                assert_eq!(out, expected[first..], "width {width} from {first}");
            }
        }
        let data: Vec<u8> = (0..200).map(|i| (i * 37) as u8).collect();
        let (mut out, mut expected) = ([0; 64], [0; 64]);
        portable::<17>(&data, &mut out);
        one_by_one(&data, 17, 0, &mut expected);
        assert_eq!(out, expected);
    }
}
