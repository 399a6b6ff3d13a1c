//! Measures sub-operators against plain loops (micro-operators §4.2.1, Figs 4.1 and 4.2) in both
//! tiers, and a long scan and sum.
//!
//! `micro --tuples 10000000` runs each case several times in turn on one thread: as a compiled
//! plan, as a vectorized plan, and as a Rust loop. It checks that all results agree, and prints
//! seconds.

#![forbid(unsafe_code)]

mod cases;
mod column;

use std::sync::Arc;
use std::time::Instant;

use arrow::array::AsArray;
use arrow::datatypes::{Decimal128Type, Int32Type, Int64Type};
use clap::Parser;
use serde_json::json;
use tessera_codegen::Tier;
use tessera_context::Place;
use tessera_engine::{CompiledPlan, Engine, Governor, Query, Settings};
use tessera_jit::{Backend, compiler};
use tessera_operator::Registry;
use tessera_optimizer::physical;
use tessera_plan::{Plan, Rules, text};
use tessera_rows::{Collected, Rows};
use tessera_types::{Error, Result};
use tessera_vector::CHUNK_ROWS;

use cases::{Case, NARROW, WIDE};
use column::Columns;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The widest vectors that the loops are compiled for. `lab/measure` builds only this crate for the
/// CPU at hand, like the code of compiled sub-operators: a loop for any x86-64 CPU would be half as
/// fast.
const LOOPS: &str = if cfg!(target_feature = "avx512f") {
    "avx512f"
} else if cfg!(target_feature = "avx2") {
    "avx2"
} else {
    "baseline"
};

/// Sub-operators against plain loops.
#[derive(Debug, Clone, Parser)]
struct Options {
    /// Number of tuples
    #[arg(long, default_value_t = 10_000_000)]
    tuples: usize,
    /// Run one sum of 64-bit numbers instead of the cases over two 32-bit numbers
    #[arg(long)]
    wide: bool,
    /// Run only the case with this name
    #[arg(long)]
    case: Option<String>,
    /// Compare only this tier with the loop
    #[arg(long)]
    tier: Option<Tier>,
    /// The most tuples in a chunk
    #[arg(long, default_value_t = CHUNK_ROWS)]
    chunk_rows: usize,
    /// Runs of each case
    #[arg(long, default_value_t = 9)]
    repeat: usize,
}

/// A way to run a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Tier(Tier),
    Plain,
}

impl Mode {
    fn name(self) -> String {
        match self {
            Mode::Tier(tier) => tier.to_string(),
            Mode::Plain => "plain".to_string(),
        }
    }
}

fn main() {
    if let Err(error) = run(&Options::parse()) {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

fn run(options: &Options) -> Result<()> {
    let columns = Columns::new(options.tuples, options.wide);
    let cases: &[Case] = if options.wide { &WIDE } else { &NARROW };
    let mut registry = tessera_testing::standard_registry();
    registry.register(columns.clone());
    let engine = Engine::new(1)?;
    let is_wanted = |tier: &Tier| options.tier.is_none_or(|wanted| wanted == *tier);
    let tiers = [Tier::Compiled, Tier::Vectorized].into_iter().filter(is_wanted);
    let tiers = tiers.filter(|tier| compiler(Backend::Cpu, *tier, None, Place::Host).is_ok());
    let ways: Vec<Mode> = tiers.map(Mode::Tier).chain([Mode::Plain]).collect();
    let mut reports = Vec::new();
    for case in
        cases.iter().filter(|case| options.case.as_ref().is_none_or(|name| case.name == name))
    {
        let plan = physical::optimize(&text::parse(case.plan)?, registry.catalog(), Rules::ALL)?;
        let (expected, mut seconds) = ((case.plain)(&columns), vec![Vec::new(); ways.len()]);
        // The first round touches memory and compiles.
        for round in 0..=options.repeat {
            for turn in 0..ways.len() {
                let number = (turn + round) % ways.len();
                let (given, took) = timed(
                    (ways[number], options.chunk_rows),
                    case,
                    (&columns, &plan),
                    (&registry, &engine),
                )?;
                if given != expected {
                    return Err(Error::internal(format!(
                        "{} {} returns {given}",
                        case.name,
                        ways[number].name()
                    )));
                }
                if round > 0 {
                    seconds[number].push(took);
                }
            }
        }
        let ways: serde_json::Map<_, _> = ways
            .iter()
            .map(|mode| mode.name())
            .zip(seconds.into_iter().map(|of| json!(of)))
            .collect();
        reports.push(json!({ "case": case.name, "plan": case.plan, "seconds": ways }));
    }
    println!(
        "{:#}",
        json!({
            "tuples": options.tuples, "chunk_rows": options.chunk_rows, "wide": options.wide, "loops": LOOPS,
            "cases": reports,
        })
    );
    Ok(())
}

/// Runs a case; returns its result and time.
fn timed(
    (mode, chunk_rows): (Mode, usize),
    case: &Case,
    (columns, plan): (&Columns, &Plan),
    (registry, engine): (&Registry, &Engine),
) -> Result<(i128, f64)> {
    let tier = match mode {
        Mode::Plain => {
            let started = Instant::now();
            let given = (case.plain)(columns);
            return Ok((given, started.elapsed().as_secs_f64()));
        }
        Mode::Tier(tier) => tier,
    };
    let settings = Settings {
        chunk_rows,
        compiler: compiler(Backend::Cpu, tier, None, Place::Host)?,
        ..Settings::default()
    };
    let compiled = CompiledPlan::lower(plan, registry)?;
    let query = Query::new(settings, &Governor::unlimited());
    let started = Instant::now();
    let collected = engine.run(&compiled, query)?;
    let took = started.elapsed().as_secs_f64();
    Ok((number(&collected)?, took))
}

/// Returns the only value, or the number of tuples in the only collection.
fn number(collected: &Arc<Collected>) -> Result<i128> {
    let column = collected.single()?.column(0)?;
    if let Ok([handle]) = column.handles() {
        let rows = handle.get::<Rows>()?;
        return Ok(rows.len() as i128);
    }
    let value = column.plain()?;
    let narrow = value.as_primitive_opt::<Int32Type>().map(|value| value.value(0).into());
    let wide = value.as_primitive_opt::<Int64Type>().map(|value| value.value(0).into());
    let widest = value.as_primitive_opt::<Decimal128Type>().map(|value| value.value(0));
    narrow.or(wide).or(widest).ok_or_else(|| Error::internal("a result of another type"))
}
