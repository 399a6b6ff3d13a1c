//! The compiled tier gives what the vectorised one gives: random aggregates over random
//! expressions, their errors, too.

use tessera_jit::Tier;
use tessera_session::{Config, Session, StatementResult};

use crate::texts::texts;

/// How many queries are compared, unless TESSERA_TIER_QUERIES says otherwise.
const QUERIES: usize = 400;

/// How long the compiler may take beside others before a test gives up.
const PATIENCE_SECONDS: u64 = 300;

/// Values of all types that compiled code knows, the extreme ones rarely; with NULLs in every
/// second column, in some of them only in a part of the table: the code of a column differs where a
/// chunk has none.
const ROWS: &str = "
    select i, i % 4 as few, i % 997 as many,
        cast(i % 200 - 100 as tinyint) as tiny, case when i % 11 > 0 then cast(i * 7 % 60000 - 30000 as smallint) end as small,
        cast(i * 31 % 1000 as integer) as middle, case when i > 2500 or i % 5 > 0 then i * 1237 % 100003 - 50000 end as large,
        case i when 1777 then 9223372036854775807 when 2777 then -9223372036854775808 else i end as extreme,
        cast(i % 250 as tinyint unsigned) as byte, case when i % 13 > 0 then cast(i * 3 as integer unsigned) end as natural,
        cast(i * 17 % 90001 as decimal(12,2)) / 7 as ratio, cast(i * 17 % 90001 - 400 as decimal(12,2)) as price,
        case when i < 2000 or i % 17 > 0 then cast(i * 101 as decimal(18,6)) end as exact, cast(i * 1000003 as decimal(30,4)) as wide,
        case when i % 19 > 0 then cast(i as decimal(38,10)) * 1000000 end as widest,
        cast(i % 1000 as double) / 8 - 50 as double, case when i > 3000 or i % 7 > 0 then cast(i % 100 as real) / 3 end as real,
        case i % 101 when 0 then cast('NaN' as double) when 1 then cast('Infinity' as double) else i end as strange,
        i % 3 = 0 as flag, case when i between 1000 and 4000 or i % 23 > 0 then i % 2 = 0 end as maybe,
        date '1992-01-01' + cast(i % 2500 as integer) as day,
        case when i < 4000 or i % 29 > 0 then timestamp '2020-01-01 00:00:00' + interval '1 second' * i end as moment,
        'text ' || cast(i % 13 as varchar) as text,
        case when i % 31 > 0 then 'grüße ' || cast(i * 7919 % 100003 as varchar) || case i % 3 when 0 then ' of all, that is' else '' end end
            as words
    from generate_series(1, 5000) as t(i)";

/// What those are joined with: keys that several tuples have, or none, and values of which some are
/// NULL.
const OTHERS: &str = "
    select i * 7 % 4 as u_few, case when i % 9 > 0 then cast(i * 7 % 60000 - 30000 as smallint) end as u_small,
        cast(i * 31 % 500 as integer) as u_middle, case when i % 8 > 0 then i * 1237 % 100003 - 50000 end as u_large,
        cast(i * 17 % 90001 - 400 as decimal(12,2)) as u_price, date '1992-01-01' + cast(i % 700 as integer) as u_day,
        case when i % 6 > 0 then i * 11 - 900 end as weight, case when i % 5 > 0 then i % 3 = 0 end as u_maybe,
        cast(i * 13 as decimal(38,3)) as u_wide, cast(i as double) / 4 as u_double, cast(i % 50 as tinyint) as u_tiny,
        'other ' || cast(i % 7 as varchar) as u_text
    from generate_series(1, 1200) as u(i)";

/// Keys of both, of which a query takes one or two.
const KEYS: [(&str, &str); 7] = [
    ("many", "weight"),
    ("small", "u_small"),
    ("middle", "u_middle"),
    ("large", "u_large"),
    ("price", "u_price"),
    ("day", "u_day"),
    ("text", "'text ' || cast(u_tiny % 2 + 20 as varchar)"),
];

/// Aggregates over both.
const OF_BOTH: [&str; 8] = [
    "sum(weight)",
    "sum(weight * i)",
    "min(u_day)",
    "max(u_wide)",
    "count(u_maybe)",
    "sum(case when u_maybe then weight - middle else 1 end)",
    "sum(u_double + ratio)",
    "max(u_tiny) filter (where u_maybe or flag)",
];

const NUMBERS: [&str; 19] = [
    "i",
    "tiny",
    "small",
    "middle",
    "large",
    "extreme",
    "byte",
    "natural",
    "ratio",
    "price",
    "exact",
    "wide",
    "widest",
    "double",
    "real",
    "strange",
    "few",
    "many",
    "length(text)",
];

