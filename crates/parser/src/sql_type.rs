//! SQL data types.

use sqlparser::ast::{
    ArrayElemTypeDef, DataType, ExactNumberInfo, ObjectName, StructField, TimezoneInfo,
};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;
use tessera_types::{
    Atom, DECIMAL_PRECISION_MAX, Error, Result, Slot, SqlState, TimeUnit, did_you_mean,
};

use crate::dialect::Tessera;
use crate::error::from_parser;
use crate::names::normalized;

/// The scale of a decimal without precision.
const DECIMAL_SCALE: i8 = 10;

/// The time zone of timestamps with time zone, in place of which the binder puts the session's.
const ZONE: &str = "UTC";

/// Parses the name of a SQL type.
///
/// # Errors
/// The type is unknown.
pub fn parse_type(text: &str) -> Result<Atom> {
    let unknown = || unknown_type(text);
    let mut parser =
        Parser::new(&Tessera).try_with_sql(text).map_err(|error| from_parser(&error))?;
    let data_type = parser.parse_data_type().map_err(|_| unknown())?;
    if parser.peek_token().token != Token::EOF {
        return Err(unknown());
    }
    atom_of_type(&data_type, &no_types)
}

/// Returns the type of the user with a name.
pub type NamedTypes<'a> = &'a dyn Fn(&str) -> Option<Atom>;

/// Types of the user where there are none.
pub fn no_types(_name: &str) -> Option<Atom> {
    None
}

/// Returns the type of the elements of a list type.
pub fn element_type(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => Some(element),
        _ => None,
    }
}

