//! The distributed radix hash join as a plan of sub-operators (Modularis §2.4.1, Fig 2.3), measured as the monolithic one is.
//!
//! `mpiexec -n 2 join --tuples 16777216` joins two relations of 16-byte tuples, whose keys are unique and spread over all ranks,
//! several times, checks count and checksum against what the generator predicts, and prints the time of each sub-operator.

mod tuples;

use std::sync::Arc;
use std::time::Instant;

use arrow::array::AsArray;
use arrow::datatypes::{Decimal128Type, Int64Type};
use clap::Parser;
use serde_json::{Value, json};
use tessera_exec::profile::Profile;
use tessera_exec::{Engine, Governor, Platform, Program, Query, Settings};
use tessera_ops::Registry;
use tessera_plan::{Plan, text};
use tessera_platform_mpi::{Link, Mpi, world};
use tessera_types::{Error, Result};

use tuples::Tuples;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The join of sub-operators, phase by phase.
#[derive(Debug, Clone, Parser)]
struct Options {
    /// Tuples of each relation, over all ranks; rounded up to a power of two
    #[arg(long, default_value_t = 1 << 24)]
    tuples: u64,
    /// Worker threads of each rank
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// How often the join is run
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// A plan of a file instead, over `lab_tuples`
    #[arg(long)]
    plan: Option<std::path::PathBuf>,
    /// Print the plan, and JSON
    #[arg(long)]
    json: bool,
}

/// The join as the planner would make it; the platform's pass puts the exchanges in.
const PLAN: &str = "plan {
  %l = lab_tuples() {side = :left}
  %r = lab_tuples() {side = :right}
  %t = build(%l) {keys = [k]}
  %j = probe(%t, %r) {keys = [k2], join = :inner}
  %s = reduce(%j) {aggregates = {matches = {function = count, args = []}, checksum = {function = sum, args = [p + p2]}}}
  return %s
}";

fn main() {
    let options = Options::parse();
    let ran = world::run(|link| run(&options, &link));
    match ran {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            eprintln!("error: {error}");
            std::process::exit(1);
        }
        Err(_) => eprintln!("error: MPI was initialised before"),
    }
}

fn run(options: &Options, link: &Arc<Link>) -> Result<()> {
    let mpi = Mpi::new(link.clone());
    let tuples = Tuples::new(options.tuples.next_power_of_two(), link.rank(), link.ranks());
    let mut registry = tessera_ops::standard_registry();
    mpi.register(&mut registry);
    registry.register(tuples.clone());
    let engine = Engine::new(options.threads)?;
    let served = mpi.serve(&mut |sent| {
        let program = Program::lower(&sent.plan, &registry)?;
        engine.run(&program, Query::new(Settings::default(), &Governor::unlimited())).map(|_| ())
    })?;
    if served {
        return Ok(());
    }
    let plan = plan(options, &mpi, &registry)?;
    let mut runs = Vec::new();
    for _ in 0..options.repeat {
        let program = Program::lower(&plan, &registry)?;
        let started = Instant::now();
        let result = engine.run(&program, Query::new(Settings::default(), &Governor::unlimited()))?;
        let seconds = started.elapsed().as_secs_f64();
        let row = result.single()?;
        let matches = row.column(0)?.plain()?.as_primitive::<Int64Type>().value(0);
        let checksum = row.column(1)?.plain()?.as_primitive::<Decimal128Type>().value(0);
        if (matches as u64, checksum) != tuples.answer() {
            return Err(Error::data(format!(
                "the join gives {matches} matches and the checksum {checksum}, where {:?} are right",
                tuples.answer()
            )));
        }
        runs.push((seconds, program.profile()));
    }
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    report(options, link, &plan, &runs);
    Ok(())
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
    mpi.pass(&plan, registry.catalogue())
}

fn report(options: &Options, link: &Link, plan: &Plan, runs: &[(f64, Profile)]) {
    let all: Vec<f64> = runs.iter().map(|(seconds, _)| *seconds).collect();
    let median = &runs[(runs.len() - 1) / 2];
    let rate = 2.0 * options.tuples.next_power_of_two() as f64 / median.0 / link.ranks() as f64 / 1e6;
    let mut nodes = Vec::new();
    phases(plan, &median.1, &mut nodes);
    if options.json {
        let nodes: Vec<Value> = nodes
            .iter()
            .map(|(name, ms, rows)| json!({"sub_operator": name, "ms": ms, "rows": rows}))
            .collect();
        let report = json!({
            "ranks": link.ranks(), "threads": options.threads, "tuples": options.tuples.next_power_of_two(),
            "seconds": all, "median_s": median.0, "million_tuples_per_s_and_rank": rate, "first_rank": nodes,
            "plan": text::print(plan),
        });
        println!("{report:#}");
        return;
    }
    println!("{} ranks, median {:.3} s of {all:.3?}: {rate:.1} M tuples/s and rank", link.ranks(), median.0);
    for (name, ms, rows) in nodes {
        println!("{ms:>10.1} ms {rows:>12} tuples  {name}");
    }
}

/// Each node's name, time and output on the first rank.
fn phases(plan: &Plan, profile: &Profile, out: &mut Vec<(String, f64, u64)>) {
    for (node, figures) in plan.nodes.iter().zip(&profile.nodes) {
        for (inner, inner_profile) in node.nested.iter().zip(&figures.nested) {
            phases(inner, inner_profile, out);
        }
        out.push((node.operator.to_string(), figures.nanoseconds as f64 / 1e6, figures.rows));
    }
}
