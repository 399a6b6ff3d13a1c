//! Copies that go past the caches: for data that is written once and read much later, so that it neither evicts what is
//! being worked on nor is fetched before it is overwritten.
//!
//! # Invariant
//! Source and target are slices of the same length, checked here once; every store writes one word of the target.

/// Copies words with streaming stores where the machine has them. Call [`fence`] before another thread reads them.
///
/// # Panics
/// The lengths differ: a mistake of the caller.
pub(crate) fn stream_copy(target: &mut [u64], source: &[u64]) {
    assert_eq!(target.len(), source.len(), "a copy into a place of another size");
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for (to, from) in target.iter_mut().zip(source) {
        // SAFETY: `to` is an exclusive reference to a word, hence valid and aligned for a store of 8 bytes; SSE2 is
        // part of every x86-64.
        unsafe { std::arch::x86_64::_mm_stream_si64(std::ptr::from_mut(to).cast(), *from as i64) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    target.copy_from_slice(source);
}

/// Makes the streaming stores of this thread visible before whatever it does next.
pub(crate) fn fence() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction has no operands; SSE is part of every x86-64.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_arrives() {
        for len in [0, 1, 2, 7, 8, 9, 1000] {
            for start in 0..3 {
                let source: Vec<u64> = (0..len as u64).map(|word| word.wrapping_mul(0x9E37_79B9)).collect();
                let mut target = vec![1; len + 4];
                stream_copy(&mut target[start..start + len], &source);
                fence();
                assert_eq!(&target[start..start + len], &source[..]);
                assert!(target[..start].iter().chain(&target[start + len..]).all(|word| *word == 1));
            }
        }
    }
}
