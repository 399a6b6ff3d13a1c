"""Runs the programs of the lab as ranks, and reads the measurements of each rank and run."""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

# Phases of a join as named in Table 4.1, then other sub-operators, the start of nested plans, and
# the rest,
# mostly waiting for other ranks.
PHASES = ["histogram", "window", "network", "local", "build-probe", "other", "nested plans", "wait"]


@dataclass
class Measured:
    """One run: wall clock, and each rank's phases, in seconds."""

    wall: float
    ranks: list[dict[str, float]]
    notes: dict = field(default_factory=dict)

    def mean(self, phase: str) -> float:
        """Returns a phase's mean over ranks."""
        return statistics.fmean(rank.get(phase, 0.0) for rank in self.ranks)


@dataclass
class Contender:
    """A measured program: its name, and a function that runs it once and checks the result."""

    name: str
    program: Path
    ranks: int
    options: list[str]
    plan: str | None = None

    def run(self) -> Measured:
        """Runs it; the first join of a process is not counted, because it touches its memory for
        the first time."""
        with tempfile.TemporaryDirectory(prefix="lab-") as scratch:
            options = [*self.options, "--repeat", "2", "--json"]
            if self.program.name == "join":
                options += ["--figures", scratch]
            if self.plan is not None:
                written = Path(scratch) / "of-ranks.plan"
                written.write_text(self.plan)
                options += ["--plan", str(written)]
            command = ["mpiexec", "-n", str(self.ranks), str(self.program), *options]
            done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
            if done.returncode != 0:
                raise SystemExit(f"{self.name}: {' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
            report = json.loads(done.stdout)
            if self.program.name == "join":
                return of_sub_operators(Path(scratch), self.ranks, report)
            return of_monolith(report)


def of_monolith(report: dict) -> Measured:
    """Returns the last run of the monolithic join."""
    run = report["runs"][-1]
    columns = {phase: figures["ranks_s"] for phase, figures in run["phases"].items()}
    ranks = [dict(zip(columns, row)) for row in zip(*columns.values())]
    return Measured(run["wall_s"], ranks, {"mpi": report["mpi"], "bytes_on_the_wire": run["bytes_on_the_wire"]})


def of_sub_operators(directory: Path, count: int, report: dict) -> Measured:
    """Returns the last run of a plan, of all ranks."""
    runs = [json.loads((directory / f"rank-{rank}.json").read_text())[-1] for rank in range(count)]
    sent = sum(node["counters"].get("sent_bytes", 0) for run in runs for node in run["nodes"])
    return Measured(runs[0]["wall_s"], [phases(run) for run in runs], {"mpi": report["mpi"], "bytes_on_the_wire": sent})


def phases(run: dict) -> dict[str, float]:
    """Returns a rank's time by phase. A collective step counts from its start; when the steps of
    both sides are combined, nothing else runs meanwhile."""
    found = dict.fromkeys(PHASES, 0.0)
    for node in run["nodes"]:
        if node["sub_operator"] == "executor":
            continue
        if node["sub_operator"] == "nested_map":
            # Its time includes that of its plan.
            found["nested plans"] += node["ms"] / 1e3 if node["depth"] == 1 else 0.0
            continue
        if node["depth"] > 1:
            found["nested plans"] -= node["ms"] / 1e3
        found[phase(node)] += node["ms"] / 1e3
        if node["sub_operator"] in ("mpi_histogram", "mpi_window"):
            found[phase(node)] += node["counters"].get("collective_wait_nanoseconds", 0) / 1e9
    found["nested plans"] = max(0.0, found["nested plans"])
    found["wait"] = max(0.0, run["wall_s"] - sum(found.values()))
    return found


def phase(node: dict) -> str:
    """Returns the phase of a sub-operator."""
    name, is_local = node["sub_operator"], node["depth"] > 1
    match name:
        case "local_histogram" | "local_partition" if is_local:
            return "local"
        case "local_histogram" | "mpi_histogram":
            return "histogram"
        case "mpi_window":
            return "window"
        case "mpi_exchange" | "mpi_send" | "mpi_receive":
            return "network"
        case "build" | "probe" | "reduce_by_key":
            return "build-probe"
    return "other"


def in_turns(contenders: list[Contender], repeat: int, say=print) -> dict[str, list[Measured]]:
    """Runs each contender in turn; the order alternates with every round."""
    found: dict[str, list[Measured]] = {contender.name: [] for contender in contenders}
    for turn in range(repeat):
        shift = turn % len(contenders)
        for contender in contenders[shift:] + contenders[:shift]:
            measured = contender.run()
            found[contender.name].append(measured)
            say(f"  {turn + 1}/{repeat} {contender.name}: {measured.wall:.3f} s", flush=True)
    return found


def ratio(of: list[Measured], by: list[Measured], what) -> float:
    """Returns the ratio of two contenders' times in the same round: the median over rounds."""
    quotients = [what(one) / what(other) for one, other in zip(of, by) if what(other) > 0]
    return statistics.median(quotients) if quotients else float("nan")
