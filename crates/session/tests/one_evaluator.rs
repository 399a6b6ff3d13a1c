//! Constant folding and execution agree: every function of the library, every operator and every
//! cast returns the same over literals, columns of a table in memory, dictionary columns of a file
//! and columns with one value, in both tiers.
//!
//! The test tries argument types and uses those that the planner accepts. It omits functions
//! without arguments, volatile functions, and calls that are rejected because of their types.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use tempfile::TempDir;

use tessera_codegen::Tier;
use tessera_functions::Library;
use tessera_plan::{Expr, Functions};
use tessera_session::{Config, Session, StatementResult};
use tessera_types::{Atom, Code};

use crate::texts::texts;

/// The compiled tier is only there in a build with LLVM.
const TIERS: [Tier; 2] = [Tier::Vectorized, Tier::Compiled];
/// Rows of the tables.
const ROWS: usize = 9;
/// Columns of each type: the arguments of a call.
const COLUMNS: usize = 3;
/// Set: every call is made with more types, and with every row; some minutes.
const FULL: &str = "TESSERA_SQL_FULL";
/// Set to a part of a call's text: only calls that have it are made.
const ONLY: &str = "TESSERA_CALLS";

/// The number of cases to try per call.
#[derive(Debug, Clone, Copy)]
struct Effort {
    /// Lists of argument types of a function, by their length.
    types_max: [usize; COLUMNS],
    /// The same of an operator, which takes more types than most functions.
    operator_types_max: usize,
    /// The number of rows that raise an error. Each takes a separate query.
    raising_max: usize,
    /// Whether each tier reads the columns of memory and those of files; else they take turns.
    every_table: bool,
}

const QUICK: Effort =
    Effort { types_max: [5, 3, 2], operator_types_max: 8, raising_max: 1, every_table: false };
const WHOLE: Effort =
    Effort { types_max: [32, 10, 4], operator_types_max: 48, raising_max: ROWS, every_table: true };

/// A type in SQL and as an atom, with boundary values.
type Values = (&'static str, &'static str, &'static [&'static str]);

const TYPES: [Values; 19] = [
    ("boolean", "boolean", &["true", "false"]),
    ("smallint", "int16", &["0", "7", "-32768", "32767"]),
    ("int", "int32", &["1", "0", "-1", "2147483647", "-2147483648", "3"]),
    ("bigint", "int64", &["2", "0", "-5", "9223372036854775807", "-9223372036854775808"]),
    ("bigint unsigned", "uint64", &["0", "18446744073709551615", "4"]),
    ("decimal(10,2)", "decimal(10,2)", &["2.50", "0.00", "-1.55", "99999999.99"]),
    (
        "decimal(38,4)",
        "decimal(38,4)",
        &["0.0001", "-2.5000", "9999999999999999999999999999999999.9999"],
    ),
    ("real", "float32", &["1.5", "0", "-2.5", "3e38", "NaN"]),
    (
        "double precision",
        "float64",
        &["0.5", "0", "-0.0", "-2.5", "1e300", "NaN", "Infinity", "100"],
    ),
    (
        "varchar",
        "string",
        &["abc", "", "Grüße, Ö", "  x ", "12", "2024-02-29", "a%b_c", "{1,NULL}", "day"],
    ),
    ("bytea", "bytes", &["\\x00ff", "abc", ""]),
    ("date", "date", &["2024-02-29", "1970-01-01", "1969-12-31", "0001-01-01", "9999-12-31"]),
    ("time", "time(us)", &["12:34:56.789", "00:00:00", "23:59:59.999999"]),
    ("timetz", "timetz", &["12:34:56.789-03:30", "00:00:00+14", "23:59:59.999999+00"]),
    (
        "timestamp",
        "timestamp(us)",
        &["2024-02-29 12:34:56.789", "1969-12-31 23:59:59.5", "2000-01-01"],
    ),
    ("timestamptz", "timestamp(us,UTC)", &["2024-02-29 12:34:56+02", "1970-01-01 00:00:00+00"]),
    ("interval", "interval", &["1 year 2 months 3 days 04:05:06.5", "0 s", "-1 day", "24 hours"]),
    ("int[]", "list<int32?>", &["{1,NULL,3}", "{}", "{5}"]),
    ("varchar[]", "list<string?>", &["{a,b}", "{}", "{\"x, y\",NULL}"]),
];

