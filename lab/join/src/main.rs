//! The distributed radix hash join as a plan of sub-operators (Modularis §2.4.1, Fig 2.3), measured
//! like the monolithic join.
//!
//! `mpiexec -n 2 join --tuples 16777216` joins two relations of 16-byte tuples several times. Keys
//! are unique and spread over all ranks. The program checks the count and checksum against the
//! generator's prediction, and prints the time of each sub-operator. With `--plan` it runs other
//! plans over such relations: sequences of joins, and grouping (Modularis, Figs 2.10 and 2.11).

#![forbid(unsafe_code)]

mod figures;
mod tuples;

use std::sync::Arc;
use std::time::Instant;

use arrow::array::AsArray;
use arrow::datatypes::{Decimal128Type, Int64Type};
use clap::Parser;
use serde_json::json;
use tessera_codegen::Tier;
use tessera_context::Place;
use tessera_engine::profile::Profile;
use tessera_engine::{CompiledPlan, Engine, Governor, Platform, Query, RunRecord, Settings};
use tessera_jit::{Backend, compiler};
use tessera_operator::Registry;
use tessera_plan::{Plan, Rules, text};
use tessera_platform_mpi::{ExchangeMode, Link, Mpi, world};
use tessera_types::{Error, Result};

use tuples::Tuples;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The distributed radix hash join of sub-operators, timed by phase.
#[derive(Debug, Clone, Parser)]
struct Options {
    /// Tuples of each relation, over all ranks; rounded up to a power of two
    #[arg(long, default_value_t = 1 << 24)]
    tuples: u64,
    /// Worker threads of each rank
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Runs of the join
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// File with another plan over `lab_tuples`
    #[arg(long)]
    plan: Option<std::path::PathBuf>,
    /// Occurrences of each key in each relation: powers of two, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "1,1")]
    copies: Vec<u64>,
    /// The expected result of the plan
    #[arg(long, value_enum, default_value_t = Answer::Join)]
    answer: Answer,
    /// Tier that runs the plan: vectorized, compiled or auto
    #[arg(long, default_value_t = if tessera_jit::IS_BUILT { Tier::Compiled } else { Tier::Vectorized })]
    tier: Tier,
    /// How exchanges move tuples between ranks in plans of the platform pass: one-sided, packed,
    /// two-sided or split
    #[arg(long, value_name = "MODE", default_value_t = ExchangeMode::OneSided)]
    exchange: ExchangeMode,
    /// The mode that decides which ranks read the tuples of a hand-written plan
    #[arg(long, value_name = "MODE", hide = true)]
    shares: Option<ExchangeMode>,
    /// Write the measurements of each rank to this directory, as rank-N.json
    #[arg(long)]
    figures: Option<std::path::PathBuf>,
    /// Print the plan, and JSON
    #[arg(long)]
    json: bool,
}

/// The expected result of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Answer {
    /// The number of tuples in the join of all relations, and the sum of their payloads
    Join,
    /// The number of keys in the first relation, and the sum of its payloads
    Groups,
}

/// The join as the planner would make it; the platform's pass adds the exchanges.
const PLAN: &str = "plan {
  %l = lab_tuples() {side = :left}
  %r = lab_tuples() {side = :right}
  %t = build(%l) {keys = [k]}
  %j = probe(%t, %r) {keys = [k2], join = :inner}
  %s = reduce(%j) {aggregates = {matches = {function = count, args = []}, checksum = {function = sum, args = [p + p2]}}}
  return %s
}";

/// A barrier before the clock starts, so that the memory of the last run has been freed, as in the
/// monolithic join.
const BARRIER: &str = "plan {
  %all = executor() {platform = :mpi}
    plan {
      %one = values() {columns = <x: int64>, rows = [[1]]}
      %n = reduce(%one) {aggregates = {n = {function = :count, args = []}}, partial = true}
      %of_ranks = mpi_broadcast(%n)
      %parts = rows_scan(%of_ranks) {field = data}
      %sum = reduce(%parts) {aggregates = {n = {function = :merge_count, args = [n]}}}
      return %sum
    }
  return %all
}";

fn main() {
    let options = Options::parse();
    let library = world::library();
    let ran = world::run(|link| run(&options, &link, &library));
    match ran {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            eprintln!("error: {error}");
            std::process::exit(1);
        }
        Err(_) => eprintln!("error: MPI is already initialized"),
    }
}

