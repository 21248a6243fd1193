"""Questions are answered by all sound files, whatever the others are like."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.store.small_store import NOON, SmallStore, ticket

from headgate.store.read_store import StoreReader

COUNT = 'SELECT count(*) AS n, count("@id") AS ids FROM {rows}'


def counted(reader: StoreReader) -> int:
    return sum(
        answer.column("ids")[0].as_py() for answer in reader.query_in_steps(COUNT, reader.files())
    )


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    made = SmallStore(tmp_path)
    for day in range(5):
        arrived = NOON - timedelta(days=day)
        made.put([ticket(f"{day}-{n}", n, "Rome") for n in range(3)], arrived=arrived)
    return made


def test_all_files_answer(store: SmallStore) -> None:
    with StoreReader(store.folder) as reader:
        assert counted(reader) == 15
        assert not reader.damaged


def test_since_leaves_out_earlier_days(store: SmallStore) -> None:
    with StoreReader(store.folder) as reader:
        assert len(reader.files(since=NOON - timedelta(days=1))) == 2


@pytest.mark.parametrize("rubbish", [b"", b"PAR1 no Parquet at all PAR1", b"PAR1" * 100])
def test_damaged_files_are_named_and_the_others_answer(store: SmallStore, rubbish: bytes) -> None:
    bad = store.put([ticket("x", 1, "Rome")], arrived=NOON)
    also = store.put([ticket("y", 1, "Rome")], arrived=NOON)
    bad.write_bytes(rubbish)
    also.write_bytes(also.read_bytes()[:-9])
    with StoreReader(store.folder) as reader:
        assert counted(reader) == 15
        assert set(reader.damaged) == {bad, also}
        assert all(str(path) not in why for path, why in reader.damaged.items())
        assert counted(reader) == 15


def test_a_page_that_is_damaged_is_found_only_by_reading_it(store: SmallStore) -> None:
    path = store.put([ticket(f"long id number {n}", n, "Rome") for n in range(500)], arrived=NOON)
    ids = pq.read_metadata(path).row_group(0).column(1)
    content = bytearray(path.read_bytes())
    start = ids.dictionary_page_offset or ids.data_page_offset
    content[start : start + ids.total_compressed_size] = bytes(ids.total_compressed_size)
    path.write_bytes(bytes(content))  # the footer is whole
    with StoreReader(store.folder) as reader:
        letters = 'SELECT sum(len("@id"))::BIGINT AS n FROM {rows}'
        answers = reader.query_in_steps(letters, reader.files())
        assert sum(answer.column("n")[0].as_py() for answer in answers) == 15 * len("4-2")
        assert set(reader.damaged) == {path}


def test_files_that_are_being_written_and_those_of_others_are_not_looked_at(
    store: SmallStore,
) -> None:
    folder = store.put([ticket("x", 1, "Rome")], arrived=NOON).parent
    (folder / ".17-0.parquet.99").write_bytes(b"half")
    (folder / ".17-0.parquet").write_bytes(b"half")
    (folder / "notes.txt").write_bytes(b"mine")
    (folder.parent / "day=yesterday").mkdir()
    with StoreReader(store.folder) as reader:
        assert counted(reader) == 16
        assert not reader.damaged


def test_a_file_that_has_gone_was_old(store: SmallStore) -> None:
    with StoreReader(store.folder) as reader:
        files = reader.files()
        files[0].path.unlink()
        answers = list(reader.query_in_steps(COUNT, files))
        assert sum(each.column("ids")[0].as_py() for each in answers) == 12
        assert not reader.damaged


def test_names_are_no_patterns(tmp_path: Path) -> None:
    for name in ("a[bc]*?", "ab"):
        made = SmallStore(tmp_path / name) if (tmp_path / name).mkdir() is None else None
        assert made is not None
        made.put([ticket(name, 1, "Rome")], arrived=NOON)
    for name in ("a[bc]*?", "ab"):
        with StoreReader(SmallStore(tmp_path / name).folder) as reader:
            assert counted(reader) == 1
            assert not reader.damaged


def test_an_empty_store(tmp_path: Path) -> None:
    with StoreReader(SmallStore(tmp_path).folder) as reader:
        assert reader.files() == []
        assert counted(reader) == 0
