//! Runs the body of a fuzz target as an ordinary test: on the target's corpus, and on seeded
//! mutations of it.
//!
//! The bodies of a crate are in its `src/fuzzing.rs`, which is compiled only for tests and
//! cargo-fuzz (`--cfg fuzzing`). A body is a function of bytes that panics if they cause a fault.
//! `fuzz/targets` passes the bodies to cargo-fuzz, and `fuzz/corpus/TARGET` holds a few small
//! inputs of each target, including past findings.
//!
//! ```
//! tessera_fuzzing::mutate("no such target", &[b"seed"], |bytes| assert!(bytes.len() < 1 << 20));
//! ```

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

/// Mutations of a run; an environment variable can raise the number.
const MUTATIONS: usize = 1_500;
/// Environment variables for the number of mutations and for the seed.
const MUTATIONS_VARIABLE: &str = "TESSERA_FUZZ_MUTATIONS";
const SEED_VARIABLE: &str = "TESSERA_FUZZ_SEED";
/// The most bytes of an input.
const BYTES_MAX: usize = 64 << 10;
/// Extreme values for lengths, counts and offsets.
const EXTREMES: [u64; 16] = [
    0,
    1,
    7,
    8,
    127,
    128,
    255,
    65_535,
    1 << 24,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX,
];

/// Runs `body` on the corpus of a target and on `seeds`, then on mutations of them.
///
/// # Panics
/// Panics like `body`. The input is written to the temporary directory, and its path is printed.
pub fn mutate(target: &str, seeds: &[&[u8]], body: fn(&[u8])) {
    let mut inputs = corpus(target);
    inputs.extend(seeds.iter().map(|seed| seed.to_vec()));
    inputs.push(Vec::new());
    let run = |input: &[u8]| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(input))) {
            let file =
                std::env::temp_dir().join(format!("tessera-fuzz-{target}-{}", std::process::id()));
            let place = std::fs::write(&file, input).map(|()| file.display().to_string());
            eprintln!("fuzz target {target} fails on {} bytes, written to {place:?}", input.len());
            resume_unwind(panic);
        }
    };
    inputs.iter().for_each(|input| run(input));
    let variable = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let mut random = Random(variable(SEED_VARIABLE).unwrap_or(1) as u64);
    for _ in 0..variable(MUTATIONS_VARIABLE).unwrap_or(MUTATIONS) {
        let mut input = inputs[random.below(inputs.len())].clone();
        for _ in 0..1 + random.below(4) {
            let other = &inputs[random.below(inputs.len())];
            random.change(&mut input, other);
        }
        input.truncate(BYTES_MAX);
        run(&input);
    }
}

/// Returns the corpus of a target.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files.iter().filter_map(|file| std::fs::read(file).ok()).collect()
}

/// A pseudo-random generator (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// Returns a number below `end`, or 0 if `end` is 0.
    fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.next() % end as u64) as usize }
    }

    /// Changes the input once; the change may insert a part of another input.
    fn change(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        if input.is_empty() {
            input.extend((0..1 + self.below(24)).map(|_| self.next() as u8));
            return;
        }
        let at = self.below(input.len());
        match self.below(9) {
            0 => input[at] ^= 1 << self.below(8),
            1 => input[at] = self.next() as u8,
            2 => input[at] = input[at].wrapping_add([1, 255, 2, 128][self.below(4)]),
            3 => input.truncate(at),
            4 => {
                let end = (at + 1 + self.below(16)).min(input.len());
                input.drain(at..end);
            }
            5 => {
                let from = self.below(other.len());
                let piece = other
                    .get(from..(from + 1 + self.below(40)).min(other.len()))
                    .unwrap_or_default();
                let end = if self.below(2) == 0 { at } else { (at + piece.len()).min(input.len()) };
                input.splice(at..end, piece.iter().copied());
            }
            6 => {
                let end = (at + 1 + self.below(16)).min(input.len());
                let piece = input[at..end].repeat(1 + self.below(20));
                input.splice(at..at, piece);
            }
            _ => {
                let (width, extreme) =
                    ([2, 4, 8][self.below(3)], EXTREMES[self.below(EXTREMES.len())]);
                let bytes = match self.below(3) {
                    0 => extreme.to_be_bytes()[8 - width..].to_vec(),
                    _ => extreme.to_le_bytes()[..width].to_vec(),
                };
                let end = (at + width).min(input.len());
                input.splice(at..end, bytes);
            }
        }
    }
}
