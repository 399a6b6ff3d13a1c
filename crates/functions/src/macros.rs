//! The names of functions that the binder writes in SQL over other functions. They are here, so
//! that the library offers them and no user-defined function takes their names.

/// Macros over aggregate functions.
const OF_AGGREGATES: [&str; 16] = [
    "approx_quantile",
    "arg_max",
    "arg_max_null",
    "arg_min",
    "arg_min_null",
    "argmax",
    "argmin",
    "count_if",
    "countif",
    "geomean",
    "geometric_mean",
    "max_by",
    "min_by",
    "sem",
    "wavg",
    "weighted_avg",
];

/// Macros over scalar functions.
const OF_SCALARS: [&str; 52] = [
    "add",
    "array_aggr",
    "array_aggregate",
    "array_reverse_sort",
    "array_unique",
    "col_description",
    "current_catalog",
    "current_database",
    "current_role",
    "current_schema",
    "current_schemas",
    "current_user",
    "date",
    "divide",
    "fdiv",
    "fmod",
    "format_type",
    "gen_random_uuid",
    "has_schema_privilege",
    "has_table_privilege",
    "iff",
    "list_aggr",
    "list_aggregate",
    "list_first",
    "list_last",
    "list_pack",
    "list_reverse_sort",
    "list_unique",
    "list_value",
    "map_contains",
    "map_extract_value",
    "multiply",
    "num_nonnulls",
    "num_nulls",
    "obj_description",
    "pg_encoding_to_char",
    "pg_function_is_visible",
    "pg_get_expr",
    "pg_get_userbyid",
    "pg_get_viewdef",
    "pg_table_is_visible",
    "pg_type_is_visible",
    "session_user",
    "struct_concat",
    "struct_extract",
    "struct_insert",
    "struct_pack",
    "struct_update",
    "subtract",
    "user",
    "uuidv4",
    "xor",
];

/// Aggregates that take WITHIN GROUP and tell where a value would be among the sorted rows.
pub const HYPOTHETICAL: [&str; 4] = ["rank", "dense_rank", "percent_rank", "cume_dist"];

/// Aggregates that `list_…` and `array_…` compute over the elements of a list.
pub const LIST_AGGREGATES: &[&str] = &[
    "approx_count_distinct",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "count",
    "entropy",
    "histogram",
    "kurtosis",
    "kurtosis_pop",
    "mad",
    "median",
    "mode",
    "sem",
    "skewness",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "var_pop",
    "var_samp",
];

/// The macros over aggregate functions.
pub fn of_aggregates() -> impl Iterator<Item = &'static str> {
    OF_AGGREGATES.into_iter()
}

/// The names of all macros that are called by name.
pub(super) fn names() -> impl Iterator<Item = String> {
    let of_lists = LIST_AGGREGATES.iter().map(|name| format!("list_{name}"));
    let fixed = OF_AGGREGATES.into_iter().chain(OF_SCALARS);
    fixed.map(String::from).chain(of_lists)
}
