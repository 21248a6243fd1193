"""A source's documents outlive it, each with one number for ever."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from headgate.model.errors import RelayError, StateTaken
from headgate.relay.source import PublishedDocuments


def key(number: int) -> bytes:
    return number.to_bytes(16)


def test_documents_are_kept_until_everybody_has_them(tmp_path: Path) -> None:
    path = tmp_path / "documents.db"
    with PublishedDocuments(path) as documents:
        first = documents.put(key(1), "<a/>")
        assert documents.put(key(2), "<b/>") == first + 1
        assert documents.put(key(1), "<a/>") == first
    with PublishedDocuments(path) as documents:
        assert (documents.settled, documents.next) == (first, first + 2)
        assert documents.content_of(first) == "<a/>"
        assert documents.content_of(first + 2) is None
        documents.settle(first + 1)
        assert documents.content_of(first) is None
        assert documents.content_of(first + 1) == "<b/>"
    with PublishedDocuments(path) as documents:
        assert documents.settled == first + 1
        assert documents.put(key(1), "<a/>") == first  # still known by its key
        assert documents.put(key(3), "<c/>") == first + 2


def test_a_lost_file_gives_no_number_twice(tmp_path: Path) -> None:
    with PublishedDocuments(tmp_path / "documents.db") as documents:
        before = documents.put(key(1), "<a/>")
    time.sleep(0.001)
    with PublishedDocuments(tmp_path / "another.db") as documents:
        assert documents.put(key(1), "<a/>") > before


def test_too_many_that_wait_are_refused(tmp_path: Path) -> None:
    with PublishedDocuments(tmp_path / "documents.db", waiting_max=2) as documents:
        first = documents.put(key(1), "<a/>")
        documents.put(key(2), "<a/>")
        with pytest.raises(RelayError, match="2 documents wait for a site"):
            documents.put(key(3), "<a/>")
        assert documents.put(key(2), "<a/>") == first + 1
        documents.settle(first + 1)
        assert documents.put(key(3), "<a/>") == first + 2


def test_one_source_writes(tmp_path: Path) -> None:
    path = tmp_path / "documents.db"
    with PublishedDocuments(path), pytest.raises(StateTaken, match="store of documents"):
        PublishedDocuments(path)
