"""Printing: results on standard output, everything else on standard error.

What is printed comes from scripts, feeds and catalogs, so no markup is interpreted and no control
character reaches the terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime

from rich.console import Console
from rich.text import Text

from headgate.model.errors import HeadgateError, LanguageError, printable

stdout = Console(markup=False, highlight=False, emoji=False, soft_wrap=True)
stderr = Console(markup=False, highlight=False, emoji=False, soft_wrap=True, stderr=True)


def print_line(text: str, *, style: str = "") -> None:
    stdout.print(Text(printable(text), style=style))


def print_text(text: str) -> None:
    """Several lines, as they are but for control characters."""
    for line in text.split("\n"):
        print_line(line)


def print_json(data: object) -> None:
    # Not through rich: it would wrap long lines on a narrow terminal.
    sys.stdout.write(json.dumps(data, ensure_ascii=False, default=_json_value) + "\n")


def _json_value(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table with the first column flush right. Nothing is cut, so it can be piped on."""
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    for style, row in [("bold", columns), *(("", row) for row in rows)]:
        first, *rest = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        line = "  ".join([row[0].rjust(len(first)), *rest]).rstrip()
        print_line(line, style=style)


def print_error(text: str) -> None:
    first, *rest = text.split("\n")
    stderr.print(Text.assemble(("error: ", "bold red"), printable(first)))
    for line in rest:
        stderr.print(Text(printable(line), style="bold cyan" if line.startswith("hint:") else ""))


def report_error(
    error: HeadgateError, *, as_json: bool, file: str = "", line: int | None = None
) -> None:
    """An error, with the place in the file where there is one."""
    if as_json:
        place = {} if line is None else {"line": line}
        print_json({"error": {**place, **error_json(error, file=file)}})
        return
    where = f"{file}: " if file else ""
    if line is not None and not isinstance(error, LanguageError):
        where += f"line {line}: "
    print_error(where + str(error))


def error_json(error: HeadgateError, *, file: str = "") -> Mapping[str, object]:
    described: dict[str, object] = {"kind": type(error).__name__, "message": str(error)}
    if isinstance(error, LanguageError):
        place = {"line": error.line, "column": error.column, "hint": error.hint}
        described |= {"message": error.message, **place}
    number = error.statement_number
    return described | ({"statement": number} if number else {}) | ({"file": file} if file else {})
