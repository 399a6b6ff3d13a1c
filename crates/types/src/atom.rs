//! Atoms: the scalar types of SQL.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, Fields, IntervalUnit};

use crate::enum_type::EnumType;
use crate::error::{Error, Result};
use crate::parse::{quote_name, quote_text};
use crate::sql_state::SqlState;

pub use arrow_schema::TimeUnit;

/// A type with nullability: the element of a list, the value of a map, a field of a struct.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Slot {
    /// The type of the values.
    pub atom: Atom,
    /// Whether a value may be NULL.
    pub nullable: bool,
}

/// A scalar type of SQL; lists, structs and maps of atoms are atoms too.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Atom {
    /// The type of a bare `NULL`.
    Null,
    /// `true` and `false`.
    Boolean,
    /// 8-bit signed integer.
    Int8,
    /// 16-bit signed integer.
    Int16,
    /// 32-bit signed integer.
    Int32,
    /// 64-bit signed integer.
    Int64,
    /// 8-bit unsigned integer.
    UInt8,
    /// 16-bit unsigned integer.
    UInt16,
    /// 32-bit unsigned integer.
    UInt32,
    /// 64-bit unsigned integer.
    UInt64,
    /// 32-bit IEEE float.
    Float32,
    /// 64-bit IEEE float.
    Float64,
    /// Exact number of `precision` (1 to 38) digits, `scale` (0 to precision) of them after the
    /// point.
    Decimal(u8, i8),
    /// UTF-8 text.
    String,
    /// Raw bytes.
    Bytes,
    /// A bit string, as the text of its digits: the order of the texts is that of the bit strings.
    Bits,
    /// Days since 1970-01-01.
    Date,
    /// Time of day.
    Time(TimeUnit),
    /// Time of day with an offset from UTC. Its plain form is a number in the order of the values.
    TimeTz,
    /// Count of units since 1970-01-01T00:00, with an optional time zone.
    Timestamp(TimeUnit, Option<Arc<str>>),
    /// Elapsed time.
    Duration(TimeUnit),
    /// Months, days and nanoseconds.
    Interval,
    /// A universally unique identifier. Its plain form is the canonical text of 36 characters with
    /// small letters, whose order is that of the bytes.
    Uuid,
    /// One of a list of labels, in the order of the list.
    Enum(Arc<EnumType>),
    /// A SQL list (array).
    List(Box<Slot>),
    /// Named fields.
    Struct(Arc<[(Arc<str>, Slot)]>),
    /// Keys (never NULL) and values.
    Map(Box<Slot>, Box<Slot>),
}

/// The maximum precision of a decimal with a 64-bit plain Arrow type.
pub const DECIMAL64_PRECISION_MAX: u8 = 18;
/// The maximum precision of a decimal.
pub const DECIMAL_PRECISION_MAX: u8 = 38;
/// The size of a UUID in bytes.
pub const UUID_BYTES: i32 = 16;
/// The Arrow extension type of UUIDs.
pub const UUID_EXTENSION: &str = "arrow.uuid";

impl Atom {
    /// Returns the plain Arrow type: the one representation that every kernel must accept.
    pub fn arrow(&self) -> DataType {
        match self {
            Atom::Null => DataType::Null,
            Atom::Boolean => DataType::Boolean,
            Atom::Int8 => DataType::Int8,
            Atom::Int16 => DataType::Int16,
            Atom::Int32 => DataType::Int32,
            Atom::Int64 | Atom::TimeTz => DataType::Int64,
            Atom::UInt8 => DataType::UInt8,
            Atom::UInt16 => DataType::UInt16,
            Atom::UInt32 => DataType::UInt32,
            Atom::UInt64 => DataType::UInt64,
            Atom::Float32 => DataType::Float32,
            Atom::Float64 => DataType::Float64,
            Atom::Decimal(precision, scale) if *precision <= DECIMAL64_PRECISION_MAX => {
                DataType::Decimal64(*precision, *scale)
            }
            Atom::Decimal(precision, scale) => DataType::Decimal128(*precision, *scale),
            Atom::String | Atom::Bits | Atom::Uuid => DataType::Utf8View,
            Atom::Bytes => DataType::BinaryView,
            Atom::Date => DataType::Date32,
            Atom::Time(unit) => match unit {
                TimeUnit::Second | TimeUnit::Millisecond => DataType::Time32(*unit),
                TimeUnit::Microsecond | TimeUnit::Nanosecond => DataType::Time64(*unit),
            },
            Atom::Timestamp(unit, zone) => DataType::Timestamp(*unit, zone.clone()),
            Atom::Duration(unit) => DataType::Duration(*unit),
            Atom::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
            Atom::Enum(_) => DataType::UInt16,
            Atom::List(slot) => DataType::List(Arc::new(slot.arrow_field("item"))),
            Atom::Struct(slots) => {
                DataType::Struct(slots.iter().map(|(name, slot)| slot.arrow_field(name)).collect())
            }
            Atom::Map(key, value) => {
                let entries = Fields::from(vec![
                    ArrowField::new("key", key.atom.arrow(), false),
                    value.arrow_field("value"),
                ]);
                DataType::Map(
                    Arc::new(ArrowField::new("entries", DataType::Struct(entries), false)),
                    false,
                )
            }
        }
    }

