"""Files that are added, appended to, rewritten and removed: every line is taken once."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.acquire.reading import COLUMNS

from headgate.acquire import file_parts
from headgate.acquire.file_log import FileLog, file_problems
from headgate.acquire.file_parts import LINES, LONG, TABLE, FilePart, cut_parts, looks_complete
from headgate.acquire.read_csv import read_records
from headgate.acquire.read_part import read_part
from headgate.acquire.rejected import Rejects, read_rejected
from headgate.acquire.scan_files import FileScanner, checked_pattern, files_of
from headgate.acquire.source_list import ListedSource
from headgate.match.item_columns import items_from_arrow
from headgate.model.errors import PipelineError
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type

SCHEMA = Schema((Attribute("n", Type.INT), Attribute("title", Type.TEXT)))
JSON = ListedSource("events", "in/*.json", "stream", "json")
CSV = ListedSource("cells", "in/*.csv", "stream", "csv")


class Folder:
    """A base folder with a scanner whose clock stands still until it is told."""

    def __init__(self, path: Path, *sources: ListedSource) -> None:
        self.base = path / "base"
        (self.base / "in").mkdir(parents=True)
        self.state = path / "state"
        self.sources = sources
        self.now = 2_000_000_000.0
        self.open()

    def open(self) -> None:
        self.log = FileLog(self.state)
        self.scanner = FileScanner(
            self.log, self.base, settle_s=1.0, tail_s=10.0, clock=lambda: self.now
        )

    def reopen(self) -> None:
        self.log.close()
        self.open()

    def write(self, name: str, text: str | bytes, *, mode: str = "wb") -> Path:
        path = self.base / "in" / name
        with path.open(mode) as file:
            file.write(text.encode() if isinstance(text, str) else text)
        os.utime(path, (self.now, self.now))
        return path

    def append(self, name: str, text: str) -> None:
        self.write(name, text, mode="ab")

    def scan(self, after_s: float = 2.0) -> None:
        self.now += after_s
        self.scanner.scan(self.sources)

    def items(self, schema: Schema = SCHEMA) -> list[tuple[str, dict]]:
        return [
            (item.id, dict(item.attributes))
            for part in self.log.parts(0, self.log.last)
            for batch in read_part(part, self.base, self.state, schema)
            for item in items_from_arrow(batch, schema)
        ]

    def numbers(self) -> list[object]:
        return [attributes.get("n") for _, attributes in self.items()]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    folder_ = Folder(tmp_path, JSON, CSV)
    yield folder_
    folder_.log.close()


def test_a_file_is_taken_once_after_it_has_settled(folder: Folder):
    folder.write("a.json", '{"n": 1}\n{"n": 2}\n')
    folder.scan(0.04)
    assert folder.log.last == 0
    folder.scan(0.02)
    assert folder.log.last == 1
    folder.scan()
    folder.reopen()
    folder.scan()
    assert folder.log.last == 1
    assert folder.items() == [("in/a.json:1", {"n": 1}), ("in/a.json:2", {"n": 2})]


def test_a_renamed_file_is_taken_at_first_sight(folder: Folder):
    path = folder.write(".a.json", '[{"n": 1}]')
    folder.now = path.stat().st_mtime + 0.001
    os.utime(path, (1_000_000_000, 1_000_000_000))  # so the change time is the later one
    path.rename(path.with_name("a.json"))
    folder.scan(0.0)
    assert folder.numbers() == [1]


def test_a_file_that_does_not_look_complete_waits_longer(folder: Folder):
    folder.write("a.json", '[{"n": 1}, {"n": ')
    folder.scan(0.1)
    folder.scan(0.5)
    assert folder.log.last == 0
    folder.append("a.json", "2}]")
    folder.scan(0.1)
    assert folder.log.last == 0
    folder.scan(0.2)
    assert folder.numbers() == [1, 2]
    assert list(read_rejected([folder.state])) == []


PARQUET = pa.BufferOutputStream()
pq.write_table(pa.table({"n": [1], "title": ["t"]}), PARQUET)
WRITTEN = {
    "a.json": b'[{"n": 1, "title": "t"}]',
    "b.json": b'{"n": 1, "title": "t"}\n{"n": 2, "title": "u"}\n',
    "c.csv": b'n,title\n1,"t, \nu"\n2,b\n',
    "d.parquet": PARQUET.getvalue().to_pybytes(),
}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(WRITTEN)), st.lists(st.integers(1, 400), max_size=6), st.data())
def test_a_file_that_is_being_written_is_not_read_too_early(
    name: str, cuts: list[int], data: st.DataObject
):
    """Written in any pieces, with scans at any time before the file has rested for a second."""
    content = WRITTEN[name]
    places = sorted({0, *(cut % len(content) for cut in cuts), len(content)})
    with TemporaryDirectory() as path:
        folder = Folder(
            Path(path), JSON, CSV, ListedSource("p", "in/*.parquet", "stream", "parquet")
        )
        for begin, end in pairwise(places):
            folder.write(name, content[begin:end], mode="ab")
            folder.scan(data.draw(st.floats(0.0, 0.45)))
            folder.scan(data.draw(st.floats(0.0, 0.45)))
        folder.scan(20.0)
        whole = [attributes for _, attributes in folder.items()]
        rejected = list(read_rejected([folder.state]))
        folder.log.close()
    assert [each["n"] for each in whole] == ([1, 2] if name in ("b.json", "c.csv") else [1])
    assert rejected == []


def test_a_modification_time_in_the_future_is_ignored(folder: Folder):
    path = folder.write("a.json", '{"n": 1}\n')
    os.utime(path, (folder.now + 9_999, folder.now + 9_999))
    folder.scan()
    assert folder.log.last == 0  # seen for the first time
    folder.scan()
    assert folder.numbers() == [1]


def test_appended_lines_are_taken(folder: Folder):
    folder.write("a.json", '{"n": 1}\n')
    folder.scan()
    folder.append("a.json", '{"n": 2}\n{"n": 3')
    folder.scan()
    assert folder.numbers() == [1, 2]
    folder.reopen()
    folder.append("a.json", "3}\n")
    folder.scan()
    assert folder.items()[2] == ("in/a.json:3", {"n": 33})
    folder.append("a.json", '{"n": 4}')  # an object as it stands
    folder.scan()
    folder.append("a.json", '\n{"n": 5}\n')
    folder.scan()
    assert [each for each, _ in folder.items()] == [f"in/a.json:{line}" for line in range(1, 6)]
    assert list(read_rejected([folder.state])) == []


def test_an_incomplete_last_line_is_taken_after_a_while(folder: Folder):
    folder.write("a.json", '{"n": 1}\n{"n": ')
    folder.scan()
    folder.scan()
    assert folder.numbers() == [1]
    folder.scan(10)
    assert folder.numbers() == [1]
    (wrong,) = read_rejected([folder.state])
    assert (wrong.source, wrong.file, wrong.line, wrong.text) == (
        "events",
        "in/a.json",
        2,
        '{"n":',
    )
    folder.append("a.json", '5}\n{"n": 6}\n')
    folder.scan()
    assert folder.numbers() == [1, 6]
    assert [each.line for each in read_rejected([folder.state])] == [2, 2]


def test_a_rewritten_file_is_new_and_a_touched_one_is_not(folder: Folder):
    folder.write("a.json", '{"n": 1}\n{"n": 2}\n')
    folder.scan()
    folder.write("a.json", '{"n": 1}\n{"n": 2}\n')
    folder.scan()
    assert folder.log.last == 1
    folder.write("a.json", '{"n": 1}\n{"n": 3}\n')
    folder.scan()
    folder.write("a.json", '{"n": 9}\n')
    folder.scan()
    # The file is another one now, so its first two numbers cannot be read again.
    assert folder.items() == [("in/a.json#3:1", {"n": 9})]
    assert [each.error[:20] for each in read_rejected([folder.state])] == [
        "the file was changed"
    ] * 2


def test_an_array_is_taken_as_a_whole(folder: Folder):
    folder.write("a.json", '\n [{"n": 1}, {"n": "x"}, 5, {"n": 2}]')
    folder.scan()
    assert folder.items() == [("in/a.json:1", {"n": 1}), ("in/a.json:4", {"n": 2})]
    assert [each.line for each in read_rejected([folder.state])] == [2, 3]
    folder.write("a.json", '[{"n": 1}, {"n": 2}]')
    folder.scan()
    assert folder.log.last == 2
    assert folder.items()[-1] == ("in/a.json#2:2", {"n": 2})


def test_csv_is_taken_by_records(folder: Folder):
    folder.write("a.csv", 'title,n,x\n"two\nlines",1,\nb,2')
    folder.scan()
    assert folder.items() == [("in/a.csv:2", {"title": "two\nlines", "n": 1})]
    folder.append("a.csv", '2\n"open\n')
    folder.scan()
    assert folder.items()[1:] == [("in/a.csv:4", {"title": "b", "n": 22})]
    folder.append("a.csv", 'and closed",3\n')
    folder.scan()
    assert folder.items()[2:] == [("in/a.csv:5", {"title": "open\nand closed", "n": 3})]
    assert list(read_rejected([folder.state])) == []


def test_files_removed_or_changed_before_reading_are_rejected(
    folder: Folder,
):
    folder.write("a.json", '{"n": 1}\n')
    gone = folder.write("b.json", '{"n": 2}\n')
    folder.write("c.json", '{"n": 3}\n')
    folder.scan()
    gone.unlink()
    (folder.base / "in" / "c.json").write_text('{"n": 4}\n')
    assert folder.numbers() == [1]
    wrong = {each.file: each.error for each in read_rejected([folder.state])}
    assert wrong["in/b.json"] == "the file cannot be read: No such file or directory"
    assert wrong["in/c.json"].startswith("the file was changed before it was read")
    folder.scan()
    assert folder.numbers() == [1, 4]


def test_a_file_missing_for_a_day_is_forgotten(folder: Folder):
    path = folder.write("a.json", '{"n": 1}\n')
    other = folder.write("b.json", '{"n": 2}\n')
    folder.scan()
    path.unlink()
    other.unlink()
    folder.scan()
    assert set(folder.log.missing()) == {("events", "in/a.json"), ("events", "in/b.json")}
    folder.write("a.json", '{"n": 1}\n')
    folder.scan()
    folder.reopen()
    folder.scan(86_401)
    assert set(folder.log.files()) == {("events", "in/a.json")}
    assert folder.log.missing() == {}
    folder.write("b.json", '{"n": 2}\n')
    folder.scan()
    assert folder.log.last == 3  # b is new again, a is not
    assert folder.items()[-1] == ("in/b.json#2:1", {"n": 2})


def test_hidden_names_are_ignored(folder: Folder):
    for name in (".a.json", "_a.json"):
        folder.write(name, '{"n": 1}\n')
    folder.scan()
    assert folder.log.last == 0


@pytest.mark.parametrize("path", ["/etc/*.json", "../*.json", "in/../../*.json", "", "a\0b"])
def test_a_path_that_leaves_the_base_folder_is_refused(folder: Folder, path: str):
    with pytest.raises(PipelineError):
        checked_pattern(path)
    folder.sources = (ListedSource("bad", path, "stream", "json"), JSON)
    folder.write("a.json", '{"n": 1}\n')
    folder.scan()
    assert folder.numbers() == [1]
    assert set(file_problems(folder.state)) == {"bad"}
    folder.sources = (JSON,)
    folder.scan()
    assert file_problems(folder.state) == {}


def test_a_link_that_leaves_the_base_folder_is_refused(folder: Folder, tmp_path: Path):
    (tmp_path / "secret.json").write_text('{"n": 7}\n')
    link = folder.base / "in" / "link.json"
    link.symlink_to(tmp_path / "secret.json")
    folder.write("a.json", '{"n": 1}\n')
    folder.scan()
    folder.scan()
    assert folder.numbers() == [1]
    assert "symbolic link" in file_problems(folder.state)["events"]
    # … also where it becomes one after the file was taken.
    (folder.base / "in" / "a.json").unlink()
    (folder.base / "in" / "a.json").symlink_to(tmp_path / "secret.json")
    assert folder.numbers() == []


def test_folders_that_are_links_are_not_entered(folder: Folder):
    deep = folder.base / "in" / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "loop").symlink_to(folder.base)
    (deep / "again").symlink_to(folder.base / "in")
    for path in ("in/1.json", "in/a/2.json", "in/a/b/3.json", "in/a/b/_c/4.json", "in/a/x.txt"):
        (folder.base / path).parent.mkdir(exist_ok=True)
        (folder.base / path).write_text("{}\n")
    actual = {
        pattern: files_of(folder.base, ListedSource("s", pattern, "stream", "json"), {})
        for pattern in ("**/*.json", "in/**", "in/*/*.json", "in/a/b/3.json", "*.json", "in/?.json")
    }
    assert actual == {
        "**/*.json": ["in/1.json", "in/a/2.json", "in/a/b/3.json"],
        "in/**": ["in/1.json", "in/a/2.json", "in/a/b/3.json", "in/a/x.txt"],
        "in/*/*.json": ["in/a/2.json"],
        "in/a/b/3.json": ["in/a/b/3.json"],
        "*.json": [],
        "in/?.json": ["in/1.json"],
    }


def test_a_wrong_format_is_a_problem_of_its_source_only(folder: Folder):
    folder.sources = (ListedSource("bad", "in/*.json", "documents", "json"), JSON)
    folder.write("a.json", '{"n": 1}\n')
    folder.scan()
    assert folder.numbers() == [1]
    assert file_problems(folder.state) == {"bad": "a documents is read from xml, not from 'json'"}


lines = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=12), max_size=12
)


@given(lines, st.booleans(), st.integers(4, 40), st.booleans())
def test_parts_have_every_line_once(texts: list[str], ended: bool, part_bytes: int, whole: bool):
    data = "\n".join(texts).encode() + (b"\n" if ended else b"")
    before = FilePart("s", "stream", "json", "f", LINES, 0, 0, 1, 0, 0, 0)
    with patch.object(file_parts, "PART_BYTES", part_bytes):
        actual = cut_parts(io.BytesIO(data), before, len(data), whole=whole)
    start = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    at, line = start, 1
    for part in actual.parts:
        piece = data[part.begin : part.end]
        assert (part.begin, part.first_line) == (at, line)
        assert piece
        assert part.shape == LONG or part.checksum == zlib.crc32(piece)
        assert part.shape == LONG or len(piece) <= part_bytes
        assert part.shape != LONG or piece.count(b"\n") <= 1
        at, line = part.end, line + piece.count(b"\n")
        assert piece.endswith(b"\n") or part is actual.parts[-1]
    assert (actual.end, actual.next_line) == (at, line)
    if whole:
        assert actual.end == max(len(data), start)
    else:
        assert b"\n" not in data[actual.end :]


@given(
    st.lists(st.sampled_from(['"', "\n", "a", ","]), max_size=40).map("".join), st.integers(1, 9)
)
def test_a_record_is_cut_where_its_quotes_are_closed(text: str, part_bytes: int):
    data = b"h\n" + text.encode()
    before = FilePart("s", "stream", "csv", "f", TABLE, 0, 0, 1, 0, 0, 0)
    with patch.object(file_parts, "PART_BYTES", part_bytes):
        actual = cut_parts(io.BytesIO(data), before, len(data), whole=False)
    expected = _naive_end(text) + 2
    assert actual.end == (expected if len(data) > 2 else 0)


def _naive_end(text: str) -> int:
    """Where the last complete record ends, character by character. A record in which a quote is
    closed before something else is only its first line."""
    end = at = 0
    state = "cell"
    while at < len(text):
        character = text[at]
        if state == "quoted":
            state = "closed" if character == '"' else "quoted"
        elif character == '"' and state in ("cell", "closed"):
            state = "quoted"
        elif character == "," and state != "quoted":
            state = "cell"
        elif character == "\n":
            end, state = at + 1, "cell"
        elif state == "closed":
            end = at = text.index("\n", end) + 1 if "\n" in text[end:] else len(text)
            if not text[:end].endswith("\n"):
                return text.rfind("\n") + 1
            state = "cell"
            continue
        else:
            state = "plain"
        at += 1
    return end


@given(
    st.lists(st.sampled_from(['"', "\n", "\r\n", "a", ",", "ab,c", '"x,\n"']), max_size=60),
    st.integers(1, 20),
    st.booleans(),
)
def test_parts_of_a_table_give_the_records_of_the_whole(
    texts: list[str], part_bytes: int, whole: bool
):
    data = b"title,whole\n" + "".join(texts).encode()
    before = FilePart("s", "stream", "csv", "f", TABLE, 0, 0, 1, 0, 0, 0)
    once = cut_parts(io.BytesIO(data), before, len(data), whole=whole)
    with patch.object(file_parts, "PART_BYTES", part_bytes):
        actual = cut_parts(io.BytesIO(data), before, len(data), whole=whole)
    assert (actual.end, actual.next_line) == (once.end, once.next_line)
    assert len(once.parts) <= 1
    assert all(part.begin < part.end for part in actual.parts)
    assert _records_of(data, actual.parts) == _records_of(data, once.parts)


def _records_of(data: bytes, parts: Sequence[FilePart]) -> tuple[list[object], list[object]]:
    """Rows and rejected lines of all parts. A reason may differ: how far the rest was read."""
    rows: list[object] = []
    rejects = Rejects("s", "f")
    for part in parts:
        found = read_records(
            data[part.begin : part.end],
            part.header,
            COLUMNS,
            rejects,
            first_line=part.first_line,
        )
        for columns, numbers in found:
            rows += zip(numbers.to_pylist(), columns["title"].to_pylist(), strict=True)
    return rows, [(each.line, each.text) for each in rejects.all()]


PARQUET_SOURCE = ListedSource("p", "in/*.parquet", "stream", "parquet")


def test_a_parquet_file_counts_its_rows(tmp_path: Path):
    """Limits of a batch are in rows."""
    folder = Folder(tmp_path, PARQUET_SOURCE)
    pq.write_table(
        pa.table({"n": list(range(9))}), folder.base / "in" / "a.parquet", row_group_size=4
    )
    folder.scan()
    assert [part.rows for part in folder.log.parts(0, folder.log.last)] == [9]
    assert folder.items() == [(f"in/a.parquet:{n + 1}", {"n": n}) for n in range(9)]
    folder.log.close()


def test_a_parquet_file_with_another_footer_is_rejected(tmp_path: Path):
    folder = Folder(tmp_path, PARQUET_SOURCE)
    path = folder.base / "in" / "a.parquet"
    pq.write_table(pa.table({"n": [1, 2, 3, 4]}), path, row_group_size=2)
    folder.scan()
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    assert folder.items() == []
    reasons = [each.error for each in read_rejected([folder.state])]
    folder.log.close()
    assert reasons == ["the file was changed before it was read"]


@settings(max_examples=60, deadline=None)
@example(162, 1)  # a page that is skipped
@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_damaged_parquet_file_is_rejected_or_read_without_an_error(place: int, flip: int):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"n": list(range(20))}), sink, row_group_size=4)
    content = bytearray(sink.getvalue().to_pybytes())
    content[place % len(content)] ^= flip
    with TemporaryDirectory() as path:
        folder = Folder(Path(path), PARQUET_SOURCE)
        folder.write("a.parquet", bytes(content))
        folder.scan(20.0)
        assert folder.log.last >= 1
        found, rejected = folder.items(), list(read_rejected([folder.state]))
        folder.log.close()
    assert len(found) == 20 or rejected


def test_the_beginning_of_a_parquet_file_is_not_complete(tmp_path: Path):
    path = tmp_path / "a.parquet"
    for size in (4, 8, 11):
        path.write_bytes((b"PAR1" * 3)[: size - 4] + b"PAR1")
        with path.open("rb") as file:
            assert not looks_complete(file, "parquet")
