//! Functions that are written in SQL over other functions, as DuckDB's macros are.
//!
//! `$1`, `$2`, … stand for the arguments (`inline` binds them). A macro over aggregates hands its
//! FILTER, OVER and DISTINCT on to them, so that they are computed in parts and merged as any other
//! aggregate.

use std::fmt::Write;
use std::sync::Arc;

use sqlparser::ast::{DuplicateTreatment, Expr as Ast, Function, Value};
use tessera_functions::macros::{HYPOTHETICAL, LIST_AGGREGATES, of_aggregates};
use tessera_parser::expression;
use tessera_types::{Error, Result, SqlState};

use super::function::{argument, function_name};
use super::inline::{WrittenArgument, argument_key, list_of, reads};
use super::order::direction;
use super::typed::TypedExpr;
use super::{Binder, Place, unsupported_at, with_span};

/// Macros with a fixed number of arguments.
const TEXTS: &[(&str, usize, &str)] = &[
    ("add", 2, "($1 + $2)"),
    ("array_reverse_sort", 1, "array_sort($1, 'DESC', 'NULLS FIRST')"),
    ("array_unique", 1, "len(list_distinct($1))"),
    ("col_description", 2, "CASE WHEN $1 IS NOT NULL OR $2 IS NOT NULL THEN NULL::text END"),
    ("count_if", 1, "sum($1::boolean)"),
    ("countif", 1, "sum($1::boolean)"),
    ("current_catalog", 0, "'tessera'::text"),
    ("current_database", 0, "'tessera'::text"),
    ("current_role", 0, "'tessera'::text"),
    ("current_schema", 0, "'main'::text"),
    ("current_schemas", 1, "CASE WHEN $1 THEN ['pg_catalog', 'main'] ELSE ['main'] END"),
    ("current_user", 0, "'tessera'::text"),
    ("date", 1, "($1)::date"),
    ("divide", 2, "($1 / $2)"),
    ("fdiv", 2, "floor($1 / ($2)::double)"),
    ("fmod", 2, "($1 - $2 * floor($1 / ($2)::double))"),
    ("gen_random_uuid", 0, "uuid()"),
    ("geomean", 1, "exp(avg(ln($1)))"),
    ("geometric_mean", 1, "exp(avg(ln($1)))"),
    ("has_schema_privilege", 2, "($1 IS NOT NULL AND $2 IS NOT NULL)"),
    ("has_table_privilege", 2, "($1 IS NOT NULL AND $2 IS NOT NULL)"),
    ("iff", 3, "CASE WHEN $1 THEN $2 ELSE $3 END"),
    ("list_first", 1, "array_extract($1, 1)"),
    ("list_last", 1, "array_extract($1, -1)"),
    ("list_reverse_sort", 1, "array_sort($1, 'DESC', 'NULLS FIRST')"),
    ("list_unique", 1, "len(list_distinct($1))"),
    ("multiply", 2, "($1 * $2)"),
    ("map_contains", 2, "len(map_extract($1, $2)) > 0"),
    ("map_extract_value", 2, "map_extract($1, $2)[1]"),
    ("obj_description", 2, "CASE WHEN $1 IS NOT NULL OR $2 IS NOT NULL THEN NULL::text END"),
    ("pg_encoding_to_char", 1, "CASE WHEN $1 = 6 THEN 'UTF8' ELSE '' END"),
    ("pg_function_is_visible", 1, "($1 IS NOT NULL OR NULL)"),
    ("pg_get_expr", 2, "CASE WHEN $2 IS NOT NULL THEN $1::text END"),
    ("pg_get_userbyid", 1, "CASE WHEN $1 IS NOT NULL THEN 'tessera'::text END"),
    ("pg_get_viewdef", 1, VIEW_DEFINITION),
    ("pg_table_is_visible", 1, "($1 IS NOT NULL OR NULL)"),
    ("pg_type_is_visible", 1, "($1 IS NOT NULL OR NULL)"),
    ("sem", 1, "stddev_pop($1) / sqrt(count($1))"),
    ("session_user", 0, "'tessera'::text"),
    ("subtract", 2, "($1 - $2)"),
    ("user", 0, "'tessera'::text"),
    ("uuidv4", 0, "uuid()"),
    ("wavg", 2, WEIGHTED_AVERAGE),
    ("weighted_avg", 2, WEIGHTED_AVERAGE),
    ("xor", 2, "($1 # $2)"),
];

const VIEW_DEFINITION: &str = "(SELECT v.definition FROM pg_catalog.pg_views v \
     JOIN pg_catalog.pg_class c ON c.relname = v.viewname WHERE c.oid = $1)";

const WEIGHTED_AVERAGE: &str =
    "sum($1 * $2)::double / nullif(sum(CASE WHEN $1 IS NOT NULL THEN $2 END)::double, 0)";

