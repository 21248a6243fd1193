"""Batches are written down before they run, and what is complete is complete."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model.errors import PipelineError
from headgate.pipeline.journal import KEPT, BatchJournal, BatchRecord

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def test_a_replay_has_the_first_record(tmp_path: Path) -> None:
    first = BatchJournal(tmp_path).begin("g", 0, "old", NOON)
    again = BatchJournal(tmp_path).begin("g", 0, "new", NOON + timedelta(hours=1))
    assert (again.snapshot, again.arrived, again.replayed) == ("old", first.arrived, True)
    assert not again.finished


def test_a_finished_batch_is_known_as_finished(tmp_path: Path) -> None:
    journal = BatchJournal(tmp_path)
    journal.finish(journal.begin("g", 0, "s", NOON))
    again = BatchJournal(tmp_path)
    assert again.pending() == set()
    assert again.begin("g", 0, "other", NOON).finished


def test_batches_of_an_earlier_process_hold_up_what_is_complete(tmp_path: Path) -> None:
    begun = BatchJournal(tmp_path).begin("g", 7, "s", NOON)
    later = BatchJournal(tmp_path)
    assert later.pending() == {("g", 7)}
    assert later.complete(NOON + timedelta(hours=1)) < begun.arrived
    later.finish(later.begin("g", 7, "s", NOON))
    assert later.complete(NOON + timedelta(hours=1)) == NOON + timedelta(hours=1)


def test_a_group_that_ends_for_good_holds_up_nothing(tmp_path: Path) -> None:
    journal = BatchJournal(tmp_path)
    journal.begin("g", 7, "s", NOON)
    journal.forget("g")
    assert journal.complete(NOON + timedelta(hours=1)) == NOON + timedelta(hours=1)
    assert BatchJournal(tmp_path).pending() == set()


def test_old_records_go(tmp_path: Path) -> None:
    journal = BatchJournal(tmp_path)
    for number in range(KEPT + 20):
        journal.finish(journal.begin("g", number, "s", NOON))
    assert len(list(tmp_path.glob("g/*.json"))) == KEPT


@pytest.mark.parametrize(
    "content", ["", "{}", '{"snapshot": "s"}', '{"snapshot": 1, "arrived": 2}']
)
def test_a_damaged_record_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "g" / "3.json"
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(PipelineError, match=r"3\.json' is damaged"):
        BatchJournal(tmp_path)


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(-3, 5), st.booleans()), max_size=30
    )
)
def test_no_batch_arrives_before_what_was_complete(steps: list[tuple[str, int, bool]]) -> None:
    """Whatever the clock does, and though the process dies between any two steps."""
    with TemporaryDirectory() as folder:
        journal, now = BatchJournal(Path(folder)), NOON
        running: dict[str, BatchRecord] = {}
        numbers = dict.fromkeys("abc", 0)
        complete, arrived = journal.complete(NOON - timedelta(days=1)), set()
        for group, seconds, dies in steps:
            now += timedelta(seconds=seconds)
            if group in running:
                journal.finish(running.pop(group))
                numbers[group] += 1
            else:
                record = journal.begin(group, numbers[group], "s", now)
                if not record.replayed:
                    assert record.arrived > complete
                    assert record.arrived not in arrived
                arrived.add(record.arrived)
                running[group] = record
            complete = max(complete, journal.complete(now))
            assert all(record.arrived > journal.complete(now) for record in running.values())
            if dies:
                journal = BatchJournal(Path(folder), decided=complete)
                running.clear()
