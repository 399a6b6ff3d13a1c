"""Plots the ratio of rows between the chosen and the best join orders."""

from __future__ import annotations

import math

COLORS = {"tessera": "#8e44ad", "duckdb": "#c98500"}
RATIO_MAX = 1000
LEFT, TOP, WIDTH, STEP = 70, 70, 620, 15


def across(ratio: float) -> float:
    """Returns the position of a ratio on the axis; ratios beyond an end are placed there."""
    low, high = -1.0, math.log10(RATIO_MAX)
    return LEFT + (min(max(math.log10(ratio), low), high) - low) / (high - low) * WIDTH


def of_orders(suites: dict, goal: float) -> str:
    """Plots a row for each query: the ratio of rows of each engine's joins to the best order, on a
    logarithmic axis."""
    rows = [(suite, row) for suite, part in suites.items() for row in part["queries"]]
    bottom = TOP + STEP * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 40} {bottom + 50}" '
        'font-family="sans-serif" font-size="11" fill="#333">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{LEFT}" y="22" font-size="15">Rows that the joins of the chosen order yield, by those of the best</text>',
    ]
    for number, (name, color) in enumerate(COLORS.items()):
        x = LEFT + number * 100
        parts.append(f'<circle cx="{x + 5}" cy="42" r="4" fill="{color}"/><text x="{x + 14}" y="46">{name}</text>')
    for ratio, label in [(0.1, "1/10"), (1, "1"), (goal, f"{goal:g}"), (10, "10"), (100, "100"), (RATIO_MAX, "1,000+")]:
        x, dark = across(ratio), ratio in (1, goal)
        parts.append(
            f'<line x1="{x:.1f}" y1="{TOP - 10}" x2="{x:.1f}" y2="{bottom}" stroke="{"#333" if dark else "#ddd"}"'
            f'{" stroke-dasharray=" + chr(34) + "3 3" + chr(34) if ratio == goal else ""}/>'
            f'<text x="{x + (6 if ratio == goal else 0):.1f}" y="{bottom + 18}" text-anchor="middle">{label}</text>'
        )
    for number, (suite, row) in enumerate(rows):
        y = TOP + STEP * number
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{row["query"]}</text>')
        for name, color in reversed(COLORS.items()):
            ratio = row[name]["ratio"]
            if ratio is not None:
                parts.append(
                    f'<circle cx="{across(ratio):.1f}" cy="{y}" r="4" fill="{color}" fill-opacity="0.85">'
                    f"<title>{suite} {row['query']}, {name}: {ratio:,.2f}</title></circle>"
                )
    parts.append("</svg>")
    return "\n".join(parts) + "\n"