/// The macro of a call: its text, its arguments, and whether DISTINCT means something for it.
struct Expansion<'q> {
    text: String,
    args: Vec<&'q Ast>,
    distinct: bool,
}

impl Binder<'_> {
    /// Binds a call of a macro; `None` for other functions.
    ///
    /// # Errors
    /// The macro does not take these arguments.
    pub(super) fn macro_call(
        &mut self,
        function: &Function,
        place: &mut Place<'_, '_>,
    ) -> Result<Option<TypedExpr>> {
        let Some(name) = function_name(function) else { return Ok(None) };
        if self.library().user_function(&name).is_some() {
            return Ok(None);
        }
        let value = match self.user_macro(&name, function, place) {
            Ok(None) => self.own_macro(&name, function, place),
            other => other,
        };
        value.map_err(|error| with_span(error, function))
    }

    /// Binds a call of a macro of this file.
    fn own_macro(
        &mut self,
        name: &str,
        function: &Function,
        place: &mut Place<'_, '_>,
    ) -> Result<Option<TypedExpr>> {
        let Some(Expansion { text, args, distinct }) = self.expansion(name, function)? else {
            return Ok(None);
        };
        let list = list_of(function);
        let has_distinct =
            list.is_some_and(|list| list.duplicate_treatment == Some(DuplicateTreatment::Distinct));
        let of_scalars = !self.is_aggregate_macro(function) && !matches!(name, "max" | "min");
        if of_scalars {
            check_clauses(name, function)?;
        }
        if has_distinct && !distinct {
            return Err(unsupported_at(&format!("DISTINCT in a call of {name}"), function));
        }
        let body = parsed(&text)?;
        let positions = (1..).map(|at: usize| format!("${at}"));
        if of_scalars {
            let mut arguments: Vec<(Arc<str>, TypedExpr)> = Vec::with_capacity(args.len());
            for (position, arg) in positions.zip(args) {
                let value = self.bound_argument(arg, reads(&body, &position, None), place)?;
                arguments.push((argument_key(&position).into(), value));
            }
            return self.inlined(&body, arguments, place).map(Some);
        }
        let written = |(position, value)| WrittenArgument { position, name: None, value };
        let written: Vec<_> = positions.zip(args).map(written).collect();
        let tree = self.filled(body, &written, function)?;
        self.expr(&tree, place).map(Some)
    }

    fn expansion<'q>(&self, name: &str, function: &'q Function) -> Result<Option<Expansion<'q>>> {
        let args = match list_of(function) {
            Some(list) => &list.args[..],
            None => &[],
        };
        let count = args.len();
        let plain = || args.iter().map(|arg| argument(arg, function)).collect::<Result<Vec<_>>>();
        let made = |text: String, distinct: bool| {
            plain().map(|args| Some(Expansion { text, args, distinct }))
        };
        if let Some((.., text)) = TEXTS.iter().find(|(known, n, _)| *known == name && *n == count) {
            return made(text.to_string(), !text.contains("$2"));
        }
        if let Some((_, takes, _)) = TEXTS.iter().find(|(known, ..)| *known == name) {
            return Err(wrong_count(name, &takes.to_string(), count));
        }
        if of_extreme(name, 2).is_some() && !matches!(count, 2 | 3) {
            return Err(wrong_count(name, "2 or 3", count));
        }
        match (name, count) {
            ("max" | "min", 2) => made(
                format!(
                    "array_agg($1 ORDER BY $1 {} LIMIT $2) FILTER (WHERE $1 IS NOT NULL)",
                    if name == "max" { "DESC" } else { "ASC" }
                ),
                false,
            ),
            (_, 2 | 3) if of_extreme(name, count).is_some() => {
                made(of_extreme(name, count).unwrap_or_default(), false)
            }
            ("format_type", 2) => made(tessera_system_catalog::format_type(), false),
            ("list_value" | "list_pack", _) => {
                let items: Vec<String> = (1..=count).map(|at| format!("${at}")).collect();
                made(format!("[{}]", items.join(", ")), false)
            }
            ("num_nulls" | "num_nonnulls", 1..) => {
                let not = if name == "num_nulls" { "" } else { "NOT " };
                let tests: Vec<String> =
                    (1..=count).map(|at| format!("(${at} IS {not}NULL)::int")).collect();
                made(format!("({})", tests.join(" + ")), false)
            }
            ("list_aggregate" | "list_aggr" | "array_aggregate" | "array_aggr", 2..) => {
                let Ast::Value(written) = argument(&args[1], function)? else {
                    return Err(no_name(name));
                };
                let Value::SingleQuotedString(aggregate) = &written.value else {
                    return Err(no_name(name));
                };
                made(of_list(&aggregate.to_lowercase(), count)?, false)
            }
            (_, 1..) if of_list_aggregate(name).is_some() => {
                let aggregate = of_list_aggregate(name).unwrap_or_default();
                let mut text = of_list(aggregate, count + 1)?;
                // The arguments behind the list are one place earlier than in `list_aggregate`.
                for at in 3..=count + 1 {
                    text = text.replace(&format!("${at}"), &format!("${}", at - 1));
                }
                made(text, false)
            }
            ("date_part" | "datepart", 2) => {
                let Some(fields) = list_of_texts(argument(&args[0], function)?) else {
                    return Ok(None);
                };
                let items: Vec<String> = fields
                    .iter()
                    .map(|field| field.to_lowercase())
                    .map(|field| match is_name(&field) {
                        true => Ok(format!("'{field}': {field}($2)")),
                        false => {
                            let message = format!("unknown unit '{field}' of {name}");
                            Err(Error::semantic(message)
                                .with_state(SqlState::INVALID_PARAMETER_VALUE))
                        }
                    })
                    .collect::<Result<_>>()?;
                made(format!("{{{}}}", items.join(", ")), false)
            }
            ("approx_quantile", 2) => match argument(&args[1], function)? {
                Ast::Array(list) => {
                    let count = list.elem.len();
                    let items: Vec<String> = (2..count + 2)
                        .map(|at| format!("approx_percentile_cont($1, ${at})"))
                        .collect();
                    let mut all = vec![argument(&args[0], function)?];
                    all.extend(&list.elem);
                    let text = format!("[{}]", items.join(", "));
                    Ok(Some(Expansion { text, args: all, distinct: false }))
                }
                _ => made("approx_percentile_cont($1, $2)".to_string(), false),
            },
            ("struct_extract", 2) => match argument(&args[1], function)? {
                Ast::Value(written) if matches!(written.value, Value::SingleQuotedString(_)) => {
                    let field = written.value.clone().into_string().unwrap_or_default();
                    made(format!("($1).\"{}\"", field.replace('"', "\"\"")), false)
                }
                _ => {
                    let message = "struct_extract takes a struct and the name of a field as text";
                    Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION))
                }
            },
            (name, _) if HYPOTHETICAL.contains(&name) && !function.within_group.is_empty() => {
                let keys = &function.within_group;
                if keys.len() != count {
                    let message = format!(
                        "{name} takes as many values as WITHIN GROUP (ORDER BY …) has; there are {count} and {}",
                        keys.len()
                    );
                    return Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION));
                }
                let orders: Vec<_> = keys.iter().map(|key| direction(&key.options)).collect();
                let mut all = plain()?;
                all.extend(keys.iter().map(|key| &key.expr));
                Ok(Some(Expansion {
                    text: hypothetical(name, &orders),
                    args: all,
                    distinct: false,
                }))
            }
            _ => Ok(None),
        }
    }

    /// Returns whether a call is one of a macro over aggregates.
    pub(super) fn is_aggregate_macro(&self, function: &Function) -> bool {
        let Some(name) = function_name(function) else { return false };
        let count = list_of(function).map_or(0, |list| list.args.len());
        let known = of_aggregates().any(|known| known == name)
            || (HYPOTHETICAL.contains(&name.as_str()) && !function.within_group.is_empty());
        known && count > 0 && self.library().user_function(&name).is_none()
    }
}

