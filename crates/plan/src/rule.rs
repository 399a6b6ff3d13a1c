//! The list of rewrite rules: each turns an expression, a relation or a plan into an equivalent
//! one.
//!
//! [`RULES`] lists them all. A rule is on unless `SET disabled_rules` names it; the rows of a query
//! do not depend on it. [`reference()`] generates `docs/reference/rules.md` from the list.

use std::fmt;
use std::fmt::Write as _;

use tessera_types::{Error, Result, did_you_mean};

/// The kind of object that a rule rewrites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Expressions, while a query is bound and its predicates are moved.
    Expression,
    /// Relations: the logical form of a query.
    Relation,
    /// Plans of sub-operators.
    Plan,
}

/// The description of a rule.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The rule.
    pub rule: Rule,
    /// The name in `SET disabled_rules`.
    pub name: &'static str,
    /// The kind of object that it rewrites.
    pub level: Level,
    /// The rewrite.
    pub effect: &'static str,
    /// The condition under which the rows stay the same.
    pub condition: &'static str,
    /// The file that implements it.
    pub place: &'static str,
}

macro_rules! rules {
    ($($level:ident $rule:ident $name:literal $place:literal $effect:literal if $condition:literal;)*) => {
        /// A rewrite rule; [`RULES`] describes each.
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
        "an expression over constants becomes its value"
        if "it is not volatile, does not raise, and the value has at most 64 KiB";
    Expression SameTypeCast "same_type_cast" "crates/optimizer/src/expression/mod.rs"
        "`cast(x as T)` is `x`"
        if "x has type T";
    Expression StrictNull "strict_null" "crates/optimizer/src/expression/comparisons.rs"
        "a call with a literal NULL is NULL"
        if "it is a comparison other than IS DISTINCT FROM, `+ - * / %`, LIKE or ILIKE";
    Expression FlipComparison "flip_comparison" "crates/optimizer/src/expression/comparisons.rs"
        "`5 < x` is `x > 5`"
        if "only the left side is a constant";
    Expression DistinctFromNull "distinct_from_null" "crates/optimizer/src/expression/comparisons.rs"
        "`x IS DISTINCT FROM NULL` is `x IS NOT NULL`"
        if "the NULL is a literal";
    Expression BooleanEquality "boolean_equality" "crates/optimizer/src/expression/comparisons.rs"
        "`b = true` is `b`, `b = false` is `NOT b`"
        if "b is boolean";
    Expression UnwrapCast "unwrap_cast" "crates/optimizer/src/expression/comparisons.rs"
        "`cast(x as T) < c` is `x < d`"
        if "the cast never raises an error and preserves values and their order, and c survives the conversion to the type of x and back";
    Expression DateComparison "date_comparison" "crates/optimizer/src/expression/comparisons.rs"
        "`cast(d as timestamp) < t` is a comparison of dates"
        if "d is a date, the cast raises an error on overflow, t is a constant without time zone, and for = and <> it is midnight";
    Expression LikeWithoutWildcards "like_without_wildcards" "crates/optimizer/src/expression/comparisons.rs"
        "`s LIKE 'abc'` is `s = 'abc'`"
        if "s is a string and the constant pattern contains no %, _ or backslash";
    Expression DoubleNot "double_not" "crates/optimizer/src/expression/connectives.rs"
        "`NOT NOT b` is `b`"
        if "always";
    Expression NegateComparison "negate_comparison" "crates/optimizer/src/expression/comparisons.rs"
        "`NOT a < b` is `a >= b`"
        if "it is one of the eight comparisons; every type has a total order, including NaN";
    Expression PushNot "push_not" "crates/optimizer/src/expression/connectives.rs"
        "`NOT (a AND b)` is `NOT a OR NOT b`, and vice versa"
        if "the operands are not all equalities of one value with constants";
    Expression FlattenConnectives "flatten_connectives" "crates/optimizer/src/expression/connectives.rs"
        "nested ANDs are flattened, as are nested ORs"
        if "always; the order of operands is kept";
    Expression NeutralOperands "neutral_operands" "crates/optimizer/src/expression/connectives.rs"
        "`a AND true` is `a`, `a OR false` is `a`"
        if "the operand is a constant";
    Expression DecidingOperand "deciding_operand" "crates/optimizer/src/expression/connectives.rs"
        "`a AND false` is `false`, `a OR true` is `true`"
        if "the operands before it remain, up to the last one that can raise an error or is volatile";
    Expression RepeatedOperands "repeated_operands" "crates/optimizer/src/expression/connectives.rs"
        "`a AND b AND a` is `a AND b`, likewise for OR"
        if "a is not volatile; its first occurrence remains";
    Expression DeadBranches "dead_branches" "crates/optimizer/src/expression/branches.rs"
        "CASE loses the branches that are never taken"
        if "the condition of the branch is constant false or NULL, or an earlier one is constant true";
    Expression CoalesceValues "coalesce_values" "crates/optimizer/src/expression/branches.rs"
        "nested coalesce is flattened; NULLs and the arguments after a constant are removed"
        if "NULLs and constants are literals";

    Relation FactorDisjunctions "factor_disjunctions" "crates/optimizer/src/logical/types.rs"
        "`(a AND b) OR (a AND c)` is `a AND (b OR c)`"
        if "a neither raises errors nor is volatile";
    Relation EmptyFilter "empty_filter" "crates/optimizer/src/logical/push.rs"
        "a filter that rejects every tuple becomes an empty relation; its input is not computed"
        if "a predicate is the constant false or NULL";
    Relation PushFilterScan "push_filter_scan" "crates/optimizer/src/logical/push.rs"
        "a predicate moves into the scan"
        if "it neither raises errors nor is volatile";
    Relation PushFilterMap "push_filter_map" "crates/optimizer/src/logical/push.rs"
        "a predicate moves below computed columns; their expressions replace their names"
        if "the new predicate neither raises errors nor is volatile";
    Relation PushFilterJoin "push_filter_join" "crates/optimizer/src/logical/push.rs"
        "a predicate over one side moves into that side, a predicate over both becomes a join condition"
        if "it neither raises errors nor is volatile, and the join does not add NULLs to that side";
    Relation PushFilterAggregate "push_filter_aggregate" "crates/optimizer/src/logical/push.rs"
        "a predicate moves below a grouping"
        if "it reads keys only, there is a single grouping set, and it neither raises errors nor is volatile over the expressions of the keys";
    Relation PushFilterWindow "push_filter_window" "crates/optimizer/src/logical/push.rs"
        "a predicate moves below window functions"
        if "it reads nothing but fields of PARTITION BY, and neither raises errors nor is volatile";
    Relation PushFilterUnion "push_filter_union" "crates/optimizer/src/logical/push.rs"
        "a predicate moves into all inputs of UNION ALL"
        if "it neither raises errors nor is volatile";
    Relation PushFilterSort "push_filter_sort" "crates/optimizer/src/logical/push.rs"
        "a predicate moves below a sort"
        if "the sort has no limit, and the predicate neither raises errors nor is volatile";
    Relation PushFilterUnnest "push_filter_unnest" "crates/optimizer/src/logical/push.rs"
        "a predicate moves below unnest"
        if "it reads no element or list, and neither raises errors nor is volatile";
    Relation OuterToInner "outer_to_inner" "crates/optimizer/src/logical/push.rs"
        "an outer join becomes an inner join, or a full outer join a one-sided one"
        if "a predicate above it rejects rows in which the added fields are NULL";
    Relation OuterToAnti "outer_to_anti" "crates/optimizer/src/logical/push.rs"
        "`a LEFT JOIN b ON a.x = b.y … WHERE b.y IS NULL` becomes an anti join"
        if "an equality of the join compares the field that must be NULL";
    Relation ImpliedPredicates "implied_predicates" "crates/optimizer/src/logical/push.rs"
        "`(a.x = 1 AND b.y = 2) OR (a.x = 3 AND b.y = 4)` adds the predicate `a.x = 1 OR a.x = 3` on a; `a LEFT JOIN b ON a.x = b.y … WHERE a.x = 1` adds `b.y = 1` on b"
        if "the join is inner for the first, left, semi or anti for the second, whose fields have the same type; and the condition neither raises errors nor is volatile";
    Relation SinkSemiJoins "sink_semi_joins" "crates/optimizer/src/logical/push.rs"
        "a semi or anti join moves below filters and computed columns, next to the joins there"
        if "its conditions neither raise errors nor are volatile, before and after the move";
    Relation FirstOfSort "first_of_sort" "crates/optimizer/src/logical/push.rs"
        "ORDER BY with LIMIT becomes a top-k sort"
        if "only computed columns are between the two";
    Relation UnnestLateral "unnest_lateral" "crates/optimizer/src/logical/lateral_unnest.rs"
        "`FROM t, unnest(t.l)` becomes an unnest of t, without a nested plan"
        if "the lateral side unnests lists of one row, with computed columns and filters; for LEFT JOIN without these and without a condition";
    Relation LateralLimit "lateral_limit" "crates/optimizer/src/logical/lateral_limit/mod.rs"
        "a correlated subquery with a LIMIT becomes a join with the first rows for each combination of the outer values"
        if "equalities with outer values select its rows, nothing in it is volatile, and the outer rows can be computed twice or stored";
    Relation SingleRowSubquery "single_row_subquery" "crates/optimizer/src/logical/decorrelate.rs"
        "a scalar subquery is not checked for a second row, and IN or NOT IN becomes a comparison with its row"
        if "the subquery always returns exactly one row";
    Relation DistinctAggregates "distinct_aggregates" "crates/optimizer/src/logical/distinct.rs"
        "DISTINCT aggregates become two groupings, the first with the value as a further key"
        if "all have the same argument, which is not volatile, and other aggregates can be merged from fixed-width partial states";
    Relation PartitionAggregates "partition_aggregates" "crates/optimizer/src/logical/partition_aggregates.rs"
        "window aggregates over whole partitions become a join with groups, without a sort"
        if "they are count, sum, avg, min, max, bool_and or bool_or, no other window needs the sort, the input can be computed twice or stored, and the groups are estimated to be few";
    Relation FirstOfPartitions "first_of_partitions" "crates/optimizer/src/logical/push.rs"
        "a sort for row_number drops tuples that a predicate above rejects"
        if "the predicate is an upper bound of row_number, and no other function of this window looks at later tuples";
    Relation OrderJoins "order_joins" "crates/optimizer/src/logical/order/mod.rs"
        "joins are reordered to the order with the lowest estimated cost"
        if "they are inner, or attached to the relations that they read; conditions that can raise errors are tested last, and a join with a volatile condition is not moved; that a scalar subquery has two rows may be an error although another table is empty";
    Relation ReduceGroups "reduce_groups" "crates/optimizer/src/logical/reduce.rs"
        "the input of a grouping is reduced to the groups that a join needs"
        if "the join is on its keys, the other side is deterministic, and the estimated cost is lower";
    Relation GroupEarly "group_early" "crates/optimizer/src/logical/early_groups.rs"
        "an input of the joins below a grouping is grouped first, by the fields that the joins and the grouping read"
        if "the arguments of the aggregates read this input only (their conditions may read others), they can be merged with the same result and raise no errors, nothing between is volatile, and the estimated cost is lower";
    Relation ShareCopies "share_copies" "crates/optimizer/src/logical/copies.rs"
        "equal joins, groupings and windows, such as those of a common table expression with several readers, are computed once and stored; so are groupings that differ in predicates on their keys, which each reader then tests"
        if "nothing in them is volatile or reads an outer query, and they are estimated to yield few tuples compared with the tables they scan";
    Relation CoarserSets "coarser_sets" "crates/optimizer/src/lower/grouping_sets.rs"
        "a grouping set is computed from the groups of a finer set"
        if "all aggregates can be merged from those of the finer groups with the same result, and none is volatile";
    Relation BuildSmallerSide "build_smaller_side" "crates/optimizer/src/lower/join.rs"
        "a join builds its hash table from the left side"
        if "the left side is estimated to be smaller, and the kind of join can be mirrored";
    Relation InequalityJoins "inequality_joins" "crates/optimizer/src/lower/inequality.rs"
        "a join on inequalities sorts its sides by one or two of them, instead of trying every pair"
        if "no equality joins the sides, the smaller side is not estimated to be tiny, and the values that are compared do not raise errors, unless they are in the first condition";

    Plan DropIdle "drop_idle" "crates/optimizer/src/physical/fuse.rs"
        "a map, projection or filter without effect is removed"
        if "it yields all fields in their order, or its predicate is true";
    Plan FuseFilters "fuse_filters" "crates/optimizer/src/physical/fuse.rs"
        "consecutive filters become one, in their order"
        if "the lower one has no other consumer";
    Plan FuseMaps "fuse_maps" "crates/optimizer/src/physical/fuse.rs"
        "consecutive maps and projections become one"
        if "the lower one has no other consumer, and no expensive expression is evaluated twice";
    Plan FuseAggregates "fuse_aggregates" "crates/optimizer/src/physical/fuse.rs"
        "aggregates compute the expressions of the map below them"
        if "keys are plain fields, no expression is evaluated twice, and no aggregate has a filter or an order";
    Plan PushIntoScans "push_into_scans" "crates/optimizer/src/physical/push.rs"
        "a conjunct moves from a filter into the scan below it"
        if "it reads no parameter, and neither raises errors nor is volatile";
    Plan TryInScans "try_in_scans" "crates/optimizer/src/physical/push.rs"
        "the scan also tests a conjunct that can raise an error; it passes rows for which an error is raised"
        if "it reads no parameter and is not volatile; the filter remains";
    Plan ShareCommon "share_common" "crates/optimizer/src/physical/share.rs"
        "equal sub-plans that end in a pipeline breaker run once"
        if "nothing in them is volatile or writes a file";
    Plan PruneColumns "prune_columns" "crates/optimizer/src/physical/prune.rs"
        "unused fields are not computed, read or passed on"
        if "the number of tuples does not change";
    Plan FilterAggregates "filter_aggregates" "crates/optimizer/src/physical/filter_aggregates.rs"
        "aggregates without keys absorb the filter below them"
        if "it tests numbers, the functions are count, sum, min, max and avg, and they read at most two more fields";
    Plan PushThresholds "push_thresholds" "crates/optimizer/src/physical/threshold.rs"
        "scans skip tuples that sort after the current top k"
        if "the sub-operators between them work tuple by tuple, raise no errors and are not volatile";
    Plan KeyFilters "key_filters" "crates/optimizer/src/physical/key_filters.rs"
        "a filter built from the keys of a join's hash table is applied earlier in the probe stream"
        if "the join drops tuples without a match, the sub-operators between raise no errors and are not volatile, and the estimated cost is lower";
    Plan PartialAggregates "partial_aggregates" "crates/optimizer/src/physical/distribute/aggregate.rs"
        "each worker aggregates its part before the exchange"
        if "the functions can be merged, without DISTINCT or an order";
    Plan PartialFirst "partial_first" "crates/optimizer/src/physical/distribute/mod.rs"
        "each worker selects the first rows of its part before the exchange"
        if "there is a limit";
    Plan SelectInStore "select_in_store" "crates/storage/objects/src/select/pass.rs"
        "the store filters, projects and counts an object itself"
        if "smart_storage is on, and the store supports the types and the predicate";
}

/// A set of enabled rules.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Rules(u64);

const _: () = assert!(RULES.len() <= 64, "Rules has a bit for each rule");

impl Rules {
    /// Every rule.
    pub const ALL: Rules = Rules(u64::MAX >> (64 - RULES.len()));
    /// No rule.
    pub const NONE: Rules = Rules(0);

    /// Whether the set contains a rule.
    pub const fn has(self, rule: Rule) -> bool {
        self.0 >> rule as u32 & 1 == 1
    }

    /// Returns the set with a rule added.
    #[must_use]
    pub const fn with(self, rule: Rule) -> Rules {
        Rules(self.0 | 1 << rule as u32)
    }

    /// Returns the set with a rule removed.
    #[must_use]
    pub const fn without(self, rule: Rule) -> Rules {
        Rules(self.0 & !(1 << rule as u32))
    }

    /// Returns all rules except those in `names`: `all`, `none`, or names separated by commas.
    ///
    /// # Errors
    /// A name is unknown.
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

    /// Returns the text that [`Rules::all_but`] parses to this set.
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
    let hint = did_you_mean(name, RULES.iter().map(|entry| entry.name));
    Error::semantic(format!("unknown rule '{name}'{hint}; docs/reference/rules.md lists all rules"))
}

/// Returns the text of `docs/reference/rules.md`.
pub fn reference() -> String {
    let mut page = String::from(
        "# Rules\n\n\
         All rewrite rules for queries, generated from the list in `crates/plan/src/rule.rs`. A query returns the same rows with and\n\
         without each of them; `SET disabled_rules = 'push_not,order_joins'` turns rules off, `'all'` turns all off. Some rewrites are not\n\
         rules and always happen: subqueries become joins where possible, equalities between the sides of an inner join become its keys,\n\
         equalities of one value with constants become a set, and conjuncts that cannot raise errors are evaluated in the order of their\n\
         cost.\n\n\
         A rule never adds an error, but for the second row of a scalar subquery. It may remove an error of an unused value, and if a query has several errors, any one of them may be\n\
         reported.\n",
    );
    for (level, title) in
        [(Level::Expression, "Expressions"), (Level::Relation, "Relations"), (Level::Plan, "Plans")]
    {
        let _ = write!(
            page,
            "\n## {title}\n\n| rule | rewrite | condition | file |\n|---|---|---|---|\n"
        );
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
            error.contains("'push_nut'") && error.contains("did you mean 'push_not'?"),
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

    /// Writes the page if `TESSERA_WRITE_REFERENCE` is set.
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
