//! A monolithic distributed radix hash join over MPI, written for speed and without sub-operators
//! (Barthels et al., 2015 and 2017): the baseline for the join of sub-operators.
//!
//! `mpiexec -n 2 monolith --materialize`
//!
//! Phases: histogram, allocation of the window, network partitioning by one-sided puts, waiting for
//! other ranks, local partitioning, building and probing. A rank uses one core. The result is
//! checked against the generator's prediction.

mod generate;
mod histogram;
mod local;
mod network;
mod raw;
mod report;
mod tuple;

use std::time::{Duration, Instant};

use clap::Parser;
use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};

use crate::generate::{Answer, Shape, domain_bits};
use crate::histogram::Plan;
use crate::local::Join;
use crate::network::{Exchange, Mode, Traffic};
use crate::raw::{Area, Inbox, Item, Received};
use crate::tuple::{Form, Narrow, Tuple, Wide};

/// A distributed radix hash join over MPI in one piece, timed by phase.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)]
pub(crate) struct Options {
    /// Tuples of each relation, over all ranks.
    #[arg(long, default_value_t = 1 << 24)]
    tuples: u64,
    /// Joins in a row, each timed. The first one pays for fresh memory.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Put key and payload into one word of 8 bytes on the wire.
    #[arg(long)]
    compress: bool,
    /// Send, probe and receive instead of putting into windows.
    #[arg(long)]
    two_sided: bool,
    /// Write the joined tuples to memory: key and both payloads.
    #[arg(long)]
    materialize: bool,
    /// Share of the probe relation that has one and the same key, in percent.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=100))]
    skew: u64,
    /// How often each key occurs in the build relation.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    build_copies: u64,
    /// How often each key occurs in the probe relation.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    probe_copies: u64,
    /// Bits of the key by which the network partitions: at least as many partitions as ranks.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(0..=13))]
    network_bits: u32,
    /// Bytes of a buffer that is put or sent at once.
    #[arg(long, default_value_t = 16384, value_parser = clap::value_parser!(u32).range(64..=1 << 24))]
    put_bytes: u32,
    /// Buffers per partition of another rank: with one, filling waits for sending.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    buffers: u32,
    /// Bytes that the build side of a partition and its table may take.
    #[arg(long, default_value_t = 128 << 10, value_parser = clap::value_parser!(u32).range(64..))]
    cache_bytes: u32,
    /// Allocate the window once and use it for all joins, as where registering memory is dear.
    #[arg(long, conflicts_with = "two_sided")]
    keep_window: bool,
    /// Write all lines through the cache, as where there is no AVX.
    #[arg(long)]
    no_streaming: bool,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

/// The phases, in order.
pub(crate) const PHASES: [&str; 6] =
    ["histogram", "window", "network", "wait", "local", "build-probe"];

/// The measurements of one join at a rank.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    wall: Duration,
    phases: [Duration; PHASES.len()],
    traffic: Traffic,
    answer: Answer,
}

fn main() {
    let Some(universe) = mpi::initialize() else {
        eprintln!("monolith: MPI was already initialized");
        std::process::exit(1);
    };
    let world = universe.world();
    // A rank that exits alone would leave the others waiting forever.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("monolith: {panic}");
        SimpleCommunicator::world().abort(1);
    }));
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) => {
            if world.rank() == 0 {
                let _ = error.print();
            }
            drop(universe);
            std::process::exit(error.exit_code());
        }
    };
    let outcome = run(&options, &world);
    drop(universe);
    if let Err(error) = outcome {
        if !error.is_empty() {
            eprintln!("monolith: {error}");
        }
        std::process::exit(1);
    }
}

/// Generates, joins and reports. All ranks return the same outcome; the error message is the first
/// rank's.
fn run(options: &Options, world: &SimpleCommunicator) -> Result<(), String> {
    let (rank, ranks) = (world.rank() as u64, world.size() as u64);
    let first = |message: String| if rank == 0 { message } else { String::new() };
    let shape = Shape {
        tuples: options.tuples,
        seed: options.seed,
        build_copies: options.build_copies,
        probe_copies: options.probe_copies,
        skew: options.skew,
    };
    if options.tuples > 1 << 40 {
        return Err(first("--tuples: more than 2^40 are not supported".into()));
    }
    let network_bits = options.network_bits.max(ranks.next_power_of_two().ilog2());
    if network_bits > 13 {
        return Err(first(format!("{ranks} ranks are more than the 8192 that are supported")));
    }
    let domain_bits = domain_bits(options.tuples);
    if options.compress && 2 * domain_bits > 64 + network_bits {
        return Err(first(format!(
            "--compress: keys and payloads of {domain_bits} bits do not fit one word with {network_bits} network bits \
             (2 * {domain_bits} - {network_bits} > 64); give more --network-bits or fewer --tuples"
        )));
    }

    let numbers = options.tuples * rank / ranks..options.tuples * (rank + 1) / ranks;
    let mut relations = [0, 1].map(|_| Area::new((numbers.end - numbers.start) as usize));
    shape.build().fill(numbers.start, &mut relations[0]);
    shape.probe().fill(numbers.start, &mut relations[1]);
    let expected = total(world, shape.answer(numbers));

    let runs = if options.compress {
        join_all(
            options,
            world,
            Narrow { network_bits, domain_bits },
            network_bits,
            domain_bits,
            &relations,
        )
    } else {
        join_all(options, world, Wide { network_bits }, network_bits, domain_bits, &relations)
    };
    let mut wrong = Vec::new();
    for run in &runs {
        let found = total(world, run.answer);
        let found =
            if options.materialize { found } else { Answer { keys: expected.keys, ..found } };
        if found != expected {
            wrong.push(found);
        }
    }
    report::print(options, world, &runs, expected, network_bits);
    match wrong.first() {
        None => Ok(()),
        Some(found) => {
            Err(first(format!("the answer is wrong: {found:?} instead of {expected:?}")))
        }
    }
}

