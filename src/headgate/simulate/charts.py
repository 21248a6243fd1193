"""Charts as SVG text: horizontal bars, and lines with points. No plotting library is needed.

draw_bars     one bar for each name, with its value; logarithmic if the values differ much
draw_lines    one line for each name over a common x axis, with a legend
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from headgate.model.errors import printable

Points = Sequence[tuple[float, float]]

WIDTH, LEFT, RIGHT, TOP = 720, 130, 90, 50
BAR, BAR_GAP = 22, 10
PLOT_HEIGHT, BOTTOM = 280, 50
LOGARITHMIC_FROM = 50.0
"""Bars are logarithmic if the largest value is more than this many times the smallest."""
TICKS = 5
COLOURS = ("#4a7ab5", "#b5814a", "#5a9a5a", "#9a5a9a", "#777777", "#b54a4a")

_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" \
viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">
<rect width="{width}" height="{height}" fill="#ffffff"/>"""


def draw_bars(title: str, unit: str, bars: Mapping[str, float]) -> str:
    """The values of all bars must be zero or more."""
    values = list(bars.values())
    least = min((value for value in values if value > 0), default=1.0)
    largest = max([*values, least])
    is_log = largest > LOGARITHMIC_FROM * least
    height = TOP + len(bars) * (BAR + BAR_GAP) + 20
    scale = " (logarithmic)" if is_log else ""
    parts = [_HEAD.format(width=WIDTH, height=height), _title(f"{title}, {unit}{scale}")]
    for row, (name, value) in enumerate(bars.items()):
        share = _log_share(value, least, largest) if is_log else value / largest
        y = TOP + row * (BAR + BAR_GAP)
        length = round((WIDTH - LEFT - RIGHT) * share, 1)
        parts.append(_text(LEFT - 8, y + 16, name, anchor="end"))
        parts.append(
            f'<rect x="{LEFT}" y="{y}" width="{length}" height="{BAR}" fill="{COLOURS[0]}"/>'
        )
        parts.append(_text(LEFT + length + 6, y + 16, _number(value)))
    return "\n".join([*parts, "</svg>", ""])


def _log_share(value: float, least: float, largest: float) -> float:
    """The smallest value gets a tenth of the width, so that it can be seen."""
    if value <= 0:
        return 0.0
    return 0.1 + 0.9 * math.log(value / least) / math.log(largest / least)


def draw_lines(title: str, x_label: str, y_label: str, lines: Mapping[str, Points]) -> str:
    """The y axis begins at zero, the x axis at the smallest x."""
    points = [point for line in lines.values() for point in line]
    x_least, x_most = min(x for x, _ in points), max(x for x, _ in points)
    step = _tick_step(max(y for _, y in points))
    y_most = TICKS * step
    height = TOP + PLOT_HEIGHT + BOTTOM + 20 * len(lines)

    def place(point: tuple[float, float]) -> tuple[float, float]:
        x = (point[0] - x_least) / (x_most - x_least) if x_most > x_least else 0.5
        y = 1 - point[1] / y_most
        return round(LEFT + x * (WIDTH - LEFT - RIGHT), 1), round(TOP + y * PLOT_HEIGHT, 1)

    parts = [_HEAD.format(width=WIDTH, height=height), _title(title)]
    for tick in range(TICKS + 1):
        value = tick * step
        y = place((x_least, value))[1]
        parts.append(f'<path d="M{LEFT},{y} H{WIDTH - RIGHT}" stroke="#dddddd"/>')
        parts.append(_text(LEFT - 8, y + 4, _number(value), anchor="end"))
    for x_value in sorted({x for x, _ in points}):
        x = place((x_value, 0.0))[0]
        parts.append(_text(x, TOP + PLOT_HEIGHT + 18, _number(x_value), anchor="middle"))
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(_text(middle, TOP + PLOT_HEIGHT + 38, x_label, anchor="middle"))
    parts.append(_text(LEFT, TOP - 10, y_label, anchor="middle"))
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        places = [place(point) for point in line]
        way = " ".join(f"{x},{y}" for x, y in places)
        parts.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places]
        y = TOP + PLOT_HEIGHT + BOTTOM + 20 * number
        parts.append(f'<rect x="{LEFT}" y="{y}" width="12" height="12" fill="{colour}"/>')
        parts.append(_text(LEFT + 20, y + 11, name))
    return "\n".join([*parts, "</svg>", ""])


def _tick_step(largest: float) -> float:
    """The smallest of 1, 2, 2.5 and 5 times a power of ten such that TICKS steps reach the value.

    >>> _tick_step(116.2), _tick_step(0.9), _tick_step(0.0)
    (25.0, 0.2, 0.2)
    """
    least = (largest or 1.0) / TICKS
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= least)


def _title(text: str) -> str:
    return f'<text x="20" y="24" font-size="15">{escape(printable(text))}</text>'


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(printable(text))}</text>'


def _number(value: float) -> str:
    """
    >>> _number(12345.6), _number(3.25), _number(0.0)
    ('12,346', '3.25', '0')
    """
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.3g}"