/// Operators and other forms of SQL that are no calls, with the number of their operands.
const FORMS: [(usize, &str); 44] = [
    (2, "{0} + {1}"),
    (2, "{0} - {1}"),
    (2, "{0} * {1}"),
    (2, "{0} / {1}"),
    (2, "{0} % {1}"),
    (2, "{0} ^ {1}"),
    (2, "{0} & {1}"),
    (2, "{0} | {1}"),
    (2, "{0} # {1}"),
    (2, "{0} << {1}"),
    (2, "{0} >> {1}"),
    (2, "{0} || {1}"),
    (2, "{0} = {1}"),
    (2, "{0} <> {1}"),
    (2, "{0} < {1}"),
    (2, "{0} <= {1}"),
    (2, "{0} > {1}"),
    (2, "{0} >= {1}"),
    (2, "{0} is distinct from {1}"),
    (2, "{0} is not distinct from {1}"),
    (2, "{0} like {1}"),
    (2, "{0} not ilike {1}"),
    (2, "{0} similar to {1}"),
    (2, "{0} ~ {1}"),
    (2, "{0} !~* {1}"),
    (2, "{0} and {1}"),
    (2, "{0} or {1}"),
    (2, "({0}, {1}) = ({1}, {0})"),
    (2, "coalesce({0}, {1})"),
    (2, "nullif({0}, {1})"),
    (2, "case {0} when {1} then 1 end"),
    (3, "{0} between {1} and {2}"),
    (3, "{0} not in ({1}, {2})"),
    (3, "case when {0} then {1} else {2} end"),
    (1, "-{0}"),
    (1, "not {0}"),
    (1, "{0} is null"),
    (1, "{0} is not true"),
    (1, "extract(epoch from {0})"),
    (1, "extract(month from {0})"),
    (1, "trim(both 'x' from {0})"),
    (1, "substring({0} from 2 for 3)"),
    (1, "position('b' in {0})"),
    (2, "{0} = any(array[{1}, null])"),
];

/// The result of an expression in one row: its text, or the code of its error.
type Outcome = Result<String, Code>;

/// An expression over columns, and over the literals of a row.
struct Case {
    text: String,
    types: Vec<usize>,
}

impl Case {
    fn with(&self, argument: impl Fn(usize, usize) -> String) -> String {
        let mut text = self.text.clone();
        for (column, of_type) in self.types.iter().enumerate() {
            text = text.replace(&format!("{{{column}}}"), &argument(column, *of_type));
        }
        text
    }

    fn columns(&self) -> String {
        self.with(name)
    }

    fn has_null(&self, row: usize) -> bool {
        self.types
            .iter()
            .enumerate()
            .any(|(column, of_type)| literal(column, *of_type, row).contains("(null"))
    }

    fn literals(&self, row: usize) -> String {
        self.with(|column, of_type| literal(column, of_type, row))
    }
}

fn name(column: usize, of_type: usize) -> String {
    format!("c{column}_{of_type}")
}

/// The value of a column in a row. The columns of a type go through its values, and NULL, in steps
/// of their own.
fn literal(column: usize, of_type: usize, row: usize) -> String {
    let (sql, _, values) = TYPES[of_type];
    match values.get((row * [1, 2, 4][column] + column) % (values.len() + 1)) {
        Some(value) => format!("cast('{value}' as {sql})"),
        None => format!("cast(null as {sql})"),
    }
}

