"""Lines for a terminal, with nothing that it would obey."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from tests.deliver.things import any_text, item, items

from headgate.deliver.entry import FreeText, entry_of
from headgate.deliver.errors import OutputError
from headgate.deliver.output_console import console_lines, write_console
from headgate.model.items import Item


@given(any_text, items)
def test_a_line_is_printable(feed: str, item: Item):
    (line,) = console_lines(feed, entry_of(item))
    assert line.isprintable()


@given(items, any_text)
def test_free_text_is_printable_too(item: Item, text: str):
    for line in console_lines("F", entry_of(item, FreeText(text, is_html=False))):
        assert line.isprintable()


def test_a_line_says_feed_time_title_and_link():
    stream = io.StringIO()
    write_console(stream, "Rock", entry_of(item("a", title="\x1b[2JMuse\u202e")))
    expected = "Rock  2026-11-16 12:00:00+00:00  [2JMuse  https://muse.mu/a\n"
    assert stream.getvalue() == expected


def test_a_console_that_is_gone_is_an_error():
    stream = io.StringIO()
    stream.close()
    with pytest.raises(OutputError, match="console"):
        write_console(stream, "Rock", entry_of(item()))
