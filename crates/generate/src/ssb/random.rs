//! Random numbers that depend only on (seed, table, row).

/// SplitMix64 (Steele, Lea, Flood 2014). Its state has 64 bits, so a generator per row costs
/// nothing.
pub(super) struct Random {
    state: u64,
}

/// The table of a row, which separates equal row numbers of different tables.
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
    /// Creates the stream of one row.
    pub(super) fn row(seed: u64, stream: Stream, row: u64) -> Self {
        let table = mix(seed.wrapping_add((stream as u64).wrapping_mul(GAMMA)));
        Random { state: mix(table.wrapping_add(row.wrapping_mul(GAMMA))) }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// Returns a number in `low..=high`, almost uniform: the ranges here are tiny compared with
    /// 2⁶⁴, so a multiplication suffices.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        let span = u128::from(high - low) + 1;
        low + ((u128::from(self.next()) * span) >> 64) as u64
    }

    /// Like [`Random::between`] for 32-bit columns; the maximum scale factor keeps keys within 32
    /// bits.
    pub(super) fn int(&mut self, low: u64, high: u64) -> i32 {
        self.between(low, high) as i32
    }

    /// Returns one of `values`, which must not be empty.
    pub(super) fn pick<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.between(0, values.len() as u64 - 1) as usize]
    }

    /// Returns one of `words`, which must not be empty.
    pub(super) fn word(&mut self, words: &[&'static str]) -> &'static str {
        self.pick::<&'static str>(words)
    }

    /// Returns random text of `low..=high` characters.
    pub(super) fn text(&mut self, low: u64, high: u64) -> String {
        const ALPHABET: &[u8; 64] =
            b"0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,";
        let length = self.between(low, high);
        (0..length).map(|_| char::from(*self.pick(ALPHABET))).collect()
    }
}
