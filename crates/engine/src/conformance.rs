//! A conformance suite for devices, as a function that a test calls. It panics if a device breaks a
//! rule.
//!
//! ```
//! use std::sync::Arc;
//! use tessera_context::Place;
//! use tessera_engine::{Device, conformance};
//!
//! // A device without a compiler: everything runs vectorized.
//! let compiler = Arc::new(|_: tessera_engine::CompilerOptions<'_>| Ok(None));
//! let device = Device { name: "plain", compiler, lanes: 2, place: Place::Host };
//! let found = conformance::device(&device, &tessera_testing::standard_registry());
//! assert_eq!((found.compiles, found.peak_bytes), (false, 0));
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::util::display::{ArrayFormatter, FormatOptions};
use tessera_codegen::{Compiler, Tier};
use tessera_context::{Interrupt, Place};
use tessera_operator::Registry;
use tessera_plan::text;
use tessera_rows::Collected;
use tessera_types::{Code, Result};

use crate::compiled_plan::CompiledPlan;
use crate::device::Device;
use crate::engine::Engine;
use crate::query::{Governor, Query, Settings};

/// What the suite has seen of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceReport {
    /// Whether the device has a compiler.
    pub compiles: bool,
    /// The maximum number of bytes that were counted on a device at once.
    pub peak_bytes: usize,
}

/// Tuples of the input: more than one chunk, and a partial one.
const ROWS: usize = 5_003;
/// Tuples whose triples nothing enumerates to the end.
const ENDLESS_ROWS: usize = 20_000;
const WORKERS: usize = 2;
const CHUNK_ROWS: [usize; 2] = [2048, 61];
const TIERS: [Tier; 3] = [Tier::Vectorized, Tier::Compiled, Tier::Auto];
/// A plan over all triples of its tuples.
const ENDLESS: &str = "%1 = map(%0) {exprs = {w = v}} %2 = map(%0) {exprs = {x = v}}
    %3 = cartesian_product(%1, %0) %4 = cartesian_product(%2, %3)
    %5 = filter(%4) {predicate = v * w + x > 17}
    %6 = reduce(%5) {aggregates = {n = {function = :count, args = []}, s = {function = :sum, args = [v + w]}}}
    return %6";
/// Times after which a query is cancelled.
const MOMENTS: [Duration; 2] = [Duration::ZERO, Duration::from_millis(100)];
/// The time until a cancelled query must have ended.
const PROMPT: Duration = Duration::from_secs(5);

/// Plans over the tuples of [`input`], `%0`: each result must be that of the vectorized tier.
const PLANS: [&str; 14] = [
    "%1 = filter(%0) {predicate = v > 400 AND k < 9} return %1",
    "%1 = filter(%0) {predicate = v % 7 = 3 OR k IS NULL OR d > 100.5::decimal(12,2)} return %1",
    "%1 = filter(%0) {predicate = f * 2.0 < 100.0 AND NOT v = 77} return %1",
    "%1 = filter(%0) {predicate = t = 'text 5' OR t LIKE 'text 1%'} return %1",
    "%1 = map(%0) {exprs = {a = v * 2 + k, b = -v, c = CASE WHEN k = 3 THEN v ELSE 0 END, e = d * d, g = f / 3.0}} return %1",
    "%1 = reduce(%0) {aggregates = {n = {function = :count, args = []}, s = {function = :sum, args = [v]},
        low = {function = :min, args = [d]}, high = {function = :max, args = [f]}, t = {function = :sum, args = [d * d]}}} return %1",
    "%1 = filter(%0) {predicate = v > 400 AND k < 9} %2 = reduce(%1) {aggregates = {s = {function = :sum, args = [v * k]},
        n = {function = :count, args = [k], filter = v < 900}, d = {function = :sum, args = [d]}}} return %2",
    "%1 = filter(%0) {predicate = v < 0} %2 = reduce(%1) {aggregates = {s = {function = :sum, args = [v]}, n = {function = :count, args = []}}} return %2",
    "%1 = reduce_by_key(%0) {keys = [k], aggregates = {n = {function = :count, args = []}, s = {function = :sum, args = [v]},
        low = {function = :min, args = [f]}, high = {function = :max, args = [t]}}} return %1",
    "%1 = reduce_by_key(%0) {keys = [v, t], aggregates = {s = {function = :sum, args = [d]}}} return %1",
    "%1 = filter(%0) {predicate = v < 60} %2 = map(%1) {exprs = {key = k, w = v}} %3 = build(%2) {keys = [key]}
        %4 = probe(%3, %0) {keys = [k], join = :inner} %5 = reduce(%4) {aggregates = {n = {function = :count, args = []}, s = {function = :sum, args = [v * w]}}} return %5",
    "%1 = top_k(%0) {keys = [{field = v, descending = true}, {field = f}], limit = 20} return %1",
    // A tuple that is not selected raises nothing.
    "%1 = filter(%0) {predicate = v > 3} %2 = map(%1) {exprs = {q = 1000 / (v - 3)}} return %2",
    "%1 = filter(%0) {predicate = CASE WHEN v = 3 THEN false ELSE 1000 / (v - 3) > 2 END} return %1",
];