    /// Creates a struct type.
    ///
    /// # Errors
    /// Two fields have the same name.
    pub fn struct_of(slots: Vec<(Arc<str>, Slot)>) -> Result<Atom> {
        let mut names = HashSet::new();
        match slots.iter().find(|(name, _)| !names.insert(name)) {
            Some((name, _)) => {
                let name = quote_name(name);
                let message =
                    format!("two fields of a struct have the name {name}; rename one of them");
                Err(Error::semantic(message).with_state(SqlState::DUPLICATE_OBJECT))
            }
            None => Ok(Atom::Struct(slots.into())),
        }
    }

    /// Returns the atom of an Arrow type, regardless of its encoding.
    ///
    /// # Errors
    /// The type is not supported (unions, decimals of more than 38 digits or negative scale), its
    /// time zone is unknown, or two fields of a struct have the same name.
    pub fn from_arrow(data_type: &DataType) -> Result<Atom> {
        Ok(match data_type {
            DataType::Null => Atom::Null,
            DataType::Boolean => Atom::Boolean,
            DataType::Int8 => Atom::Int8,
            DataType::Int16 => Atom::Int16,
            DataType::Int32 => Atom::Int32,
            DataType::Int64 => Atom::Int64,
            DataType::UInt8 => Atom::UInt8,
            DataType::UInt16 => Atom::UInt16,
            DataType::UInt32 => Atom::UInt32,
            DataType::UInt64 => Atom::UInt64,
            DataType::Float16 | DataType::Float32 => Atom::Float32,
            DataType::Float64 => Atom::Float64,
            DataType::Decimal32(p, s)
            | DataType::Decimal64(p, s)
            | DataType::Decimal128(p, s)
            | DataType::Decimal256(p, s)
                if *p <= DECIMAL_PRECISION_MAX && *s >= 0 && *s as u8 <= *p =>
            {
                Atom::Decimal(*p, *s)
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Atom::String,
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Atom::Bytes,
            DataType::Date32 | DataType::Date64 => Atom::Date,
            DataType::Time32(unit) | DataType::Time64(unit) => Atom::Time(*unit),
            DataType::Timestamp(_, Some(zone)) if !is_zone(zone) => {
                return Err(Error::unsupported(format!(
                    "unknown time zone '{zone}' in a timestamp type; use a zone of the IANA database, an offset or UTC"
                )));
            }
            DataType::Timestamp(unit, zone) => Atom::Timestamp(*unit, zone.clone()),
            DataType::Duration(unit) => Atom::Duration(*unit),
            DataType::Interval(_) => Atom::Interval,
            DataType::List(field)
            | DataType::LargeList(field)
            | DataType::ListView(field)
            | DataType::LargeListView(field)
            | DataType::FixedSizeList(field, _) => Atom::List(Box::new(Slot::from_arrow(field)?)),
            DataType::Struct(fields) => {
                let slots = fields
                    .iter()
                    .map(|field| Ok((Arc::from(field.name().as_str()), Slot::from_arrow(field)?)));
                Atom::struct_of(slots.collect::<Result<_>>()?)?
            }
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 => Atom::Map(
                    Box::new(Slot { nullable: false, ..Slot::from_arrow(&fields[0])? }),
                    Box::new(Slot::from_arrow(&fields[1])?),
                ),
                other => {
                    return Err(Error::data(format!(
                        "invalid map type: its entries are {other}, expected a struct of key and value"
                    )));
                }
            },
            DataType::Dictionary(_, values) => Atom::from_arrow(values)?,
            DataType::RunEndEncoded(_, values) => Atom::from_arrow(values.data_type())?,
            other => {
                return Err(Error::unsupported(format!(
                    "unsupported Arrow type {other}; cast its values to a supported type before writing them"
                )));
            }
        })
    }

