//! Constant values.

use std::sync::Arc;

/// A value of some atom; the type stands beside it (in [`crate::Expr::Constant`]).
///
/// Equality is structural (`NaN` equals `NaN`), so that plans compare.
#[derive(Debug, Clone)]
pub enum Scalar {
    /// NULL of any type.
    Null,
    /// A boolean.
    Boolean(bool),
    /// Any integer type; also the unscaled digits of a decimal, days of a date, and the count of a time,
    /// timestamp or duration.
    Integer(i128),
    /// Any float type.
    Float(f64),
    /// A string.
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
    /// The values of a list, the slots of a struct, or a map's key and value alternating.
    Nested(Arc<[Scalar]>),
}

impl Scalar {
    /// Whether this is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Scalar::Null)
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
