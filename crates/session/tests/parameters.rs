//! Parameters, prepared statements, variables and macros through the library.

use arrow::array::AsArray;
use arrow::datatypes::{Int32Type, Int64Type};
use tessera_binder::{Constant, Parameters};
use tessera_plan::Scalar;
use tessera_session::{Config, Session, StatementOutput, StatementResult};
use tessera_types::{Atom, Slot, SqlState};

fn session() -> Session {
    Session::new(Config { threads: 1, ..Config::default() }).unwrap()
}

/// The rows of a query as text, one line a row.
fn shown(session: &mut Session, sql: &str, values: &Parameters) -> Result<String, SqlState> {
    let rows = session.query_with(sql, values).map_err(|error| error.sql_state())?;
    let rows = rows.collect_all().map_err(|error| error.sql_state())?;
    let mut lines = Vec::new();
    for batch in rows.batches() {
        let batch = batch.unwrap();
        for row in 0..batch.num_rows() {
            let value = |column: &arrow::array::ArrayRef| {
                arrow::util::display::array_value_to_string(column, row).unwrap()
            };
            lines.push(batch.columns().iter().map(value).collect::<Vec<_>>().join(" "));
        }
    }
    Ok(lines.join("\n"))
}

#[test]
fn values_are_given_by_position_or_name() {
    let mut session = session();
    let two = Parameters::positional([Constant::from(40), Constant::from(2)]);
    for sql in ["select $1 + $2", "select ? + ?", "select (?\n + ?)", "select $2 + $1"] {
        assert_eq!(shown(&mut session, sql, &two).as_deref(), Ok("42"), "{sql}");
    }
    let named = Parameters::named([("A", Constant::from(40)), ("b", Constant::from(2))]);
    assert_eq!(shown(&mut session, "select $a - $B", &named).as_deref(), Ok("38"));
}

#[test]
fn question_marks_count_in_the_order_of_the_text() {
    let mut session = session();
    let values = Parameters::positional([1, 2, 3, 4].map(Constant::from));
    let sql = "with c as (select ? as a) select a, ? as b from c where a < ? limit ?";
    assert_eq!(shown(&mut session, sql, &values).as_deref(), Ok("1 2"));
    let statements = tessera_parser::parse("select ?; select $b, $2, $a; select 1").unwrap();
    let names: Vec<_> = statements.iter().map(|statement| statement.parameters()).collect();
    assert_eq!(names, [vec!["1"], vec!["1", "2", "a", "b"], vec![]]);
}

#[test]
fn a_text_takes_the_type_of_its_context() {
    let mut session = session();
    let text = |text: &str| Parameters::positional([Constant::from(text)]);
    for (sql, value, expected) in [
        ("select 1 + $1", "41", Ok("42")),
        ("select date '2024-02-28' + $1::int", "1", Ok("2024-02-29")),
        ("select date '2024-02-28' = $1", "2024-02-28", Ok("true")),
        ("select $1", "x", Ok("x")),
        ("select 1 + $1", "x", Err(SqlState::INVALID_TEXT_REPRESENTATION)),
        ("select 1 limit $1", "0", Ok("")),
    ] {
        let expected = expected.map(str::to_string);
        assert_eq!(shown(&mut session, sql, &text(value)), expected, "{sql}");
    }
    let null = Parameters::positional([Constant::null()]);
    assert_eq!(shown(&mut session, "select 1 + $1 is null", &null).as_deref(), Ok("true"));
    let number = Parameters::positional([Constant::from(2.5)]);
    assert_eq!(shown(&mut session, "select $1 + 1", &number).as_deref(), Ok("3.5"));
}

#[test]
fn values_of_nested_types_are_parameters() {
    let mut session = session();
    let of = Box::new(Slot { atom: Atom::Int64, nullable: true });
    let items = [Scalar::Integer(1), Scalar::Null, Scalar::Integer(5)];
    let list = Constant::new(Scalar::Nested(items.into()), Atom::List(of)).unwrap();
    let values = Parameters::positional([list]);
    let sql = "select sum(x) from unnest($1) as u(x)";
    assert_eq!(shown(&mut session, sql, &values).as_deref(), Ok("6"));
    assert!(Constant::new(Scalar::Boolean(true), Atom::Int32).is_err());
}

#[test]
fn a_missing_or_surplus_value_is_an_error() {
    let mut session = session();
    let one = Parameters::positional([Constant::from(1)]);
    for (sql, values, state) in [
        ("select $1", &Parameters::default(), SqlState::UNDEFINED_PARAMETER),
        ("select $1 + $2", &one, SqlState::SYNTAX_ERROR),
        ("select 1", &one, SqlState::SYNTAX_ERROR),
        ("select $a", &one, SqlState::SYNTAX_ERROR),
        ("select ? + $1", &one, SqlState::SYNTAX_ERROR),
        ("select $0", &one, SqlState::UNDEFINED_PARAMETER),
        ("select $70000", &one, SqlState::UNDEFINED_PARAMETER),
        ("create temp view v as select $1", &one, SqlState::UNDEFINED_PARAMETER),
    ] {
        assert_eq!(shown(&mut session, sql, values), Err(state), "{sql}");
    }
    // The session goes on.
    assert_eq!(shown(&mut session, "select $1", &one).as_deref(), Ok("1"));
}