/// Plans that fail, and a part of the message.
const FAILURES: [(&str, &str); 4] = [
    ("%1 = map(%0) {exprs = {q = 1000 / (v - 3)}} return %1", "division by zero"),
    ("%1 = filter(%0) {predicate = 1000 / (v - 3) > 2} return %1", "division by zero"),
    (
        "%1 = reduce(%0) {aggregates = {s = {function = :sum, args = [v * 9223372036854775807]}}} return %1",
        "out of range",
    ),
    (
        "%1 = reduce_by_key(%0) {keys = [k], aggregates = {s = {function = :sum, args = [1000 / (v - 3)]}}} return %1",
        "division by zero",
    ),
];

/// Checks a device with all tiers that it offers: rows and errors are those of the vectorized tier,
/// its memory is counted at its place and given back, and cancelled queries end soon. `registry`
/// has the sub-operators of the plans.
///
/// # Panics
/// The device breaks a rule, or offers no tier.
pub fn device(device: &Device, registry: &Registry) -> DeviceReport {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let name = device.name;
    assert!(
        !name.is_empty() && name.chars().all(is_plain),
        "'{name}' cannot be written as the value of a setting"
    );
    assert!(device.lanes > 0, "{name} has no lanes");
    let bench = Bench { registry, engine: Engine::new(WORKERS).expect("threads"), device };
    let expected = bench.answers(&None, CHUNK_ROWS[0], &mut 0);
    let mut report = DeviceReport { compiles: false, peak_bytes: 0 };
    let mut tiers = 0;
    for tier in TIERS {
        let Ok(compiler) = device.compiler(tier, None) else { continue };
        tiers += 1;
        report.compiles |= compiler.is_some();
        for chunk_rows in CHUNK_ROWS {
            let found = bench.answers(&compiler, chunk_rows, &mut report.peak_bytes);
            for ((plan, found), expected) in plans().zip(found).zip(&expected) {
                assert_eq!(
                    &found, expected,
                    "{plan} on {name}, tier {tier}, chunks of {chunk_rows}"
                );
            }
            // The compiler compiles for the queries behind one that was cancelled.
            bench.cancelled(&compiler);
        }
    }
    assert!(tiers > 0, "{name} offers no tier on this machine");
    if device.place == Place::Host {
        assert_eq!(report.peak_bytes, 0, "{name} counts memory in another place than its own");
    }
    report
}

/// All plans, those that fail last.
fn plans() -> impl Iterator<Item = &'static str> {
    PLANS.into_iter().chain(FAILURES.map(|(plan, _)| plan))
}

/// The sorted tuples of a plan, or its error.
type Answer = std::result::Result<Vec<String>, (Code, String)>;

/// What plans run on.
struct Bench<'a> {
    registry: &'a Registry,
    engine: Engine,
    device: &'a Device,
}