    /// Returns the atom of an Arrow field. A UUID is known by the extension type of the field.
    ///
    /// # Errors
    /// As [`Atom::from_arrow`].
    pub fn of_field(field: &ArrowField) -> Result<Atom> {
        let is_uuid = *field.data_type() == DataType::FixedSizeBinary(UUID_BYTES)
            && field.extension_type_name() == Some(UUID_EXTENSION);
        if is_uuid { Ok(Atom::Uuid) } else { Atom::from_arrow(field.data_type()) }
    }

    /// Returns the type with text in place of enums, bit strings and times with time zone: that of
    /// what leaves a query.
    pub fn in_results(&self) -> Atom {
        self.without_enums().without_bits().without_timetz()
    }

    /// Returns the type with text in place of enums.
    pub fn without_enums(&self) -> Atom {
        self.replaced(&|atom| matches!(atom, Atom::Enum(_)).then_some(Atom::String))
    }

    /// Returns the type with text in place of bit strings. The plain form is the same.
    pub fn without_bits(&self) -> Atom {
        self.replaced(&|atom| (*atom == Atom::Bits).then_some(Atom::String))
    }

    /// Returns the type with text in place of UUIDs. The plain form is the same.
    pub fn without_uuids(&self) -> Atom {
        self.replaced(&|atom| (*atom == Atom::Uuid).then_some(Atom::String))
    }

    /// Returns the type with text in place of times with time zone.
    pub fn without_timetz(&self) -> Atom {
        self.replaced(&|atom| (*atom == Atom::TimeTz).then_some(Atom::String))
    }

    /// Whether values have times with time zone.
    pub fn has_timetz(&self) -> bool {
        self.contains(&|atom| *atom == Atom::TimeTz)
    }

    /// Whether values have bit strings.
    pub fn has_bits(&self) -> bool {
        self.contains(&|atom| *atom == Atom::Bits)
    }

    /// Whether values have UUIDs.
    pub fn has_uuids(&self) -> bool {
        self.contains(&|atom| *atom == Atom::Uuid)
    }

    /// Whether this is such a type, or has one within it.
    fn contains(&self, is_one: &dyn Fn(&Atom) -> bool) -> bool {
        match self {
            Atom::List(element) => element.atom.contains(is_one),
            Atom::Struct(slots) => slots.iter().any(|(_, slot)| slot.atom.contains(is_one)),
            Atom::Map(key, value) => key.atom.contains(is_one) || value.atom.contains(is_one),
            other => is_one(other),
        }
    }

    /// Whether the plain form is text.
    pub fn is_stored_as_text(&self) -> bool {
        matches!(self, Atom::String | Atom::Bits | Atom::Uuid)
    }

    /// Returns the type with other types within it, where `other` returns one.
    fn replaced(&self, other: &dyn Fn(&Atom) -> Option<Atom>) -> Atom {
        let slot = |slot: &Slot| Slot { atom: slot.atom.replaced(other), nullable: slot.nullable };
        match (other(self), self) {
            (Some(atom), _) => atom,
            (None, Atom::List(element)) => Atom::List(Box::new(slot(element))),
            (None, Atom::Struct(slots)) => {
                Atom::Struct(slots.iter().map(|(name, one)| (name.clone(), slot(one))).collect())
            }
            (None, Atom::Map(key, value)) => Atom::Map(Box::new(slot(key)), Box::new(slot(value))),
            (None, same) => same.clone(),
        }
    }

    /// Whether this is a list, a struct or a map.
    pub fn is_nested(&self) -> bool {
        matches!(self, Atom::List(_) | Atom::Struct(_) | Atom::Map(..))
    }

    /// Whether this is an integer type, signed or not.
    pub fn is_integer(&self) -> bool {
        self.is_signed_integer() || self.is_unsigned_integer()
    }

    /// Whether this is a signed integer type.
    pub fn is_signed_integer(&self) -> bool {
        matches!(self, Atom::Int8 | Atom::Int16 | Atom::Int32 | Atom::Int64)
    }

    /// Whether this is an unsigned integer type.
    pub fn is_unsigned_integer(&self) -> bool {
        matches!(self, Atom::UInt8 | Atom::UInt16 | Atom::UInt32 | Atom::UInt64)
    }

    /// Whether this is a float type.
    pub fn is_float(&self) -> bool {
        matches!(self, Atom::Float32 | Atom::Float64)
    }

    /// Whether this is an integer, float or decimal type.
    pub fn is_numeric(&self) -> bool {
        self.is_integer() || self.is_float() || matches!(self, Atom::Decimal(..))
    }