fn session(tier: Tier, files: &TempDir) -> Session {
    let config = Config { threads: 1, tier, memory_bytes: 1 << 30, ..Config::default() };
    let mut session = Session::new(config).unwrap();
    let mut values = String::new();
    for row in 0..ROWS {
        write!(values, "{}({row}", if row == 0 { "" } else { ", " }).unwrap();
        for (of_type, column) in all_columns() {
            write!(values, ", {}", literal(column, of_type, row)).unwrap();
        }
        values.push(')');
    }
    let names: Vec<String> = all_columns().map(|(of_type, column)| name(column, of_type)).collect();
    let rows = format!("select * from (values {values}) t(i, {})", names.join(", "));
    session.execute(&format!("create temp table encoded as {rows}")).unwrap();
    for row in 0..ROWS {
        let same =
            format!("select encoded.* from encoded, generate_series(1, 3) where encoded.i = {row}");
        session.execute(&format!("create temp table same{row} as {same}")).unwrap();
    }
    let file = files.path().join(format!("{tier:?}.parquet"));
    let kept: Vec<String> = all_columns()
        .filter(|(of_type, _)| is_stored(*of_type))
        .map(|(of_type, column)| name(column, of_type))
        .collect();
    let copy = format!("copy (select i, {} from encoded) to '{}'", kept.join(", "), file.display());
    session.execute(&copy).unwrap();
    let table =
        format!("create external table stored stored as parquet location '{}'", file.display());
    session.execute(&table).unwrap();
    session
}

/// Whether files hold values of a type: Parquet has no negative intervals, and text in place of
/// times with time zone.
fn is_stored(of_type: usize) -> bool {
    !matches!(TYPES[of_type].0, "interval" | "timetz")
}

fn all_columns() -> impl Iterator<Item = (usize, usize)> {
    (0..TYPES.len()).flat_map(|of_type| (0..COLUMNS).map(move |column| (of_type, column)))
}

fn rows(session: &mut Session, sql: &str) -> Result<Vec<String>, Code> {
    match session.execute(sql).map(|mut results| results.pop()) {
        Ok(Some(StatementResult::Rows(result))) => Ok(texts(&result)),
        Ok(other) => panic!("{sql}: {other:?}"),
        Err(error) => {
            assert!(error.code() != Code::Internal, "{sql}: {error}");
            Err(error.code())
        }
    }
}

/// Whether a call with these types is planned.
fn is_planned(session: &mut Session, case: &Case) -> bool {
    session.execute(&format!("explain select {} from encoded", case.columns())).is_ok()
}

/// The outcome over literals, row by row: they are folded, or raise where they are evaluated.
fn over_literals(session: &mut Session, case: &Case) -> Vec<Outcome> {
    let exprs = |session: &mut Session, rows_of: &[usize]| {
        let list: Vec<String> =
            rows_of.iter().map(|row| format!("select {row}, {}", case.literals(*row))).collect();
        let all = format!("select * from ({}) t(i, v) order by i", list.join(" union all "));
        rows(session, &all)
    };
    let value =
        |text: &String| text.split_once(' ').map_or(String::new(), |(_, value)| value.to_string());
    let every: Vec<usize> = (0..ROWS).collect();
    if let Ok(found) = exprs(session, &every) {
        return found.iter().map(|text| Ok(value(text))).collect();
    }
    every.iter().map(|row| exprs(session, &[*row]).map(|found| value(&found[0]))).collect()
}

/// The differences between literals and columns of a table.
fn over_columns(
    session: &mut Session,
    case: &Case,
    table: &str,
    expected: &[Outcome],
    raising_max: usize,
) -> Option<String> {
    let expr = case.columns();
    let list = |rows: &[usize]| rows.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let compared = |session: &mut Session, good: &[usize]| {
        let only = if good.len() == ROWS {
            String::new()
        } else {
            format!(" where i in ({})", list(good))
        };
        let sql = format!("select {expr} from {table}{only} order by i");
        let wanted: Vec<String> =
            good.iter().filter_map(|row| expected[*row].clone().ok()).collect();
        let found = if good.is_empty() { Ok(Vec::new()) } else { rows(session, &sql) };
        let same = found.as_ref() == Ok(&wanted);
        let different = (!same).then(|| format!("{sql}\n  gives {found:?}\n  literals {wanted:?}"));
        (found.is_err(), different)
    };
    let mut good: Vec<usize> = (0..ROWS).filter(|row| expected[*row].is_ok()).collect();
    let (mut raised, mut different) = compared(session, &good);
    if raised {
        // Beside a NULL that is written nothing is computed, so that a column may raise where
        // literals do not.
        good.retain(|row| {
            let beside_null = expected[*row].as_deref() == Ok("NULL") && case.has_null(*row);
            !beside_null || !compared(session, &[*row]).0
        });
        (raised, different) = compared(session, &good);
    }
    if different.is_some() || raised {
        return different;
    }
    (0..ROWS).filter(|row| expected[*row].is_err()).take(raising_max).find_map(|row| {
        let sql = format!("select {expr} from {table} where i = {row}");
        let found = rows(session, &sql);
        let same = found.as_ref().err() == expected[row].as_ref().err();
        (!same).then(|| {
            format!("{sql}\n  gives {found:?}\n  {} {:?}", case.literals(row), expected[row])
        })
    })
}

