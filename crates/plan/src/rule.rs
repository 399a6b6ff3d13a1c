//! The rewrites: every rule by which an expression, a relation or a plan becomes another one that
//! means the same.
//!
//! [`RULES`] is the one list of them. A rule is on unless `SET disabled_rules` names it; a query
//! gives the same rows either way. [`reference()`] makes `docs/reference/rules.md` of the list.

use std::fmt;
use std::fmt::Write as _;

use tessera_types::{Error, Result, nearest};

/// What a rule rewrites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Expressions, while a query is bound and its predicates are moved.
    Expression,
    /// Relations: the query before it is a plan.
    Relation,
    /// Plans of sub-operators.
    Plan,
}

/// A rule and what is said of it.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The rule.
    pub rule: Rule,
    /// Its name in `SET disabled_rules`.
    pub name: &'static str,
    /// What it rewrites.
    pub level: Level,
    /// What becomes of what.
    pub effect: &'static str,
    /// When that gives the same rows.
    pub condition: &'static str,
    /// The file it stands in.
    pub place: &'static str,
}

macro_rules! rules {
    ($($level:ident $rule:ident $name:literal $place:literal $effect:literal if $condition:literal;)*) => {
        /// A rule; [`RULES`] says what each one does.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Rule {
            $(#[doc = $effect] $rule,)*
        }

        /// All rules.
        pub const RULES: &[Entry] = &[$(Entry {
            rule: Rule::$rule,
            name: $name,
            level: Level::$level,
            effect: $effect,
            condition: $condition,
            place: $place,
        },)*];
    };
}

