"""What the commands that read the store have in common: its folder, moments, rows as text.

What is shown comes from strangers' feeds: it goes to the terminal on one line, without control
characters and without markup (output.py).
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from headgate.cli.durations import duration_option
from headgate.cli.output import stderr, stdout
from headgate.model.errors import printable
from headgate.store.data_folder import DataFolder
from headgate.store.read_store import StoredRow

Since = Annotated[
    str,
    typer.Option(metavar="TIME", help="What arrived since then: 2h, 30d, '3 months', 2026-11-01."),
]
SHORT_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
VALUE_SHOWN_MAX = 60
_SHORT = re.compile(r"(\d{1,9})\s*([smhdw])")
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


def folder_of(path: Path) -> DataFolder:
    """The folder of a run; without one there is nothing to look at."""
    if not path.is_dir():
        raise typer.BadParameter(
            f"there is no folder '{path}': 'headgate run' makes it, --folder names another",
            param_hint="--folder",
        )
    return DataFolder(path)


def since_moment(text: str, now: datetime) -> datetime | None:
    """'2h' and '2 hours' before now, or the beginning of a day; nothing where nothing is said."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        short = _SHORT.fullmatch(text.strip())
    duration = duration_option(f"{short[1]} {SHORT_UNITS[short[2]]}" if short else text, "--since")
    assert duration is not None
    return max(now - duration.timedelta, _EARLIEST)


def row_text(row: StoredRow, *, source_width: int = 0) -> str:
    """Time, source, and what the item is about."""
    joined = sum(len(joined_items(each)) for each in row.annotations)
    about = _about(row.attributes) + (f"  ⋈ {joined:,}" if joined else "")
    return f"{row.time:%Y-%m-%d %H:%M:%S}  {row.source:<{source_width}}  {about}"


def print_row(row: StoredRow, *, source_width: int = 0, indent: str = "") -> None:
    """On a terminal one line, cut at its edge; else all of it, for whoever reads it."""
    text = Text(indent + printable(row_text(row, source_width=source_width)))
    if stdout.is_terminal:
        text.truncate(stdout.width, overflow="ellipsis")
    stdout.print(text)


def row_json(row: StoredRow) -> dict[str, object]:
    found: dict[str, object] = {
        "id": row.id,
        "source": row.source,
        "time": row.time,
        "arrived": row.arrived,
        "attributes": {name: _plain(value) for name, value in row.attributes.items()},
    }
    return found | ({"annotations": row.annotations} if row.annotations else {})


def tell_damaged(damaged: Mapping[Path, str]) -> None:
    """Files that were left out: on standard error, as the rest is shown."""
    for path, reason in damaged.items():
        told = printable(f"'{path}' is damaged and left out: {reason}")
        stderr.print(Text.assemble(("warning: ", "bold yellow"), told))


def widest(rows: Iterable[StoredRow]) -> int:
    return max((len(row.source) for row in rows), default=0)


def ago(since: datetime, now: datetime) -> str:
    """How long ago, in the unit that people would use.

    >>> ago(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 16, tzinfo=UTC))
    '15 days'
    """
    span = now - since
    for unit, size in (("day", timedelta(days=1)), ("hour", timedelta(hours=1))):
        if span >= size:
            count = round(span / size)
            return f"{count:,} {unit}{'' if count == 1 else 's'}"
    return f"{span.total_seconds():.0f} seconds"


def _about(attributes: Mapping[str, object]) -> str:
    title = attributes.get("title")
    if isinstance(title, str) and title.strip():
        return " ".join(title.split())
    return "  ".join(f"{name} {_shown(value)}" for name, value in attributes.items())


def _shown(value: object) -> str:
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    text = str(value).lower() if isinstance(value, bool) else " ".join(str(value).split())
    return text if len(text) <= VALUE_SHOWN_MAX else f"{text[: VALUE_SHOWN_MAX - 1]}…"


def _plain(value: object) -> object:
    return b64encode(value).decode() if isinstance(value, bytes) else value


def joined_items(annotation: Mapping[str, object]) -> list[dict[str, object]]:
    """What a join has joined, as deliver/item_encoding.py writes it."""
    items = annotation.get("items")
    return [each for each in items if isinstance(each, dict)] if isinstance(items, list) else []
