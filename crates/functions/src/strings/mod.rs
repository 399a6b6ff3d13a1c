//! Functions on strings and bytes, with PostgreSQL's semantics; functions that PostgreSQL lacks
//! follow DuckDB.

mod bytes;
mod characters;
mod format;
mod keywords;
mod matches;
pub(super) mod pad;
mod quote;
pub(super) mod regexes;
mod split;

use tessera_types::{Atom, Result};

use super::types::{Arg, ResolvedCall};

/// The names of the functions.
pub(crate) const NAMES: &[&str] = &[
    "btrim",
    "chr",
    "convert_from",
    "convert_to",
    "cut_character",
    "cut_text",
    "decode",
    "encode",
    "format",
    "get_bit",
    "get_byte",
    "lpad",
    "ltrim",
    "overlay",
    "quote_ident",
    "quote_literal",
    "quote_nullable",
    "regexp_count",
    "regexp_extract",
    "regexp_extract_all",
    "regexp_full_match",
    "regexp_instr",
    "regexp_like",
    "regexp_match",
    "regexp_replace",
    "regexp_split_to_array",
    "regexp_substr",
    "rpad",
    "rtrim",
    "set_bit",
    "set_byte",
    "split_part",
    "string_split",
    "string_to_array",
    "strpos",
    "substr",
    "substring",
    "to_hex",
    "trim",
];

/// Resolves a call if the function and its arguments are handled here; all others are DataFusion's.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<ResolvedCall>> {
    let bytes = args.iter().any(|arg| *arg.atom == Atom::Bytes);
    Some(match name {
        "cut_text" | "cut_character" => characters::cut(name, args),
        // DataFusion handles numbers beyond `bigint`.
        "to_hex"
            if args.len() == 1 && args[0].atom.is_integer() && *args[0].atom != Atom::UInt64 =>
        {
            characters::hexadecimal(name, args)
        }
        "chr" => characters::of_number(name, args),
        "trim" | "btrim" | "ltrim" | "rtrim" if bytes => bytes::trim(name, args),
        "strpos" if bytes => bytes::position(name, args),
        "overlay" if bytes => bytes::overlay(name, args),
        "substr" | "substring" if bytes => bytes::part(name, args),
        "substr" | "substring" if matches::is_pattern(args) => matches::part(name, args),
        "convert_from" | "convert_to" => bytes::converted(name, args),
        "encode" | "decode" => bytes::coded(name, args),
        "get_byte" | "get_bit" => bytes::get(name, args),
        "set_byte" | "set_bit" => bytes::set(name, args),
        "format" => format::resolve(name, args),
        "quote_ident" | "quote_literal" | "quote_nullable" => quote::resolve(name, args),
        "lpad" | "rpad" => pad::resolve(name, args),
        "split_part" => split::part(name, args),
        "string_to_array" => split::to_list(name, args),
        "string_split" => split::pieces(name, args),
        _ if name.starts_with("regexp_") && NAMES.contains(&name) => matches::resolve(name, args),
        _ => return None,
    })
}