    /// Whether this is a date, time, timestamp, interval or duration type.
    pub fn is_temporal(&self) -> bool {
        matches!(
            self,
            Atom::Date
                | Atom::Time(_)
                | Atom::TimeTz
                | Atom::Timestamp(..)
                | Atom::Interval
                | Atom::Duration(_)
        )
    }

    /// Size of a value in the plain Arrow type, in bytes (for strings and bytes, of the 16-byte
    /// view); `None` for nested types.
    pub fn width_bytes(&self) -> Option<usize> {
        Some(match self {
            Atom::Null => 0,
            Atom::Boolean | Atom::Int8 | Atom::UInt8 => 1,
            Atom::Int16 | Atom::UInt16 | Atom::Enum(_) => 2,
            Atom::Int32 | Atom::UInt32 | Atom::Float32 | Atom::Date => 4,
            Atom::Time(TimeUnit::Second | TimeUnit::Millisecond) => 4,
            Atom::Int64 | Atom::UInt64 | Atom::Float64 | Atom::Time(_) => 8,
            Atom::Timestamp(..) | Atom::TimeTz | Atom::Duration(_) => 8,
            Atom::Decimal(precision, _) if *precision <= DECIMAL64_PRECISION_MAX => 8,
            Atom::Decimal(..) | Atom::Interval => 16,
            Atom::String | Atom::Bytes | Atom::Bits | Atom::Uuid => 16,
            Atom::List(_) | Atom::Struct(_) | Atom::Map(..) => return None,
        })
    }
}

impl Slot {
    /// Creates a slot that may hold NULL.
    pub fn nullable(atom: Atom) -> Self {
        Slot { atom, nullable: true }
    }

    fn arrow_field(&self, name: &str) -> ArrowField {
        ArrowField::new(name, self.atom.arrow(), self.nullable)
    }

    fn from_arrow(field: &ArrowField) -> Result<Self> {
        Ok(Slot { atom: Atom::of_field(field)?, nullable: field.is_nullable() })
    }
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.atom, if self.nullable { "?" } else { "" })
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Atom::Null => "null",
            Atom::Boolean => "boolean",
            Atom::Int8 => "int8",
            Atom::Int16 => "int16",
            Atom::Int32 => "int32",
            Atom::Int64 => "int64",
            Atom::UInt8 => "uint8",
            Atom::UInt16 => "uint16",
            Atom::UInt32 => "uint32",
            Atom::UInt64 => "uint64",
            Atom::Float32 => "float32",
            Atom::Float64 => "float64",
            Atom::String => "string",
            Atom::Bytes => "bytes",
            Atom::Bits => "bits",
            Atom::Uuid => "uuid",
            Atom::TimeTz => "timetz",
            Atom::Date => "date",
            Atom::Interval => "interval",
            Atom::Decimal(precision, scale) => return write!(f, "decimal({precision},{scale})"),
            Atom::Time(unit) => return write!(f, "time({})", unit_name(*unit)),
            Atom::Timestamp(unit, None) => return write!(f, "timestamp({})", unit_name(*unit)),
            Atom::Timestamp(unit, Some(zone)) => {
                return write!(f, "timestamp({}, {})", unit_name(*unit), quote_name(zone));
            }
            Atom::Duration(unit) => return write!(f, "duration({})", unit_name(*unit)),
            Atom::Enum(labels) => {
                write!(f, "enum({}", quote_name(labels.name()))?;
                for label in labels.labels() {
                    write!(f, ", {}", quote_text(label))?;
                }
                return f.write_str(")");
            }
            Atom::List(slot) => return write!(f, "list<{slot}>"),
            Atom::Struct(slots) => {
                f.write_str("struct<")?;
                for (i, (name, slot)) in slots.iter().enumerate() {
                    let comma = if i > 0 { ", " } else { "" };
                    write!(f, "{comma}{}: {slot}", quote_name(name))?;
                }
                return f.write_str(">");
            }
            Atom::Map(key, value) => return write!(f, "map<{}, {value}>", key.atom),
        };
        f.write_str(name)
    }
}

/// Whether `zone` is a valid time zone: a name of the IANA database, or an offset.
pub(crate) fn is_zone(zone: &str) -> bool {
    zone.parse::<arrow_array::timezone::Tz>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_that_cannot_be_shown_is_an_error() {
        for (zone, is_known) in [
            ("UTC", true),
            ("Europe/Berlin", true),
            ("+02:00", true),
            ("Europe/Berin", false),
            ("", false),
        ] {
            let moments = DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into()));
            let lists = DataType::new_list(moments.clone(), true);
            for data_type in [moments, lists] {
                assert_eq!(Atom::from_arrow(&data_type).is_ok(), is_known, "{data_type}");
            }
        }
    }
}
