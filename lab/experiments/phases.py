"""The join phase by phase: monolithic, and of sub-operators (micro-operators, Table 4.1;
Modularis, Fig 2.9)."""

from __future__ import annotations

import statistics
from argparse import Namespace

from . import plans, plot
from .programs import PHASES, Contender, Measured, in_turns, ratio
from .report import Report, median_wall, of_ranks, seconds, times
from .waterfall import ONE_PASS_CACHE_BITS

# Micro-operators, Table 4.1, seconds at 1,024 cores: monolithic, of micro-operators. Its network
# row is the sum of two roles.
TABLE = {
    "histogram": (0.34, None),
    "window": (0.21, None),
    "network": (0.60 + 1.48, 0.58 + 25.39 + 25.19),
    "local": (0.58, 0.57),
    "build-probe": (0.51, 2.51),
    "wait": (0.62, 11.96),
    "wall clock": (4.34, 66.20),
}
MONOLITH, ONE_PASS, TWO_PASSES = "in one piece", "sub-operators, partitioned once", "sub-operators, partitioned twice"
# The fastest monolithic join, with tuples compressed to one word between ranks, and the planner's
# plan of SQL's join.
COMPRESSED, PLANNED = "in one piece, compressed", "the plan of SQL"
APART = f"{ONE_PASS}, steps of each side apart"


def contenders(options: Namespace, ranks: int) -> list[Contender]:
    """Returns the monolithic join, also in its fastest form; the planner's plan; joins of
    sub-operators that the exchange partitions until a part fits the cache, with the collective
    steps of both sides together and separate; and joins as the theses partition them, a second
    time after the exchange."""
    network_bits = max(ranks.bit_length(), 1) + 3
    tuples = ["--tuples", str(1 << options.tuples)]
    local_bits = max(1, options.tuples - network_bits - options.cache_bits)
    one_pass_bits = max(network_bits, options.tuples - ONE_PASS_CACHE_BITS)

    def join(name: str, bits: int = network_bits, local_bits: int = local_bits, **how) -> Contender:
        plan = plans.join(bits, local_bits=local_bits, **how)
        return Contender(name, options.programs / "join", ranks, tuples, plan)

    in_one_piece = [*tuples, "--put-bytes", "4096"]
    return [
        Contender(MONOLITH, options.programs / "monolith", ranks, in_one_piece),
        Contender(COMPRESSED, options.programs / "monolith", ranks, [*in_one_piece, "--compress"]),
        Contender(PLANNED, options.programs / "join", ranks, tuples),
        join(ONE_PASS, bits=one_pass_bits, local_bits=0),
        join(APART, bits=one_pass_bits, local_bits=0, together=False),
        join(TWO_PASSES),
    ]


def table(options: Namespace, report: Report) -> None:
    """Table 4.1."""
    ranks = options.ranks or 2
    found = in_turns(contenders(options, ranks), options.repeat)
    report.keep("runs", found)
    one, once, twice, planned = found[MONOLITH], found[ONE_PASS], found[TWO_PASSES], found[PLANNED]
    report.text += [
        "",
        f"{of_ranks(ranks)}, 2^{options.tuples} tuples of 16 bytes a side, {options.repeat} rounds. Seconds are medians of the mean over ranks, "
        "wall clock that of the slowest rank; × are medians of the ratio to the join in one piece in the same round. In micro-operators, Table 4.1, "
        "the network is the sum of what senders and receivers took, which run at the same time on different cores.",
    ]
    rows = []
    for phase in [*PHASES, "wall clock"]:
        what = (lambda run: run.wall) if phase == "wall clock" else (lambda run, phase=phase: run.mean(phase))
        theirs = TABLE.get(phase, (None, None))
        ours = [seconds(statistics.median(map(what, one)))]
        for of_operators in (once, twice, planned):
            ours += [seconds(statistics.median(map(what, of_operators))), times(ratio(of_operators, one, what))]
        rows.append(
            [
                phase,
                *ours,
                *("" if value is None else f"{value:.2f}" for value in theirs),
                f"{theirs[1] / theirs[0]:.2f}" if theirs[0] and theirs[1] else "",
            ]
        )
    report.table(["phase", MONOLITH, ONE_PASS, "×", TWO_PASSES, "×", PLANNED, "×", "Table 4.1: baseline", "Table 4.1: interface", "Table 4.1: ×"], rows)
    report.text += ["", f"Wall clock of all, the plan that the planner makes of SQL's join ({PLANNED}) and the fastest form of the join in one piece included:"]
    fastest = min((MONOLITH, COMPRESSED), key=lambda name: median_wall(found[name]))
    report.table(["", "wall clock, s", f"× {MONOLITH}", f"× the fastest form ({fastest})"], wall_clocks(found, fastest))
    apart = found[APART]
    report.text.append(
        f"With the collective steps of each side apart the join partitioned once takes {times(ratio(apart, once, lambda run: run.wall))} times "
        f"as long as with both sides' together; {times(ratio(apart, one, lambda run: run.wall))} times as long as in one piece."
    )
    report.text += ["", "Each rank, medians in seconds:"]
    columns = ["phase"] + [f"{name}, rank {rank}" for name in (MONOLITH, ONE_PASS) for rank in range(ranks)]
    rows = []
    for phase in PHASES:
        each = [statistics.median(run.ranks[rank].get(phase, 0.0) for run in runs) for runs in (one, once) for rank in range(ranks)]
        rows.append([phase, *map(seconds, each)])
    report.table(columns, rows)
    report.plots[""] = phase_bars(f"The join by phase, {of_ranks(ranks)}", found)


def wall_clocks(found: dict[str, list[Measured]], fastest: str) -> list[list[str]]:
    """Returns a row for each contender."""
    by = (found[MONOLITH], found[fastest])
    return [
        [name, seconds(median_wall(runs)), *(times(ratio(runs, other, lambda run: run.wall)) for other in by)]
        for name, runs in found.items()
    ]


def phase_bars(title: str, found: dict[str, list[Measured]]) -> str:
    """Plots the phases of each contender as bars."""
    series = {
        name: [statistics.median(run.mean(phase) for run in runs) for phase in PHASES] + [median_wall(runs)]
        for name, runs in found.items()
    }
    return plot.bars(title, "seconds", [*PHASES, "wall clock"], series)


def modularis(options: Namespace, report: Report) -> None:
    """Fig 2.9: phases and totals by number of ranks."""
    counts = [options.ranks] if options.ranks else [1, 2]
    totals: dict[str, list[float]] = {}
    rows = []
    for ranks in counts:
        found = in_turns(contenders(options, ranks), options.repeat)
        report.keep(of_ranks(ranks), found)
        report.plots[f"{ranks}-ranks"] = phase_bars(f"The join by phase, {of_ranks(ranks)}", found)
        for name, runs in found.items():
            totals.setdefault(name, []).append(median_wall(runs))
            slower = [ratio(runs, found[by], lambda run: run.wall) for by in (MONOLITH, COMPRESSED)]
            rows.append([f"{of_ranks(ranks)}, {name}", seconds(median_wall(runs)), *map(times, slower)])
    report.text += ["", f"2^{options.tuples} tuples of 16 bytes a side in all, {options.repeat} rounds. Modularis (§2.5.2) finds sub-operators 12 to 28 % slower."]
    report.table(["", "wall clock, s", f"× {MONOLITH}", f"× {COMPRESSED}"], rows)
    report.plots["total"] = plot.bars("The join", "seconds", [of_ranks(ranks) for ranks in counts], totals)
