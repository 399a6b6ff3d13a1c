//! Very long statements: long lists and deep expressions give correct results, and can be
//! cancelled.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tessera_context::testing::Numbers;
use tessera_session::{Config, Session, StatementResult};
use tessera_types::Code;

use crate::texts::texts;

/// The time limit from cancellation to the end of a statement. It usually takes milliseconds; this
/// allows for a loaded machine and a debug build.
const ALLOWED: Duration = Duration::from_secs(5);

fn session() -> Session {
    Session::new(Config { threads: 2, ..Config::default() }).unwrap()
}

fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    let start = &sql[..sql.len().min(200)];
    match session.execute(sql).unwrap_or_else(|error| panic!("{start}: {error}")).pop() {
        Some(StatementResult::Rows(result)) => texts(&result),
        other => panic!("{start}: {other:?}"),
    }
}

/// A literal that some values of the column may equal.
fn literal(kind: &str, random: &mut Numbers) -> String {
    let number = random.below(3_000) as i64 - 1_500;
    if random.below(60) == 0 {
        return "NULL".to_string();
    }
    match (kind, random.below(12)) {
        ("text", _) => format!("'t{number}'"),
        ("date", _) => format!("'20{:02}-{:02}-11'", random.below(30) + 1, random.below(12) + 1),
        ("timestamp", 0..6) => {
            format!("'20{:02}-{:02}-11 00:00:00'", random.below(30) + 1, random.below(12) + 1)
        }
        ("timestamp", _) => {
            format!("'20{:02}-{:02}-11'", random.below(30) + 1, random.below(12) + 1)
        }
        (_, 0) => format!("'{}'", number / 10),
        (_, 1) => format!("{number}.50"),
        (_, 2) => format!("{number}.0"),
        (_, 3) => format!("{number}{}", "0".repeat(random.below(20) as usize)),
        (_, 4) => format!("-(-{})", number.abs()),
        (_, 5) => format!("{number}.125"),
        _ => number.to_string(),
    }
}

#[test]
fn a_long_list_means_what_its_parts_do() {
    let mut session = session();
    session
        .execute(
            "create temp table t as select (x * 3)::int as i, (x % 100)::smallint as s, x::bigint as b, \
             (x / 2.0)::decimal(12, 2) as d, 't' || x as t, date '2001-01-11' + x as day, \
             (date '2001-01-11' + x)::timestamp as m from generate_series(-400, 9000) g(x) \
             union all select null, null, null, null, null, null, null",
        )
        .unwrap();
    let mut random = Numbers::new(7);
    let kinds = [
        ("i", "number"),
        ("s", "number"),
        ("b", "number"),
        ("d", "number"),
        ("t", "text"),
        ("day", "date"),
        ("m", "timestamp"),
    ];
    for (column, kind) in kinds {
        for round in 0..2 {
            let mut literals: Vec<String> = (0..300).map(|_| literal(kind, &mut random)).collect();
            if round == 0 {
                literals.retain(|literal| literal != "NULL");
            }
            let parts: Vec<String> = literals
                .chunks(100)
                .map(|part| format!("{column} IN ({})", part.join(", ")))
                .collect();
            let (long, short) =
                (format!("{column} IN ({})", literals.join(", ")), parts.join(" OR "));
            for (negated, long, short) in [
                (false, long.clone(), short.clone()),
                (true, long.replace(" IN ", " NOT IN "), format!("NOT ({short})")),
            ] {
                let counts = |test: &str| {
                    format!(
                        "select count(*), count(*) filter (where {test}), count({test}), \
                         sum(b) filter (where {test}) from t"
                    )
                };
                let (long, short) =
                    (rows(&mut session, &counts(&long)), rows(&mut session, &counts(&short)));
                assert_eq!(long, short, "{column}, {negated}, {literals:?}");
            }
        }
    }
    // The plan holds one array, and reads again as what it is.
    let list = (0..300).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    let sql = format!("select count(*) from t where i in ({list})");
    let Some(StatementResult::Text(plan)) =
        session.execute(&format!("explain {sql}")).unwrap().pop()
    else {
        panic!("no plan")
    };
    assert!(plan.contains("any_eq("), "{plan}");
    let again = texts(&session.run_plan(&plan).unwrap());
    assert_eq!(again, rows(&mut session, &sql));
}

