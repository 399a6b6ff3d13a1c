//! Functions on strings and bytes, with PostgreSQL's semantics; functions that PostgreSQL lacks
//! follow DuckDB.

mod bytes;
mod characters;
mod codes;
mod collations;
mod distances;
mod format;
mod keywords;
mod levenshtein;
mod matches;
pub(super) mod pad;
mod paths;
mod printf;
mod quote;
mod sizes;
mod split;

use tessera_types::{Atom, Result};

use tessera_values::types::{Arg, ResolvedCall};

/// The names of the functions.
pub(crate) const NAMES: &[&str] = &[
    "bar",
    "base64",
    "bin",
    "btrim",
    "chr",
    "collate",
    "collation_key",
    "convert_from",
    "convert_to",
    "cut_character",
    "cut_text",
    "damerau_levenshtein",
    "decode",
    "encode",
    "error",
    "format",
    "format_bytes",
    "formatreadabledecimalsize",
    "formatreadablesize",
    "from_base64",
    "from_hex",
    "get_bit",
    "get_byte",
    "hamming",
    "hex",
    "jaccard",
    "jaro_similarity",
    "jaro_winkler_similarity",
    "levenshtein",
    "lpad",
    "ltrim",
    "mismatches",
    "overlay",
    "parse_dirname",
    "parse_dirpath",
    "parse_filename",
    "parse_path",
    "printf",
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
    "regexp_matches",
    "regexp_replace",
    "regexp_split_to_array",
    "regexp_substr",
    "rpad",
    "rtrim",
    "set_bit",
    "set_byte",
    "sha1",
    "split_part",
    "string_split",
    "string_to_array",
    "strip_accents",
    "strpos",
    "substr",
    "substring",
    "text_slice",
    "to_base64",
    "to_bin",
    "to_binary",
    "to_hex",
    "to_oct",
    "trim",
    "unhex",
    "url_decode",
    "url_encode",
];

/// Resolves a call if the function and its arguments are handled here; all others are DataFusion's.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<ResolvedCall>> {
    let bytes = args.iter().any(|arg| *arg.atom == Atom::Bytes);
    Some(match name {
        "cut_text" | "cut_character" => characters::cut(name, args),
        "text_slice" => characters::slice(name, args),
        // DataFusion handles numbers beyond `bigint`.
        "to_hex"
            if args.len() == 1 && args[0].atom.is_integer() && *args[0].atom != Atom::UInt64 =>
        {
            characters::hexadecimal(name, args)
        }
        "chr" => characters::of_number(name, args),
        "collate" => collations::collate(name, args),
        "collation_key" => collations::key(name, args),
        "strip_accents" => collations::strip_accents(name, args),
        "trim" | "btrim" | "ltrim" | "rtrim" if bytes => bytes::trim(name, args),
        "strpos" if bytes => bytes::position(name, args),
        "overlay" if bytes => bytes::overlay(name, args),
        "substr" | "substring" if bytes => bytes::part(name, args),
        "substr" | "substring" if matches::is_pattern(args) => matches::part(name, args),
        "convert_from" | "convert_to" => bytes::converted(name, args),
        "encode" | "decode" if args.len() == 1 => bytes::of_utf8(name, args),
        "encode" | "decode" => bytes::coded(name, args),
        "get_byte" | "get_bit" => bytes::get(name, args),
        "set_byte" | "set_bit" => bytes::set(name, args),
        "format" => format::resolve(name, args),
        "printf" => printf::resolve(name, args),
        "error" => bytes::error(name, args),
        "hex" | "bin" | "to_binary" | "to_bin" | "to_oct" | "unhex" | "from_hex" | "to_base64"
        | "base64" | "from_base64" | "sha1" => codes::resolve(name, args),
        "quote_ident" | "quote_literal" | "quote_nullable" => quote::resolve(name, args),
        "levenshtein" => levenshtein::resolve(name, args),
        "lpad" | "rpad" => pad::resolve(name, args),
        "hamming" | "mismatches" => distances::hamming(name, args),
        "damerau_levenshtein" => distances::damerau_levenshtein(name, args),
        "jaro_similarity" | "jaro_winkler_similarity" => distances::jaro(name, args),
        "jaccard" => distances::jaccard(name, args),
        "parse_filename" => paths::file_name(name, args),
        "parse_dirname" => paths::first_directory(name, args),
        "parse_dirpath" => paths::directories(name, args),
        "parse_path" => paths::parts(name, args),
        "url_encode" => paths::url_encode(name, args),
        "url_decode" => paths::url_decode(name, args),
        "format_bytes" | "formatreadablesize" | "formatreadabledecimalsize" => {
            sizes::of_bytes(name, args)
        }
        "bar" => sizes::bar(name, args),
        "split_part" => split::part(name, args),
        "string_to_array" => split::to_list(name, args),
        "string_split" => split::pieces(name, args),
        _ if name.starts_with("regexp_") && NAMES.contains(&name) => matches::resolve(name, args),
        _ => return None,
    })
}