fn run(options: &Options, link: &Arc<Link>, library: &str) -> Result<()> {
    let mpi = Mpi::new(link.clone());
    mpi.set_exchange(options.exchange);
    let count = options.tuples.next_power_of_two();
    if options.copies.is_empty()
        || options.copies.iter().any(|copies| !copies.is_power_of_two() || *copies > count)
    {
        return Err(Error::data(
            "invalid --copies; give a power of two up to --tuples for each relation",
        ));
    }
    let share = options.shares.unwrap_or(options.exchange).share(link.rank(), link.ranks());
    let tuples = Tuples::new(count, &options.copies, share);
    let mut registry = tessera_testing::standard_registry();
    mpi.register(&mut registry);
    registry.register(tuples.clone());
    let engine = Engine::new(options.threads)?;
    let settings = Settings {
        compiler: compiler(Backend::Cpu, options.tier, None, Place::Host)?,
        ..Settings::default()
    };
    let mut runs = Vec::new();
    let barrier = text::parse(BARRIER)?;
    let served = mpi.serve(&mut |sent| {
        let record = RunRecord::new(&CompiledPlan::lower(&sent.plan, &registry)?);
        let started = Instant::now();
        engine.run_recorded(&record, Query::new(settings.clone(), &Governor::unlimited()))?;
        // Do not count the barriers.
        if sent.plan != barrier {
            runs.push(figures::run(&sent.plan, started.elapsed(), &record.own_profile()));
        }
        Ok(())
    })?;
    if served {
        return figures::write(options.figures.as_deref(), link.rank(), runs);
    }
    let plan = plan(options, &mpi, &registry)?;
    let expected = match options.answer {
        Answer::Join => tuples.join(),
        Answer::Groups => tuples.groups(),
    };
    let mut timed = Vec::new();
    for _ in 0..options.repeat {
        let ready = CompiledPlan::lower(&barrier, &registry)?;
        engine.run(&ready, Query::new(settings.clone(), &Governor::unlimited()))?;
        let record = RunRecord::new(&CompiledPlan::lower(&plan, &registry)?);
        let started = Instant::now();
        let result =
            engine.run_recorded(&record, Query::new(settings.clone(), &Governor::unlimited()))?;
        let elapsed = started.elapsed();
        let row = result.single()?;
        let matches = row.column(0)?.plain()?.as_primitive::<Int64Type>().value(0);
        let checksum = row.column(1)?.plain()?.as_primitive::<Decimal128Type>().value(0);
        if (matches as u64, checksum) != expected {
            return Err(Error::data(format!(
                "wrong result of the plan: {matches} and checksum {checksum}; expected {expected:?}"
            )));
        }
        runs.push(figures::run(&plan, elapsed, &record.own_profile()));
        timed.push((elapsed.as_secs_f64(), record.own_profile()));
    }
    timed.sort_by(|a, b| a.0.total_cmp(&b.0));
    report(options, (link, library), &plan, &timed);
    figures::write(options.figures.as_deref(), 0, runs)
}

fn plan(options: &Options, mpi: &Mpi, registry: &Registry) -> Result<Plan> {
    let written = match &options.plan {
        None => PLAN.to_string(),
        Some(path) => std::fs::read_to_string(path)
            .map_err(|error| Error::io(format!("cannot read '{}': {error}", path.display())))?,
    };
    let plan = text::parse(&written)?;
    if plan.nodes.iter().any(|node| &*node.operator == "executor") {
        return Ok(plan);
    }
    mpi.pass(&plan, registry.catalog(), Rules::ALL)
}

fn report(options: &Options, (link, library): (&Link, &str), plan: &Plan, runs: &[(f64, Profile)]) {
    let all: Vec<f64> = runs.iter().map(|(seconds, _)| *seconds).collect();
    let median = &runs[(runs.len() - 1) / 2];
    let rate =
        2.0 * options.tuples.next_power_of_two() as f64 / median.0 / link.ranks() as f64 / 1e6;
    let mut nodes = Vec::new();
    figures::nodes(plan, &median.1, 0, &mut nodes);
    if options.json {
        let report = json!({
            "ranks": link.ranks(), "threads": options.threads, "tuples": options.tuples.next_power_of_two(),
            "copies": options.copies, "exchange": options.exchange.name(), "mpi": library,
            "seconds": all, "median_s": median.0, "million_tuples_per_s_and_rank": rate, "first_rank": nodes.iter().map(figures::Node::json).collect::<Vec<_>>(),
            "plan": text::print(plan),
        });
        println!("{report:#}");
        return;
    }
    println!(
        "{} ranks, median {:.3} s of {all:.3?}: {rate:.1} M tuples/s and rank",
        link.ranks(),
        median.0
    );
    for node in nodes {
        let (indent, name) = (2 * node.depth, node.sub_operator);
        println!("{:>10.1} ms {:>12} tuples  {:indent$}{name}", node.ms, node.rows, "");
    }
}
