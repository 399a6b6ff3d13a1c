//! Tests eight hashes at a time against a Bloom filter, with AVX-512. Compilers do not vectorize
//! this loop: it needs a gather with possibly invalid addresses and a compressing store of
//! positions. (For a bitmap in the cache, scalar code is faster.)

use std::arch::x86_64::{
    __mmask8, _mm256_add_epi32, _mm256_maskz_compress_epi32, _mm256_set1_epi32, _mm256_setr_epi32,
    _mm256_storeu_si256, _mm512_and_si512, _mm512_cmpeq_epi64_mask, _mm512_i64gather_epi64,
    _mm512_maskz_loadu_epi64, _mm512_or_si512, _mm512_set1_epi64, _mm512_sllv_epi64,
    _mm512_srli_epi64, _mm512_srlv_epi64,
};

/// Hashes tested at a time.
const LANES: usize = 8;

/// Returns the positions of the hashes whose 4 bits ([`super::bloom`]) are set in their block,
/// which is the hash shifted right by `shift`; `None` on other processors.
pub(super) fn passing(blocks: &[u64], shift: u32, hashes: &[u64]) -> Option<Vec<u32>> {
    let is_there = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl");
    assert!(shift < 64 && blocks.len() >= 1 << (64 - shift), "a block outside the filter");
    // SAFETY: the processor has the enabled features, and the assertion checks the block numbers.
    is_there.then(|| unsafe { passing_of(blocks, shift, hashes) })
}

/// # Safety
/// A hash shifted right by `shift` is the number of a block.
#[target_feature(enable = "avx512f,avx512vl")]
unsafe fn passing_of(blocks: &[u64], shift: u32, hashes: &[u64]) -> Vec<u32> {
    let (one, shift, in_word) =
        (_mm512_set1_epi64(1), _mm512_set1_epi64(shift.into()), _mm512_set1_epi64(63));
    let bit = |hash| _mm512_sllv_epi64(one, _mm512_and_si512(hash, in_word));
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let mut positions: Vec<u32> = Vec::with_capacity(hashes.len() + LANES);
    let mut passed = 0;
    for (number, hashes) in hashes.chunks(LANES).enumerate() {
        let are_there = __mmask8::MAX >> (LANES - hashes.len());
        // SAFETY: only lanes with a hash are read.
        let hash = unsafe { _mm512_maskz_loadu_epi64(are_there, hashes.as_ptr().cast()) };
        let block = _mm512_srlv_epi64(hash, shift);
        // SAFETY: the caller's promise; missing lanes are 0.
        let block = unsafe { _mm512_i64gather_epi64::<8>(block, blocks.as_ptr().cast()) };
        let two = _mm512_or_si512(bit(hash), bit(_mm512_srli_epi64::<6>(hash)));
        let others =
            _mm512_or_si512(bit(_mm512_srli_epi64::<12>(hash)), bit(_mm512_srli_epi64::<18>(hash)));
        let places = _mm512_or_si512(two, others);
        let passes = _mm512_cmpeq_epi64_mask(_mm512_and_si512(block, places), places) & are_there;
        let all = _mm256_add_epi32(lanes, _mm256_set1_epi32((number * LANES) as i32));
        let packed = _mm256_maskz_compress_epi32(passes, all);
        // SAFETY: no more positions have passed than hashes came before, and the capacity has room
        // for all lanes after that many.
        unsafe { _mm256_storeu_si256(positions.as_mut_ptr().add(passed).cast(), packed) };
        passed += passes.count_ones() as usize;
    }
    // SAFETY: this many were written.
    unsafe { positions.set_len(passed) };
    positions
}
