"""The spool: whatever was acknowledged is read, in order and once; nothing else is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.acquire import spool
from headgate.acquire.spool import Spool
from headgate.acquire.spool_frames import FIRST, NewFrame, encode_frame
from headgate.model.errors import InvalidValue, StateError

WRITER = """
import sys
from pathlib import Path
from headgate.acquire.spool import Spool
spool, number = Spool(Path(sys.argv[1])), 0
while True:
    line = b'{"w": %s, "n": %d}' % (sys.argv[2].encode(), number)
    spool.append("S", [line] * 3)
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
    number += 1
"""


def events(spool_: Spool, start: int = FIRST) -> list[tuple[str, bytes]]:
    frames = spool_.frames(start, spool_.end())
    return [(each.source, line) for each in frames for line in each.lines.split(b"\n")]


pieces = st.lists(st.tuples(st.sampled_from("AB"), st.integers(1, 4)), max_size=12)


@settings(max_examples=80, deadline=None)
@given(pieces, st.integers(40, 400), st.lists(st.integers(0, 11), max_size=3))
def test_what_was_appended_is_read(
    appended: list[tuple[str, int]], segment_bytes: int, crashes: list[int]
):
    """With segments of any size, and processes that die while they append."""
    expected: list[tuple[str, bytes]] = []
    positions: list[int] = []
    with TemporaryDirectory() as path, patch.object(spool, "SEGMENT_BYTES", segment_bytes):
        spool_ = Spool(Path(path))
        for number, (source, count) in enumerate(appended):
            lines = [json.dumps({"n": number, "k": k}).encode() for k in range(count)]
            positions.append(spool_.append(source, lines))
            expected += [(source, line) for line in lines]
            if number in crashes:
                _tear(Path(path), number)
                spool_ = Spool(Path(path))
        assert events(Spool(Path(path))) == expected
        assert positions == sorted(set(positions))
        for position in positions:
            assert events(spool_, position) == [
                each
                for start, (source, count), number in zip(
                    positions, appended, range(len(appended)), strict=True
                )
                if start >= position
                for each in [
                    (source, json.dumps({"n": number, "k": k}).encode()) for k in range(count)
                ]
            ]
        assert Spool(Path(path)).open() == spool_.end()


def _tear(folder: Path, seed: int) -> None:
    """The beginning of a frame, or a whole one with a wrong checksum, at the end of the spool; the
    process that wrote it has died before it synced."""
    segments = sorted(folder.glob("*.events"), key=lambda each: int(each.stem))
    frame = bytearray(encode_frame(NewFrame("A", [b"{}"] * 5), posted_us=seed))
    if seed % 2:
        frame = frame[: 1 + seed * 3 % (len(frame) - 1)]
    else:
        frame[-1] ^= 1
    with segments[-1].open("ab") as file:
        file.write(frame)


def test_a_whole_frame_that_was_not_synced_is_kept(tmp_path: Path):
    Spool(tmp_path).append("A", [b"1"])
    with (tmp_path / "1.events").open("ab") as file:
        file.write(encode_frame(NewFrame("A", [b"2"]), posted_us=0))
    assert [line for _, line in events(Spool(tmp_path))] == [b"1"], "not yet"
    Spool(tmp_path).append("A", [b"3"])
    assert [line for _, line in events(Spool(tmp_path))] == [b"1", b"2", b"3"]


def test_a_lost_record_of_what_is_synced_is_found_again(tmp_path: Path):
    for number in range(3):
        Spool(tmp_path).append("A", [b"%d" % number])
    (tmp_path / "synced").unlink()
    spool_ = Spool(tmp_path)
    assert spool_.end() == 0
    spool_.open()
    assert [line for _, line in events(spool_)] == [b"0", b"1", b"2"]


def test_a_segment_that_lost_synced_bytes_is_an_error(tmp_path: Path):
    Spool(tmp_path).append("A", [b"1"])
    os.truncate(tmp_path / "1.events", 5)
    with pytest.raises(StateError, match="shorter than what was synced"):
        Spool(tmp_path).append("A", [b"2"])


def test_released_segments_are_deleted(tmp_path: Path):
    with patch.object(spool, "SEGMENT_BYTES", 10):
        spool_ = Spool(tmp_path)
        positions = [spool_.append("A", [b"%d" % number]) for number in range(5)]
        spool_.release(positions[3])
        assert [line for _, line in events(spool_, positions[3])] == [b"3", b"4"]
        with pytest.raises(StateError, match="segment 1 any more"):
            events(spool_)
        (tmp_path / "synced").unlink()
        again = Spool(tmp_path)
        assert again.append("A", [b"5"]) > positions[-1]
        kept = [line for _, line in events(again, again.first())]
        assert kept == [b"2", b"3", b"4", b"5"], "one more, because of its keys"


keyed = st.lists(
    st.lists(
        st.tuples(st.sampled_from("AB"), st.sampled_from(["", "k", "l", "m"]), st.integers(0, 1)),
        min_size=1,
        max_size=3,
    ),
    max_size=8,
)


@settings(max_examples=80, deadline=None)
@given(keyed, st.integers(40, 400), st.lists(st.integers(0, 2), min_size=8, max_size=8))
def test_a_key_is_appended_once_by_whatever_process(
    groups: list[list[tuple[str, str, int]]], segment_bytes: int, writers: list[int]
):
    """The model: the first digest of each key of a source, and where its frame is."""
    first: dict[tuple[str, str], tuple[str, int]] = {}
    expected: list[tuple[str, bytes]] = []
    with TemporaryDirectory() as path, patch.object(spool, "SEGMENT_BYTES", segment_bytes):
        processes = [Spool(Path(path)) for _ in range(3)]
        for number, (group, writer) in enumerate(zip(groups, writers, strict=False)):
            frames = [
                NewFrame(source, [b"%d.%d" % (number, k)], key=key, digest=f"{digest}")
                for k, (source, key, digest) in enumerate(group)
            ]
            found = processes[writer].append_many(frames)
            for frame, position in zip(frames, found, strict=True):
                place = frame.source, frame.key
                if frame.key and place in first:
                    digest, at = first[place]
                    if digest == frame.digest:
                        assert position == at
                    else:
                        assert isinstance(position, InvalidValue)
                    continue
                assert isinstance(position, int)
                expected.append((frame.source, frame.lines[0]))
                if frame.key:
                    first[place] = frame.digest, position
            if number % 3 == 2 and groups[:number]:
                _tear(Path(path), number)
                processes[writer] = Spool(Path(path))
        if expected:
            processes[0].open()
        assert events(processes[0]) == expected if expected else not processes[0].end()


def test_an_old_key_is_forgotten(tmp_path: Path):
    first = Spool(tmp_path).append("A", [b"1"], key="k")
    assert Spool(tmp_path).append("A", [b"1"], key="k") == first
    with patch.object(spool, "KEY_S", -1.0):
        assert Spool(tmp_path).append("A", [b"1"], key="k") > first


def test_threads_share_a_sync(tmp_path: Path):
    spool_, synced = Spool(tmp_path), []
    real = os.fdatasync
    with patch.object(spool.os, "fdatasync", lambda file: (synced.append(1), real(file))):
        threads = [
            threading.Thread(
                target=lambda k=k: [spool_.append("A", [b"%d %d" % (k, n)]) for n in range(50)]
            )
            for k in range(8)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    found = [line for _, line in events(spool_)]
    assert len(found) == 400
    assert sorted(found) == sorted(b"%d %d" % (k, n) for k in range(8) for n in range(50))
    for k in range(8):
        assert [each for each in found if each.startswith(b"%d " % k)] == [
            b"%d %d" % (k, n) for n in range(50)
        ]
    assert len(synced) < 400


def test_processes_that_are_killed_lose_nothing_acknowledged(tmp_path: Path):
    acknowledged: dict[int, int] = {}
    for number in range(6):
        writers = {
            writer: subprocess.Popen(
                [sys.executable, "-c", WRITER, str(tmp_path), str(writer)], stdout=subprocess.PIPE
            )
            for writer in (2 * number, 2 * number + 1)
        }
        for writer, process in writers.items():
            assert process.stdout is not None
            for _ in range(5 + 7 * number):
                acknowledged[writer] = int(process.stdout.readline())
        for writer, process in writers.items():
            process.send_signal(signal.SIGKILL)
            rest, _ = process.communicate()
            acknowledged[writer] = max([acknowledged[writer], *map(int, rest.split()[-1:])])
    spool_ = Spool(tmp_path)
    spool_.open()
    found = [json.loads(line) for _, line in events(spool_)]
    for writer, last in acknowledged.items():
        numbers = [each["n"] for each in found if each["w"] == writer]
        whole = max(numbers)
        assert whole in (last, last + 1), "at most the one that was not acknowledged"
        assert numbers == [n for n in range(whole + 1) for _ in range(3)]
