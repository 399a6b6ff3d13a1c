//! The keys that the records of a scan may have.

use std::collections::HashMap;
use std::sync::Arc;

use crate::text::cells::shown;

/// The number of keys that a bit set without heap memory can track.
const INLINE_KEYS: usize = 128;

/// All keys that inference found.
#[derive(Debug)]
pub(super) struct Keys {
    names: Vec<Arc<str>>,
    positions: HashMap<Arc<str>, usize>,
}

impl Keys {
    /// Collects the distinct names.
    pub(super) fn new(names: impl Iterator<Item = Arc<str>>) -> Keys {
        let mut keys = Keys { names: Vec::new(), positions: HashMap::new() };
        for name in names {
            if !keys.positions.contains_key(&name) {
                keys.positions.insert(name.clone(), keys.names.len());
                keys.names.push(name);
            }
        }
        keys
    }

    /// Creates the empty key set of a record.
    pub(super) fn record_keys(&self) -> RecordKeys<'_> {
        let more =
            if self.names.len() > INLINE_KEYS { vec![false; self.names.len()] } else { Vec::new() };
        RecordKeys { keys: self, expected: 0, bits: 0, more }
    }
}

/// The keys found so far in a record.
pub(super) struct RecordKeys<'a> {
    keys: &'a Keys,
    expected: usize,
    bits: u128,
    more: Vec<bool>,
}

impl RecordKeys<'_> {
    /// Adds a key.
    ///
    /// # Errors
    /// The key is unknown or was found before.
    pub(super) fn add(&mut self, key: &[u8]) -> Result<(), String> {
        // Records mostly have the same keys in the same order.
        let position = match self.keys.names.get(self.expected) {
            Some(name) if name.as_bytes() == key => Some(self.expected),
            _ => {
                std::str::from_utf8(key).ok().and_then(|key| self.keys.positions.get(key).copied())
            }
        };
        let Some(position) = position else {
            return Err(format!(
                "the key {} was not in the rows that the columns were inferred from; set the option \
                 sample to all, or declare the columns to read",
                shown(&String::from_utf8_lossy(key))
            ));
        };
        self.expected = position + 1;
        let before = match self.more.get_mut(position) {
            Some(record_keys) => std::mem::replace(record_keys, true),
            None => {
                let bit = 1_u128 << (position % INLINE_KEYS);
                let before = self.bits & bit != 0;
                self.bits |= bit;
                before
            }
        };
        if before { Err(duplicate_key(key)) } else { Ok(()) }
    }
}

/// The error of a key that an object has more than once.
pub(super) fn duplicate_key(key: &[u8]) -> String {
    format!("duplicate key {}", shown(&String::from_utf8_lossy(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_once_in_a_record() {
        for count in [3, 200] {
            let keys = Keys::new((0..count).map(|number| Arc::from(format!("k{number}"))));
            let mut record_keys = keys.record_keys();
            for key in ["k1", "k0", "k2"] {
                assert!(record_keys.add(key.as_bytes()).is_ok(), "{key} of {count}");
            }
            assert!(record_keys.add(b"k0").unwrap_err().contains("duplicate key"));
            assert!(record_keys.add(b"x").unwrap_err().contains("sample"));
            assert!(keys.record_keys().add(b"k0").is_ok());
        }
    }
}
