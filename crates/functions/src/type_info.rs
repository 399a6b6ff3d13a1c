//! Functions that describe the program and values: `version()`, PostgreSQL's `pg_typeof`, and
//! DuckDB's `typeof` and `hash`.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewArray, UInt64Array};
use tessera_types::{Atom, Result, quote_text};
use tessera_vector::Column;
use tessera_vector::hash::hash_columns;

use tessera_values::kernel::{Argument, Kernel, argument};
use tessera_values::types::{Arg, ResolvedCall, expect_arguments, wrong_arguments};

/// The names of the functions.
pub(crate) const NAMES: &[&str] = &["enum_code", "hash", "pg_typeof", "typeof", "version"];

/// Resolves a call of one of these functions.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<ResolvedCall>> {
    let named = |of: fn(&Atom) -> String| {
        expect_arguments(name, args, 1).map(|()| constant(args, of(args[0].atom)))
    };
    Some(match name {
        "version" => expect_arguments(name, args, 0)
            .map(|()| constant(args, format!("Tessera {}", env!("CARGO_PKG_VERSION")))),
        "pg_typeof" => named(postgresql_name),
        "typeof" => named(duckdb_name),
        "enum_code" => place(args),
        "hash" => hashed(name, args),
        _ => return None,
    })
}

/// A constant string that depends only on the argument types.
fn constant(args: &[Arg<'_>], text: String) -> ResolvedCall {
    let casts = args.iter().map(|arg| arg.atom.clone()).collect();
    let mut resolved = ResolvedCall::strict(Atom::String, args, casts, ConstantText(text));
    resolved.nullable = false;
    resolved
}

#[derive(Debug)]
struct ConstantText(String);

impl Kernel for ConstantText {
    fn call(&self, _args: &[Argument], rows: usize) -> Result<ArrayRef> {
        Ok(Arc::new(StringViewArray::from(vec![self.0.as_str(); rows])))
    }
}

/// `enum_code(value)`: the place of a label in its type, from 0.
fn place(args: &[Arg<'_>]) -> Result<ResolvedCall> {
    match args {
        [Arg { atom: atom @ Atom::Enum(_), .. }] => {
            Ok(ResolvedCall::strict(Atom::UInt16, args, vec![(*atom).clone()], Place))
        }
        _ => Err(wrong_arguments("enum_code", args, "it takes a value of an enum")),
    }
}

#[derive(Debug)]
struct Place;

impl Kernel for Place {
    /// The plain form of an enum has the places.
    fn call(&self, args: &[Argument], _rows: usize) -> Result<ArrayRef> {
        Ok(argument(args, 0)?.array.clone())
    }
}

/// `hash(values…)`: the hash that joins and groups use. It is equal for equal values of one type,
/// also for NULLs.
fn hashed(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    if args.is_empty() || args.iter().any(|arg| arg.atom.is_nested()) {
        let hint = "it takes one or more values that are no lists, structs or maps";
        return Err(wrong_arguments(name, args, hint));
    }
    let casts = args
        .iter()
        .map(|arg| match arg.atom {
            // One type for all whole numbers, so that equal ones have equal hashes.
            atom if atom.is_integer() && *atom != Atom::UInt64 => Atom::Int64,
            Atom::Float32 => Atom::Float64,
            Atom::Null => Atom::Int64,
            atom => atom.clone(),
        })
        .collect();
    let mut resolved = ResolvedCall::strict(Atom::UInt64, args, casts, Hash).costing(4);
    resolved.nullable = false;
    Ok(resolved)
}

#[derive(Debug)]
struct Hash;

impl Kernel for Hash {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let columns = args.iter().map(|arg| Ok(Column::Plain(arg.full(rows)?)));
        let mut hashes = Vec::new();
        hash_columns(&columns.collect::<Result<Vec<_>>>()?, rows, &mut hashes)?;
        Ok(Arc::new(UInt64Array::from(hashes)))
    }
}

fn postgresql_name(atom: &Atom) -> String {
    let name = match atom {
        Atom::Null => "unknown",
        Atom::Boolean => "boolean",
        Atom::Int8 | Atom::Int16 | Atom::UInt8 => "smallint",
        Atom::Int32 | Atom::UInt16 => "integer",
        Atom::Int64 | Atom::UInt32 => "bigint",
        Atom::UInt64 | Atom::Decimal(..) => "numeric",
        Atom::Float32 => "real",
        Atom::Float64 => "double precision",
        Atom::String => "text",
        Atom::Bytes => "bytea",
        Atom::Bits => "bit",
        Atom::Uuid => "uuid",
        Atom::Date => "date",
        Atom::Time(_) => "time without time zone",
        Atom::TimeTz => "time with time zone",
        Atom::Timestamp(_, None) => "timestamp without time zone",
        Atom::Timestamp(_, Some(_)) => "timestamp with time zone",
        Atom::Interval | Atom::Duration(_) => "interval",
        Atom::Enum(labels) => return labels.name().to_string(),
        Atom::List(slot) => {
            return format!("{}[]", postgresql_name(&slot.atom).trim_end_matches("[]"));
        }
        _ => "record",
    };
    name.to_string()
}

/// Returns the name of a type in DuckDB.
pub fn duckdb_name(atom: &Atom) -> String {
    let name = match atom {
        Atom::Null => "\"NULL\"",
        Atom::Boolean => "BOOLEAN",
        Atom::Int8 => "TINYINT",
        Atom::Int16 => "SMALLINT",
        Atom::Int32 => "INTEGER",
        Atom::Int64 => "BIGINT",
        Atom::UInt8 => "UTINYINT",
        Atom::UInt16 => "USMALLINT",
        Atom::UInt32 => "UINTEGER",
        Atom::UInt64 => "UBIGINT",
        Atom::Decimal(precision, scale) => return format!("DECIMAL({precision},{scale})"),
        Atom::Float32 => "FLOAT",
        Atom::Float64 => "DOUBLE",
        Atom::String => "VARCHAR",
        Atom::Bytes => "BLOB",
        Atom::Bits => "BIT",
        Atom::Uuid => "UUID",
        Atom::Date => "DATE",
        Atom::Time(_) => "TIME",
        Atom::TimeTz => "TIME WITH TIME ZONE",
        Atom::Timestamp(_, None) => "TIMESTAMP",
        Atom::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE",
        Atom::Interval | Atom::Duration(_) => "INTERVAL",
        Atom::Enum(labels) => {
            let labels = labels.labels().iter().map(|label| quote_text(label)).collect::<Vec<_>>();
            return format!("ENUM({})", labels.join(", "));
        }
        Atom::List(slot) => return format!("{}[]", duckdb_name(&slot.atom)),
        Atom::Struct(fields) => {
            let fields =
                fields.iter().map(|(name, slot)| format!("{name} {}", duckdb_name(&slot.atom)));
            return format!("STRUCT({})", fields.collect::<Vec<_>>().join(", "));
        }
        Atom::Map(key, value) => {
            return format!("MAP({}, {})", duckdb_name(&key.atom), duckdb_name(&value.atom));
        }
    };
    name.to_string()
}
