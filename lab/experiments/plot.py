"""Plots as SVG: groups of bars, and lines over an axis of powers of two."""

from __future__ import annotations

import math
from html import escape

COLORS = ["#2a78d6", "#c98500", "#1baf7a", "#9b4dca", "#d0453b", "#777777", "#4b5d67"]
LEFT, TOP, WIDTH, HEIGHT = 70, 60, 700, 300


def _frame(title: str, unit: str, high: float, names: list[str]) -> list[str]:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 40} {TOP + HEIGHT + 90}" '
        'font-family="sans-serif" font-size="12" fill="#333">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>',
    ]
    x = LEFT
    for number, name in enumerate(names):
        parts.append(f'<rect x="{x}" y="34" width="10" height="10" fill="{COLORS[number % len(COLORS)]}"/>')
        parts.append(f'<text x="{x + 14}" y="43">{escape(name)}</text>')
        x += 24 + 7 * len(name)
    for step in range(6):
        value = high * step / 5
        y = TOP + HEIGHT * (1 - step / 5)
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    parts.append(f'<text x="14" y="{TOP - 8}">{escape(unit)}</text>')
    return parts


def _top(values) -> float:
    """Returns a round upper limit."""
    largest = max([value for value in values if value == value], default=1.0) or 1.0
    scale = 10 ** math.floor(math.log10(largest))
    return next(scale * step for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if scale * step >= largest)


def bars(title: str, unit: str, groups: list[str], series: dict[str, list[float]]) -> str:
    """Plots one group of bars for each of `groups`; each series has a value for each group."""
    high = _top(value for values in series.values() for value in values)
    parts = _frame(title, unit, high, list(series))
    room = WIDTH / max(1, len(groups))
    width = room * 0.8 / max(1, len(series))
    for number, (name, values) in enumerate(series.items()):
        for group, value in enumerate(values):
            if value != value:
                continue
            x, tall = LEFT + room * (group + 0.1) + width * number, HEIGHT * value / high
            parts.append(
                f'<rect x="{x:.1f}" y="{TOP + HEIGHT - tall:.1f}" width="{width:.1f}" height="{tall:.1f}" '
                f'fill="{COLORS[number % len(COLORS)]}"><title>{escape(name)}, {escape(groups[group])}: {value:.4g}</title></rect>'
            )
    for group, name in enumerate(groups):
        for line, words in enumerate(_lines(name, room)):
            x, y = LEFT + room * (group + 0.5), TOP + HEIGHT + 18 + 14 * line
            parts.append(f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{escape(words)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _lines(name: str, room: float) -> list[str]:
    """Splits a label into lines that fit."""
    lines = [""]
    for word in name.split():
        if lines[-1] and len(lines[-1]) + len(word) + 1 > room / 7:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def lines(title: str, unit: str, axis: str, points: list[float], series: dict[str, list[float]], logarithmic: bool = False) -> str:
    """Plots a line for each series, which has a value for each of `points`."""
    high = _top(value for values in series.values() for value in values)
    parts = _frame(title, unit, high, list(series))
    place = math.log2 if logarithmic else float
    first, last = place(points[0]), place(points[-1])

    def across(point: float) -> float:
        return LEFT + WIDTH * ((place(point) - first) / (last - first) if last > first else 0.5)

    for number, (name, values) in enumerate(series.items()):
        color = COLORS[number % len(COLORS)]
        shown = [(across(p), TOP + HEIGHT * (1 - v / high), p, v) for p, v in zip(points, values) if v == v]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in shown)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"><title>{escape(name)}, {p:g}: {v:.4g}</title></circle>'
            for x, y, p, v in shown
        ]
    for point in points:
        text = f"2^{math.log2(point):g}" if logarithmic and point >= 1024 else f"{point:g}"
        parts.append(f'<text x="{across(point):.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{text}</text>')
    parts.append(f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 40}" text-anchor="middle">{escape(axis)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
