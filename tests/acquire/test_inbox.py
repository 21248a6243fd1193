"""The inbox: numbers, the state stored with them, and recovery from crashes."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.acquire.identify import Seen, SeenEntry
from headgate.acquire.inbox import BODIES_KEPT_S, MARGIN, RELEASE_STEP, Inbox
from headgate.acquire.inbox_tables import (
    FailedFetch,
    FeedMemory,
    FetchedDocument,
    ListedFeed,
    SuccessfulFetch,
    broken_feeds,
    feed_table,
    pack_seen,
    unpack_seen,
)
from headgate.acquire.refresh_state import DAY_S, RefreshState
from headgate.model.errors import StateError, StateTaken

FEED = ListedFeed("news", "http://example.org/feed")
NOW = 1_000_000.0


def visit(at: float = NOW, etag: str = "e", seen: Seen | None = None) -> SuccessfulFetch:
    state = RefreshState(fetched_at=at, items=3.0)
    return SuccessfulFetch(
        at, state, at + 300, FeedMemory(etag, None, seen or Seen({"k": SeenEntry("d", 1.5)}))
    )


def document(text: str = "rows", rows: int = 2) -> FetchedDocument:
    return FetchedDocument(b"<rss/>" + text.encode(), text.encode(), rows)


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir() if each.suffix in (".arrow", ".body")}


def test_a_document_has_a_number_and_is_there_after_a_restart(tmp_path: Path):
    with Inbox(tmp_path) as inbox:
        inbox.list_feeds([FEED], NOW)
        assert inbox.put(FEED, visit(), document("one")) == 1
        assert inbox.put(FEED, visit(etag="f"), document("two", rows=5)) == 2
    with Inbox(tmp_path) as inbox:
        assert inbox.last == 2
        assert inbox.row_counts(0, 2) == [(1, 2), (2, 5)]
        assert inbox.path_of(2).read_bytes() == b"two"
        assert gzip.decompress((tmp_path / "1.body").read_bytes()) == b"<rss/>one"
        assert inbox.remembered("news") == FeedMemory("f", None, Seen({"k": SeenEntry("d", 1.5)}))
        assert inbox.list_feeds([FEED], NOW)["news"].items == 3.0


def test_a_fetch_without_new_items_gets_no_number(tmp_path: Path):
    with Inbox(tmp_path) as inbox:
        inbox.list_feeds([FEED], NOW)
        assert inbox.put(FEED, visit()) is None
        assert inbox.last == 0
        assert inbox.remembered("news").etag == "e"


def test_files_left_by_a_crash_are_deleted(tmp_path: Path):
    with Inbox(tmp_path) as inbox:
        inbox.list_feeds([FEED], NOW)
        inbox.put(FEED, visit(), document())
    for name in ("2.arrow", "2.body", ".77-1.arrow", ".77-1.body"):
        (tmp_path / name).write_bytes(b"half")
    with Inbox(tmp_path) as inbox:
        assert names(tmp_path) == {"1.arrow", "1.body"}
        assert inbox.put(FEED, visit(), document("two")) == 2
        assert inbox.path_of(2).read_bytes() == b"two"


def test_the_number_of_a_failed_transaction_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with Inbox(tmp_path) as inbox:
        inbox.list_feeds([FEED], NOW)
        with monkeypatch.context() as patched:
            patched.setattr("headgate.acquire.inbox.pack_seen", lambda _: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                inbox.put(FEED, visit(), document("lost"))
        assert inbox.last == 0
        assert inbox.remembered("news") == FeedMemory()
        assert inbox.put(FEED, visit(), document("kept")) == 1
        assert inbox.path_of(1).read_bytes() == b"kept"


def test_one_process_writes(tmp_path: Path):
    with Inbox(tmp_path), pytest.raises(StateTaken, match="is written by process"):
        Inbox(tmp_path, wait_s=0.1)


def test_another_file_is_refused(tmp_path: Path):
    (tmp_path / "inbox.sqlite").write_bytes(b"no database, but long enough to be read as one" * 50)
    with pytest.raises(StateError, match="cannot be used"):
        Inbox(tmp_path)
    with pytest.raises(StateError, match="cannot be used"):
        feed_table(tmp_path)


def test_released_rows_and_old_bodies_are_deleted(tmp_path: Path):
    last = MARGIN + RELEASE_STEP + 3
    with Inbox(tmp_path) as inbox:
        inbox.list_feeds([FEED], NOW)
        for _ in range(last):
            inbox.put(FEED, visit(), document())
        inbox.release(MARGIN + RELEASE_STEP - 1)
        assert inbox.released == 0
        inbox.release(last)
        assert inbox.released == last - MARGIN
        assert not inbox.path_of(last - MARGIN).exists()
        assert inbox.path_of(last - MARGIN + 1).exists()
        with pytest.raises(StateError, match="older than the inbox"):
            inbox.row_counts(1, last)
        with pytest.raises(StateError, match="newer than the inbox"):
            inbox.row_counts(last, last + 1)
        assert inbox.prune(NOW + 1) == 0
        size = (tmp_path / "1.body").stat().st_size
        assert inbox.prune(NOW + 1, bytes_max=10 * size) == last - MARGIN - 10
        assert inbox.prune(NOW + BODIES_KEPT_S + 1) == 10
        assert not (tmp_path / "1.body").exists()
        assert (tmp_path / f"{last}.body").exists()
    with Inbox(tmp_path) as inbox:
        assert (inbox.released, inbox.last) == (last - MARGIN, last)


def test_released_files_are_deleted_at_the_start(tmp_path: Path):
    last = MARGIN + RELEASE_STEP
    with Inbox(tmp_path) as inbox:
        inbox.list_feeds([FEED], NOW)
        for _ in range(last):
            inbox.put(FEED, visit(), document())
        inbox.release(last)
    (tmp_path / "1.arrow").write_bytes(b"left by a crash")
    with Inbox(tmp_path):
        assert not (tmp_path / "1.arrow").exists()


@given(
    rows=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    start=st.integers(0, 12),
    rows_max=st.integers(1, 30),
)
def test_a_batch_has_at_most_the_given_rows(
    tmp_path_factory: pytest.TempPathFactory, rows: list[int], start: int, rows_max: int
):
    with Inbox(tmp_path_factory.mktemp("inbox")) as inbox:
        inbox.list_feeds([FEED], NOW)
        for count in rows:
            inbox.put(FEED, visit(), document(rows=count))
        start = min(start, len(rows))
        end = inbox.end_within(start, rows_max=rows_max)
        assert inbox.end_within(start, rows_max=None) == len(rows)
    fits = [n for n in range(start, len(rows) + 1) if sum(rows[start:n]) <= rows_max]
    assert end == max(*fits, min(start + 1, len(rows)))


def test_a_dropped_feed_is_remembered_for_a_day(tmp_path: Path):
    with Inbox(tmp_path) as inbox:
        inbox.list_feeds([FEED], NOW)
        inbox.put(FEED, visit(), document())
        inbox.list_feeds([], NOW)
        assert feed_table(tmp_path) == []
        assert inbox.list_feeds([FEED], NOW + DAY_S - 1)["news"].items == 3.0
        assert [each.name for each in feed_table(tmp_path)] == ["news"]
        inbox.list_feeds([], NOW)
        inbox.list_feeds([], NOW + DAY_S + 1)
        assert inbox.list_feeds([FEED], NOW + DAY_S + 2)["news"] == RefreshState()
        assert inbox.remembered("news") == FeedMemory()


def test_a_feed_with_another_url_keeps_its_seen_entries(tmp_path: Path):
    moved = ListedFeed("news", "http://example.org/other")
    with Inbox(tmp_path) as inbox:
        inbox.list_feeds([FEED], NOW)
        inbox.put(FEED, visit(), document())
        assert inbox.list_feeds([moved], NOW)["news"] == RefreshState()
        assert inbox.remembered("news") == FeedMemory(None, None, visit().remembered.seen)
        # What was fetched from the old one in the meantime is not kept.
        assert inbox.put(FEED, visit(etag="old"), document("late")) is None
        inbox.put_failure(FEED, FailedFetch(NOW, RefreshState(failures=1), NOW, "late"))
        assert inbox.remembered("news").etag is None
        assert inbox.put(moved, visit(), document("two")) == 2
        assert inbox.path_of(2).read_bytes() == b"two"
        assert broken_feeds(tmp_path) == []


def test_broken_feeds_are_listed_while_another_process_writes(tmp_path: Path):
    assert broken_feeds(tmp_path) == []
    with Inbox(tmp_path) as inbox:
        inbox.list_feeds([FEED], NOW)
        for failures in (1, 2):
            state = RefreshState(failures=failures)
            inbox.put_failure(FEED, FailedFetch(NOW + failures, state, NOW + 600, "no answer"))
        (actual,) = broken_feeds(tmp_path)
        assert (actual.name, actual.url, actual.error) == ("news", FEED.url, "no answer")
        assert (actual.failures, actual.since.timestamp()) == (2, NOW + 1)
        assert actual.next_at.timestamp() == NOW + 600
        inbox.put(FEED, visit(), document())
        assert broken_feeds(tmp_path) == []
        (row,) = feed_table(tmp_path)
        assert (row.items, row.error, row.broken_since) == (2, "", None)
        assert row.fetched_at is not None
        assert row.fetched_at.timestamp() == NOW


@given(
    st.dictionaries(
        st.text(),
        st.tuples(st.text(), st.none() | st.floats(allow_nan=False)).map(lambda t: SeenEntry(*t)),
    )
)
def test_seen_entries_round_trip_in_order(entries: dict[str, SeenEntry]):
    actual = unpack_seen(pack_seen(Seen(entries)))
    assert list(actual.entries.items()) == list(entries.items())
