//! Tests of single rewrite rules: random queries over small tables return the same rows with and
//! without the rule.
//!
//! A query counts if the rule changes its plan. A rule may remove an error but never add one.
//! `TESSERA_RULE_QUERIES` sets the number of queries that each rule must change.

mod generator;

use tempfile::TempDir;

use tessera_plan::rule::{Level, RULES};
use tessera_plan::{Rule, Rules};
use tessera_session::{Config, Session, StatementResult};

use self::generator::{Random, query};
use crate::texts::texts;

/// The number of queries that each rule must change.
const CHANGES: usize = 60;
/// The maximum average number of queries per changed one.
const ATTEMPTS_PER_CHANGE: usize = 12;

/// Rules with tests in other files.
const TESTED_IN_OTHER_FILES: [Rule; 5] = [
    // Platforms of several processes: the SQL scripts on serverless workers and on MPI ranks.
    Rule::PartialAggregates,
    Rule::PartialFirst,
    // Needs a store: tests/smart.py.
    Rule::SelectInStore,
    // Needs 100,000 rows: tests/key_filters.rs.
    Rule::KeyFilters,
    // Needs 50,000 rows: tests/early_groups.rs.
    Rule::GroupEarly,
];

/// The rules that a rule depends on.
fn needed(rule: Rule) -> Rules {
    match rule {
        Rule::PushThresholds => Rules::NONE.with(Rule::FirstOfSort),
        Rule::ImpliedPredicates => Rules::NONE.with(Rule::PushFilterJoin),
        // Copies that differ in the predicates of their scans.
        Rule::ShareCopies => Rules::NONE
            .with(Rule::PushFilterScan)
            .with(Rule::PushFilterMap)
            .with(Rule::PushFilterJoin)
            .with(Rule::PushFilterAggregate),
        Rule::PushFilterUnnest => Rules::NONE.with(Rule::PushFilterMap),
        Rule::FirstOfPartitions => {
            Rules::NONE.with(Rule::PushFilterMap).with(Rule::PushFilterWindow)
        }
        Rule::FilterAggregates => {
            Rules::NONE.with(Rule::DropIdle).with(Rule::FuseMaps).with(Rule::PruneColumns)
        }
        Rule::FuseFilters => Rules::NONE.with(Rule::PushFilterScan),
        Rule::FuseAggregates => Rules::NONE.with(Rule::FuseMaps),
        Rule::PruneColumns => Rules::NONE.with(Rule::PushIntoScans),
        Rule::DropIdle => Rules::NONE.with(Rule::PushIntoScans).with(Rule::PruneColumns),
        _ => Rules::NONE,
    }
}

struct Tables {
    session: Session,
    _directory: TempDir,
}

