"""`headgate tail`, `why` and `rejected`: the items that a run has stored or rejected.

Item texts come from outside: each is printed on one line, without markup and control characters
(output.py).
"""

from __future__ import annotations

import sys
from base64 import b64encode
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from headgate.acquire.rejected import Rejected, read_rejected
from headgate.api.headgate import Headgate
from headgate.api.headgate import open as open_headgate
from headgate.api.rejected_records import is_granted
from headgate.cli.options import (
    CATALOG_DEFAULT,
    FOLDER_DEFAULT,
    AsJson,
    CatalogUrl,
    LogUrl,
    RunFolder,
    Since,
    existing_folder,
    log_option,
    since_option,
)
from headgate.cli.output import print_json, print_line, print_text, stderr, stdout
from headgate.model.errors import printable
from headgate.store.data_folder import DataFolder

if TYPE_CHECKING:
    from headgate.api.why_stored import WhyStored
    from headgate.store.log_items import LoggedItem

LINES_MAX = 100_000
VALUE_SHOWN_MAX = 60
TEXT_SHOWN = 60
FEEDS_SHOWN_MAX = 12


def tail(
    feed: Annotated[str, typer.Argument(metavar="FEED", help="A feed, or a source.")],
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, max=LINES_MAX)] = 10,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with new items as they arrive.")
    ] = False,
    since: Since = "",
    *,
    folder: RunFolder = FOLDER_DEFAULT,
    log: LogUrl = "",
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Show the last items of a feed or source, in the order in which they arrived.

    [bold]headgate tail RockConcertStream --lines 20[/bold]

    [bold]headgate tail MuseNews --follow[/bold]
    """
    first, warned = since_option(since), set[str]()
    log = log_option(log)
    with open_headgate(catalog, folder=existing_folder(folder, log), log=log) as h:
        try:
            for number, rows in enumerate(h.follow_batches(feed, lines, since=first)):
                warn_of_damaged_files(h, warned)
                _print_rows(rows, as_json=json)
                if number == 0 and not rows and lines and not json:
                    print_line(f"-- no items of {feed}" + (f" since {since}" if since else " yet"))
                if not follow:
                    return
        except KeyboardInterrupt:
            raise typer.Exit from None


def _print_rows(rows: Sequence[LoggedItem], *, as_json: bool) -> None:
    width = widest(rows)
    for row in rows:
        if as_json:
            print_json(row_json(row))
        else:
            print_row(row, source_width=width)
    sys.stdout.flush()


def why(
    item: Annotated[str, typer.Argument(metavar="ITEM", help="The id of an item.")],
    subscription: Annotated[
        str, typer.Argument(metavar="SUBSCRIPTION", help="A subscription's number, or a feed.")
    ],
    source: Annotated[
        str, typer.Option(metavar="NAME", help="The item's source, if several have such an id.")
    ] = "",
    *,
    folder: RunFolder = FOLDER_DEFAULT,
    log: LogUrl = "",
    catalog: CatalogUrl = CATALOG_DEFAULT,
    json: AsJson = False,
) -> None:
    """Explain why an item of the store is in a feed or not, and whether it was delivered.

    Ids are shown by [bold]headgate tail FEED --json[/bold].

    [bold]headgate why https://muse.mu/news/17 RockConcertStream[/bold]

    [bold]headgate why 4711 12 --source Tickets[/bold]
    """
    log = log_option(log)
    with open_headgate(catalog, folder=existing_folder(folder, log), log=log) as h:
        try:
            with stderr.status("looking for the item …") as status:
                answer = h.why(
                    item,
                    subscription,
                    source=source,
                    note=lambda text: status.update(f"looking for the item: {text} …"),
                )
        finally:
            warn_of_damaged_files(h)
    if json:
        print_json(_why_json(answer))
        return
    print_row(answer.row)
    print_line(f"arrived at {answer.row.arrived:%Y-%m-%d %H:%M:%S}; {_feeds(answer)}")
    for annotation in answer.joined:
        items = [f"{item.get('source')} {item.get('id')}" for item in joined_items(annotation)]
        print_line(f"{annotation.get('join')} joined {_listed(items, 'item')}")
    print_line("")
    print_line(answer.verdict())
    if answer.subscription is not None:
        print_line(answer.delivery())
    if answer.why is not None:
        print_line("")
        print_text(answer.why.text())


def _feeds(answer: WhyStored) -> str:
    text = f"in {_listed(answer.feeds, 'feed')}" if answer.feeds else "in no feed"
    if answer.further:
        text += f"; a candidate for {_listed(answer.further, 'feed')}"
    if answer.dropped:
        text += f"; {answer.dropped:,} that had it have been dropped"
    return text


def _listed(names: Sequence[str], noun: str) -> str:
    count = f"{len(names):,} {noun}{'' if len(names) == 1 else 's'}"
    ellipsis = ", …" if len(names) > FEEDS_SHOWN_MAX else ""
    return f"{count}: {', '.join(names[:FEEDS_SHOWN_MAX])}{ellipsis}"


def _why_json(answer: WhyStored) -> dict[str, object]:
    return {
        "item": row_json(answer.row),
        "feeds": answer.feeds,
        "further": answer.further,
        "dropped": answer.dropped,
        "feed": answer.feed,
        "has": answer.has,
        "verdict": answer.verdict(),
        "why": None if answer.why is None else answer.why.as_json(),
        "subscription": None if answer.subscription is None else answer.subscription.id,
        "joined": answer.joined,
        "delivery": answer.delivery(),
    }


def rejected(
    source: Annotated[str, typer.Argument(metavar="[SOURCE]", help="Only of this source.")] = "",
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, max=LINES_MAX)] = 20,
    *,
    folder: RunFolder = FOLDER_DEFAULT,
    json: AsJson = False,
) -> None:
    """Show the last lines, documents and messages that were rejected, each with the reason.

    [bold]headgate rejected Tickets --lines 5[/bold]
    """
    last: deque[Rejected] = deque(maxlen=lines)
    total = 0
    data = DataFolder(existing_folder(folder))
    root = data.data_root()
    for query in sorted(data.sources.glob("*")):
        for record in read_rejected([query]):
            if source in ("", record.source):
                is_shown = not query.name.startswith("files-") or is_granted(record, root)
                last.append(record if is_shown else replace(record, text=""))
                total += record.count
    for record in last:
        if json:
            print_json(asdict(record))
        else:
            print_line(_rejected_line(record))
    if not json:
        print_line(f"-- {total:,} rejected" + (f" of {source}" if source else ""))


def _rejected_line(record: Rejected) -> str:
    place = record.file if record.line is None else f"{record.file}:{record.line}"
    text = f"  {printable(record.text)[:TEXT_SHOWN]}" if record.text else ""
    return printable(f"{record.source}  {place}  {record.error}") + text


# --- rows as text and JSON, also used by other commands ------------------------------------------


def warn_of_damaged_files(h: Headgate, warned: set[str] | None = None) -> None:
    """Warn of damaged files of the log that were skipped, on standard error; not of those that are
    in `warned`, to which they are added."""
    warned = set() if warned is None else warned
    for name, reason in h.damaged.items():
        if name not in warned:
            warned.add(name)
            text = printable(f"'{name}' is damaged and was skipped: {reason}")
            stderr.print(Text.assemble(("warning: ", "bold yellow"), text))


def row_text(row: LoggedItem, *, source_width: int = 0) -> str:
    """A stored item on one line: time, source, title or attributes, number of joined items."""
    joined = sum(len(joined_items(annotation)) for annotation in row.annotations)
    about = _summary_text(row.attributes) + (f"  ⋈ {joined:,}" if joined else "")
    return f"{row.time:%Y-%m-%d %H:%M:%S}  {row.source:<{source_width}}  {about}"


def print_row(row: LoggedItem, *, source_width: int = 0, indent: str = "") -> None:
    """Print a stored item on one line, truncated to the width if output is a terminal."""
    text = Text(indent + printable(row_text(row, source_width=source_width)))
    if stdout.is_terminal:
        text.truncate(stdout.width, overflow="ellipsis")
    stdout.print(text)


def row_json(row: LoggedItem) -> dict[str, object]:
    record: dict[str, object] = {
        "id": row.id,
        "source": row.source,
        "time": row.time,
        "arrived": row.arrived,
        "attributes": {name: _plain(value) for name, value in row.attributes.items()},
    }
    return record | ({"annotations": row.annotations} if row.annotations else {})


def widest(rows: Iterable[LoggedItem]) -> int:
    """The length of the longest source name."""
    return max((len(row.source) for row in rows), default=0)


def _summary_text(attributes: Mapping[str, object]) -> str:
    title = attributes.get("title")
    if isinstance(title, str) and title.strip():
        return " ".join(title.split())
    return "  ".join(f"{name} {_value_text(value)}" for name, value in attributes.items())


def _value_text(value: object) -> str:
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    text = str(value).lower() if isinstance(value, bool) else " ".join(str(value).split())
    return text if len(text) <= VALUE_SHOWN_MAX else f"{text[: VALUE_SHOWN_MAX - 1]}…"


def _plain(value: object) -> object:
    return b64encode(value).decode() if isinstance(value, bytes) else value


def joined_items(annotation: Mapping[str, object]) -> list[dict[str, object]]:
    """The joined items of one annotation, in the encoding of deliver/item_encoding.py."""
    items = annotation.get("items")
    return [each for each in items if isinstance(each, dict)] if isinstance(items, list) else []
