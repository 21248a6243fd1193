"""A configuration as a picture (SVG): a column for each level, a box for each view.

      source      level 1     level 2
     ┌──────┐    ┌───────┐   ┌───────────┐
     │source├───►│ Asia  ├──►│ SalesAsia │
     └──────┘    └───────┘   └───────────┘

A column shows the COLUMN_MAX views with the largest loads and the number of views left out. Lines
connect views that are shown. Names come from users, so all text is escaped and control characters
are removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from headgate.model.errors import printable
from headgate.network.explain_network import FedView, ViewLabel

COLUMN_MAX = 40
WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 180, 26, 90, 10, 20
NAME_MAX = 26

_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" \
viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">
<style>rect{{fill:#eef4fb;stroke:#4a7ab5}} .source{{fill:#fbeed9;stroke:#b5814a}} \
path{{fill:none;stroke:#8a9bb0;stroke-opacity:.6}} .note{{fill:#666}}</style>"""


def draw_network(views: Sequence[FedView]) -> str:
    columns = _columns(views)
    cell_of = {
        view.label: (column, row)
        for column, (shown, _) in enumerate(columns, 1)
        for row, view in enumerate(shown)
    }
    rows = max((len(shown) + bool(left) for shown, left in columns), default=1)
    width = 2 * MARGIN + (len(columns) + 1) * WIDTH + len(columns) * GAP_X
    height = 2 * MARGIN + (rows + 1) * (HEIGHT + GAP_Y)
    parts = [_HEAD.format(width=width, height=height), _box("source", "source", 0, 0, "")]
    parts += [line for shown, _ in columns for view in shown for line in _feeds(view, cell_of)]
    for column, (shown, left) in enumerate(columns, 1):
        parts.append(_text(f"level {column}", column, -1))
        for row, view in enumerate(shown):
            parts.append(_box(_cut(view.label), "", column, row, _title(view)))
        if left:
            parts.append(_text(f"… and {left:,} more", column, len(shown)))
    return "\n".join([*parts, "</svg>", ""])


def _columns(views: Sequence[FedView]) -> list[tuple[list[FedView], int]]:
    """For each level, the views that are shown and the number of views that are not."""
    levels = max((each.level for each in views), default=0)
    columns = []
    for level in range(1, levels + 1):
        level_views = [each for each in views if each.level == level]
        level_views.sort(key=lambda each: (-each.feeds, str(each.label)))
        columns.append((level_views[:COLUMN_MAX], max(0, len(level_views) - COLUMN_MAX)))
    return columns


def _feeds(view: FedView, cell_of: dict[ViewLabel, tuple[int, int]]) -> list[str]:
    starts = (
        [cell_of[each] for each in view.members if each in cell_of] if view.members else [(0, 0)]
    )
    paths = []
    for start in starts:
        (x1, y1), (x2, y2) = _corner(*start), _corner(*cell_of[view.label])
        x1, y1, y2 = x1 + WIDTH, y1 + HEIGHT // 2, y2 + HEIGHT // 2
        middle = (x1 + x2) // 2
        paths.append(f'<path d="M{x1},{y1} C{middle},{y1} {middle},{y2} {x2},{y2}"/>')
    return paths


def _corner(column: int, row: int) -> tuple[int, int]:
    return MARGIN + column * (WIDTH + GAP_X), MARGIN + (row + 1) * (HEIGHT + GAP_Y)


def _box(name: str, kind: str, column: int, row: int, title: str) -> str:
    x, y = _corner(column, row)
    shape = f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="4" class="{kind}"/>'
    text = f'<text x="{x + 8}" y="{y + 17}">{_escaped(name)}</text>'
    return f"<g>{shape}{text}<title>{_escaped(title)}</title></g>"


def _text(text: str, column: int, row: int) -> str:
    x, y = _corner(column, row)
    return f'<text class="note" x="{x + 8}" y="{y + 17}">{_escaped(text)}</text>'


def _escaped(text: str) -> str:
    return escape(printable(text))


def _title(view: FedView) -> str:
    return f"{view.label}: {view.source_text()}, {view.load_text()}"


def _cut(label: ViewLabel) -> str:
    text = str(label)
    return text if len(text) <= NAME_MAX else text[: NAME_MAX - 1] + "…"