/// Converts a SQL type. Lengths and precisions that the result cannot express are left to casts.
///
/// # Errors
/// The type is not supported.
pub fn atom_of_type(data_type: &DataType, types: NamedTypes<'_>) -> Result<Atom> {
    use DataType as T;
    Ok(match data_type {
        T::Boolean | T::Bool => Atom::Boolean,
        T::TinyInt(_) => Atom::Int8,
        T::SmallInt(_) | T::Int2(_) | T::Int16 => Atom::Int16,
        T::Int(_) | T::Integer(_) | T::Int4(_) | T::Int32 | T::MediumInt(_) => Atom::Int32,
        T::BigInt(_) | T::Int8(_) | T::Int64 => Atom::Int64,
        T::HugeInt | T::Int128 => Atom::Decimal(DECIMAL_PRECISION_MAX, 0),
        T::TinyIntUnsigned(_) | T::UTinyInt => Atom::UInt8,
        T::SmallIntUnsigned(_) | T::Int2Unsigned(_) | T::USmallInt | T::UInt16 => Atom::UInt16,
        T::IntUnsigned(_) | T::IntegerUnsigned(_) | T::Int4Unsigned(_) | T::UInt32 => Atom::UInt32,
        T::BigIntUnsigned(_) | T::Int8Unsigned(_) | T::UBigInt | T::UInt64 => Atom::UInt64,
        T::Real | T::Float4 | T::Float32 => Atom::Float32,
        T::Float(ExactNumberInfo::None) => Atom::Float64,
        T::Float(ExactNumberInfo::Precision(bits)) if *bits >= 1 && *bits <= 24 => Atom::Float32,
        T::Float(ExactNumberInfo::Precision(bits)) if *bits <= 53 => Atom::Float64,
        T::Double(ExactNumberInfo::None) | T::DoublePrecision | T::Float8 | T::Float64 => {
            Atom::Float64
        }
        T::Numeric(info) | T::Decimal(info) | T::Dec(info) => decimal(info)?,
        T::Character(_)
        | T::Char(_)
        | T::CharacterVarying(_)
        | T::CharVarying(_)
        | T::Varchar(_)
        | T::Nvarchar(_)
        | T::Text
        | T::String(_) => Atom::String,
        T::Bytea | T::Binary(_) | T::Varbinary(_) | T::Blob(_) | T::Bytes(_) => Atom::Bytes,
        T::Bit(_) | T::BitVarying(_) | T::VarBit(_) => Atom::Bits,
        T::Date => Atom::Date,
        T::Uuid => Atom::Uuid,
        T::Regclass => Atom::Int64,
        T::Time(None | Some(0..=6), TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            Atom::Time(TimeUnit::Microsecond)
        }
        T::Time(None | Some(0..=6), TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => Atom::TimeTz,
        T::Timestamp(precision, zone) => {
            let unit = match precision {
                None | Some(0..=6) => TimeUnit::Microsecond,
                Some(9) => TimeUnit::Nanosecond,
                Some(_) => return Err(unsupported(data_type)),
            };
            let has_zone = matches!(zone, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone);
            Atom::Timestamp(unit, has_zone.then(|| ZONE.into()))
        }
        T::Datetime(None) => Atom::Timestamp(TimeUnit::Microsecond, None),
        T::Interval { .. } => Atom::Interval,
        T::Array(_) => {
            let element = element_type(data_type).ok_or_else(|| unsupported(data_type))?;
            Atom::List(Box::new(Slot { atom: atom_of_type(element, types)?, nullable: true }))
        }
        T::Map(key, value) => {
            let key = Slot { atom: atom_of_type(key, types)?, nullable: false };
            Atom::Map(
                Box::new(key),
                Box::new(Slot { atom: atom_of_type(value, types)?, nullable: true }),
            )
        }
        T::Struct(fields, _) | T::Tuple(fields) => structure(fields, types)?,
        T::Custom(name, modifiers) => of_user(name, modifiers, types)
            .or_else(|| custom(&name.to_string().to_lowercase(), modifiers))
            .ok_or_else(|| unknown_type(&name.to_string()))?,
        _ => return Err(unsupported(data_type)),
    })
}

/// The usual names of types, for suggestions.
const TYPE_NAMES: [&str; 39] = [
    "bigint",
    "bit",
    "bit varying",
    "blob",
    "bool",
    "boolean",
    "bytea",
    "char",
    "character varying",
    "date",
    "decimal",
    "double",
    "double precision",
    "float",
    "float4",
    "float8",
    "int",
    "int1",
    "int2",
    "int4",
    "int8",
    "integer",
    "interval",
    "map",
    "numeric",
    "real",
    "smallint",
    "string",
    "struct",
    "text",
    "time",
    "timestamp",
    "timestamptz",
    "timetz",
    "tinyint",
    "uuid",
    "varbinary",
    "varbit",
    "varchar",
];

/// Returns the error for an unknown type, with the nearest name.
fn unknown_type(name: &str) -> Error {
    // A name of the list may lack what belongs to it, such as the fields of a struct.
    let others = TYPE_NAMES.into_iter().filter(|known| !known.eq_ignore_ascii_case(name));
    let hint = did_you_mean(name, others);
    Error::unsupported(format!("unknown type '{name}'{hint}"))
        .with_state(SqlState::UNDEFINED_OBJECT)
}

fn unsupported(data_type: &DataType) -> Error {
    Error::unsupported(format!("the type {data_type} is not supported"))
}

/// Returns the type of the user with a name.
fn of_user(name: &ObjectName, modifiers: &[String], types: NamedTypes<'_>) -> Option<Atom> {
    match &name.0[..] {
        [only] if modifiers.is_empty() => types(&normalized(only.as_ident()?)),
        _ => None,
    }
}

/// Converts type names that the parser does not know.
fn custom(name: &str, modifiers: &[String]) -> Option<Atom> {
    if !modifiers.is_empty() {
        return None;
    }
    Some(match name {
        "int1" => Atom::Int8,
        "short" => Atom::Int16,
        "signed" | "int" => Atom::Int32,
        "long" => Atom::Int64,
        "utinyint" | "uint8" => Atom::UInt8,
        "usmallint" => Atom::UInt16,
        "uinteger" => Atom::UInt32,
        "ubigint" => Atom::UInt64,
        "bpchar" | "name" => Atom::String,
        "oid" => Atom::Int64,
        "bitstring" => Atom::Bits,
        "timestamp_s" | "timestamp_ms" | "timestamp_us" => {
            Atom::Timestamp(TimeUnit::Microsecond, None)
        }
        "timestamp_ns" => Atom::Timestamp(TimeUnit::Nanosecond, None),
        _ => return None,
    })
}

fn decimal(info: &ExactNumberInfo) -> Result<Atom> {
    let (precision, scale) = match *info {
        ExactNumberInfo::None => (u64::from(DECIMAL_PRECISION_MAX), i64::from(DECIMAL_SCALE)),
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    let wrong =
        |message: String| Error::semantic(message).with_state(SqlState::INVALID_PARAMETER_VALUE);
    if !(1..=u64::from(DECIMAL_PRECISION_MAX)).contains(&precision) {
        return Err(wrong(format!(
            "the precision of a decimal must be between 1 and {DECIMAL_PRECISION_MAX}, not {precision}"
        )));
    }
    match u8::try_from(scale) {
        Ok(scale) if u64::from(scale) <= precision => {
            Ok(Atom::Decimal(precision as u8, scale as i8))
        }
        _ => Err(wrong(format!(
            "the scale of a decimal of {precision} digits must be between 0 and {precision}, not {scale}"
        ))),
    }
}

fn structure(fields: &[StructField], types: NamedTypes<'_>) -> Result<Atom> {
    let mut slots: Vec<(std::sync::Arc<str>, Slot)> = Vec::with_capacity(fields.len());
    for (at, field) in fields.iter().enumerate() {
        let name = match &field.field_name {
            Some(name) => normalized(name),
            None => format!("c{at}"),
        };
        slots.push((
            name.into(),
            Slot { atom: atom_of_type(&field.field_type, types)?, nullable: true },
        ));
    }
    Ok(Atom::Struct(slots.into()))
}

#[cfg(test)]
mod tests {
    use super::unknown_type;

    #[test]
    fn a_suggestion_is_another_word() {
        for (name, message) in [
            ("struct", "unknown type 'struct'"),
            ("MAP", "unknown type 'MAP'"),
            ("structt", "unknown type 'structt'; did you mean 'struct'?"),
        ] {
            assert_eq!(unknown_type(name).message(), message);
        }
    }
}
