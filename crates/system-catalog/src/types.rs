//! PostgreSQL's names and identifiers of types.

use std::fmt::Write;

use tessera_types::Atom;

/// A type of PostgreSQL.
pub(super) struct PgType {
    pub(super) oid: i64,
    pub(super) name: &'static str,
    /// The name that `information_schema` and `format_type` show.
    pub(super) shown: &'static str,
    /// The identifier of the type of lists of it.
    pub(super) list_oid: i64,
    /// The size in bytes; -1 if it varies.
    pub(super) size: i64,
    /// The category of the type, as in `pg_type.typcategory`.
    pub(super) category: &'static str,
}

const fn of(
    (oid, list_oid): (i64, i64),
    name: &'static str,
    shown: &'static str,
    size: i64,
    category: &'static str,
) -> PgType {
    PgType { oid, name, shown, list_oid, size, category }
}

/// The types, each with the types of its lists.
pub(super) const TYPES: [PgType; 19] = [
    of((16, 1000), "bool", "boolean", 1, "B"),
    of((17, 1001), "bytea", "bytea", -1, "U"),
    of((20, 1016), "int8", "bigint", 8, "N"),
    of((21, 1005), "int2", "smallint", 2, "N"),
    of((23, 1007), "int4", "integer", 4, "N"),
    of((25, 1009), "text", "text", -1, "S"),
    of((26, 1028), "oid", "oid", 4, "N"),
    of((700, 1021), "float4", "real", 4, "N"),
    of((701, 1022), "float8", "double precision", 8, "N"),
    of((1082, 1182), "date", "date", 4, "D"),
    of((1083, 1183), "time", "time without time zone", 8, "D"),
    of((1114, 1115), "timestamp", "timestamp without time zone", 8, "D"),
    of((1184, 1185), "timestamptz", "timestamp with time zone", 8, "D"),
    of((1186, 1187), "interval", "interval", 16, "T"),
    of((1266, 1270), "timetz", "time with time zone", 12, "D"),
    of((1560, 1561), "bit", "bit", -1, "V"),
    of((1700, 1231), "numeric", "numeric", -1, "N"),
    of((2950, 2951), "uuid", "uuid", 16, "U"),
    of((2249, 2287), "record", "record", -1, "P"),
];

/// Returns the type of PostgreSQL that has the values of an atom, and whether the atom is a list
/// of it.
pub(super) fn pg_type(atom: &Atom) -> (&'static PgType, bool) {
    let (atom, is_list) = match atom {
        Atom::List(slot) => (&slot.atom, true),
        other => (other, false),
    };
    let name = match atom {
        Atom::Boolean => "bool",
        Atom::Int8 | Atom::Int16 | Atom::UInt8 => "int2",
        Atom::Int32 | Atom::UInt16 => "int4",
        Atom::Int64 | Atom::UInt32 => "int8",
        Atom::UInt64 | Atom::Decimal(..) => "numeric",
        Atom::Float32 => "float4",
        Atom::Float64 => "float8",
        Atom::Bytes => "bytea",
        Atom::Uuid => "uuid",
        Atom::Bits => "bit",
        Atom::Date => "date",
        Atom::Time(_) => "time",
        Atom::TimeTz => "timetz",
        Atom::Timestamp(_, None) => "timestamp",
        Atom::Timestamp(_, Some(_)) => "timestamptz",
        Atom::Interval | Atom::Duration(_) => "interval",
        Atom::Struct(_) | Atom::Map(..) | Atom::List(_) => "record",
        _ => "text",
    };
    let found = TYPES.iter().find(|known| known.name == name);
    // The last type is `record`.
    (found.unwrap_or(&TYPES[TYPES.len() - 1]), is_list)
}

/// Returns digits and scale of a number type, in the base that the third value names.
pub(super) fn precision(atom: &Atom) -> Option<(i64, Option<i64>, i64)> {
    Some(match atom {
        Atom::Int8 | Atom::UInt8 | Atom::Int16 => (16, Some(0), 2),
        Atom::Int32 | Atom::UInt16 => (32, Some(0), 2),
        Atom::Int64 | Atom::UInt32 => (64, Some(0), 2),
        Atom::Float32 => (24, None, 2),
        Atom::Float64 => (53, None, 2),
        Atom::Decimal(precision, scale) => ((*precision).into(), Some((*scale).into()), 10),
        Atom::UInt64 => (20, Some(0), 10),
        _ => return None,
    })
}

/// Returns PostgreSQL's modifier of a decimal, -1 for other types.
pub(super) fn modifier(atom: &Atom) -> i64 {
    match atom {
        Atom::Decimal(precision, scale) => (i64::from(*precision) << 16 | i64::from(*scale)) + 4,
        _ => -1,
    }
}

/// Returns the body of the macro `format_type(oid, modifier)`: the name of a type.
pub fn format_type() -> String {
    let mut text = String::from("CASE $1 ");
    for pg in &TYPES {
        let shown = match pg.name {
            "numeric" => {
                "CASE WHEN $2 > 0 THEN concat('numeric(', ($2 - 4) >> 16, ',', ($2 - 4) & 65535, ')') \
                 ELSE 'numeric' END"
                    .to_string()
            }
            _ => format!("'{}'", pg.shown),
        };
        let _ = write!(text, "WHEN {} THEN {shown} ", pg.oid);
        let _ = write!(text, "WHEN {} THEN '{}[]' ", pg.list_oid, pg.shown);
    }
    text + "ELSE CASE WHEN $1 IS NOT NULL THEN '???' END END"
}
