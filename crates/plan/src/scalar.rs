//! Constant values.

use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;
use std::sync::Arc;

use tessera_types::{Atom, Slot, TimeUnit};

/// A value of an atom. [`crate::Expr::Constant`] stores its type.
///
/// Equality is structural (`NaN` equals `NaN`), so that plans can be compared.
#[derive(Debug, Clone)]
pub enum Scalar {
    /// NULL of any type.
    Null,
    /// A boolean.
    Boolean(bool),
    /// Any integer type; also the unscaled digits of a decimal, days of a date, the place of an
    /// enum's label, and the count of a time, timestamp or duration.
    Integer(i128),
    /// Any float type.
    Float(f64),
    /// A string, or the canonical text of a UUID.
    String(Arc<str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// An interval.
    Interval {
        /// Months.
        months: i32,
        /// Days.
        days: i32,
        /// Nanoseconds.
        nanoseconds: i64,
    },
    /// The values of a list, the fields of a struct, or the alternating keys and values of a map.
    Nested(Arc<[Scalar]>),
}

impl Scalar {
    /// Whether this is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Scalar::Null)
    }

    /// Feeds the hasher with data that is equal for equal values.
    pub(crate) fn fingerprint(&self, hasher: &mut impl Hasher) {
        match self {
            Scalar::Null | Scalar::Interval { .. } => {}
            Scalar::Boolean(value) => value.hash(hasher),
            Scalar::Integer(value) => value.hash(hasher),
            Scalar::Float(value) => value.to_bits().hash(hasher),
            Scalar::String(value) => value.hash(hasher),
            Scalar::Bytes(value) => value.hash(hasher),
            Scalar::Nested(items) => items.len().hash(hasher),
        }
    }

    /// Whether this is a valid value of `atom`: of its kind, in its range, NULL only where allowed.
    pub fn fits(&self, atom: &Atom) -> bool {
        match (self, atom) {
            (Scalar::Null, _) => true,
            (Scalar::Boolean(_), Atom::Boolean) => true,
            (Scalar::Integer(value), atom) => {
                integer_range(atom).is_some_and(|range| range.contains(value))
            }
            (Scalar::Float(_), Atom::Float32 | Atom::Float64) => true,
            (Scalar::String(_), Atom::String) => true,
            (Scalar::String(digits), Atom::Bits) => {
                digits.bytes().all(|digit| matches!(digit, b'0' | b'1'))
            }
            (Scalar::String(text), Atom::Uuid) => is_uuid(text),
            (Scalar::Bytes(_), Atom::Bytes) => true,
            (Scalar::Interval { .. }, Atom::Interval) => true,
            (Scalar::Nested(items), Atom::List(slot)) => {
                items.iter().all(|item| item.fits_slot(slot))
            }
            (Scalar::Nested(items), Atom::Struct(slots)) => {
                items.len() == slots.len()
                    && items.iter().zip(slots.iter()).all(|(item, (_, slot))| item.fits_slot(slot))
            }
            (Scalar::Nested(items), Atom::Map(key, value)) => {
                let (pairs, rest) = items.as_chunks::<2>();
                rest.is_empty() && pairs.iter().all(|[k, v]| k.fits_slot(key) && v.fits_slot(value))
            }
            _ => false,
        }
    }

    fn fits_slot(&self, slot: &Slot) -> bool {
        (slot.nullable || !self.is_null()) && self.fits(&slot.atom)
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        use Scalar::*;
        match (self, other) {
            (Null, Null) => true,
            (Boolean(a), Boolean(b)) => a == b,
            (Integer(a), Integer(b)) => a == b,
            (Float(a), Float(b)) => a.to_bits() == b.to_bits(),
            (String(a), String(b)) => a == b,
            (Bytes(a), Bytes(b)) => a == b,
            (
                Interval { months: a, days: b, nanoseconds: c },
                Interval { months: x, days: y, nanoseconds: z },
            ) => (a, b, c) == (x, y, z),
            (Nested(a), Nested(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Scalar {}

/// Whether a text is the canonical one of a UUID.
fn is_uuid(text: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

fn integer_range(atom: &Atom) -> Option<RangeInclusive<i128>> {
    Some(match atom {
        Atom::Int8 => i8::MIN.into()..=i8::MAX.into(),
        Atom::Int16 => i16::MIN.into()..=i16::MAX.into(),
        Atom::Int32 | Atom::Date => i32::MIN.into()..=i32::MAX.into(),
        Atom::Int64 | Atom::TimeTz | Atom::Timestamp(..) | Atom::Duration(_) => {
            i64::MIN.into()..=i64::MAX.into()
        }
        Atom::UInt8 => 0..=u8::MAX.into(),
        Atom::UInt16 => 0..=u16::MAX.into(),
        Atom::Enum(labels) => 0..=labels.labels().len() as i128 - 1,
        Atom::UInt32 => 0..=u32::MAX.into(),
        Atom::UInt64 => 0..=u64::MAX.into(),
        Atom::Decimal(precision, _) => {
            let bound = 10i128.checked_pow((*precision).into())?;
            1 - bound..=bound - 1
        }
        Atom::Time(unit) => {
            let per_second: i128 = match unit {
                TimeUnit::Second => 1,
                TimeUnit::Millisecond => 1_000,
                TimeUnit::Microsecond => 1_000_000,
                TimeUnit::Nanosecond => 1_000_000_000,
            };
            0..=86_400 * per_second
        }
        _ => return None,
    })
}