rules! {
    Expression FoldConstants "fold_constants" "crates/functions/src/fold.rs"
        "an expression over constants is its value"
        if "it is not volatile, does not raise, and the value has at most 64 KiB";
    Expression SameTypeCast "same_type_cast" "crates/optimizer/src/expression/mod.rs"
        "`cast(x as T)` is `x`"
        if "x has type T";
    Expression StrictNull "strict_null" "crates/optimizer/src/expression/comparisons.rs"
        "a call with a written NULL is NULL"
        if "it is a comparison other than IS DISTINCT FROM, `+ - * / %`, LIKE or ILIKE";
    Expression FlipComparison "flip_comparison" "crates/optimizer/src/expression/comparisons.rs"
        "`5 < x` is `x > 5`"
        if "only the left side is a constant";
    Expression DistinctFromNull "distinct_from_null" "crates/optimizer/src/expression/comparisons.rs"
        "`x IS DISTINCT FROM NULL` is `x IS NOT NULL`"
        if "the NULL is written";
    Expression BooleanEquality "boolean_equality" "crates/optimizer/src/expression/comparisons.rs"
        "`b = true` is `b`, `b = false` is `NOT b`"
        if "b is boolean";
    Expression UnwrapCast "unwrap_cast" "crates/optimizer/src/expression/comparisons.rs"
        "`cast(x as T) < c` is `x < d`"
        if "the cast never raises and keeps every value and their order, and c converted to the type of x and back is c";
    Expression DateComparison "date_comparison" "crates/optimizer/src/expression/comparisons.rs"
        "`cast(d as timestamp) < t` is a comparison of dates"
        if "d is a date, the cast raises where it overflows, t is a constant without time zone, and = and <> only at midnight";
    Expression LikeWithoutWildcards "like_without_wildcards" "crates/optimizer/src/expression/comparisons.rs"
        "`s LIKE 'abc'` is `s = 'abc'`"
        if "s is text and the constant pattern holds neither % nor _ nor a backslash";
    Expression DoubleNot "double_not" "crates/optimizer/src/expression/connectives.rs"
        "`NOT NOT b` is `b`"
        if "always";
    Expression NegateComparison "negate_comparison" "crates/optimizer/src/expression/comparisons.rs"
        "`NOT a < b` is `a >= b`"
        if "it is one of the eight comparisons: all values of a type are ordered, NaN too";
    Expression PushNot "push_not" "crates/optimizer/src/expression/connectives.rs"
        "`NOT (a AND b)` is `NOT a OR NOT b`, and the other way round"
        if "the operands are not all equalities of one value with constants";
    Expression FlattenConnectives "flatten_connectives" "crates/optimizer/src/expression/connectives.rs"
        "AND within AND and OR within OR are one"
        if "always; the order of operands is kept";
    Expression NeutralOperands "neutral_operands" "crates/optimizer/src/expression/connectives.rs"
        "`a AND true` is `a`, `a OR false` is `a`"
        if "the operand is a constant";
    Expression DecidingOperand "deciding_operand" "crates/optimizer/src/expression/connectives.rs"
        "`a AND false` is `false`, `a OR true` is `true`"
        if "operands before it stay up to the last one that can raise or is volatile";
    Expression RepeatedOperands "repeated_operands" "crates/optimizer/src/expression/connectives.rs"
        "`a AND b AND a` is `a AND b`, likewise of OR"
        if "a is not volatile; the first one stays";
    Expression DeadBranches "dead_branches" "crates/optimizer/src/expression/branches.rs"
        "CASE without the branches that are never taken"
        if "a condition is the constant false, NULL or, for all branches behind it, true";
    Expression CoalesceValues "coalesce_values" "crates/optimizer/src/expression/branches.rs"
        "coalesce within coalesce is one, without NULLs and without what stands behind a constant"
        if "NULLs and constants are written";

    Relation FactorDisjunctions "factor_disjunctions" "crates/optimizer/src/logical/push.rs"
        "`(a AND b) OR (a AND c)` is `a AND (b OR c)`"
        if "a neither raises nor is volatile";
    Relation EmptyFilter "empty_filter" "crates/optimizer/src/logical/push.rs"
        "a filter that keeps no tuple becomes an empty relation, and its input is not computed"
        if "a predicate is the constant false or NULL";
    Relation PushFilterScan "push_filter_scan" "crates/optimizer/src/logical/push.rs"
        "a predicate goes into the scan"
        if "it neither raises nor is volatile";
    Relation PushFilterMap "push_filter_map" "crates/optimizer/src/logical/push.rs"
        "a predicate goes below computed columns, with their expressions in the place of their names"
        if "what it becomes neither raises nor is volatile";
    Relation PushFilterJoin "push_filter_join" "crates/optimizer/src/logical/push.rs"
        "a predicate of one side goes into that side, one of both becomes a condition"
        if "it neither raises nor is volatile, and the join does not add NULLs to that side";
    Relation PushFilterAggregate "push_filter_aggregate" "crates/optimizer/src/logical/push.rs"
        "a predicate goes below a grouping"
        if "it reads keys only, there is one grouping, and it neither raises nor is volatile over what they are computed from";
    Relation PushFilterUnion "push_filter_union" "crates/optimizer/src/logical/push.rs"
        "a predicate goes into all inputs of UNION ALL"
        if "it neither raises nor is volatile";
    Relation PushFilterSort "push_filter_sort" "crates/optimizer/src/logical/push.rs"
        "a predicate goes below an order"
        if "the order has no limit, and the predicate neither raises nor is volatile";
    Relation PushFilterUnnest "push_filter_unnest" "crates/optimizer/src/logical/push.rs"
        "a predicate goes below unnest"
        if "it reads no element or list, and neither raises nor is volatile";
    Relation OuterToInner "outer_to_inner" "crates/optimizer/src/logical/push.rs"
        "an outer join is an inner one, or one that is outer on one side"
        if "a predicate above is never true where the added fields are NULL";
    Relation ImpliedPredicates "implied_predicates" "crates/optimizer/src/logical/push.rs"
        "of `(a.x = 1 AND b.y = 2) OR (a.x = 3 AND b.y = 4)`, `a.x = 1 OR a.x = 3` is tested on a, too"
        if "the join is inner, and the condition neither raises nor is volatile";
    Relation SinkSemiJoins "sink_semi_joins" "crates/optimizer/src/logical/push.rs"
        "a semi or anti join goes below filters and computed columns, next to the joins there"
        if "its conditions neither raise nor are volatile, here and there";
    Relation FirstOfSort "first_of_sort" "crates/optimizer/src/logical/push.rs"
        "LIMIT of ORDER BY keeps the first rows only"
        if "only computed columns stand between the two";
    Relation UnnestLateral "unnest_lateral" "crates/optimizer/src/logical/lateral_unnest.rs"
        "`FROM t, unnest(t.l)` unnests beside the row, without a nested plan"
        if "the lateral side is lists of one row with computed columns and filters; of LEFT JOIN, neither of these nor a condition";
    Relation LateralLimit "lateral_limit" "crates/optimizer/src/logical/lateral_limit.rs"
        "a correlated subquery with a LIMIT is a join: the first rows for each combination of the outer values that it reads"
        if "an equality with outer values finds its rows, nothing in it is volatile, and the outer rows can be computed twice or kept";
    Relation SingleRowSubquery "single_row_subquery" "crates/optimizer/src/logical/decorrelate.rs"
        "the join with a scalar subquery does not watch for a second row"
        if "the subquery always has exactly one";
    Relation DistinctAggregates "distinct_aggregates" "crates/optimizer/src/logical/distinct.rs"
        "aggregates with DISTINCT are two groupings, the first by the value, too"
        if "all are of one value that is not volatile, and others can be merged from parts of a fixed width";
    Relation OrderJoins "order_joins" "crates/optimizer/src/logical/order/mod.rs"
        "joins are in the order that is estimated cheapest"
        if "they are inner, or hang on what they read; what raises is tested last, a join with a volatile condition stays as written";
    Relation ReduceGroups "reduce_groups" "crates/optimizer/src/logical/reduce.rs"
        "the input of a grouping is cut down to the groups that a join asks for"
        if "the join is on its keys, what asks is the same each time, and it is estimated to pay";
    Relation BuildSmallerSide "build_smaller_side" "crates/optimizer/src/lower/join.rs"
        "a join builds its table of the left side"
        if "that is estimated smaller, and the kind of join can be turned round";

    Plan DropIdle "drop_idle" "crates/optimizer/src/physical/fuse.rs"
        "a map, projection or filter that changes nothing is left out"
        if "it yields all fields in their order; the predicate is true";
    Plan FuseFilters "fuse_filters" "crates/optimizer/src/physical/fuse.rs"
        "a filter of a filter is one, in the order of both"
        if "nothing else reads the lower one";
    Plan FuseMaps "fuse_maps" "crates/optimizer/src/physical/fuse.rs"
        "maps and projections of maps and projections are one"
        if "nothing else reads the lower one, and no expression that costs something is evaluated twice";
    Plan FuseAggregates "fuse_aggregates" "crates/optimizer/src/physical/fuse.rs"
        "aggregates compute what the map below them did"
        if "keys are fields as they are, nothing is evaluated twice, and no aggregate has a filter or an order";
    Plan PushIntoScans "push_into_scans" "crates/optimizer/src/physical/push.rs"
        "a conjunct goes from a filter into the scan below it"
        if "it reads no parameter, and neither raises nor is volatile";
    Plan TryInScans "try_in_scans" "crates/optimizer/src/physical/push.rs"
        "the scan tests a conjunct that can raise, too; rows for which it raises pass"
        if "it reads no parameter and is not volatile; the filter stays";
    Plan ShareCommon "share_common" "crates/optimizer/src/physical/share.rs"
        "equal sub-plans that consume their input whole do the work once"
        if "nothing in them is volatile or writes a file";
    Plan PruneColumns "prune_columns" "crates/optimizer/src/physical/prune.rs"
        "fields that nothing reads are not computed, read or carried"
        if "the number of tuples stays";
    Plan FilterAggregates "filter_aggregates" "crates/optimizer/src/physical/filter_aggregates.rs"
        "aggregates without keys take over the filter below them"
        if "it tests numbers, the functions are count, sum, min, max and avg, and they read at most two more fields";
    Plan PushThresholds "push_thresholds" "crates/optimizer/src/physical/threshold.rs"
        "scans leave out what sorts behind the first rows so far"
        if "what lies between passes tuples on one by one, and neither raises nor is volatile";
    Plan KeyFilters "key_filters" "crates/optimizer/src/physical/key_filters.rs"
        "a filter of the keys of a join's table stands further up its stream"
        if "the join drops tuples without a match, what lies between neither raises nor is volatile, and it is estimated to pay";
    Plan PartialAggregates "partial_aggregates" "crates/optimizer/src/physical/distribute/aggregate.rs"
        "each worker aggregates its part before tuples cross"
        if "the functions can be merged, without DISTINCT or an order";
    Plan PartialFirst "partial_first" "crates/optimizer/src/physical/distribute/mod.rs"
        "each worker keeps the first rows of its part before tuples cross"
        if "there is a limit";
    Plan SelectInStore "select_in_store" "crates/storage/objects/src/select/pass.rs"
        "the store filters, projects and counts an object itself"
        if "smart_storage is on, and the store is trusted with the types and the predicate";
}

