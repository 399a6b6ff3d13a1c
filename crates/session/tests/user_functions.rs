//! User functions in LLVM IR: equal results in both tiers, and rejection unless allowed.

use tessera_codegen::Tier;
use tessera_session::{Config, Session, StatementResult};

use crate::texts::texts;

/// Returns the next `INTEGER`, or NULL above 100.
const NEXT: &str = "create function next(x integer) returns integer language llvm immutable as $$
    define i32 @next(ptr %out, i32 %x) {
      %last = icmp sgt i32 %x, 100
      %both = call { i32, i1 } @llvm.sadd.with.overflow.i32(i32 %x, i32 1)
      %value = extractvalue { i32, i1 } %both, 0
      store i32 %value, ptr %out
      %status = zext i1 %last to i32
      %is_most = icmp eq i32 %x, 2147483647
      %result = select i1 %is_most, i32 2, i32 %status
      ret i32 %result
    }
    declare { i32, i1 } @llvm.sadd.with.overflow.i32(i32, i32)
$$";

fn session(tier: Tier, native_functions: bool) -> Session {
    Session::new(Config { threads: 1, tier, native_functions, ..Config::default() }).unwrap()
}

/// The rows or the error, as text.
fn answer(session: &mut Session, sql: &str) -> Result<Vec<String>, String> {
    match session.execute(sql).map(|mut results| results.pop()) {
        Ok(Some(StatementResult::Rows(result))) => Ok(texts(&result)),
        Ok(Some(StatementResult::Done(done))) => Ok(vec![done]),
        Ok(other) => panic!("{sql}: {other:?}"),
        Err(error) => Err(format!("{}: {}", error.code().as_str(), error.message())),
    }
}

#[test]
fn functions_are_for_who_allows_them() {
    let error = answer(&mut session(Tier::Auto, false), NEXT).unwrap_err();
    assert!(error.starts_with("unsupported") && error.contains("--native-functions"), "{error}");
}

#[test]
#[cfg(not(feature = "llvm"))]
fn without_a_compiler_there_are_none() {
    let error = answer(&mut session(Tier::Auto, true), NEXT).unwrap_err();
    assert!(error.starts_with("unsupported") && error.contains("--features llvm"), "{error}");
}

#[cfg(feature = "llvm")]
#[test]
fn both_tiers_give_the_same_and_the_same_errors() {
    let (mut one, mut other) = (session(Tier::Vectorized, true), session(Tier::Compiled, true));
    for session in [&mut one, &mut other] {
        assert_eq!(answer(session, NEXT).unwrap(), ["CREATE FUNCTION"]);
        let rows =
            "create temp table t as select i, case when i % 3 > 0 then cast(i as integer) end as x,
            case when i % 5 = 0 then 0.75 else 7 end as y from generate_series(1, 5000) as s(i)";
        session.execute(rows).unwrap();
    }
    for (sql, expected) in [
        ("select next(7), next(null), next(101), next(-1)", Ok("8 NULL NULL 0")),
        (
            "select next(2147483647)",
            Err("overflow: next(2147483647) is out of range for type int32"),
        ),
        ("select sum(next(x)), count(next(x)), count(*) from t", Ok("3434 67 5000")),
        ("select count(*) from t where next(x) > 50", Ok("34")),
        (
            "select sum(next(x + 2147483640)) from t where x < 8",
            Err("overflow: next(2147483647) is out of range for type int32"),
        ),
        (
            "select count(*) from t where x < 8 and case when x <> 7 then next(x + 2147483640) is null end",
            Ok("4"),
        ),
        ("select next(3000000000)", Err("overflow: 3000000000 is out of range for type int32")),
        ("select max(next(cast(i % 90 as bigint))) from t", Ok("90")),
        (
            "select next('1')",
            Err("semantic: function next takes (int32), not (string); cast the arguments"),
        ),
        (
            "select next(y) from t",
            Err("function next takes (int32), not (decimal(12,2)); cast the arguments"),
        ),
        ("select next(1, 2)", Err("function next takes 1 arguments, not 2")),
        ("select next()", Err("function next takes")),
    ] {
        let (vectorized, compiled) = (answer(&mut one, sql), answer(&mut other, sql));
        assert_eq!(vectorized, compiled, "{sql}");
        match expected {
            Ok(rows) => assert_eq!(compiled.unwrap(), [rows], "{sql}"),
            Err(part) => {
                assert!(
                    compiled.as_ref().is_err_and(|error| error.contains(part)),
                    "{sql}: {compiled:?}"
                )
            }
        }
    }
}

#[cfg(feature = "llvm")]
#[test]
fn functions_are_replaced_and_dropped() {
    let mut session = session(Tier::Compiled, true);
    let twice = NEXT.replace("i32 %x, i32 1)", "i32 %x, i32 %x)");
    let run = |session: &mut Session, sql: &str| answer(session, sql).map(|rows| rows.join(" "));
    run(&mut session, NEXT).unwrap();
    assert_eq!(run(&mut session, "select next(20)").unwrap(), "21");
    let error = run(&mut session, &twice).unwrap_err();
    assert!(error.contains("CREATE OR REPLACE FUNCTION"), "{error}");
    run(&mut session, &twice.replace("create function", "create or replace function")).unwrap();
    assert_eq!(run(&mut session, "select next(20)").unwrap(), "40");
    for wrong in ["drop function other", "drop function next(bigint)", "drop function other, next"]
    {
        assert!(run(&mut session, wrong).unwrap_err().contains("unknown function"), "{wrong}");
    }
    assert_eq!(
        run(&mut session, "drop function if exists other, next(bigint)").unwrap(),
        "DROP FUNCTION"
    );
    assert_eq!(run(&mut session, "select next(20)").unwrap(), "40");
    assert_eq!(run(&mut session, "drop function next(integer)").unwrap(), "DROP FUNCTION");
    assert!(run(&mut session, "select next(20)").is_err());
    for (sql, told) in [
        (NEXT.replace("language llvm", "language sql"), "in the body of the function"),
        (NEXT.replace("immutable", "called on null input"), "remove CALLED ON NULL INPUT"),
        (NEXT.replace("returns integer", "returns text"), "do not support type string"),
        (NEXT.replace("next(", "abs("), "abs is a function of the library"),
        (NEXT.replace("next(", "sum("), "sum is a function of the library"),
        (NEXT.replace("x integer)", "x bigint)"), "define it as i32 @next(ptr, i64)"),
        (NEXT.replace("ret i32", "give i32"), "invalid LLVM IR"),
    ] {
        let error = run(&mut session, &sql).unwrap_err();
        assert!(error.contains(told), "{sql}: {error}");
    }
}
