"""A SQLite file with one writer: what is committed stays, what is cut off is not there."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from headgate.model.errors import StateError, StateTaken
from headgate.store.database import DurableDatabase, Layout

LAYOUT = Layout("ledger", "CREATE TABLE entries (name TEXT PRIMARY KEY) STRICT;", version=1)


def names(database: DurableDatabase) -> list[str]:
    with database.reading() as connection:
        return [name for (name,) in connection.execute("SELECT name FROM entries ORDER BY name")]


def add(database: DurableDatabase, name: str) -> None:
    with database.transaction() as connection:
        connection.execute("INSERT INTO entries VALUES (?)", (name,))


def test_a_transaction_within_another_is_committed_with_it(tmp_path: Path) -> None:
    with DurableDatabase(tmp_path / "a.db", LAYOUT) as database:
        with database.transaction():
            add(database, "one")
            with DurableDatabase(tmp_path / "a.db", LAYOUT, read_only=True) as other:
                assert names(other) == []
            add(database, "two")
        with DurableDatabase(tmp_path / "a.db", LAYOUT, read_only=True) as other:
            assert names(other) == ["one", "two"]


def test_an_exception_undoes_all_of_it(tmp_path: Path) -> None:
    with DurableDatabase(tmp_path / "a.db", LAYOUT) as database:

        def fail_late() -> None:
            with database.transaction():
                add(database, "one")
                raise KeyError("after the inner transaction")

        with pytest.raises(KeyError):
            fail_late()
        assert names(database) == []
        with database.transaction():
            add(database, "two")
            with pytest.raises(StateError, match="UNIQUE"):
                add(database, "two")
            add(database, "three")
        assert names(database) == ["three", "two"]


def test_a_commit_that_fails_leaves_no_transaction_open(tmp_path: Path) -> None:
    deferred = Layout(
        "ledger",
        "CREATE TABLE entries (name TEXT PRIMARY KEY, "
        "other TEXT REFERENCES entries DEFERRABLE INITIALLY DEFERRED) STRICT;",
        version=1,
    )
    with DurableDatabase(tmp_path / "a.db", deferred) as database:
        with database.reading() as connection:
            connection.execute("PRAGMA foreign_keys=ON")
        with (
            pytest.raises(StateError, match="FOREIGN KEY"),
            database.transaction() as connection,
        ):
            connection.execute("INSERT INTO entries VALUES ('a', 'nobody')")
        with database.transaction() as connection:
            connection.execute("INSERT INTO entries VALUES ('b', 'b')")
        assert names(database) == ["b"]


def test_a_second_writer_is_told_who_writes_or_waits_for_its_turn(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    first = DurableDatabase(path, LAYOUT)
    with pytest.raises(StateTaken, match=r"the ledger '.*' is written by process [0-9]+"):
        DurableDatabase(path, LAYOUT)
    begun, opened = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        with DurableDatabase(path, LAYOUT, wait_s=60.0):
            opened.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert begun.wait(60.0)
    assert not opened.is_set()
    first.close()
    assert opened.wait(60.0)
    thread.join()


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"no database at all" * 100, "not a database"), (b"", "is no ledger of version 1")],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(content)
    with pytest.raises(StateError, match=reason):
        DurableDatabase(path, LAYOUT, read_only=True)
    newer = tmp_path / "b.db"
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version=9")
    connection.close()
    with pytest.raises(StateError, match="is no ledger of version 1"):
        DurableDatabase(newer, LAYOUT)