#[test]
fn errors_of_a_long_list_are_those_of_a_short_one() {
    let mut session = session();
    let list = |wrong: &str| {
        let mut all: Vec<String> = (0..400).map(|number| number.to_string()).collect();
        all.insert(200, wrong.to_string());
        all.join(", ")
    };
    for wrong in ["'x'", "'99999999999'", "date '2024-01-01'", "nothing"] {
        let mut state = |list: &str| {
            let error = session
                .execute(&format!("select x in ({list}) from (values (-1)) t(x)"))
                .unwrap_err();
            (error.code(), error.sql_state(), error.message().to_string())
        };
        assert_eq!(state(&list(wrong)), state(wrong), "{wrong}");
    }
}

#[test]
fn long_statements_are_planned() {
    let mut session = session();
    let sum = (0..10_000).map(|number| format!("a * {number}")).collect::<Vec<_>>().join(" + ");
    assert_eq!(rows(&mut session, &format!("select {sum} from (values (2)) t(a)")), ["99990000"]);
    let keys = (0..100).map(|number| format!("a + {number}")).collect::<Vec<_>>().join(", ");
    let sql =
        format!("select count(*) from (values (1), (1), (2)) t(a) group by {keys} order by 1");
    assert_eq!(rows(&mut session, &sql), ["1", "2"]);
    let tables = (0..64)
        .map(|number| format!("(values (1), (2)) t{number}(a)"))
        .collect::<Vec<_>>()
        .join(", ");
    let equal = (1..64).map(|n| format!("t{n}.a = t{}.a", n / 2)).collect::<Vec<_>>().join(" and ");
    assert_eq!(rows(&mut session, &format!("select count(*) from {tables} where {equal}")), ["2"]);
    let chain = (1..1_000)
        .map(|n| format!(", a{n} as (select x + 1 as x from a{})", n - 1))
        .collect::<String>();
    let sql = format!("with a0 as (select 1 as x){chain} select x from a999");
    assert_eq!(rows(&mut session, &sql), ["1000"]);
    let closed = (0..500).map(|n| format!(") q{n}")).collect::<String>();
    let nested =
        format!("select * from {}(select 7 as a) q{closed}", "(select a from ".repeat(500));
    assert_eq!(rows(&mut session, &nested), ["7"]);
    // A depth beyond the stack size is an error, not a crash.
    for part in ["(select a from ", "(", "(select "] {
        let sql = format!("select * from {}", part.repeat(50_000));
        assert_eq!(session.execute(&sql).unwrap_err().code(), Code::Limit, "{part}");
    }
}

/// Planning time is linear: a statement of eight times the size takes about eight times as long,
/// not 64 times.
#[test]
fn planning_takes_time_in_proportion() {
    let parts =
        |count: usize, part: &dyn Fn(usize) -> String| (0..count).map(part).collect::<String>();
    let chain = |count: usize| {
        let links = parts(count, &|n| format!(", a{} as (select x + 1 as x from a{n})", n + 1));
        format!("with a0 as (select 1 as x){links} select x from a{count}")
    };
    let filtered = |count: usize| {
        let links =
            parts(count, &|n| format!(", a{} as (select x from a{n} where x <> {n})", n + 1));
        format!("with a0 as (select -1 as x){links} select x from a{count}")
    };
    let unions = |count: usize| {
        let terms = parts(count, &|n| format!(" union all select a + {n} from t"));
        format!("select a from t{terms}")
    };
    let wide = |count: usize| {
        let columns = parts(count, &|n| format!(", a + {n} as c{n}"));
        let (open, close) = ("(select * from ".repeat(20), parts(20, &|n| format!(") q{n}")));
        format!("select * from {open}(select a{columns} from t) q{close}")
    };
    let shapes: [(&str, usize, &dyn Fn(usize) -> String); 4] = [
        ("a chain of WITH", 500, &chain),
        ("a chain of filters", 250, &filtered),
        ("UNION ALL", 200, &unions),
        ("columns of nested subqueries", 200, &wide),
    ];
    for (name, size, shape) in shapes {
        let planned = |size: usize| {
            let sql = format!("explain {}", shape(size));
            let once = || {
                let mut session = session();
                session.execute("create temp table t as select 1 as a").unwrap();
                let began = Instant::now();
                session.execute(&sql).unwrap_or_else(|error| panic!("{name}: {error}"));
                began.elapsed()
            };
            once().min(once())
        };
        let (one, eight) = (planned(size), planned(size * 8));
        assert!(
            eight < one * 24 + Duration::from_millis(500),
            "{name}: {one:?}, of eight times the size {eight:?}"
        );
    }
    // A chain that is longer than an expression may be deep.
    assert_eq!(rows(&mut session(), &chain(13_000)), ["13001"]);
}