/// A set of rules: those that are on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Rules(u64);

const _: () = assert!(RULES.len() <= 64, "Rules has a bit for each rule");

impl Rules {
    /// Every rule.
    pub const ALL: Rules = Rules(u64::MAX >> (64 - RULES.len()));
    /// No rule.
    pub const NONE: Rules = Rules(0);

    /// Whether a rule is among them.
    pub const fn has(self, rule: Rule) -> bool {
        self.0 >> rule as u32 & 1 == 1
    }

    /// These rules and one more.
    #[must_use]
    pub const fn with(self, rule: Rule) -> Rules {
        Rules(self.0 | 1 << rule as u32)
    }

    /// These rules but one.
    #[must_use]
    pub const fn without(self, rule: Rule) -> Rules {
        Rules(self.0 & !(1 << rule as u32))
    }

    /// All rules but those that a text names: `all`, `none`, or names with commas between them.
    ///
    /// # Errors
    /// A name that no rule has.
    pub fn all_but(names: &str) -> Result<Rules> {
        match names.trim().to_ascii_lowercase().as_str() {
            "all" => return Ok(Rules::NONE),
            "" | "none" => return Ok(Rules::ALL),
            _ => {}
        }
        names.split(',').map(str::trim).try_fold(Rules::ALL, |rules, name| {
            let lower = name.to_ascii_lowercase();
            match RULES.iter().find(|entry| entry.name == lower) {
                Some(entry) => Ok(rules.without(entry.rule)),
                None => Err(unknown(name)),
            }
        })
    }

