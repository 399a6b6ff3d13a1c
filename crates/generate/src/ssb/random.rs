//! Random numbers that depend on (seed, table, row) alone.

/// SplitMix64 (Steele, Lea, Flood 2014): 64 bits of state, so a fresh one for every row costs
/// nothing.
pub(super) struct Random {
    state: u64,
}

/// Which table a row belongs to; keeps equal row numbers of two tables apart.
#[derive(Clone, Copy)]
pub(super) enum Stream {
    Lineorder = 1,
    Customer,
    Supplier,
    Part,
}

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

impl Random {
    /// The stream of one row.
    pub(super) fn row(seed: u64, stream: Stream, row: u64) -> Self {
        let table = mix(seed.wrapping_add((stream as u64).wrapping_mul(GAMMA)));
        Random { state: mix(table.wrapping_add(row.wrapping_mul(GAMMA))) }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// Uniform in `low..=high`. The ranges here are tiny beside 2⁶⁴, so multiplying is fair enough.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        let span = u128::from(high - low) + 1;
        low + ((u128::from(self.next()) * span) >> 64) as u64
    }

    /// As [`Random::between`], for columns of 32 bits; the scale factor's bound keeps keys within
    /// them.
    pub(super) fn int(&mut self, low: u64, high: u64) -> i32 {
        self.between(low, high) as i32
    }

    /// One of `values`, which are not none.
    pub(super) fn pick<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.between(0, values.len() as u64 - 1) as usize]
    }

    /// One of `words`.
    pub(super) fn word(&mut self, words: &[&'static str]) -> &'static str {
        self.pick::<&'static str>(words)
    }

    /// Text of `low..=high` characters without meaning.
    pub(super) fn text(&mut self, low: u64, high: u64) -> String {
        const ALPHABET: &[u8; 64] =
            b"0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,";
        let length = self.between(low, high);
        (0..length).map(|_| char::from(*self.pick(ALPHABET))).collect()
    }
}
