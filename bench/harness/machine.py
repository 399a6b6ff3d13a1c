"""Describes the machine of the measurements."""

from __future__ import annotations

import datetime
import importlib.metadata
import importlib.util
import os
import platform
import subprocess
from pathlib import Path

from .suites import ROOT


def _first(path: str, key: str) -> str:
    try:
        for line in Path(path).read_text().splitlines():
            if line.startswith(key):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "unknown"


def output(command: list[str]) -> str:
    """Returns the output of a program."""
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def host() -> dict:
    """Returns the machine, system and revision."""
    memory = _first("/proc/meminfo", "MemTotal").split()[0]
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": _first("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory_gib": round(int(memory) / 2**20, 1) if memory.isdigit() else "unknown",
        "kernel": platform.release(),
        "python": platform.python_version(),
        "revision": output(["git", "describe", "--always", "--dirty"]),
    }


def sentence(about: dict) -> str:
    """Returns the sentence on date and machine that begins each page."""
    return f"{about['date']}. {about['cpu']}, {about['cores']} cores, {about['memory_gib']} GiB, Linux {about['kernel']}"


def describe(binary: Path) -> dict:
    """Returns the machine, system, revision and the versions of all engines."""
    versions = {
        "tessera": output([str(binary), "--version"]).removeprefix("tessera "),
        **{name: importlib.metadata.version(name) for name in ("duckdb", "datafusion", "polars")},
        **({"hyper": importlib.metadata.version("tableauhyperapi")} if importlib.util.find_spec("tableauhyperapi") else {}),
    }
    return host() | {"versions": versions}
