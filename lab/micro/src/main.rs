//! What sub-operators cost beside plain loops (003, §4.2.1, Figs 4.1 and 4.2), in both tiers; and
//! what a long scan and sum costs.
//!
//! `micro --tuples 10000000` runs each case in turn as a plan on one thread, compiled and
//! vectorised, and as a loop in Rust, several times, checks that all give the same, and prints
//! seconds.

mod cases;
mod column;

use std::sync::Arc;
use std::time::Instant;

use arrow::array::AsArray;
use arrow::datatypes::{Decimal128Type, Int32Type, Int64Type};
use clap::Parser;
use serde_json::json;
use tessera_engine::{CompiledPlan, Engine, Governor, Query, Settings};
use tessera_jit::{Device, Tier, compiler};
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

/// The widest vectors that the loops are compiled for. `lab/measure` builds this crate, and no
/// other, for the processor at hand, as code of sub-operators is made: a loop in the form for any
/// x86-64 processor would be half as fast.
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
    /// How many tuples
    #[arg(long, default_value_t = 10_000_000)]
    tuples: usize,
    /// One sum of 64-bit numbers instead of tuples of two 32-bit ones
    #[arg(long)]
    wide: bool,
    /// Only the case of this name
    #[arg(long)]
    case: Option<String>,
    /// Only this tier beside the loop
    #[arg(long)]
    tier: Option<Tier>,
    /// The most tuples in a chunk
    #[arg(long, default_value_t = CHUNK_ROWS)]
    chunk_rows: usize,
    /// How often each is run
    #[arg(long, default_value_t = 9)]
    repeat: usize,
}

/// One way to run a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Tier(Tier),
    Plain,
}

impl Way {
    fn name(self) -> String {
        match self {
            Way::Tier(tier) => tier.to_string(),
            Way::Plain => "plain".to_string(),
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
    let tiers = tiers.filter(|tier| compiler(*tier, Device::Cpu, None).is_ok());
    let ways: Vec<Way> = tiers.map(Way::Tier).chain([Way::Plain]).collect();
    let mut reports = Vec::new();
    for case in
        cases.iter().filter(|case| options.case.as_ref().is_none_or(|name| case.name == name))
    {
        let plan = physical::optimise(&text::parse(case.plan)?, registry.catalogue(), Rules::ALL)?;
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
                        "{} {} gives {given}",
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
            .map(|way| way.name())
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

/// What a case gives, and how long it takes.
fn timed(
    (way, chunk_rows): (Way, usize),
    case: &Case,
    (columns, plan): (&Columns, &Plan),
    (registry, engine): (&Registry, &Engine),
) -> Result<(i128, f64)> {
    let tier = match way {
        Way::Plain => {
            let started = Instant::now();
            let given = (case.plain)(columns);
            return Ok((given, started.elapsed().as_secs_f64()));
        }
        Way::Tier(tier) => tier,
    };
    let settings = Settings {
        chunk_rows,
        compiler: compiler(tier, Device::Cpu, None)?,
        ..Settings::default()
    };
    let compiled = CompiledPlan::lower(plan, registry)?;
    let query = Query::new(settings, &Governor::unlimited());
    let started = Instant::now();
    let collected = engine.run(&compiled, query)?;
    let took = started.elapsed().as_secs_f64();
    Ok((number(&collected)?, took))
}

/// The only value, or how many tuples there are in the only collection.
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
