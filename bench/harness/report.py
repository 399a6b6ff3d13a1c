"""Writes figures as a table in Markdown and a plot in SVG; it neither measures nor omits anything."""

from __future__ import annotations

import math
import statistics

from .machine import sentence
from .suites import COLUMNS, MIXED

COLORS = {"duckdb": "#c98500", "duckdb-compressed": "#7a5200", "datafusion": "#2a78d6", "polars": "#1baf7a", "hyper": "#4b5d67", "tessera-vectorized": "#8a5cd1", "tessera-compiled": "#c23b6b"}
MEBI = 2**20


def quantile(values: list[float], share: float) -> float:
    """Returns the smallest value such that this share of all values does not exceed it."""
    return sorted(values)[math.ceil(len(values) * share) - 1]


def _median_ms(cell: dict) -> str:
    if cell["error"]:
        return "fails"
    text = f"{cell['median_seconds'] * 1000:.1f}"
    return f"{text} (wrong)" if cell["wrong"] else text


def summary(result: dict) -> str:
    """Returns the geometric means in sentences."""
    lines = []
    for peer, mean in result["geometric_means"].items():
        ratios = list(result["ratios"][peer].values())
        if mean is None:
            lines.append(f"- {peer}: no query that both answered rightly")
            continue
        faster = sum(ratio > 1 for ratio in ratios)
        lines.append(
            f"- {peer} takes {mean:.2f} times as long as tessera (geometric mean over {len(ratios)} queries); "
            f"tessera is faster in {faster} and slower in {len(ratios) - faster}"
        )
    return "\n".join(lines)


def table(result: dict, stem: str) -> str:
    """Returns the page."""
    machine, engines = result["machine"], result["engines"]
    peers = [name for name in engines if name != "tessera"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items() if name in engines)
    where = "loaded into each engine's memory" if result.get("loaded") else "in the page cache"
    where += f"; {result.get('columns_in_words') or COLUMNS.get(result['columns'], MIXED)}" if "columns" in result else ""
    size = sum(result["dataset_bytes"].values()) / MEBI
    decoding = result.get("decoding", {})
    of_decoding = (
        " The last column is the share of the time of tessera's sub-operators, of all threads, in which Parquet was decompressed and decoded, as EXPLAIN ANALYZE "
        "has it in a run that is not timed."
    )
    head = [
        f"# {result['suite']} at scale factor {result['scale']:g}",
        "",
        f"{sentence(machine)}. {versions}; revision {machine['revision']}. Parquet, {size:.0f} MiB, {where}.",
        "",
        f"Made by `{result['command']}`: every engine in a process of its own, bound to {result['threads']} cores "
        f"and {result['threads']} threads, one untimed run and {result['repeat']} timed ones of each query, engines "
        "taking turns. Milliseconds are medians; × is the peer's time by tessera's, so above 1 tessera is faster. "
        f"Every run's answer is compared with DuckDB's.{of_decoding if decoding else ''}",
        "",
        summary(result),
        *(["", *result["compared_columns"]] if result.get("compared_columns") else []),
        "",
        f"![{result['suite']}, each query]({stem}.svg)",
        "",
    ]
    columns = ["query"] + [c for name in engines for c in ([name] if name == "tessera" else [name, "×"])]
    if decoding:
        columns.append("decoding")
    rows = []
    for query, row in result["queries"].items():
        cells = [query]
        for name in engines:
            cells.append(_median_ms(row[name]))
            if name != "tessera":
                ratio = result["ratios"][name].get(query)
                cells.append(f"{ratio:.2f}" if ratio else "")
        if decoding:
            cells.append(f"{decoding[query]:.0%}" if query in decoding else "")
        rows.append(cells)
    means = ["geometric mean"]
    for name in engines:
        means.append("")
        if name != "tessera":
            mean = result["geometric_means"][name]
            means.append(f"{mean:.2f}" if mean else "")
    if decoding:
        means.append(f"{statistics.median(decoding.values()):.0%} (median)")
    return "\n".join(
        [*head, *markdown(columns, [*rows, means]), "", *_compiling(result), *_memory(result), *_complaints(result)]
    )


def markdown(columns: list[str], rows: list[list[str]]) -> list[str]:
    """Returns the lines of a table."""
    rule = ["---"] + ["---:"] * (len(columns) - 1)
    return [f"| {' | '.join(line)} |" for line in [columns, rule, *rows]]