impl Tables {
    fn new() -> Tables {
        let directory = tempfile::tempdir().unwrap();
        let mut session =
            Session::new(Config { threads: 2, chunk_rows: 7, ..Config::default() }).unwrap();
        let path = directory.path().join("p.parquet");
        let rows = "(1, 2, 'a', '0', true), (2, null, 'ab', '-0', false), (null, 1, '', 'NaN', null), \
            (3, 3, 'ä', '1.5', true), (0, 0, null, 'infinity', false), (1, 1, 'b', null, null), \
            (2, 3, 'a', '-2.5', true), (null, null, null, null, null)";
        for sql in [
            format!("create temp table t as select a, b, c, d::float8 as d, e from (values {rows}) v(a, b, c, d, e)"),
            "create temp table q as select *, array[a, b, 1] as l from t".to_string(),
            "create temp table u as select * from t where a is null or a < 2".to_string(),
            "create temp table w as select g as a, g % 7 as b, 'a' || g % 5 as c, g / 2.0::float8 as d, g % 2 = 0 as e
             from (select g::int as g from generate_series(0, 600) s(g)) v"
                .to_string(),
            format!("copy (select * from t union all select * from w where a < 40) to '{}'", path.display()),
            format!("create view p as select * from '{}'", path.display()),
        ] {
            session.execute(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        Tables { session, _directory: directory }
    }

    fn set(&mut self, rules: Rules) {
        self.session.execute(&format!("set disabled_rules = '{}'", rules.disabled())).unwrap();
    }

    fn plan(&mut self, sql: &str) -> Result<String, String> {
        match self.session.execute(&format!("explain {sql}")).map(|mut results| results.pop()) {
            Ok(Some(StatementResult::Text(plan))) => Ok(plan),
            Ok(other) => panic!("{sql}: {other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The rows, sorted by their text.
    fn rows(&mut self, sql: &str) -> Result<Vec<String>, String> {
        match self.session.execute(sql).map(|mut results| results.pop()) {
            Ok(Some(StatementResult::Rows(result))) => {
                let mut rows = texts(&result);
                rows.sort();
                Ok(rows)
            }
            Ok(other) => panic!("{sql}: {other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn changes_wanted() -> usize {
    let wanted = std::env::var("TESSERA_RULE_QUERIES").ok();
    wanted.map_or(CHANGES, |wanted| wanted.parse().expect("TESSERA_RULE_QUERIES is a number"))
}

/// The problem of a rule, if there is one.
fn problem(rule: Rule, tables: &mut Tables) -> Option<String> {
    let mut random = Random::new(rule as u64);
    let (without, with) = (needed(rule), needed(rule).with(rule));
    let (wanted, mut changed) = (changes_wanted(), 0);
    for _ in 0..wanted * ATTEMPTS_PER_CHANGE {
        if changed >= wanted {
            return None;
        }
        let sql = query(rule, &mut random);
        tables.set(without);
        let before = match tables.plan(&sql) {
            Ok(plan) => plan,
            Err(error) => return Some(format!("{sql}: {error}")),
        };
        tables.set(with);
        if tables.plan(&sql).as_ref() == Ok(&before) {
            continue;
        }
        changed += 1;
        let found = tables.rows(&sql);
        tables.set(without);
        let expected = tables.rows(&sql);
        if expected.is_ok() && found != expected {
            return Some(format!("{sql}\n  gives {found:?}\n  without the rule {expected:?}"));
        }
    }
    (changed < wanted)
        .then(|| format!("it changed {changed} queries only, such as {}", query(rule, &mut random)))
}

#[test]
fn each_rule_gives_the_same_rows() {
    let mut tables = Tables::new();
    let mut problems = Vec::new();
    for entry in RULES.iter().filter(|entry| entry.level != Level::Expression) {
        if !TESTED_IN_OTHER_FILES.contains(&entry.rule)
            && let Some(problem) = problem(entry.rule, &mut tables)
        {
            problems.push(format!("{}: {problem}", entry.name));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn rules_are_set_by_name() {
    let mut session = Session::new(Config { threads: 1, ..Config::default() }).unwrap();
    let mut shown = |sql: &str| match session.execute(sql).map(|mut results| results.pop()) {
        Ok(Some(StatementResult::Rows(result))) => texts(&result).join(";"),
        Ok(other) => format!("{other:?}"),
        Err(error) => error.to_string(),
    };
    assert_eq!(shown("show disabled_rules"), "none");
    shown("set disabled_rules = 'share_common, push_not'");
    assert_eq!(shown("show disabled_rules"), "push_not,share_common");
    let error = shown("set disabled_rules = 'push_nut'");
    assert!(error.contains("unknown rule 'push_nut'; did you mean 'push_not'?"), "{error}");
    assert_eq!(shown("show disabled_rules"), "push_not,share_common");
    shown("set disabled_rules = 'all'");
    assert_eq!(shown("show disabled_rules"), "all");
    assert_eq!(shown("select 1 + 1 limit 1 + 1"), "2");
    shown("reset disabled_rules");
    assert_eq!(shown("show disabled_rules"), "none");
}
