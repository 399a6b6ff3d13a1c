//! Results that are read while their query runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use tessera_context::Interrupt;
use tessera_engine::{CompiledPlan, Engine, Governor, Query, QueryRun, RunRecord, Settings};
use tessera_plan::Plan;
use tessera_types::{Code, Result};

use crate::execution::{MORSELS, PATIENCE, ROWS, all, numbers, registry};

/// Room for one chunk that waits for its reader, and one that waits for those before it.
const TIGHT_BYTES: usize = ROWS * 8 * 16;

fn start(
    engine: &Engine,
    plan: &Plan,
    governor: &Arc<Governor>,
    interrupt: Arc<Interrupt>,
) -> QueryRun {
    let compiled = CompiledPlan::lower(plan, &registry()).unwrap();
    let settings = Settings { interrupt, ..Settings::default() };
    engine.start(&RunRecord::new(&compiled), Query::new(settings, governor)).unwrap()
}

fn read(run: &mut QueryRun, chunks_max: usize) -> Result<Vec<i64>> {
    let mut values = Vec::new();
    for _ in 0..chunks_max {
        let Some(chunk) = run.next_chunk()? else { break };
        values.extend_from_slice(chunk.column(0)?.plain()?.as_primitive::<Int64Type>().values());
    }
    Ok(values)
}

fn patient() -> Arc<Interrupt> {
    Arc::new(Interrupt::after(PATIENCE))
}

#[test]
fn chunks_come_in_order_within_the_budget() {
    for workers in [1, 2, 5] {
        for mode in ["plain", "blocking"] {
            // Each lane may have a chunk that was admitted beyond the bounds.
            let governor = Governor::new(TIGHT_BYTES * 2);
            let engine = Engine::new(workers).unwrap();
            let mut run = start(&engine, &numbers(mode, 0), &governor, patient());
            assert_eq!(read(&mut run, usize::MAX).unwrap(), all());
            assert!(run.next_chunk().unwrap().is_none());
            drop(run);
            assert_eq!(governor.used_bytes(), 0);
        }
    }
}

#[test]
fn a_reader_that_takes_its_time_holds_the_run_back() {
    let governor = Governor::new(TIGHT_BYTES * 2);
    let engine = Engine::new(2).unwrap();
    let record = RunRecord::new(&CompiledPlan::lower(&numbers("plain", 0), &registry()).unwrap());
    let settings = Settings { interrupt: patient(), ..Settings::default() };
    let mut run = engine.start(&record, Query::new(settings, &governor)).unwrap();
    assert_eq!(read(&mut run, 1).unwrap().len(), ROWS);
    std::thread::sleep(Duration::from_millis(100));
    let (done, _) = record.progress();
    assert!(done < MORSELS as u64 / 2, "{done} morsels are done without a reader");
    assert_eq!(read(&mut run, usize::MAX).unwrap(), all()[ROWS..]);
}

#[test]
fn a_result_that_is_not_read_to_its_end_ends_its_run() {
    let engine = Engine::new(2).unwrap();
    for chunks in [0, 1, 7] {
        let governor = Governor::unlimited();
        let mut run = start(&engine, &numbers("endless", 0), &governor, patient());
        assert_eq!(read(&mut run, chunks).unwrap().len(), chunks * ROWS);
        drop(run);
        assert_eq!(governor.used_bytes(), 0);
    }
    // Others can use the engine then.
    let mut run = start(&engine, &numbers("plain", 0), &Governor::unlimited(), patient());
    assert_eq!(read(&mut run, usize::MAX).unwrap(), all());
}

#[test]
fn errors_and_panics_end_the_result() {
    for workers in [1, 3] {
        for (mode, message) in
            [("failing", "morsel 20 is damaged"), ("panicking", "a bug in morsel 20")]
        {
            let engine = Engine::new(workers).unwrap();
            let mut run = start(&engine, &numbers(mode, 0), &Governor::unlimited(), patient());
            let error = read(&mut run, usize::MAX).unwrap_err();
            assert!(error.message().contains(message), "{error}");
        }
    }
}

#[test]
fn a_result_that_waits_for_its_reader_can_be_cancelled() {
    let engine = Engine::new(2).unwrap();
    let interrupt = patient();
    let mut run =
        start(&engine, &numbers("endless", 0), &Governor::new(TIGHT_BYTES * 2), interrupt.clone());
    std::thread::sleep(Duration::from_millis(20));
    interrupt.cancel();
    let since = Instant::now();
    let error = read(&mut run, usize::MAX).unwrap_err();
    assert_eq!(error.code(), Code::Cancelled);
    assert!(since.elapsed() < Duration::from_secs(5));
}