#[test]
fn statements_end_soon_after_they_are_told_to() {
    let terms = |count: usize, join: &str, term: &dyn Fn(usize) -> String| {
        (0..count).map(term).collect::<Vec<_>>().join(join)
    };
    let sum =
        format!("select {} from (values (1)) t(a)", terms(10_000, " + ", &|n| format!("a * {n}")));
    let ands = terms(3_000, " and ", &|n| format!("(a = {n} or b = {})", n + 1));
    let unions = terms(2_000, " union all ", &|n| format!("select a + {n} from t"));
    let joins = format!(
        "select count(*) from {} where {}",
        terms(48, ", ", &|n| format!("(values (1), (2)) t{n}(a)")),
        terms(47, " and ", &|n| format!("t{n}.a = t{}.a", n + 1))
    );
    let list = terms(200_000, ", ", &|n| format!("{n}"));
    let statements = [
        sum,
        format!("select count(*) from t where {ands}"),
        format!("select count(*) from t where {}", terms(3_000, " or ", &|n| format!("(a = {n} and b = {})", n + 1))),
        unions,
        joins,
        format!("select {} from (select {}) w", terms(1_000, ", ", &|n| format!("c{n} + 1")), terms(1_000, ", ", &|n| format!("{n} as c{n}"))),
        format!("select count(*) from (values {}) v(a, b)", terms(200_000, ", ", &|n| format!("({n}, 'v{n}')"))),
        "select x from generate_series(1, 100000000000) g(x) limit 0".to_string(),
        "select count(*) from generate_series(1, 100000000) g(x) where regexp_replace(x::text, '(1|2)+3*', 'y', 'g') = 'z'".to_string(),
        "select count(*) from generate_series(1, 100000000) g(x) where repeat(x::text, 9) like '%1%2%zz%'".to_string(),
        "select x from generate_series(1, 30000000) g(x) order by x % 1000, x desc".to_string(),
        "select count(*) from (select unnest(generate_series(1, 3000000)) from generate_series(1, 1000))".to_string(),
        "select sum(x.b) from generate_series(1, 3000) o(k), lateral (select b from generate_series(1, 3000000) u(b) where u.b % 3000 = o.k \
         order by b desc limit 3) x"
            .to_string(),
        format!("select count(*) from t where a in ({list})"),
        "select count(*) from generate_series(1, 100000000000) g(x) where x % 3 = 0".to_string(),
        "select x from generate_series(1, 100000000000) g(x) order by x desc limit 2".to_string(),
        "select count(*) from generate_series(timestamp '0001-01-01', timestamp '9999-01-01', interval '1 second')"
            .to_string(),
    ];
    let mut random = Numbers::new(11);
    for sql in &statements {
        for _ in 0..2 {
            let mut session = session();
            session.execute("create temp table t as select x::int as a, x::int as b from generate_series(1, 100) g(x)").unwrap();
            let handle = session.cancel_handle();
            let wait = Duration::from_micros(random.below(400_000));
            let done = AtomicBool::new(false);
            let (ended, told) = std::thread::scope(|scope| {
                let told = scope.spawn(|| {
                    std::thread::sleep(wait);
                    // A statement that has not started yet cannot be cancelled.
                    while !handle.cancel() && !done.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_micros(100));
                    }
                    Instant::now()
                });
                let result = session.execute(sql);
                let ended = Instant::now();
                done.store(true, Ordering::Relaxed);
                if let Err(error) = result {
                    assert_eq!(error.code(), Code::Cancelled, "{}: {error}", &sql[..60]);
                }
                (ended, told.join().unwrap())
            });
            let late = ended.saturating_duration_since(told);
            assert!(late < ALLOWED, "{} went on for {late:?} (told after {wait:?})", &sql[..60]);
        }
    }
}

#[test]
fn only_what_is_asked_of_a_series_is_computed() {
    let mut session = session();
    for (sql, expected) in [
        ("select * from generate_series(1, 100000000000) g(x) limit 0", &[][..]),
        ("select * from generate_series(5, 100000000000, 7) g(x) limit 2", &["5", "12"]),
        ("select x from range(100000000000) r(x) where x > 70000 limit 1", &["70001"]),
    ] {
        let began = Instant::now();
        assert_eq!(rows(&mut session, sql), expected, "{sql}");
        assert!(began.elapsed() < Duration::from_secs(10), "{sql}");
    }
}
