//! A statement that is cancelled returns soon and holds nothing, whatever it was at.

use std::time::Duration;

use tessera_session::StatementResult;
use tessera_types::Code;

use crate::cancelling::{Data, Random, cancel_at, length};

/// Far more than it takes: a statement that does not hear of it at all is what this finds.
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
    // The session goes on.
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
    // All that it does is planned before it runs.
    let error = session.execute("SELECT 1").unwrap_err();
    assert_eq!(error.code(), Code::Cancelled);
    assert!(error.message().contains("deadline"), "{error}");
    session.execute("RESET deadline").unwrap();
    session.execute("SELECT 1").unwrap();
}