/// Functions of a user: strict or not about zero, and one that calls a library.
const FUNCTIONS: &str = "
    create function quotient(a bigint, b bigint) returns bigint language llvm immutable strict as $$
        define i32 @quotient(ptr %out, i64 %a, i64 %b) {
          %zero = icmp eq i64 %b, 0
          br i1 %zero, label %bad, label %good
        bad:
          ret i32 3
        good:
          %value = sdiv i64 %a, %b
          store i64 %value, ptr %out
          ret i32 0
        }
    $$;
    create function share(a bigint, b integer) returns decimal(9,2) language llvm immutable as $$
        define i32 @share(ptr %out, i64 %a, i32 %b) {
          %hundreds = mul i64 %a, 100
          %wide = sext i32 %b to i64
          %negative = icmp slt i64 %wide, 1
          br i1 %negative, label %none, label %some
        none:
          ret i32 1
        some:
          %value = sdiv i64 %hundreds, %wide
          store i64 %value, ptr %out
          ret i32 0
        }
    $$;
    create function halved(x double precision) returns double precision language llvm immutable as $$
        declare double @fmod(double, double)
        define i32 @halved(ptr %out, double %x) {
          %rest = call double @fmod(double %x, double 7.0)
          %value = fmul double %rest, 0.5
          store double %value, ptr %out
          ret i32 0
        }
    $$";

/// What is said of texts of which there are many.
const TEXTS: [&str; 10] = [
    "words like '%9%all%'",
    "words not like 'grüße 1%'",
    "words like '%is'",
    "words like 'grüße%7_%'",
    "words = 'grüße 15838 of all, that is'",
    "words <> 'grüße 7919'",
    "words is null",
    "substring(words from 7 for 2) = '12'",
    "substring(words from 7 for 1) in ('1', '3', '5')",
    "substring(words from 2 for 4) = substring(words from 2 for 4)",
];

const TIMES: [&str; 2] = ["day", "moment"];