/// Returns the sum of all ranks' answers.
fn total(world: &SimpleCommunicator, answer: Answer) -> Answer {
    let mut sums = [0u64; 3];
    world.all_reduce_into(&answer.as_words()[..], &mut sums[..], SystemOperation::sum());
    let [matches, checksum, keys] = sums;
    Answer { matches, checksum, keys }
}

fn join_all<F: Form>(
    options: &Options,
    world: &SimpleCommunicator,
    form: F,
    network_bits: u32,
    domain_bits: u32,
    relations: &[Area<Tuple>; 2],
) -> Vec<Run> {
    let rest_bits = domain_bits.saturating_sub(network_bits);
    let mut join =
        Join::new(form, network_bits, rest_bits, options.cache_bytes as usize, options.materialize);
    let mut reused = None;
    (0..options.repeat)
        .map(|_| {
            join.clear();
            join_once(options, world, form, 1 << network_bits, relations, &mut join, &mut reused)
        })
        .collect()
}

fn join_once<F: Form>(
    options: &Options,
    world: &SimpleCommunicator,
    form: F,
    partitions: usize,
    relations: &[Area<Tuple>; 2],
    join: &mut Join<F>,
    reused: &mut Option<Received<F::Item>>,
) -> Run {
    let mode = if options.two_sided { Mode::TwoSided } else { Mode::OneSided };
    let lines_per_buffer = options.put_bytes as usize / 64;
    world.barrier();
    let start = Instant::now();
    let mut counts = vec![0; 2 * partitions];
    for (relation, counts) in relations.iter().zip(counts.chunks_exact_mut(partitions)) {
        histogram::count(relation, counts);
    }
    let plan = Plan::agree(world, &counts, partitions);
    let histogram = Instant::now();

    let streaming = !options.no_streaming;
    let inbox: Inbox<F::Item> = match (mode, reused.take()) {
        // Every join of a run has the same plan.
        (_, Some(received)) => received.reopen(world),
        (Mode::OneSided, None) => Inbox::window(world, plan.inbox_len, streaming),
        (Mode::TwoSided, None) => Inbox::private(plan.inbox_len, streaming),
    };
    let mut exchange =
        Exchange::new(world, &plan, mode, inbox, options.buffers as usize, lines_per_buffer);
    let window = Instant::now();

    for (relation, tuples) in relations.iter().enumerate() {
        exchange.partition(form, relation, tuples);
    }
    exchange.flush();
    let network = Instant::now();
    let (received, traffic) = exchange.close();
    let wait = Instant::now();

    let rank = world.rank() as usize;
    for partition in (0..partitions).filter(|&partition| plan.owners[partition] == rank) {
        let [build, probe] = [0, 1].map(|relation| {
            let region = &plan.regions[relation][partition];
            &received[region.begin..region.begin + region.len]
        });
        join.join(partition, build, probe);
    }
    let end = Instant::now();
    *reused = options.keep_window.then_some(received);
    let mut answer = join.answer;
    for joined in join.output.pieces().flatten() {
        answer.keys = answer.keys.wrapping_add(joined.key);
    }
    if options.materialize {
        // Check the written tuples, not the values computed while writing.
        let rows = || join.output.pieces().flatten();
        answer.matches = rows().count() as u64;
        answer.checksum =
            rows().fold(0, |sum, row| sum.wrapping_add(row.build.wrapping_mul(row.probe)));
    }
    Run {
        wall: end - start,
        phases: [
            histogram - start,
            window - histogram,
            network - window,
            wait - network,
            join.partitioning,
            join.building_and_probing,
        ],
        traffic,
        answer,
    }
}

/// Returns the bytes of a tuple on the wire.
pub(crate) fn wire_bytes(options: &Options) -> usize {
    64 / if options.compress { u64::PER_LINE } else { Tuple::PER_LINE }
}
