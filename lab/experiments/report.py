"""The output of an experiment: raw figures as JSON, a page in Markdown, plots."""

from __future__ import annotations

import json
import shlex
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from harness.machine import sentence

from .programs import Measured

# A note for pages about ranks on the limits of a single machine.
PLACE = "All ranks are on one machine and use its memory as network; figures of the theses are from clusters with RDMA."


@dataclass
class Report:
    """One experiment's result."""

    name: str
    title: str
    command: list[str]
    machine: dict
    text: list[str] = field(default_factory=list)
    plots: dict[str, str] = field(default_factory=dict)
    raw: dict = field(default_factory=dict)
    mpi: str = ""
    place: str = ""

    def table(self, columns: list[str], rows: list[list[str]]) -> None:
        """Adds a table to the page."""
        rule = ["---"] + ["---:"] * (len(columns) - 1)
        self.text += ["", *(f"| {' | '.join(line)} |" for line in [columns, rule, *rows]), ""]

    def keep(self, key: str, measured: dict[str, list[Measured]]) -> None:
        """Records every single run for the JSON."""
        self.mpi = next((run.notes["mpi"] for runs in measured.values() for run in runs if "mpi" in run.notes), self.mpi)
        self.raw[key] = {
            name: [{"wall_s": run.wall, "ranks": run.ranks, **run.notes} for run in runs] for name, runs in measured.items()
        }

    def page(self, stem: str) -> str:
        """Returns the page in Markdown."""
        machine = self.machine
        head = [
            f"# {self.title}",
            "",
            f"{sentence(machine)}{'; ' + self.mpi if self.mpi else ''}; revision {machine['revision']}. {self.place}".rstrip(),
            "",
            f"Made by `{shlex.join(self.command)}`. Contenders take turns; every answer is checked.",
            *self.text,
        ]
        images = [f"![{name}]({stem}{'-' + name if name else ''}.svg)" for name in self.plots]
        images = [line for image in images for line in (image, "")]
        return "\n".join([*head, *images]).replace("\n\n\n", "\n\n") + "\n"

    def write(self, out: Path | None) -> None:
        """Prints the page, and writes everything to the given place."""
        stem = self.name
        page = self.page(stem)
        print(page)
        if out is None:
            return
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{stem}.md").write_text(page)
        figures = {"experiment": self.name, "command": self.command, "machine": self.machine, **self.raw}
        (out / f"{stem}.json").write_text(json.dumps(figures, indent=1) + "\n")
        for name, svg in self.plots.items():
            (out / f"{stem}{'-' + name if name else ''}.svg").write_text(svg)


def median_wall(runs: list[Measured]) -> float:
    """Returns the median of wall clocks."""
    return statistics.median(run.wall for run in runs)


def of_ranks(count: int) -> str:
    """Returns a number of ranks in words."""
    return "1 rank" if count == 1 else f"{count} ranks"


def seconds(value: float) -> str:
    """Formats seconds for a table, with three digits."""
    return f"{value:.3f}"


def times(value: float) -> str:
    """Formats a ratio for a table."""
    return "" if value != value else f"{value:.2f}"