/// A generator of numbers that are the same in every run (Knuth's constants).
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn number(&mut self, depth: usize) -> String {
        if depth == 0 {
            return match self.below(5) {
                0 => self
                    .one(&[
                        "0",
                        "1",
                        "-3",
                        "2.5",
                        "1000",
                        "0.01",
                        "cast(7 as smallint)",
                        "cast(1.5 as double)",
                    ])
                    .to_string(),
                _ => self.one(&NUMBERS).to_string(),
            };
        }
        let next = depth - 1;
        match self.below(13) {
            0..=5 => {
                let operator = self.one(&["+", "-", "*", "+", "-", "*", "/", "%"]);
                format!("({} {operator} {})", self.number(next), self.number(next))
            }
            6 => format!("(- {})", self.number(next)),
            7 => format!("coalesce({}, {})", self.number(next), self.number(next)),
            8 => {
                let to = self.one(&["double", "bigint", "decimal(38,12)", "integer", "real"]);
                format!("cast({} as {to})", self.number(next))
            }
            9 => format!("case when {} then {} end", self.truth(next), self.number(next)),
            10 => match self.below(2) {
                0 => format!(
                    "{}({}, {})",
                    self.one(&["quotient", "share"]),
                    self.one(&["i", "large", "many"]),
                    self.one(&["few", "middle", "3"])
                ),
                _ => format!("halved({})", self.number(next)),
            },
            11 => {
                let (zero, divided) = (self.number(next), self.number(next));
                format!("case when {zero} <> 0 then {divided} / {zero} else 0 end")
            }
            _ => {
                let (first, second) = (self.truth(next), self.truth(next));
                let values = (self.number(next), self.number(next), self.number(next));
                format!(
                    "case when {first} then {} when {second} then {} else {} end",
                    values.0, values.1, values.2
                )
            }
        }
    }

    fn truth(&mut self, depth: usize) -> String {
        let next = depth.saturating_sub(1);
        match self.below(if depth == 0 { 7 } else { 11 }) {
            6 => self.one(&TEXTS).to_string(),
            0 => self.one(&["flag", "maybe", "text = 'text 3'", "text like '%1'"]).to_string(),
            1 | 2 => {
                let operator = self.one(&[
                    "=",
                    "<>",
                    "<",
                    "<=",
                    ">",
                    ">=",
                    "is distinct from",
                    "is not distinct from",
                ]);
                format!("{} {operator} {}", self.number(next), self.number(next))
            }
            3 => {
                let operator = self.one(&["<", ">=", "="]);
                match self.one(&TIMES) {
                    "day" => format!("day {operator} date '1995-03-01'"),
                    time => format!("{time} {operator} timestamp '2020-01-01 00:30:00'"),
                }
            }
            4 => format!("{} is null", self.number(next)),
            5 => format!(
                "{} in (1, 5, 17, 300)",
                self.one(&["tiny", "middle", "large", "i", "price"])
            ),
            7 | 8 => format!("({} and {})", self.truth(next), self.truth(next)),
            9 => format!("({} or {})", self.truth(next), self.truth(next)),
            _ => format!("(not {})", self.truth(next)),
        }
    }

    fn aggregate(&mut self) -> String {
        let depth = self.below(4);
        let call = match self.below(8) {
            0 => "count(*)".to_string(),
            1 => format!("count({})", self.number(depth)),
            2 => format!("min({})", self.one(&TIMES)),
            3 => format!("max({})", self.number(depth)),
            4 => format!("min({})", self.number(depth)),
            5 => format!("avg({})", self.number(depth)),
            _ => format!("sum({})", self.number(depth)),
        };
        match self.below(4) {
            0 => format!("{call} filter (where {})", self.truth(1)),
            _ => call,
        }
    }

    /// The first tuples of a sort by something that is computed, and then by all else there is.
    fn first_ones(&mut self) -> String {
        let (first, second, third) = (self.number(2), self.truth(2), self.number(1));
        let source = self.source();
        let condition =
            if self.below(2) == 0 { format!(" where {}", self.truth(1)) } else { String::new() };
        let key = self.one(&["a", "a", "b", "c", "day", "exact", "real"]);
        let (direction, then) = (self.one(&["asc", "desc"]), self.one(&["asc", "desc"]));
        let nulls = self.one(&["first", "last"]);
        format!(
            "select {first} as a, {second} as b, {third} as c, day, exact, real, i from {source}{condition} \
             order by {key} {direction} nulls {nulls}, i {then}, a, b, c limit {}",
            1 + self.below(40)
        )
    }

    fn query(&mut self) -> String {
        if self.below(4) == 0 {
            return self.first_ones();
        }
        let aggregates: Vec<String> = (0..1 + self.below(4)).map(|_| self.aggregate()).collect();
        let condition = match self.below(3) {
            0 => format!(" where {}", self.truth(1)),
            _ => String::new(),
        };
        let mut list = aggregates.join(", ");
        let source = self.source();
        if source != "t" {
            list += &format!(", {}, {}", self.one(&OF_BOTH), self.one(&OF_BOTH));
        }
        match self.below(3) {
            0 => format!("select {list} from {source}{condition}"),
            1 => format!("select few, {list} from {source}{condition} group by few order by few"),
            _ => {
                format!("select many, {list} from {source}{condition} group by many order by many")
            }
        }
    }

    /// One table, or two.
    fn source(&mut self) -> String {
        if self.below(2) == 0 {
            return "t".to_string();
        }
        let kind = self.one(&["join", "join", "join", "left join", "right join"]);
        let mut key = || {
            let (own, other) = KEYS[self.below(KEYS.len())];
            format!("{own} = {other}")
        };
        let keys = [key(), key()];
        let count = 1 + self.below(2);
        format!("t {kind} u on {}", keys[..count].join(" and "))
    }
}

fn session(tier: Tier, chunk_rows: usize) -> Session {
    let native_functions = true;
    let config = Config {
        threads: 1,
        chunk_rows,
        memory_bytes: 1 << 30,
        tier,
        native_functions,
        ..Config::default()
    };
    let mut session = Session::new(config).unwrap();
    session.execute(FUNCTIONS).unwrap();
    session.execute(&format!("create temp table t as {ROWS}")).unwrap();
    session.execute(&format!("create temp table u as {OTHERS}")).unwrap();
    session
}

/// Rows, or the error, as text.
fn answer(session: &mut Session, sql: &str) -> Result<Vec<String>, String> {
    match session.execute(sql).map(|mut results| results.pop()) {
        Ok(Some(StatementResult::Rows(result))) => Ok(texts(&result)),
        Ok(other) => panic!("{sql}: {other:?}"),
        Err(error) => Err(format!("{}: {}", error.code().as_str(), error.message())),
    }
}

fn queries() -> usize {
    std::env::var("TESSERA_TIER_QUERIES").ok().and_then(|text| text.parse().ok()).unwrap_or(QUERIES)
}

