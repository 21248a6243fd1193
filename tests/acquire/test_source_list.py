"""The list file: replaced atomically, and read again only after it was replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.acquire.source_list import (
    ListedSource,
    SourceList,
    WatchedList,
    read_source_list,
    write_source_list,
)
from headgate.model.errors import PipelineError
from headgate.model.schema import FEED_SCHEMA, Attribute, Schema
from headgate.model.values import Type
from headgate.pipeline.sources.source_format import Options, chunks

SCHEMA = Schema((Attribute("k", Type.TEXT, key=True), Attribute("p", Type.BYTES, payload=True)))
SOURCES = (ListedSource("A", "a/*.json", "table", "json"), ListedSource("B", "http://b", weight=7))


def test_written_content_is_read_back(tmp_path: Path):
    path = tmp_path / "new" / "sources.json"
    assert write_source_list(path, SCHEMA, reversed(SOURCES))
    assert not write_source_list(path, SCHEMA, SOURCES)
    assert read_source_list(path) == SourceList(SCHEMA, SOURCES)
    assert [each.name for each in path.parent.iterdir()] == ["sources.json"]


def test_a_list_is_read_again_only_when_it_was_replaced(tmp_path: Path):
    path = tmp_path / "sources.json"
    write_source_list(path, SCHEMA, SOURCES)
    watched = WatchedList(path)
    assert watched.changed() == SourceList(SCHEMA, SOURCES)
    assert watched.changed() is None
    write_source_list(path, SCHEMA, SOURCES[:1])
    assert watched.changed() == SourceList(SCHEMA, SOURCES[:1])


def test_an_error_names_an_invalid_list(tmp_path: Path):
    path = tmp_path / "sources.json"
    for watch in (read_source_list, lambda each: WatchedList(each).changed()):
        with pytest.raises(PipelineError, match="cannot be read"):
            watch(path)
    for content in ("{", "[]", '{"version": 2}', '{"version": 1, "schema": [], "sources": [5]}'):
        path.write_text(content)
        with pytest.raises(PipelineError, match="list of sources"):
            read_source_list(path)
    with pytest.raises(PipelineError, match="'A' is listed twice"):
        write_source_list(path, FEED_SCHEMA, [SOURCES[0], SOURCES[0]])


def test_errors_name_invalid_options():
    options = Options({"budget": "many", "allow": "loopback, 10.0.0.0/8"})
    with pytest.raises(PipelineError, match="needs the option 'list'"):
        options.path("list")
    with pytest.raises(
        PipelineError, match="option 'budget' must be a number of at least 0, not 'many'"
    ):
        options.number("budget", 1.0)
    assert options.whole("threads", 3) == 3
    allowed = options.allowed()
    assert [allowed.refusal(each) for each in ("127.0.0.1", "::1", "10.1.1.1")] == [None] * 3
    assert allowed.refusal("192.168.0.1") is not None
    with pytest.raises(PipelineError, match="option 'allow'"):
        Options({"allow": "home"}).allowed()


@pytest.mark.parametrize("parts", [1, 2, 3, 10])
def test_chunks_are_in_order_and_about_as_large(parts: int):
    counts = [(number, 1 + number % 7) for number in range(1, 101)]
    actual = chunks(counts, parts)
    assert [each for chunk in actual for each in chunk] == list(range(1, 101))
    assert len(actual) == parts
    rows = dict(counts)
    sizes = [sum(rows[each] for each in chunk) for chunk in actual]
    assert max(sizes) - min(sizes) <= 14
    assert chunks([], parts) == []
    assert chunks([(5, 0)], parts) == [(5,)]
