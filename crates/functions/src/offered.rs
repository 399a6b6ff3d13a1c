//! The functions of the library that SQL can call.

use super::{compare, quantified};

/// Functions that only the planner calls, for constructs with their own syntax. SQL cannot call
/// them by name.
const INTERNAL: &[&str] = &[
    "array_element",
    "bits_and",
    "bits_of",
    "bits_or",
    "bits_xor",
    "bytes_text",
    "collate",
    "collation_key",
    "concat_op",
    "cut_bits",
    "cut_character",
    "cut_text",
    "fit_bits",
    "frame_offset",
    "get_field",
    "ilike",
    "interval_in",
    "interval_to",
    "like",
    "make_array",
    "make_list",
    "merge_avg",
    "merge_count",
    "merge_sum",
    "named_struct",
    "neg",
    "round_moment",
    "round_time",
    "struct",
    "text_slice",
    "timetz_at",
    "timetz_in",
    "whole_quotient",
];

/// DataFusion functions that are not offered: PostgreSQL and DuckDB lack them, or give the name
/// another meaning.
const LEFT_OUT: &[&str] = &[
    "any_match",
    "array_add",
    "array_any_match",
    "array_compact",
    "array_empty",
    "array_normalize",
    "array_push_front",
    "array_remove_n",
    "array_replace_n",
    "array_scale",
    "array_subtract",
    "arrow_field",
    "arrow_metadata",
    "arrow_try_cast",
    "cast_to_type",
    "date_format",
    "digest",
    "empty",
    "file_row_index",
    "find_in_set",
    "from_unixtime",
    "input_file_name",
    "iszero",
    "list_add",
    "list_any_match",
    "list_compact",
    "list_empty",
    "list_normalize",
    "list_push_front",
    "list_remove_n",
    "list_replace_n",
    "list_scale",
    "list_subtract",
    "nanvl",
    "rand",
    "string_to_list",
    "substr_index",
    "substring_index",
    "to_local_time",
    "to_time",
    "to_timestamp_micros",
    "to_timestamp_millis",
    "to_timestamp_nanos",
    "to_timestamp_seconds",
    "to_unixtime",
    "try_cast_to_type",
    "union_extract",
    "union_tag",
    "with_metadata",
];

/// Whether the library omits a DataFusion function.
pub(super) fn is_left_out(name: &str) -> bool {
    LEFT_OUT.contains(&name)
}

/// Whether SQL may call a function or aggregate of this name.
pub fn is_offered(name: &str) -> bool {
    let stands_behind_syntax = INTERNAL.contains(&name)
        || compare::EXACT_NAMES.contains(&name)
        || quantified::NAMES.contains(&name);
    !stands_behind_syntax && !is_left_out(name)
}