/// Whether two answers are the same, but for the order in which floats were added; `cancels` where
/// some are so large that what is left of their sum depends on that.
fn is_close(
    one: &Result<Vec<String>, String>,
    other: &Result<Vec<String>, String>,
    cancels: bool,
) -> bool {
    let is_close_value = |(one, other): (&str, &str)| {
        let floats = one
            .parse::<f64>()
            .ok()
            .filter(|_| one.contains(['.', 'e']))
            .zip(other.parse::<f64>().ok());
        let is_near =
            |(one, other): (f64, f64)| cancels || (one - other).abs() <= 1e-9 * one.abs().max(1.0);
        one == other || floats.is_some_and(is_near)
    };
    let is_close_row = |(one, other): (&String, &String)| {
        let (one, other): (Vec<&str>, Vec<&str>) =
            (one.split(' ').collect(), other.split(' ').collect());
        one.len() == other.len() && one.into_iter().zip(other).all(is_close_value)
    };
    match (one, other) {
        (Ok(one), Ok(other)) => one.len() == other.len() && one.iter().zip(other).all(is_close_row),
        (one, other) => one == other,
    }
}

#[test]
fn both_tiers_and_a_virtual_gpu_agree() {
    let queries = queries();
    let mut random = Random(20_261_123);
    let (mut errors, mut compiled_rows, mut gpu_rows) = (0, 0, 0);
    for chunk_rows in [8_192, 61] {
        let (mut vectorized, mut compiled) =
            (session(Tier::Vectorized, chunk_rows), session(Tier::Compiled, chunk_rows));
        let mut on_a_gpu = session(Tier::Compiled, chunk_rows);
        // The environment may name NVIDIA's, `gpu`.
        let device =
            std::env::var("TESSERA_TEST_DEVICE").unwrap_or_else(|_| "virtual-gpu".to_string());
        on_a_gpu.execute(&format!("set device = '{device}'")).unwrap();
        for _ in 0..queries / 2 {
            let sql = random.query();
            let (expected, found) = (answer(&mut vectorized, &sql), answer(&mut compiled, &sql));
            assert_eq!(found, expected, "{sql}\nin chunks of {chunk_rows}");
            let found_there = answer(&mut on_a_gpu, &sql);
            assert!(
                is_close(&found_there, &expected, sql.contains("extreme")),
                "{sql}\nin chunks of {chunk_rows} on a GPU: {found_there:?} {expected:?}"
            );
            gpu_rows += rows_compiled(&mut on_a_gpu, &sql);
            errors += usize::from(found.is_err());
            compiled_rows += rows_compiled(&mut compiled, &sql);
        }
    }
    // The random queries are worth something: some raise errors, far more do not, and most of their
    // tuples were compiled.
    assert!(errors * 20 > queries && errors * 2 < queries, "{errors} of {queries} raise errors");
    assert!(compiled_rows > queries * 1_000, "{compiled_rows} tuples went through compiled code");
    assert!(gpu_rows > queries * 500, "{gpu_rows} tuples went through the GPU's");
}

/// What EXPLAIN ANALYZE says of it.
fn rows_compiled(session: &mut Session, sql: &str) -> usize {
    let explained =
        session.execute(&format!("explain analyze {sql}")).map(|mut results| results.pop());
    let Ok(Some(StatementResult::Text(text))) = explained else { return 0 };
    let rows = |line: &str| line.strip_prefix("-- compiled rows: ")?.trim().parse::<usize>().ok();
    text.lines().filter_map(rows).sum()
}

#[test]
fn joins_are_looked_up_in_code() {
    let mut session = session(Tier::Compiled, 8_192);
    let mut probes = |sql: &str| {
        let explained =
            session.execute(&format!("explain analyze {sql}")).map(|mut results| results.pop());
        let Ok(Some(StatementResult::Text(text))) = explained else {
            panic!("{sql} is not explained")
        };
        let lines: Vec<&str> = text.lines().collect();
        let of_probe = |pair: &&[&str]| pair[1].contains(" = probe(");
        lines
            .windows(2)
            .filter(of_probe)
            .map(|pair| pair[0].contains("compiled rows"))
            .collect::<Vec<_>>()
    };
    assert_eq!(probes("select sum(weight * i) from t join u on middle = u_middle"), [true]);
    assert_eq!(probes("select sum(weight) from t join u on day = u_day and few = u_few"), [true]);
    // Tables with NULL keys and strings have no code.
    assert_eq!(
        probes("select sum(weight) from t join u on large = u_large and small = u_small"),
        [false]
    );
    assert_eq!(probes("select sum(weight) from t join u on text = u_text"), [false]);
}

