//! Values of sort keys, read from their encoding.

use arrow::array::{ArrayData, ArrayRef, make_array};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::DataType;

use tessera_types::{Atom, Result};

/// Reads the values of a field from encoded keys that are words.
#[derive(Debug)]
pub(crate) struct KeyDecoder {
    /// The field.
    pub(crate) field: usize,
    /// The place of the byte that tells NULLs apart; the value follows it.
    offset: usize,
    width_bytes: usize,
    kind: Kind,
    descending: bool,
    data_type: DataType,
}

/// How values are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Signed,
    Unsigned,
    Float,
}

impl KeyDecoder {
    /// Creates a decoder for a key at this place of the encoding; `None` if its values cannot be
    /// read back.
    pub(crate) fn new(
        field: usize,
        offset: usize,
        atom: &Atom,
        descending: bool,
    ) -> Option<KeyDecoder> {
        let kind = match atom {
            Atom::Int32 | Atom::Int64 | Atom::Date | Atom::Time(_) => Kind::Signed,
            Atom::TimeTz | Atom::Timestamp(..) | Atom::Duration(_) => Kind::Signed,
            Atom::Decimal(..) if atom.width_bytes() == Some(8) => Kind::Signed,
            Atom::UInt32 | Atom::UInt64 => Kind::Unsigned,
            Atom::Float32 | Atom::Float64 => Kind::Float,
            _ => return None,
        };
        let (width_bytes, data_type) = (atom.width_bytes()?, atom.arrow());
        Some(KeyDecoder { field, offset, width_bytes, kind, descending, data_type })
    }

    /// Decodes the values of keys. Returns `None` if values that differ have equal keys: zeros and
    /// NaNs.
    pub(crate) fn values<'a, const W: usize>(
        &self,
        keys: impl ExactSizeIterator<Item = &'a [u64; W]> + Clone,
    ) -> Result<Option<ArrayRef>> {
        let len = keys.len();
        let (sign, mask) = match self.width_bytes {
            4 => (1 << 31, u64::from(u32::MAX)),
            _ => (1 << 63, u64::MAX),
        };
        let flip = if self.descending { mask } else { 0 };
        let flip = if self.kind == Kind::Unsigned { flip } else { flip ^ sign };
        let (mut has_null, mut is_odd) = (false, false);
        let is_valid = |key: &[u64; W]| bits(key, self.offset, 1) == 1;
        let values = keys.clone().map(|key| {
            let mut value = bits(key, self.offset + 1, self.width_bytes) ^ flip;
            let valid = is_valid(key);
            has_null |= !valid;
            if self.kind == Kind::Float {
                // Negative numbers have all bits but the sign inverted.
                value = if value & sign == 0 { value } else { value ^ (mask >> 1) };
                is_odd |= valid && self.is_odd(value);
            }
            if valid { value } else { 0 }
        });
        let buffer = match self.width_bytes {
            4 => Buffer::from_vec(values.map(|value| value as u32).collect::<Vec<u32>>()),
            _ => Buffer::from_vec(values.collect::<Vec<u64>>()),
        };
        if is_odd {
            return Ok(None);
        }
        let nulls = has_null.then(|| keys.map(is_valid).collect::<NullBuffer>());
        let data = ArrayData::builder(self.data_type.clone()).len(len).add_buffer(buffer);
        Ok(Some(make_array(data.nulls(nulls).build()?)))
    }

    fn is_odd(&self, value: u64) -> bool {
        let value = match self.width_bytes {
            4 => f64::from(f32::from_bits(value as u32)),
            _ => f64::from_bits(value),
        };
        value == 0.0 || value.is_nan()
    }
}

/// Returns bytes of a key as a number.
#[inline(always)]
fn bits<const W: usize>(key: &[u64; W], offset: usize, bytes: usize) -> u64 {
    let (word, shift) = (offset / size_of::<u64>(), offset % size_of::<u64>() * 8);
    let high = key.get(word).copied().unwrap_or(0) << shift;
    let low = match shift {
        0 => 0,
        _ => key.get(word + 1).copied().unwrap_or(0) >> (64 - shift),
    };
    (high | low) >> (64 - 8 * bytes)
}
