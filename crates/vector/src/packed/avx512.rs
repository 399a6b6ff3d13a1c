//! Unpacking with AVX-512 VBMI: eight numbers of any width at once, or sixteen narrow ones.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_and_si512, _mm512_loadu_si512, _mm512_permutexvar_epi8,
    _mm512_set1_epi32, _mm512_set1_epi64, _mm512_srlv_epi32, _mm512_srlv_epi64,
    _mm512_storeu_si512,
};
use std::mem::MaybeUninit;

use super::{BITS_MAX, GROUP, Number};

/// The size of a register in bytes.
const BYTES: usize = 64;
// The eight bytes at the last number of a group lie within one register.
const _: () = assert!((GROUP - 1) * BITS_MAX as usize / 8 + 8 <= BYTES);
/// The number of 32-bit numbers per register.
const SHORT: usize = 2 * GROUP;
/// The maximum width of those: four bytes hold such a number at any bit offset within a byte.
const SHORT_BITS_MAX: usize = 25;
const _: () = assert!((SHORT - 1) * SHORT_BITS_MAX / 8 + 4 <= BYTES);

/// Unpacks groups while full registers of input remain, and returns the count of numbers written.
/// Returns 0 without AVX-512 VBMI, and for 128-bit targets, where scalar code is faster.
pub(super) fn unpack<N: Number>(
    bytes: &[u8],
    start: usize,
    (bits, base): (u32, i64),
    out: &mut [MaybeUninit<N>],
) -> usize {
    let is_there = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vbmi");
    if !is_there || !start.is_multiple_of(GROUP) || size_of::<N>() > size_of::<u64>() {
        return 0;
    }
    let bits = bits as usize;
    let bytes = &bytes[start / GROUP * bits..];
    if size_of::<N>() == size_of::<u32>() && bits <= SHORT_BITS_MAX {
        // SAFETY: the processor has both features, and `N` has 32 bits.
        return unsafe { unpack_short(bytes, bits, base, out.as_chunks_mut().0) * SHORT };
    }
    // SAFETY: the processor has both features.
    unsafe { unpack_groups(bytes, bits, base, out.as_chunks_mut().0) * GROUP }
}

/// # Safety
/// `N` must have 32 bits.
#[target_feature(enable = "avx512f,avx512vbmi")]
unsafe fn unpack_short<N: Number>(
    bytes: &[u8],
    bits: usize,
    base: i64,
    out: &mut [[MaybeUninit<N>; SHORT]],
) -> usize {
    let places: [u8; BYTES] = std::array::from_fn(|at| (at / 4 * bits / 8 + at % 4) as u8);
    let shifts: [u32; SHORT] = std::array::from_fn(|number| (number * bits % 8) as u32);
    let (places, shifts) = (load(&places), load(&shifts));
    let (mask, base) = (_mm512_set1_epi32((1 << bits) - 1), _mm512_set1_epi32(base as i32));
    let mut done = 0;
    for out in out {
        let Some(bytes) = bytes.get(done * 2 * bits..).and_then(|rest| rest.first_chunk::<BYTES>())
        else {
            break;
        };
        let spread = _mm512_permutexvar_epi8(places, load(bytes));
        let differences = _mm512_and_si512(_mm512_srlv_epi32(spread, shifts), mask);
        // SAFETY: `out` is sixteen 32-bit integers, 64 bytes, and every bit pattern is a valid `N`.
        unsafe {
            _mm512_storeu_si512(out.as_mut_ptr().cast(), _mm512_add_epi32(differences, base))
        };
        done += 1;
    }
    done
}

#[target_feature(enable = "avx512f,avx512vbmi")]
fn unpack_groups<N: Number>(
    bytes: &[u8],
    bits: usize,
    base: i64,
    out: &mut [[MaybeUninit<N>; GROUP]],
) -> usize {
    // For each number: its bytes, and the bit offset of its start within the first of them.
    let places: [u8; BYTES] = std::array::from_fn(|at| (at / 8 * bits / 8 + at % 8) as u8);
    let shifts: [u64; GROUP] = std::array::from_fn(|number| (number * bits % 8) as u64);
    let (places, shifts) = (load(&places), load(&shifts));
    let mask = _mm512_set1_epi64((1i64 << bits) - 1);
    let mut done = 0;
    for out in out {
        let Some(bytes) = bytes.get(done * bits..).and_then(|rest| rest.first_chunk::<BYTES>())
        else {
            break;
        };
        let spread = _mm512_permutexvar_epi8(places, load(bytes));
        let differences = _mm512_and_si512(_mm512_srlv_epi64(spread, shifts), mask);
        // SAFETY: both types have 64 bytes, and every bit pattern is a valid `u64`.
        let differences: [u64; GROUP] = unsafe { std::mem::transmute(differences) };
        for (out, difference) in out.iter_mut().zip(differences) {
            out.write(N::of(base, difference));
        }
        done += 1;
    }
    done
}

/// Loads a register from an array of the same size.
#[target_feature(enable = "avx512f")]
fn load<N: Copy, const LEN: usize>(numbers: &[N; LEN]) -> __m512i {
    const { assert!(size_of::<[N; LEN]>() == BYTES) };
    // SAFETY: `numbers` has exactly the size of a register, and the load is unaligned.
    unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) }
}