/// Rejects the clauses that only aggregates take.
pub(super) fn check_clauses(name: &str, function: &Function) -> Result<()> {
    let in_list = list_of(function).is_some_and(|list| {
        list.duplicate_treatment == Some(DuplicateTreatment::Distinct) || !list.clauses.is_empty()
    });
    if in_list || function.over.is_some() || function.filter.is_some() {
        let message =
            format!("{name} is a scalar function; remove DISTINCT, ORDER BY, FILTER and OVER");
        return Err(Error::semantic(message).with_state(SqlState::WRONG_OBJECT_TYPE));
    }
    Ok(())
}

fn wrong_count(name: &str, takes: &str, count: usize) -> Error {
    let noun = if takes == "1" { "argument" } else { "arguments" };
    Error::semantic(format!("function {name} takes {takes} {noun}, not {count}"))
        .with_state(SqlState::UNDEFINED_FUNCTION)
}

fn no_name(name: &str) -> Error {
    Error::semantic(format!("{name} takes a list and the name of an aggregate function as text"))
        .with_state(SqlState::UNDEFINED_FUNCTION)
}

/// `arg_min(x, y)` and its relatives: the `x` of the smallest `y`, or of the `n` smallest.
fn of_extreme(name: &str, count: usize) -> Option<String> {
    let order = match name {
        "arg_min" | "argmin" | "min_by" | "arg_min_null" => "ASC",
        "arg_max" | "argmax" | "max_by" | "arg_max_null" => "DESC",
        _ => return None,
    };
    let condition = match name.ends_with("_null") {
        true => "$2 IS NOT NULL",
        false => "$1 IS NOT NULL AND $2 IS NOT NULL",
    };
    Some(match count {
        2 => format!("first_value($1 ORDER BY $2 {order}) FILTER (WHERE {condition})"),
        _ => format!("array_agg($1 ORDER BY $2 {order} LIMIT $3) FILTER (WHERE {condition})"),
    })
}