impl Bench<'_> {
    /// The answers of all plans. Raises `peak_bytes` to the most bytes on a device at once.
    fn answers(
        &self,
        compiler: &Option<Arc<dyn Compiler>>,
        chunk_rows: usize,
        peak_bytes: &mut usize,
    ) -> Vec<Answer> {
        let input = input(ROWS);
        let mut run = |plan: &str| {
            let governor = Governor::unlimited();
            let settings = Settings { chunk_rows, ..self.settings(compiler) };
            let plan = self.lowered(&format!("plan {{ {input} {plan} }}"));
            let found = self.engine.run(&plan, Query::new(settings, &governor));
            let lines = found.and_then(|found| lines(&found));
            *peak_bytes = governor.device_peak_bytes().max(*peak_bytes);
            self.holds_nothing(&governor);
            lines.map_err(|error| (error.code(), error.message().to_string()))
        };
        let mut answers: Vec<Answer> = PLANS.iter().map(|plan| run(plan)).collect();
        for (plan, answer) in PLANS.iter().zip(&answers) {
            assert!(answer.is_ok(), "{plan} on {}: {answer:?}", self.device.name);
        }
        for (plan, message) in FAILURES {
            let answer = run(plan);
            let is_right = answer.as_ref().is_err_and(|(_, found)| found.contains(message));
            assert!(is_right, "{plan} on {}: {answer:?}", self.device.name);
            answers.push(answer);
        }
        answers
    }

    fn settings(&self, compiler: &Option<Arc<dyn Compiler>>) -> Settings {
        let (compiler, lanes) = (compiler.clone(), self.device.lanes);
        Settings { compiler, lanes, ..Settings::default() }
    }

    fn lowered(&self, plan: &str) -> Arc<CompiledPlan> {
        let lowered = text::parse(plan).and_then(|plan| CompiledPlan::lower(&plan, self.registry));
        lowered.unwrap_or_else(|error| panic!("{error}"))
    }

    fn holds_nothing(&self, governor: &Governor) {
        let held = (governor.used_bytes(), governor.device_bytes());
        assert_eq!(held, (0, 0), "{} holds bytes of a query that has ended", self.device.name);
    }

    /// A cancelled query ends soon and holds nothing.
    fn cancelled(&self, compiler: &Option<Arc<dyn Compiler>>) {
        let plan = self.lowered(&format!("plan {{ {} {ENDLESS} }}", input(ENDLESS_ROWS)));
        for moment in MOMENTS {
            let governor = Governor::unlimited();
            let interrupt = Arc::new(Interrupt::default());
            let settings = Settings { interrupt: interrupt.clone(), ..self.settings(compiler) };
            let query = Query::new(settings, &governor);
            let started = Instant::now();
            let ended = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(moment);
                    interrupt.cancel();
                });
                self.engine.run(&plan, query)
            });
            let error = ended.expect_err("a query that was cancelled");
            assert_eq!(error.code(), Code::Cancelled, "{error}");
            assert!(started.elapsed() < moment + PROMPT, "{} goes on", self.device.name);
            self.holds_nothing(&governor);
        }
    }
}

/// `%0`: tuples with all numbers below 1009, NULLs, fractions, and short and long texts.
fn input(rows: usize) -> String {
    format!(
        "%one = values() {{columns = <one: int64>, rows = [[1::int64]]}}
         %s = series(%one) {{into = i, start = 0::int64, stop = {rows}::int64, step = 1::int64}}
         %0 = map(%s) {{exprs = {{
             k = CASE WHEN i % 17 = 0 THEN NULL::int64 ELSE i % 13 END,
             v = i * 7919 % 1009,
             d = CAST(i * 31 % 100000 AS decimal(12,2)),
             f = CAST(i % 500 AS float64) + 0.5,
             t = CASE WHEN i % 11 = 0 THEN NULL::string
                 WHEN i % 11 = 10 THEN concat('a text of more than twelve bytes, number ', CAST(i % 50 AS string))
                 ELSE concat('text ', CAST(i % 11 AS string)) END}}}}"
    )
}

/// The tuples as lines, sorted.
fn lines(found: &Collected) -> Result<Vec<String>> {
    let options = FormatOptions::new().with_null("NULL");
    let mut lines = Vec::new();
    for chunk in found.chunks() {
        let chunk = chunk?.compact()?;
        let columns = (0..chunk.width()).map(|field| chunk.column(field)?.plain());
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let formatters = columns.iter().map(|column| ArrayFormatter::try_new(column, &options));
        let formatters: Vec<_> = formatters.map(|one| one.expect("a printable type")).collect();
        lines.extend((0..chunk.rows()).map(|row| {
            let values = formatters.iter().map(|column| column.value(row).to_string());
            values.collect::<Vec<_>>().join("|")
        }));
    }
    lines.sort();
    Ok(lines)
}