    /// The text that [`Rules::all_but`] reads as these rules.
    pub fn disabled(self) -> String {
        match self {
            Rules::ALL => "none".to_string(),
            Rules::NONE => "all".to_string(),
            rules => {
                let off =
                    RULES.iter().filter(|entry| !rules.has(entry.rule)).map(|entry| entry.name);
                off.collect::<Vec<_>>().join(",")
            }
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Rules::ALL
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rules(all but {})", self.disabled())
    }
}

fn unknown(name: &str) -> Error {
    let near = nearest(name, RULES.iter().map(|entry| entry.name));
    let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    Error::semantic(format!("unknown rule '{name}'{hint}; docs/reference/rules.md lists all rules"))
}

/// `docs/reference/rules.md`: all rules as a page.
pub fn reference() -> String {
    let mut page = String::from(
        "# Rules\n\n\
         Every rewrite of a query, made from the list in `crates/plan/src/rule.rs`. A query gives the same rows with and without\n\
         each of them; `SET disabled_rules = 'push_not,order_joins'` turns rules off, `'all'` all of them. Not rules, and always done:\n\
         subqueries become joins where that is possible, equalities between the sides of an inner join its keys, and equalities of one\n\
         value with constants a set; conjuncts that cannot raise are evaluated in the order of their cost.\n\n\
         A rule never adds an error. It may drop one of a value that nothing needs, and which of several errors a query gives is open.\n",
    );
    for (level, title) in
        [(Level::Expression, "Expressions"), (Level::Relation, "Relations"), (Level::Plan, "Plans")]
    {
        let _ = write!(page, "\n## {title}\n\n| rule | does | where | in |\n|---|---|---|---|\n");
        for Entry { name, effect, condition, place, .. } in
            RULES.iter().filter(|entry| entry.level == level)
        {
            let _ = writeln!(page, "| `{name}` | {effect} | {condition} | `{place}` |");
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_shown() {
        for text in
            ["none", "all", "push_not", "push_not,order_joins", "fold_constants,share_common"]
        {
            assert_eq!(Rules::all_but(text).unwrap().disabled(), text);
        }
        assert!(Rules::all_but(" Push_Not , ").unwrap_err().to_string().contains("''"));
        assert_eq!(Rules::all_but("PUSH_NOT").unwrap(), Rules::ALL.without(Rule::PushNot));
        assert_eq!(
            Rules::NONE.with(Rule::PushNot).disabled().matches(',').count(),
            RULES.len() - 2
        );
        let error = Rules::all_but("push_nut").unwrap_err().to_string();
        assert!(
            error.contains("'push_nut'") && error.contains("did you mean push_not?"),
            "{error}"
        );
    }

    #[test]
    fn each_rule_has_a_name_of_its_own_and_its_place() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        for (position, entry) in RULES.iter().enumerate() {
            assert_eq!(entry.rule as usize, position);
            assert!(
                RULES[..position].iter().all(|other| other.name != entry.name),
                "{}",
                entry.name
            );
            assert!(std::path::Path::new(root).join(entry.place).exists(), "{}", entry.place);
        }
    }

    /// With `TESSERA_WRITE_REFERENCE` set, writes the page.
    #[test]
    fn the_page_of_rules_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/rules.md");
        if std::env::var_os("TESSERA_WRITE_REFERENCE").is_some() {
            std::fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
            std::fs::write(path, reference()).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == reference(),
            "set TESSERA_WRITE_REFERENCE=1 to write docs/reference/rules.md anew"
        );
    }
}