#[test]
fn statements_other_than_queries_take_parameters() {
    let mut session = session();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv").display().to_string();
    let values = Parameters::positional([Constant::from(7)]);
    let copy = format!("copy (select $1 as a) to '{path}'");
    assert!(session.statement_with(&copy, &values).is_ok());
    session.statement_with("create temp table t as select $1 as a", &values).unwrap();
    assert_eq!(shown(&mut session, "select a from t where a = $1", &values).as_deref(), Ok("7"));
    let from = Parameters::positional([Constant::from(path.as_str()), Constant::from(true)]);
    let sql = "select a from read_csv($1, header = $2)";
    assert_eq!(shown(&mut session, sql, &from).as_deref(), Ok("7"));
    let explained = session.statement_with("explain select $1 as a", &values).unwrap();
    assert!(matches!(explained, Some(StatementOutput::Text(_))));
    // The path of a file is known when the statement is executed.
    session.execute("prepare f as select a + $2 from read_csv($1)").unwrap();
    let results = session.execute(&format!("execute f('{path}', 3)")).unwrap();
    let StatementResult::Rows(rows) = &results[0] else { panic!("a query") };
    let batch = rows.batches().next().unwrap().unwrap();
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().value(0), 10);
}

#[test]
fn a_prepared_statement_sees_the_tables_of_its_execution() {
    let mut session = session();
    session
        .execute("create temp table t as select 1 as a; prepare p as select a + $1 from t")
        .unwrap();
    let run = |session: &mut Session| {
        let results = session.execute("execute p(1)").unwrap();
        let StatementResult::Rows(rows) = &results[0] else { panic!("a query") };
        let batch = rows.batches().next().unwrap().unwrap();
        batch.column(0).as_primitive::<Int32Type>().value(0)
    };
    assert_eq!(run(&mut session), 2);
    session.execute("drop table t; create temp table t as select 10 as a").unwrap();
    assert_eq!(run(&mut session), 11);
    session.execute("drop table t").unwrap();
    let error = session.execute("execute p(1)").unwrap_err();
    assert_eq!(error.sql_state(), SqlState::UNDEFINED_TABLE);
}

#[test]
fn explain_shows_the_plan_of_what_holds_a_query() {
    let mut session = session();
    session.execute("prepare p as select x from range(10) r(x) where x > $1").unwrap();
    for sql in [
        "explain execute p(3)",
        "explain analyze execute p(3)",
        "explain create temp table t as select 1 as a",
        "explain create temp view v as select 1 as a",
        "explain copy (select 1 as a) to 'x.csv'",
        "explain describe select 1 as a",
        "explain set variable x = 1",
        "explain (format json) execute p(3)",
    ] {
        let results = session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let [StatementResult::Text(text)] = &results[..] else { panic!("{sql}") };
        assert!(!text.is_empty(), "{sql}");
    }
    let error = session.execute("explain deallocate p").unwrap_err();
    assert_eq!(error.sql_state(), SqlState::FEATURE_NOT_SUPPORTED);
    // Nothing was created.
    assert!(session.table_names().is_empty());
}

#[test]
fn macros_are_of_one_session() {
    let mut session = session();
    session.execute("create macro f(x) as x + 1").unwrap();
    let mut other = session.beside().unwrap();
    assert!(session.execute("select f(1)").is_ok());
    let error = other.execute("select f(1)").unwrap_err();
    assert_eq!(error.sql_state(), SqlState::UNDEFINED_FUNCTION);
}

#[test]
fn a_macro_that_calls_itself_is_an_error() {
    let mut session = session();
    session.execute("create macro f(x) as x; create macro g(x) as f(x)").unwrap();
    session.execute("create or replace macro f(x) as g(x)").unwrap();
    let error = session.execute("select f(1)").unwrap_err();
    assert_eq!(error.sql_state(), SqlState::INVALID_RECURSION, "{error}");
}

/// A volatile argument that a macro reads twice would differ from itself.
#[test]
fn a_volatile_argument_is_computed_once() {
    let mut session = session();
    let all = |session: &mut Session, condition: &str| {
        let sql = format!("select bool_and({condition}) from range(200)");
        shown(session, &sql, &Parameters::default()).unwrap()
    };
    for condition in [
        // `$1 - $2 * floor($1 / $2)` of values between 0 and 1.
        "fmod(random(), 0.5::double) between 0 and 0.5",
        "fmod(random(), 0.25::double + random() / 1e9) < 0.2501",
        "num_nulls(case when random() < 0.5 then 1 end) in (0, 1)",
        "coalesce(list_sum([random(), null]) between 0 and 1, false)",
    ] {
        assert_eq!(all(&mut session, condition), "true", "{condition}");
    }
    session.execute("create macro same(x) as x = x and (select x = x)").unwrap();
    for condition in ["same(random())", "same(same(random()))", "same(uuid())"] {
        assert_eq!(all(&mut session, condition), "true", "{condition}");
    }
    for sql in [
        "select wavg(random(), random()) from range(5)",
        "select sem(random()) from range(5)",
        "select wavg(range, 1) filter (where random() < 0.5) from range(5)",
    ] {
        let error = session.execute(sql).unwrap_err();
        assert_eq!(error.sql_state(), SqlState::FEATURE_NOT_SUPPORTED, "{sql}: {error}");
    }
}

/// Columns of a macro's own subqueries are not those of its arguments.
#[test]
fn an_argument_reads_the_columns_of_its_call() {
    let mut session = session();
    let sql = "select list_sum(element) from (values ([1, 2]), ([5])) as t(element) order by 1";
    assert_eq!(shown(&mut session, sql, &Parameters::default()).as_deref(), Ok("3\n5"));
    let sql = "select list_aggregate([1, 2, element], 'sum') from (values (4)) as t(element)";
    assert_eq!(shown(&mut session, sql, &Parameters::default()).as_deref(), Ok("7"));
}
