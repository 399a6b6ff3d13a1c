"""From two-sided messages between halves of the ranks to the monolithic join, step by step, as
predicted but not measured in the thesis on micro-operators."""

from __future__ import annotations

from argparse import Namespace

from . import plans, plot
from .programs import Contender, in_turns, ratio
from .report import Report, median_wall, seconds, times

MONOLITH = "in one piece: compressed"
# Tuples of a part (a power of two) if only the exchange partitions: its buffers must fit the cache
# as well.
ONE_PASS_CACHE_BITS = 15


def steps(options: Namespace, ranks: int) -> list[Contender]:
    """Returns the steps; each keeps the changes of the earlier ones."""
    network_bits = max(ranks.bit_length(), 1) + 3
    local_bits = max(1, options.tuples - network_bits - options.cache_bits)
    one_pass_bits = max(network_bits, options.tuples - ONE_PASS_CACHE_BITS)
    tuples = ["--tuples", str(1 << options.tuples)]

    def join(name: str, *more: str, bits: int = network_bits, **how) -> Contender:
        return Contender(name, options.programs / "join", ranks, [*tuples, *more], plans.join(bits, **how))

    def monolith(name: str, *more: str) -> Contender:
        return Contender(name, options.programs / "monolith", ranks, [*tuples, "--put-bytes", "4096", *more])

    found = [
        join("two-sided, half of the ranks to the rest", "--shares", "split", way="split"),
        join("two-sided", way="two-sided"),
        join("two-sided, in rounds", way="rounds"),
        join("one-sided", together=False),
        join("one-sided, both sides' steps together"),
        join("packed", way="packed"),
        join("tables that fit the cache, in two passes", way="packed", local_bits=local_bits),
        join("tables that fit the cache, in one pass", bits=one_pass_bits, way="packed", local_bits=0),
    ]
    rank_bits = ranks.bit_length() - 1
    found.append(join("tables that fit the cache, of tuples that came in rounds", way="rounds", local_bits=one_pass_bits - rank_bits))
    return [
        *found,
        monolith("in one piece: two-sided", "--two-sided"),
        monolith("in one piece: one-sided, not overlapped", "--buffers", "1"),
        monolith("in one piece: overlapped"),
        monolith(MONOLITH, "--compress"),
    ]


def waterfall(options: Namespace, report: Report) -> None:
    """Returns the steps, and the distance of each to the last."""
    ranks = options.ranks or 2
    found = in_turns(steps(options, ranks), options.repeat)
    report.keep("runs", found)
    names = list(found)
    rows = []
    for number, name in enumerate(names):
        before = found[names[number - 1]] if number else None
        gain = ratio(before, found[name], lambda run: run.wall) if before else float("nan")
        rows.append(
            [
                name,
                seconds(median_wall(found[name])),
                times(gain),
                times(ratio(found[name], found[MONOLITH], lambda run: run.wall)),
                f"{found[name][0].notes['bytes_on_the_wire'] / 2**20:.0f}",
            ]
        )
    report.text += [
        "",
        f"{ranks} ranks, 2^{options.tuples} tuples of 16 bytes a side, {options.repeat} rounds; medians, ratios within a round. The join of micro-operators "
        "(§5.2.2) is 10 to 15 times slower than one in one piece; the thesis expects at most twice.",
    ]
    report.table(["", "wall clock, s", "× faster than the line above", "× the last line", "MiB between ranks"], rows)
    report.plots[""] = plot.bars("The join, step by step", "seconds", names, {"wall clock": [median_wall(found[name]) for name in names]})