/// The differences between literals and columns with one value.
fn over_same(session: &mut Session, case: &Case, row: usize, expected: &Outcome) -> Option<String> {
    let sql = format!("select {} from same{row}", case.columns());
    let found = rows(session, &sql);
    if found.is_err() && expected.as_deref() == Ok("NULL") && case.has_null(row) {
        return None;
    }
    let wanted = expected.clone().map(|value| vec![value; 3]);
    (found != wanted)
        .then(|| format!("{sql}\n  gives {found:?}\n  {} {wanted:?}", case.literals(row)))
}

fn differences(
    sessions: &mut [Session],
    case: &Case,
    number: usize,
    effort: Effort,
) -> Vec<String> {
    let mut found = Vec::new();
    let expected = over_literals(&mut sessions[0], case);
    // A cast that there is not is folded where its value is NULL.
    let is_refused = |outcome: &Outcome| match outcome {
        Err(code) => matches!(code, Code::Semantic | Code::Unsupported),
        Ok(value) => value == "NULL",
    };
    if expected.iter().all(is_refused) && expected.iter().any(Result::is_err) {
        return found;
    }
    for (position, session) in sessions.iter_mut().enumerate() {
        let tables = match case.types.iter().all(|of_type| is_stored(*of_type)) {
            false => &["encoded"][..],
            true if effort.every_table => &["encoded", "stored"],
            true if (number + position).is_multiple_of(2) => &["encoded"],
            true => &["stored"],
        };
        for table in tables {
            found.extend(over_columns(session, case, table, &expected, effort.raising_max));
        }
        let row = number % ROWS;
        found.extend(over_same(session, case, row, &expected[row]));
    }
    found
}