def _compiling(result: dict) -> list[str]:
    """Returns what the compiled tier compiled, and the share of compilation in the first run of a
    query."""
    rows, each, shares = [], [], []
    taken = compiled = 0
    for query, found in result.get("compiling", {}).items():
        pieces, took = found["compiled_pieces"], found["compiling_ms"]
        median = result["queries"][query]["tessera-compiled"]["median_seconds"]
        of_query = found["rows_of_operators"]
        taken, compiled = taken + of_query[0], compiled + of_query[1]
        of_rows = [f"{of_query[0]:,}", f"{of_query[1] / max(of_query[0], 1):.1%}"]
        if not pieces or not median:
            rows.append([query, str(pieces or 0), "", "", "", *of_rows])
            continue
        share = took / (took + median * 1000)
        each.append(took / pieces)
        shares.append(share)
        rows.append([query, str(pieces), f"{took:.1f}", f"{took / pieces:.1f}", f"{share:.0%}", *of_rows])
    if not each:
        return []
    note = (
        "What tessera-compiled compiles before it first runs a query, in the time of the thread that compiles, and its share of that first run: of "
        "compiling and the median of later runs. Predicates and aggregations that an earlier query had are not compiled again. Other tiers wait for nothing. "
        "Rows are counted once for each sub-operator that computes something of them (a scan: where it tests conditions), and as compiled only for the "
        "sub-operators that ran code for them themselves."
    )
    of_all = [f"{taken:,}", f"{compiled / max(taken, 1):.1%}"]
    median = ["median, sum", "", "", f"{statistics.median(each):.1f}", f"{statistics.median(shares):.0%}", *of_all]
    columns = ["query", "pieces of code", "ms", "ms a piece", "share of the first run", "rows of sub-operators", "compiled"]
    return ["## Compiling", "", note, "", *markdown(columns, [*rows, median]), ""]


def _memory(result: dict) -> list[str]:
    rows = []
    for name in result["engines"]:
        peaks = {
            query: max(row[name]["peak_bytes"])
            for query, row in result["queries"].items()
            if row[name]["peak_bytes"]
        }
        if not peaks:
            continue
        worst = max(peaks, key=peaks.get)
        idle = result["idle_bytes"].get(name)
        rows.append(
            [
                name,
                f"{idle / MEBI:.0f}" if idle else "",
                f"{statistics.median(peaks.values()) / MEBI:.0f}",
                f"{peaks[worst] / MEBI:.0f}",
                worst,
            ]
        )
    columns = ["engine", "before the first query", "median peak", "highest peak", "in"]
    note = "Resident memory of each engine's process in MiB; the peak is counted anew for every query."
    return ["## Memory", "", note, "", *markdown(columns, rows), ""]


def _complaints(result: dict) -> list[str]:
    lines = []
    for query, row in result["queries"].items():
        for name in result["engines"]:
            trouble = row[name]["error"] or row[name]["wrong"]
            if trouble:
                kind = "fails" if row[name]["error"] else "differs from DuckDB"
                first = trouble.strip().splitlines()[0][:200]
                lines.append(f"- {query}, {name} {kind}: `{first}`")
    return ["## Failures and differences", "", *lines, ""] if lines else []


def plot(result: dict) -> str:
    """Plots each query's ratios on a logarithmic axis, with a line at equal times."""
    peers = [name for name in result["engines"] if name != "tessera"]
    queries = list(result["queries"])
    ratios = [r for peer in peers for r in result["ratios"][peer].values()] or [1.0]
    low = min(-1.0, math.floor(math.log2(min(ratios))))
    high = max(1.0, math.ceil(math.log2(max(ratios))))
    left, top, width, step = 130, 70, 620, 20
    bottom = top + step * (len(queries) + 1)

    def across(ratio: float) -> float:
        return left + (math.log2(ratio) - low) / (high - low) * width

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 40} {bottom + 50}" '
        'font-family="sans-serif" font-size="12" fill="#333">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{left}" y="22" font-size="15">{result["suite"]} at scale factor {result["scale"]:g}{", loaded" if result.get("loaded") else ""}: '
        "time of each engine by tessera's</text>",
    ]
    for number, peer in enumerate(peers):
        x = left + number * 150
        parts.append(f'<circle cx="{x + 5}" cy="42" r="5" fill="{COLORS[peer]}"/>')
        parts.append(f'<text x="{x + 16}" y="46">{peer}</text>')
    for power in range(int(low), int(high) + 1):
        x = across(2.0**power)
        weight = ("#333", 1.5) if power == 0 else ("#ddd", 1)
        parts.append(
            f'<line x1="{x:.1f}" y1="{top - 10}" x2="{x:.1f}" y2="{bottom}" stroke="{weight[0]}" '
            f'stroke-width="{weight[1]}"/>'
        )
        label = f"{2**power}×" if power >= 0 else f"1/{2**-power}×"
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{label}</text>')
    parts.append(
        f'<text x="{left + width / 2}" y="{bottom + 38}" text-anchor="middle">'
        "← tessera slower · tessera faster →</text>"
    )
    means = result["geometric_means"]
    for number, query in enumerate([*queries, "geometric mean"]):
        y = top + step * number + 4
        mean = number == len(queries)
        parts.append(
            f'<text x="{left - 12}" y="{y + 4}" text-anchor="end"'
            f'{" font-weight=" + chr(34) + "bold" + chr(34) if mean else ""}>{query}</text>'
        )
        for peer in peers:
            ratio = means[peer] if mean else result["ratios"][peer].get(query)
            if ratio:
                parts.append(
                    f'<circle cx="{across(ratio):.1f}" cy="{y}" r="{6 if mean else 4.5}" '
                    f'fill="{COLORS[peer]}" fill-opacity="0.85"><title>{query}, {peer}: {ratio:.2f}×</title></circle>'
                )
    parts.append("</svg>")
    return "\n".join(parts) + "\n"
