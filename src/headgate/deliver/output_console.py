"""Lines for a terminal: one for each item, without anything that a terminal would obey.

    RockConcertStream  2026-11-16 03:00:00+00:00  Muse in concert  https://muse.mu/news/1

A title may hold escape sequences that rewrite the screen, or marks that turn the reading direction;
every character that is not printable is gone. What a stylesheet made may have several lines.

A line is written before it is marked as sent, so dying in between shows it once more.
"""

from __future__ import annotations

from typing import TextIO

from headgate.deliver.clean_text import xml_characters
from headgate.deliver.entry import Entry, shown_value
from headgate.deliver.errors import OutputError
from headgate.model.errors import printable


def console_lines(feed: str, entry: Entry) -> list[str]:
    if entry.is_free:
        return [printable(xml_characters(line)) for line in entry.body.split("\n")]
    parts = [feed, shown_value(entry.published or entry.updated), entry.title, entry.link or ""]
    return [printable("  ".join(filter(None, parts)))]


def write_console(stream: TextIO, feed: str, entry: Entry) -> None:
    try:
        for line in console_lines(feed, entry):
            stream.write(line + "\n")
        stream.flush()
    except (OSError, ValueError) as error:
        raise OutputError(f"the console cannot be written: {error}", unreachable=True) from error
