//! A cancelled statement returns soon and releases its memory, in all phases.

use std::time::Duration;

use tessera_session::StatementResult;
use tessera_types::Code;

use crate::cancelling::{Data, Random, cancel_at, length};

/// A generous limit, which only a statement that ignores the cancellation exceeds.
const PROMPT: Duration = Duration::from_secs(5);
const MOMENTS_PER_CASE: usize = 4;

#[test]
fn statements_cancelled_at_random_moments_hold_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = Data::make(folder.path(), 0.02);
    let mut session = data.session(2);
    let mut random = Random(4);
    let mut cancelled = 0;
    for case in data.cases() {
        let length = length(&mut session, &case, Duration::from_millis(500));
        for _ in 0..MOMENTS_PER_CASE {
            let moment = cancel_at(&mut session, &case, length.mul_f64(random.fraction()));
            assert_eq!(moment.held_bytes, 0, "{}: {moment:?}", case.name);
            if let Some(took) = moment.took {
                assert!(took < PROMPT, "{}: {moment:?}", case.name);
                cancelled += 1;
            }
        }
        let left = std::fs::read_dir(folder.path()).unwrap().filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().contains("tmp")
        });
        assert_eq!(left.count(), 0, "{} leaves a file behind", case.name);
    }
    assert!(cancelled > 100, "only {cancelled} statements had not ended before");
    // The session accepts further statements.
    let Ok(results) = session.execute("SELECT count(*) FROM nation") else {
        panic!("it does not go on")
    };
    assert!(matches!(&results[..], [StatementResult::Rows(rows)] if rows.row_count() == 1));
}

#[test]
fn a_deadline_counts_from_the_start_of_the_statement() {
    let folder = tempfile::tempdir().unwrap();
    let data = Data::make(folder.path(), 0.001);
    let mut session = data.session(1);
    session.execute("SET deadline = '0.000001'").unwrap();
    // All its work happens during planning.
    let error = session.execute("SELECT 1").unwrap_err();
    assert_eq!(error.code(), Code::Cancelled);
    assert!(error.message().contains("deadline"), "{error}");
    session.execute("RESET deadline").unwrap();
    session.execute("SELECT 1").unwrap();
}
