"""What sources have published, by stretch of time, against the items themselves."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path

from tests.store.small_log import NOON, SmallLog, news, ticket

from headgate.match.batch import microseconds
from headgate.store.log_view import LogView
from headgate.store.source_activity import STRETCHES, ActivityReader

HOURS = [0.0, 0.1, 0.2, 1.5, 7.0, 7.1, 30.0]


def filled(path: Path) -> SmallLog:
    log = SmallLog(path)
    for number, hours in enumerate(HOURS):
        items = [ticket(f"t{number}", number, "Rome", hours=hours)]
        if number % 2:
            items.append(news(f"n{number}", "rock", hours=hours))
        for item in items:
            log.put([item], arrived=NOON + timedelta(hours=hours))
        log.items += items
    return log


def expected(log: SmallLog, source: str, start_us: int, width_s: int) -> list[int]:
    counts = Counter(
        (microseconds(each.time) - start_us) // (width_s * 1_000_000)
        for each in log.items
        if each.source == source
    )
    return [counts[n] for n in range(STRETCHES)]


def test_counts_are_those_of_the_items(tmp_path: Path) -> None:
    log, reader = filled(tmp_path), ActivityReader()
    view = LogView(log.folder)
    for hours, width_s in ((30.2, 10_800), (33.0, 10_800), (200.0, 43_200)):
        found = reader.read(view, NOON + timedelta(hours=hours))
        assert found.width_s == width_s
        for source in ("Tickets", "News"):
            activity = found.of(source)
            own = [each for each in log.items if each.source == source]
            assert activity.items == len(own)
            # The log lets a batch arrive a microsecond after the one before.
            assert 0 <= activity.last_us - max(microseconds(each.time) for each in own) < 10
            assert activity.counts.tolist() == expected(log, source, found.start_us, width_s)
    assert found.of("Photos").items == 0
    assert found.of("Photos").last_us == -1


def test_merging_and_new_files_change_nothing_else(tmp_path: Path) -> None:
    log, reader = filled(tmp_path), ActivityReader()
    view, now = LogView(log.folder), NOON + timedelta(hours=31)
    before = reader.read(view, now)
    log.merge()
    view.index.refresh()
    after = reader.read(view, now)
    for source in ("Tickets", "News"):
        assert after.of(source).counts.tolist() == before.of(source).counts.tolist()
        assert after.of(source).items == before.of(source).items
    log.put([news("new", "rock", hours=30.5)], arrived=NOON + timedelta(hours=30.5))
    view.index.refresh()
    assert reader.read(view, now).of("News").items == before.of("News").items + 1


def test_a_log_that_is_not_there() -> None:
    nothing = ActivityReader.nothing(NOON)
    assert nothing.of("News").counts.tolist() == [0] * STRETCHES
    assert nothing.start_us < microseconds(NOON)
