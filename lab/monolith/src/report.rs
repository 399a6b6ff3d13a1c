//! Prints the report: wall clock, and the phases of each rank.

use std::time::Duration;

use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Root};
use serde_json::{Value, json};

use crate::generate::Answer;
use crate::{Options, PHASES, Run, wire_bytes};

/// The number of figures of a rank and run: wall clock, the phases, bytes and messages.
const FIGURES: usize = PHASES.len() + 3;

/// A run with the figures of all ranks.
struct RunFigures {
    ranks: Vec<[f64; FIGURES]>,
}

impl RunFigures {
    fn wall_s(&self) -> f64 {
        self.ranks.iter().map(|figures| figures[0]).fold(0.0, f64::max)
    }

    fn column(&self, figure: usize) -> Vec<f64> {
        self.ranks.iter().map(|figures| figures[figure]).collect()
    }

    fn sum(&self, figure: usize) -> u64 {
        self.column(figure).iter().sum::<f64>() as u64
    }
}

fn max(column: &[f64]) -> f64 {
    column.iter().copied().fold(0.0, f64::max)
}

fn mean(column: &[f64]) -> f64 {
    column.iter().sum::<f64>() / column.len() as f64
}

/// Gathers the figures of all ranks and prints them at the first.
pub(crate) fn print(
    options: &Options,
    world: &SimpleCommunicator,
    runs: &[Run],
    answer: Answer,
    network_bits: u32,
) {
    let joined: Vec<RunFigures> = runs.iter().map(|run| gather(world, run)).collect();
    if world.rank() != 0 {
        return;
    }
    let mut order: Vec<usize> = (0..joined.len()).collect();
    order.sort_by(|&one, &other| joined[one].wall_s().total_cmp(&joined[other].wall_s()));
    let (best, median) = (&joined[order[0]], &joined[order[(order.len() - 1) / 2]]);
    // Tuples of both relations per second and rank.
    let rate = |run: &RunFigures| 2.0 * options.tuples as f64 / run.wall_s() / world.size() as f64;
    if options.json {
        let runs: Vec<Value> = joined.iter().map(|run| as_json(run, rate(run))).collect();
        let report = json!({
            "experiment": "monolithic radix hash join",
            "machine": machine(),
            "mpi": library(),
            "ranks": world.size(),
            "tuples_per_relation": options.tuples,
            "bytes_per_tuple": 16,
            "bytes_per_tuple_on_the_wire": wire_bytes(options),
            "compress": options.compress,
            "two_sided": options.two_sided,
            "materialize": options.materialize,
            "skew_percent": options.skew,
            "build_copies": options.build_copies,
            "probe_copies": options.probe_copies,
            "network_bits": network_bits,
            "put_bytes": options.put_bytes,
            "buffers": options.buffers,
            "cache_bytes": options.cache_bytes,
            "keep_window": options.keep_window,
            "streaming_stores": !options.no_streaming,
            "matches": answer.matches,
            "checksum": answer.checksum,
            "runs": runs,
            "median": as_json(median, rate(median)),
            "best": as_json(best, rate(best)),
        });
        println!("{report:#}");
        return;
    }
    println!("{}; {}", machine(), library());
    println!(
        "{} ranks, {} tuples per relation, {} matches",
        world.size(),
        options.tuples,
        answer.matches
    );
    println!("median run of {}, ms        mean       max", joined.len());
    for (phase, name) in PHASES.iter().enumerate() {
        let column = median.column(1 + phase);
        println!("  {name:<20}{:>12.1}{:>10.1}", 1e3 * mean(&column), 1e3 * max(&column));
    }
    let walls = median.column(0);
    println!("  {:<20}{:>12.1}{:>10.1}", "wall clock", 1e3 * mean(&walls), 1e3 * max(&walls));
    println!(
        "{} bytes put or sent in {} messages",
        median.sum(FIGURES - 2),
        median.sum(FIGURES - 1)
    );
    println!(
        "{:.1} M tuples per second and rank (best run {:.1} M, {:.1} ms)",
        rate(median) / 1e6,
        rate(best) / 1e6,
        1e3 * best.wall_s()
    );
}

fn gather(world: &SimpleCommunicator, run: &Run) -> RunFigures {
    let seconds = |duration: Duration| duration.as_secs_f64();
    let mut figures = vec![seconds(run.wall)];
    figures.extend(run.phases.map(seconds));
    figures.extend([run.traffic.bytes as f64, run.traffic.messages as f64]);
    let root = world.process_at_rank(0);
    if world.rank() != 0 {
        root.gather_into(&figures[..]);
        return RunFigures { ranks: Vec::new() };
    }
    let mut all = vec![0.0; FIGURES * world.size() as usize];
    root.gather_into_root(&figures[..], &mut all[..]);
    let (ranks, _) = all.as_chunks::<FIGURES>();
    RunFigures { ranks: ranks.to_vec() }
}

fn as_json(run: &RunFigures, rate: f64) -> Value {
    let phases: serde_json::Map<String, Value> = PHASES
        .iter()
        .enumerate()
        .map(|(phase, name)| {
            let column = run.column(1 + phase);
            let value =
                json!({ "mean_s": mean(&column), "max_s": max(&column), "ranks_s": column });
            (name.to_string(), value)
        })
        .collect();
    json!({
        "wall_s": run.wall_s(),
        "tuples_per_second_and_rank": rate,
        "phases": phases,
        "bytes_on_the_wire": run.sum(FIGURES - 2),
        "messages": run.sum(FIGURES - 1),
    })
}

/// Returns the name and number of processors.
fn machine() -> String {
    let description = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        description.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    format!("{}, {cores} cores", model.unwrap_or("unknown processor"))
}

/// Returns the MPI library's name and version.
fn library() -> String {
    let description = mpi::environment::library_version().unwrap_or_default();
    let line = description.lines().next().unwrap_or("unknown MPI");
    line.split(", package").next().unwrap_or(line).split_whitespace().collect::<Vec<_>>().join(" ")
}
