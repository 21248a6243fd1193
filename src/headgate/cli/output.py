"""Printing: results go to standard output, everything else to standard error.

The printed text comes from scripts, feeds and catalogs. Therefore no markup is interpreted and
control characters are replaced.

Exit codes:

    0    success
    1    a statement is wrong (the error and its place are on standard error)
    2    wrong usage, or a file cannot be read
    3    refused: unknown or duplicate name, cycle, in use, bad ticket, no plan
    4    the catalog cannot be reached
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil

from rich.console import Console
from rich.text import Text

from headgate.model.errors import CatalogUnavailable, HeadgateError, LanguageError, printable

stdout = Console(markup=False, highlight=False, emoji=False, soft_wrap=True)
stderr = Console(markup=False, highlight=False, emoji=False, soft_wrap=True, stderr=True)


def print_line(text: str, *, style: str = "") -> None:
    stdout.print(Text(printable(text), style=style))


def print_text(text: str) -> None:
    """Print a text of several lines, with control characters replaced."""
    for line in text.split("\n"):
        print_line(line)


def print_json(data: object) -> None:
    # Not through rich: it would wrap long lines on a narrow terminal.
    sys.stdout.write(json.dumps(data, ensure_ascii=False, default=_json_value) + "\n")


def _json_value(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, the first column right-aligned. No cell is truncated."""
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    for style, row in [("bold", columns), *(("", row) for row in rows)]:
        first, *others = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        line = "  ".join([row[0].rjust(len(first)), *others]).rstrip()
        print_line(line, style=style)


def print_error(text: str) -> None:
    first, *more_lines = text.split("\n")
    stderr.print(Text.assemble(("error: ", "bold red"), printable(first)))
    for line in more_lines:
        stderr.print(Text(printable(line), style="bold cyan" if line.startswith("hint:") else ""))


def report_error(
    error: HeadgateError, *, as_json: bool, file: str = "", line: int | None = None
) -> None:
    """Print an error, with file and line if they are known."""
    if as_json:
        place = {} if line is None else {"line": line}
        print_json({"error": {**place, **error_json(error, file=file)}})
        return
    prefix = f"{file}: " if file else ""
    if line is not None and not isinstance(error, LanguageError):
        prefix += f"line {line}: "
    print_error(prefix + str(error))


def error_json(error: HeadgateError, *, file: str = "") -> Mapping[str, object]:
    described: dict[str, object] = {"kind": type(error).__name__, "message": str(error)}
    if isinstance(error, LanguageError):
        place = {"line": error.line, "column": error.column, "hint": error.hint}
        described |= {"message": error.message, **place}
    number = error.statement_number
    return described | ({"statement": number} if number else {}) | ({"file": file} if file else {})


def exit_code(error: HeadgateError) -> int:
    match error:
        case LanguageError():
            return 1
        case CatalogUnavailable():
            return 4
    return 3


BARS = "▁▂▃▄▅▆▇█"
UNITS = ("B", "kB", "MB", "GB", "TB")


def sparkline(numbers: Sequence[float]) -> str:
    """One bar per number, scaled to the greatest; a number above 0 has at least the lowest bar.

    >>> sparkline([0, 1, 4, 8])
    ' ▁▄█'
    >>> sparkline([]), sparkline([0, 0])
    ('', '  ')
    """
    greatest = max(numbers, default=0)
    return "".join(
        BARS[max(1, ceil(number / greatest * len(BARS))) - 1] if number > 0 else " "
        for number in numbers
    )


def rate_text(rate_per_s: float | None) -> str:
    """A rate per second, minute, hour or day: the first unit in which it is at least 1.

    >>> rate_text(2.5), rate_text(0.01), rate_text(None)
    ('2.5/s', '36/h', 'at once')
    """
    if rate_per_s is None:
        return "at once"
    for unit, seconds in (("s", 1), ("min", 60), ("h", 3_600)):
        if rate_per_s * seconds >= 1:
            return f"{rate_per_s * seconds:,.3g}/{unit}"
    return f"{rate_per_s * 86_400:,.3g}/day"


def size_text(count: float) -> str:
    """A number of bytes with a decimal unit.

    >>> size_text(999), size_text(1_500_000)
    ('999 B', '1.5 MB')
    """
    unit = 0
    while count >= 1_000 and unit < len(UNITS) - 1:
        count, unit = count / 1_000, unit + 1
    return f"{count:.3g} {UNITS[unit]}"


def ago(since: datetime, now: datetime) -> str:
    """The time between two instants in days, hours or seconds.

    >>> from datetime import UTC
    >>> ago(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 16, tzinfo=UTC))
    '15 days'
    """
    span = now - since
    for unit, size in (("day", timedelta(days=1)), ("hour", timedelta(hours=1))):
        if span >= size:
            count = round(span / size)
            return f"{count:,} {unit}{'' if count == 1 else 's'}"
    return f"{span.total_seconds():.0f} seconds"