#[test]
fn what_is_hot_is_compiled_meanwhile() {
    let mut session = session(Tier::Auto, 2_048);
    let sql = "select sum(a.i * b.large) from t a, t b where a.i <= 4000";
    let first = answer(&mut session, sql);
    // The compiler works beside the queries, at low priority: how soon it is done is up to the
    // machine.
    let started = std::time::Instant::now();
    while rows_compiled(&mut session, sql) == 0 {
        assert!(started.elapsed().as_secs() < PATIENCE_SECONDS, "nothing is compiled");
    }
    session.execute("set tier = vectorized").unwrap();
    assert_eq!(answer(&mut session, sql), first);
    assert_eq!(rows_compiled(&mut session, sql), 0);
}

#[test]
fn a_tuple_that_is_guarded_raises_nothing() {
    let mut session = session(Tier::Compiled, 2_048);
    for guarded in [
        "case when few <> 0 then i / few else 0 end",
        "case when few = 0 then 0 when i % few = 0 then i / few end",
        "coalesce(small, i / (small - small))",
    ] {
        let condition =
            if guarded.starts_with("coalesce") { " where small is not null" } else { "" };
        let sql = format!(
            "select sum({guarded}), count(*) filter (where few = 0 or i / few > 7) from t{condition}"
        );
        assert!(answer(&mut session, &sql).is_ok(), "{sql}");
        // What raises nothing stays compiled: all tuples, in the scan or behind it.
        assert!(rows_compiled(&mut session, &sql) >= 4_500, "{sql}");
    }
}

#[test]
fn what_is_too_large_stays_vectorized() {
    let mut session = session(Tier::Compiled, 2_048);
    let numbers: Vec<String> = (1..=3_000).map(|number| (number * 2).to_string()).collect();
    let sql = format!("select count(*) from t where large in ({})", numbers.join(", "));
    let small = "select count(*) from t where large > 0 and large <= 6000 and large % 2 = 0";
    assert_eq!(answer(&mut session, &sql), answer(&mut session, small));
    assert!(rows_compiled(&mut session, small) > rows_compiled(&mut session, &sql));
}

#[test]
fn many_queries_keep_few_pieces_of_code() {
    let mut session = session(Tier::Compiled, 2_048);
    let held = || {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0)
            * 4_096
    };
    // Each bit is another operator: numbers alone would be the same code.
    let mut run = |from: usize, to: usize| {
        for number in from..to {
            let sign = |bit: i32| if number >> bit & 1 == 1 { 1 } else { -1 };
            let terms: String =
                (0..14).map(|bit| if sign(bit) == 1 { " + few" } else { " - few" }).collect();
            let expected = 5_000 * 5_001 / 2 + (0..14).map(sign).sum::<i64>() * 7_500;
            let found = answer(&mut session, &format!("select sum(i{terms}) from t")).unwrap();
            assert_eq!(found, [expected.to_string()]);
        }
    };
    let more = queries() * 2;
    run(0, 400);
    let before = held();
    run(400, 400 + more);
    assert!(held() < before + (64 << 20), "{} bytes more for {more} queries", held() - before);
}

#[test]
fn other_numbers_have_the_same_code() {
    let folder = tempfile::tempdir().unwrap();
    let files = || std::fs::read_dir(folder.path()).map_or(0, Iterator::count);
    let config = Config {
        threads: 1,
        memory_bytes: 1 << 30,
        tier: Tier::Compiled,
        code_cache: Some(folder.path().to_path_buf()),
        ..Config::default()
    };
    let mut session = Session::new(config).unwrap();
    session.execute(&format!("create temp table t as {ROWS}")).unwrap();
    let (mut before, mut vectorized) = (0, self::session(Tier::Vectorized, 2_048));
    // Numbers of all types, as long as their types are the same.
    for numbers in [[5, 10, 25, 40, 300], [7, 28, 99, 41, 301], [9, 12, 11, 80, 999]] {
        let [a, b, c, d, e] = numbers;
        let sql = format!(
            "select sum(price * 1.{c} - 0.{c}), sum(wide + {a}), max(double * cast({b} as double)),
                count(*) filter (where real > cast(0.{c} as real)), min(widest - {a})
            from t where middle between {a} and {e} and i in ({a}, {b}, {c}, {d}, {e}) or large < {e}
                and day >= date '1993-01-{b}' or tiny = -{a} and double < 0.{b}"
        );
        assert_eq!(answer(&mut session, &sql), answer(&mut vectorized, &sql), "{sql}");
        assert!(answer(&mut session, &sql).is_ok(), "{sql}");
        assert!(before == 0 || before == files(), "{sql}");
        before = files();
    }
    assert!(before >= 2, "{before} files");
}