/// Lists of types, in a mixed order.
fn type_lists(length: usize) -> Vec<Vec<usize>> {
    let count = TYPES.len().pow(length as u32);
    // A step without a divisor in common with the count visits every list once.
    let step = (count * 5 / 13) | 1;
    let step = (step..).find(|step| gcd(*step, count) == 1).unwrap_or(1);
    let list = |number: usize| {
        let mut rest = number * step % count;
        (0..length)
            .map(|_| {
                let one = rest % TYPES.len();
                rest /= TYPES.len();
                one
            })
            .collect()
    };
    (0..count).map(list).collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Calls of a function that the library takes with its arguments as they are.
fn calls(library: &Library, function: &str, session: &mut Session, effort: Effort) -> Vec<Case> {
    let atoms: Vec<Atom> = TYPES.iter().map(|(_, atom, _)| atom.parse().unwrap()).collect();
    let field = Expr::field("x");
    let mut found = Vec::new();
    for length in 1..=COLUMNS {
        let arguments: Vec<String> = (0..length).map(|column| format!("{{{column}}}")).collect();
        let text = format!("{function}({})", arguments.join(", "));
        let mut kept = 0;
        // Same-typed lists first: they mean most.
        let same = (0..TYPES.len()).map(|of_type| vec![of_type; length]);
        for types in same.chain(type_lists(length)) {
            let args: Vec<(Atom, bool, &Expr)> =
                types.iter().map(|of_type| (atoms[*of_type].clone(), true, &field)).collect();
            if library.scalar(function, &args).is_err() {
                continue;
            }
            let case = Case { text: text.clone(), types };
            if is_planned(session, &case) {
                found.push(case);
                kept += 1;
            }
            if kept == effort.types_max[length - 1] {
                break;
            }
        }
    }
    found
}

fn forms(session: &mut Session, effort: Effort) -> Vec<Case> {
    let mut found = Vec::new();
    for (length, text) in FORMS {
        let lists =
            type_lists(length).into_iter().map(|types| Case { text: text.to_string(), types });
        let planned =
            lists.filter(|case| is_planned(session, case)).take(effort.operator_types_max);
        found.extend(planned.collect::<Vec<_>>());
    }
    for to in
        TYPES.iter().map(|(sql, ..)| *sql).chain(["tinyint", "time(0)", "timestamp(3)", "date[]"])
    {
        for (text, of_type) in ["cast", "try_cast"]
            .into_iter()
            .flat_map(|cast| (0..TYPES.len()).map(move |t| (cast, t)))
        {
            let case = Case { text: format!("{text}({{0}} as {to})"), types: vec![of_type] };
            if is_planned(session, &case) {
                found.push(case);
            }
        }
    }
    found
}

#[test]
fn literals_and_columns_agree() {
    let library = Arc::new(Library::new());
    let files = TempDir::new().unwrap();
    let names = library.scalar_names();
    // What is said of Arrow's types is not the same: a literal that is not NULL has a type that
    // cannot be.
    let is_of_values = |name: &String| !library.is_volatile(name) && !name.starts_with("arrow_");
    let names: Vec<String> = names.into_iter().filter(is_of_values).collect();
    let effort = if std::env::var_os(FULL).is_some() { WHOLE } else { QUICK };
    let only = std::env::var(ONLY).unwrap_or_default();
    let next = AtomicUsize::new(0);
    let found: Mutex<BTreeMap<String, Vec<String>>> = Mutex::default();
    let (tested, untried) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = |thread: usize| {
        let directory = TempDir::new_in(files.path()).unwrap();
        let tiers = if cfg!(feature = "llvm") { &TIERS[..] } else { &TIERS[..1] };
        let mut sessions: Vec<Session> =
            tiers.iter().map(|tier| session(*tier, &directory)).collect();
        let check = |cases: Vec<Case>, sessions: &mut [Session]| {
            for case in cases.into_iter().filter(|case| case.text.contains(&only)) {
                let number = tested.fetch_add(1, Ordering::Relaxed);
                let different = differences(sessions, &case, number, effort);
                if !different.is_empty() {
                    found.lock().unwrap().entry(case.text).or_default().extend(different);
                }
            }
        };
        if thread == 0 {
            let cases = forms(&mut sessions[0], effort);
            check(cases, &mut sessions);
        }
        while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
            if !format!("{name}(").contains(&only) {
                continue;
            }
            let cases = calls(&library, name, &mut sessions[0], effort);
            if cases.is_empty() {
                untried.lock().unwrap().push(name.clone());
            }
            check(cases, &mut sessions);
        }
    };
    let workers = thread::available_parallelism().map_or(2, |threads| threads.get().clamp(2, 8));
    thread::scope(|scope| {
        for thread in 0..workers {
            let builder = thread::Builder::new().stack_size(64 << 20);
            builder.spawn_scoped(scope, move || work(thread)).unwrap();
        }
    });
    let (found, untried) = (found.into_inner().unwrap(), untried.into_inner().unwrap());
    let tested = tested.into_inner();
    println!(
        "{tested} calls of {} functions; without columns: {untried:?}",
        names.len() - untried.len()
    );
    assert!(tested > 1_200 || !only.is_empty(), "only {tested} calls were found");
    // The first of each kind: what one function does wrong it does for many types.
    let kinds = found.iter().map(|(text, all)| format!("{text}, {} times: {}", all.len(), all[0]));
    let kinds = kinds.collect::<Vec<_>>().join("\n");
    assert!(found.is_empty(), "{} functions and forms differ:\n{kinds}", found.len());
}