/// The aggregate that a function such as `list_median` computes over a list.
fn of_list_aggregate(name: &str) -> Option<&'static str> {
    let aggregate = name.strip_prefix("list_").or_else(|| name.strip_prefix("array_"))?;
    LIST_AGGREGATES.iter().copied().find(|known| *known == aggregate)
}

/// The texts of a written list of texts that is not empty.
fn list_of_texts(written: &Ast) -> Option<Vec<&str>> {
    let Ast::Array(list) = written else { return None };
    fn text(item: &Ast) -> Option<&str> {
        match item {
            Ast::Value(value) => match &value.value {
                Value::SingleQuotedString(text) => Some(text.as_str()),
                _ => None,
            },
            _ => None,
        }
    }
    list.elem.iter().map(text).collect::<Option<Vec<_>>>().filter(|texts| !texts.is_empty())
}

/// Whether a word can be the name of a function.
fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// An aggregate over the elements of `$1`; further arguments are `$3`, `$4`, …
fn of_list(aggregate: &str, count: usize) -> Result<String> {
    if !is_name(aggregate) {
        let message = format!("unknown aggregate function '{aggregate}'");
        return Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION));
    }
    let rest: String = (3..=count).map(|at| format!(", ${at}")).collect();
    Ok(format!(
        "CASE WHEN $1 IS NOT NULL THEN (SELECT {aggregate}(element{rest}) FROM unnest($1) AS elements(element)) END"
    ))
}

/// A hypothetical-set aggregate: where the arguments would be among the sorted rows. `$1` … are
/// the arguments, and the keys follow.
fn hypothetical(name: &str, orders: &[(bool, bool)]) -> String {
    let (mut before, mut peers) = (String::new(), String::new());
    for (at, (descending, nulls_first)) in orders.iter().enumerate() {
        let (value, key) = (format!("${}", at + 1), format!("${}", orders.len() + at + 1));
        let sign = if *descending { ">" } else { "<" };
        let (first, last) = if *nulls_first { (&key, &value) } else { (&value, &key) };
        // Between a value and NULL, the order of NULLs decides.
        let (null, other) = (first, last);
        let test =
            format!("coalesce({key} {sign} {value}, {null} IS NULL AND {other} IS NOT NULL)");
        let all = if at == 0 { test } else { format!("({peers} AND {test})") };
        let _ = write!(before, "{}{all}", if at == 0 { "" } else { " OR " });
        let peer = format!("{key} IS NOT DISTINCT FROM {value}");
        let _ = write!(peers, "{}{peer}", if at == 0 { "" } else { " AND " });
    }
    let keys: Vec<String> =
        (1..=orders.len()).map(|at| format!("${}", orders.len() + at)).collect();
    match name {
        "rank" => format!("count(*) FILTER (WHERE {before}) + 1"),
        "dense_rank" => {
            format!("count(DISTINCT row({})) FILTER (WHERE {before}) + 1", keys.join(", "))
        }
        "percent_rank" => format!(
            "CASE WHEN count(*) = 0 THEN 0::double ELSE (count(*) FILTER (WHERE {before}))::double / count(*) END"
        ),
        _ => {
            format!("(count(*) FILTER (WHERE {before} OR ({peers})) + 1)::double / (count(*) + 1)")
        }
    }
}

/// Parses the text of a macro. Its parts have no place in the statement, so that errors show the
/// call.
fn parsed(text: &str) -> Result<Ast> {
    expression(text).map_err(|error| Error::internal(format!("the macro {text}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_macros_parse_and_are_offered() {
        let library = tessera_functions::Library::default();
        let offered = library.offered();
        for (name, _, text) in TEXTS {
            assert!(parsed(text).is_ok(), "{text}");
            assert!(offered.iter().any(|known| known == name), "{name}");
        }
    }

    #[test]
    fn a_hypothetical_value_is_compared_key_by_key() {
        let text = hypothetical("rank", &[(false, false), (true, true)]);
        assert_eq!(
            text,
            "count(*) FILTER (WHERE coalesce($3 < $1, $1 IS NULL AND $3 IS NOT NULL) OR \
             ($3 IS NOT DISTINCT FROM $1 AND coalesce($4 > $2, $4 IS NULL AND $2 IS NOT NULL))) + 1"
        );
    }
}
