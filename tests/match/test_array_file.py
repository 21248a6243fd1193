"""Array files: the read arrays are the written ones, or there is an error."""

import gc
import hashlib
import json
import os
import random
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from headgate.match.array_file import ArrayFile, open_arrays, write_arrays
from headgate.match.array_file_layout import (
    BUFFER_BYTES,
    DTYPES,
    HEADER_BYTES_MAX,
    START_BYTES,
    buffers_of,
    checksum,
)
from headgate.model.errors import SnapshotError

Array = npt.NDArray[Any]
Header = dict[str, Any]
Verify = Literal["checksum", "full"]
MODES: tuple[Verify, ...] = ("checksum", "full")

ARRAYS: dict[str, Array] = {
    "atoms": np.arange(100, dtype="<i4"),
    "bits": np.array([[True, False, True]]),
    "empty": np.empty((0, 5), "<f8"),
    "words": np.arange(37, dtype="<u8") * 0x123456789ABCDEF,
}
METADATA = {"catalog_version": 7, "source": "Météo", "parts": [1, 2.5, None, True]}

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("aé\n😀"), inner),
    max_leaves=8,
)
array_values = st.sampled_from(sorted(DTYPES)).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0))
)


@pytest.fixture
def snapshot_path(tmp_path: Path) -> Path:
    return write_arrays(tmp_path, ARRAYS, METADATA)


def overwrite(path: Path, content: bytes) -> None:
    """Files have no write permission, so a damaged one comes instead of the sound one."""
    path.unlink()
    path.write_bytes(content)


def refused(path: Path, words: str, *, modes: tuple[Verify, ...] = MODES) -> None:
    for mode in modes:
        with pytest.raises(SnapshotError, match=words) as caught:
            open_arrays(path, verify=mode)
        assert str(path) in str(caught.value)


def same(one: ArrayFile, arrays: dict[str, Array]) -> None:
    assert list(one.arrays) == sorted(arrays)
    for name, array in arrays.items():
        found = one.arrays[name]
        assert found.dtype == array.dtype
        assert found.shape == array.shape
        assert found.tobytes() == array.tobytes()


# Round trips


@given(arrays=st.dictionaries(st.text(), array_values, max_size=4), metadata=json_values)
@settings(max_examples=60)
def test_opened_arrays_equal_the_written_ones(arrays: dict[str, Array], metadata: Any):
    with tempfile.TemporaryDirectory() as folder:
        path = write_arrays(Path(folder), arrays, {"value": metadata})
        for mode in MODES:
            opened = open_arrays(path, verify=mode)
            same(opened, arrays)
            assert opened.metadata == {"value": metadata}
            assert path.name == f"{opened.hash}.headgate"


def test_no_arrays_and_no_metadata(tmp_path: Path):
    opened = open_arrays(write_arrays(tmp_path, {}, {}), verify="full")
    assert (opened.arrays, opened.metadata) == ({}, {})


def test_arrays_are_aligned_and_cannot_be_written_to(snapshot_path: Path):
    opened = open_arrays(snapshot_path)
    for array in opened.arrays.values():
        assert array.ctypes.data % 64 == 0
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    with pytest.raises(TypeError):
        opened.arrays["atoms"] = np.zeros(1)  # type: ignore[index]


def test_arrays_live_longer_than_the_snapshot_and_its_file(snapshot_path: Path):
    words = open_arrays(snapshot_path).arrays["words"][5:]
    snapshot_path.unlink()
    gc.collect()
    assert np.array_equal(words, ARRAYS["words"][5:])


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux lists mappings")
def test_all_arrays_share_one_shared_mapping(snapshot_path: Path):
    opened = open_arrays(snapshot_path)
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    kinds = [line.split()[1] for line in maps if line.endswith(str(opened.path))]
    assert kinds == ["r--s"]  # readable, shared


def test_any_order_in_memory_gives_the_same_file(tmp_path: Path):
    table = np.arange(12, dtype="<i4").reshape(3, 4)
    path = write_arrays(tmp_path, {"table": table}, {})
    for other in (table.astype(">i4"), np.asfortranarray(table), np.repeat(table, 2, 0)[::2]):
        assert write_arrays(tmp_path, {"table": other}, {}) == path


def test_an_array_that_is_larger_than_the_buffer(tmp_path: Path):
    arrays = {"large": np.arange(2 * BUFFER_BYTES + 77, dtype=np.uint32).astype(np.uint8)}
    same(open_arrays(write_arrays(tmp_path, arrays, {}), verify="full"), arrays)


# One content, one file


def test_the_bytes_depend_on_the_content_only(tmp_path: Path, snapshot_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    turned = dict(reversed(ARRAYS.items()))
    path = write_arrays(other, turned, dict(reversed(METADATA.items())))
    assert path.name == snapshot_path.name
    assert path.read_bytes() == snapshot_path.read_bytes()


def test_the_format_stays_the_same(snapshot_path: Path):
    """If this fails, files that were written before can no longer be opened: raise VERSION."""
    assert snapshot_path.name == "828f447846fb9c164e62900bef3550ff.headgate"
    assert hashlib.sha256(snapshot_path.read_bytes()).hexdigest()[:16] == "5274d362fae8eee0"


def test_a_sound_file_is_left_alone(tmp_path: Path, snapshot_path: Path):
    before = snapshot_path.stat().st_ino
    assert write_arrays(tmp_path, ARRAYS, METADATA) == snapshot_path
    assert snapshot_path.stat().st_ino == before


def test_a_damaged_file_is_replaced(tmp_path: Path, snapshot_path: Path):
    overwrite(snapshot_path, snapshot_path.read_bytes()[:-1])
    assert write_arrays(tmp_path, ARRAYS, METADATA) == snapshot_path
    same(open_arrays(snapshot_path, verify="full"), ARRAYS)


def test_other_content_has_another_name(tmp_path: Path, snapshot_path: Path):
    changed = {**ARRAYS, "atoms": ARRAYS["atoms"].reshape(10, 10)}
    assert write_arrays(tmp_path, changed, METADATA) != snapshot_path
    assert write_arrays(tmp_path, ARRAYS, {}) != snapshot_path


def test_the_file_has_no_write_permission(snapshot_path: Path):
    assert not snapshot_path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)


# Writing


@pytest.mark.parametrize(
    "array",
    [
        np.array([{}], object),
        np.array(["text"]),
        np.array([1j]),
        np.array(["2020-01-01"], "datetime64[D]"),
        np.zeros(1, [("a", "<i4")]),
        np.zeros(1, np.longdouble),
    ],
    ids=lambda array: array.dtype.name,
)
def test_types_that_are_not_plain_are_refused(tmp_path: Path, array: Array):
    with pytest.raises(SnapshotError, match=r"array 'odd' has the type .*; known are"):
        write_arrays(tmp_path, {"odd": array}, {})
    assert not list(tmp_path.iterdir())


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        {1, 2},
        np.int64(3),
        {2: "a", 10: "b"},
        {1: "a", "b": 2},
        nested(200_000),
        "\ud800",
        "x" * HEADER_BYTES_MAX,
    ],
    ids=["nan", "set", "int64", "numbers", "mixed", "deep", "surrogate", "long"],
)
def test_metadata_that_is_no_json_is_refused(tmp_path: Path, value: Any):
    with pytest.raises(SnapshotError, match="its header"):
        write_arrays(tmp_path, {}, {"value": value})
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_missing(tmp_path: Path):
    with pytest.raises(SnapshotError, match="nowhere cannot be written: no such file"):
        write_arrays(tmp_path / "nowhere", ARRAYS, {})


def test_writers_of_the_same_content_at_once(tmp_path: Path):
    def write(_: int) -> Path:
        path = write_arrays(tmp_path, ARRAYS, METADATA)
        same(open_arrays(path, verify="full"), ARRAYS)
        return path

    with ThreadPoolExecutor(8) as pool:
        paths = set(pool.map(write, range(40)))
    assert list(tmp_path.iterdir()) == list(paths)


def test_an_error_before_the_renaming_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(SnapshotError, match="no space left"):
        write_arrays(tmp_path, ARRAYS, METADATA)
    assert not list(tmp_path.iterdir())


def test_content_is_on_the_disk_before_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(descriptor: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        done.append(f"sync {kind} of {os.fstat(descriptor).st_size if kind == 'file' else '-'}")
        fsync(descriptor)

    def note_replace(old: Path, new: Path) -> None:
        done.append("rename")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    path = write_arrays(tmp_path, ARRAYS, METADATA)
    assert done == [f"sync file of {path.stat().st_size}", "rename", "sync folder of -"]


@pytest.mark.integration
def test_a_crash_before_the_renaming_leaves_no_snapshot(tmp_path: Path):
    code = """if True:
        import os, sys
        from pathlib import Path
        import numpy as np
        from headgate.match.array_file import write_arrays
        os.replace = lambda *_: os._exit(9)
        write_arrays(Path(sys.argv[1]), {"a": np.arange(9)}, {})
    """
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode == 9
    assert [path.suffix for path in tmp_path.iterdir()] == [".tmp"]
    path = write_arrays(tmp_path, {"a": np.arange(9)}, {})
    assert list(tmp_path.glob("*.headgate")) == [path]
    same(open_arrays(path, verify="full"), {"a": np.arange(9)})


# Accidents


@pytest.mark.parametrize("mode", MODES)
def test_every_flipped_byte_is_found(snapshot_path: Path, mode: Verify):
    """Every byte in turn: numbers, hash, header, fill, arrays. The bit is drawn."""
    content = snapshot_path.read_bytes()
    drawn = random.Random(1)
    snapshot_path.unlink()
    snapshot_path.write_bytes(content)
    with snapshot_path.open("r+b", buffering=0) as file:
        for place in range(len(content)):
            file.seek(place)
            file.write(bytes([content[place] ^ 1 << drawn.randrange(8)]))
            with pytest.raises(SnapshotError):
                open_arrays(snapshot_path, verify=mode)
            file.seek(place)
            file.write(content[place : place + 1])
    same(open_arrays(snapshot_path, verify=mode), ARRAYS)


def test_every_bit_of_a_word_reaches_the_checksum():
    words = np.arange(64, dtype=np.uint64)
    sums = {checksum([words])}
    for place in range(64):
        for bit in range(64):
            changed = words.copy()
            changed[place] ^= np.uint64(1 << bit)
            sums.add(checksum([changed]))
    for place in range(63):
        changed = words.copy()
        changed[[place, place + 1]] = changed[[place + 1, place]]
        sums.add(checksum([changed]))
    assert len(sums) == 1 + 64 * 64 + 63


@given(st.binary(max_size=300), st.integers(1, 4))
def test_the_checksum_does_not_depend_on_the_buffers(content: bytes, blocks: int):
    whole = np.concatenate(
        [
            np.zeros(0, np.uint64),
            *(each.copy() for each in buffers_of(np.frombuffer(content, "u1"))),
        ]
    )
    parts = [whole[at : at + 8 * blocks] for at in range(0, len(whole), 8 * blocks)]
    assert checksum(parts) == checksum([whole])


def test_a_file_that_is_cut_off_anywhere(snapshot_path: Path):
    content = snapshot_path.read_bytes()
    overwrite(snapshot_path, b"")
    refused(snapshot_path, "the file is empty")
    for length in {*range(1, 140), *range(140, len(content), 61), len(content) - 1}:
        overwrite(snapshot_path, content[:length])
        refused(snapshot_path, "the file is cut off", modes=("checksum",))


@pytest.mark.parametrize("more", [b"\0", b"\0" * 64, b"x" * 5000])
def test_a_file_that_is_too_long(snapshot_path: Path, more: bytes):
    overwrite(snapshot_path, snapshot_path.read_bytes() + more)
    refused(snapshot_path, "the file is too long")


def test_a_changed_array_is_named(snapshot_path: Path):
    content = bytearray(snapshot_path.read_bytes())
    content[-3] ^= 1
    overwrite(snapshot_path, bytes(content))
    refused(snapshot_path, "array 'words' was changed: its hash differs")


def test_a_file_under_another_name(tmp_path: Path, snapshot_path: Path):
    other = write_arrays(tmp_path, {}, {})
    overwrite(other, snapshot_path.read_bytes())
    refused(other, f"its content belongs to the name {snapshot_path.name}")


def test_files_that_are_no_snapshots(tmp_path: Path):
    text = tmp_path / "a.headgate"
    text.write_text("HEADLINE " * 50)
    refused(text, "no snapshot: it does not begin with HEADGATE")
    refused(tmp_path / "missing.headgate", "cannot be opened: no such file")
    refused(tmp_path, "this is no file")
    os.mkfifo(tmp_path / "pipe.headgate")
    refused(tmp_path / "pipe.headgate", "this is no file")


def test_an_error_of_the_disk(snapshot_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "preadv", fail)
    refused(snapshot_path, "cannot be opened: input/output error")


def test_reads_that_stop_early_go_on(snapshot_path: Path, monkeypatch: pytest.MonkeyPatch):
    preadv = os.preadv
    monkeypatch.setattr(
        os, "preadv", lambda fd, buffers, offset: preadv(fd, [buffers[0][:7]], offset)
    )
    same(open_arrays(snapshot_path, verify="full"), ARRAYS)


def test_a_file_that_is_cut_off_meanwhile(snapshot_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "preadv", lambda *_: 0)
    refused(snapshot_path, "the file was cut off while it was read")


# Malice: files whose header has the right hash and the right name, but lies


def forge(
    path: Path,
    header: bytes,
    data: bytes = b"",
    *,
    version: int = 1,
    header_length: int | None = None,
    file_length: int | None = None,
) -> Path:
    header = header.ljust(-(-len(header) // 64) * 64)
    numbers = struct.pack(
        "<8sQQQ",
        b"HEADGATE",
        version,
        len(header) if header_length is None else header_length,
        START_BYTES + len(header) + len(data) if file_length is None else file_length,
    )
    sha256 = hashlib.sha256(numbers + header)
    forged = path.with_name(f"{sha256.hexdigest()[:32]}.headgate")
    forged.unlink(missing_ok=True)
    forged.write_bytes(numbers + sha256.digest() + header + data)
    return forged


def canonical(header: object) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def parts_of(path: Path) -> tuple[Header, bytes]:
    content = path.read_bytes()
    (header_length,) = struct.unpack_from("<Q", content, 16)
    end = START_BYTES + header_length
    return json.loads(content[START_BYTES:end]), content[end:]


def test_rewriting_the_same_header_changes_nothing(snapshot_path: Path):
    before = snapshot_path.read_bytes()
    header, data = parts_of(snapshot_path)
    assert forge(snapshot_path, canonical(header), data) == snapshot_path
    assert snapshot_path.read_bytes() == before


def test_content_with_a_forged_checksum_is_found_by_full(snapshot_path: Path):
    header, data = parts_of(snapshot_path)
    changed = bytearray(data)
    changed[0] ^= 1
    first = np.frombuffer(bytes(changed[:448]), np.uint64).copy()
    header["arrays"][0]["checksum"] = checksum([first])
    forged = forge(snapshot_path, canonical(header), bytes(changed))
    assert open_arrays(forged).arrays["atoms"][0] == 1
    refused(forged, "array 'atoms' was changed", modes=("full",))


SIZES = [-1, -64, 1, 63, 64, 2**31, 2**62, 2**63 - 1, 2**63, 2**64, 10**400, 0.0, 1.5, True, None]
SIZES += ["0", [], {}]
LIES: list[tuple[str, Any]] = [
    *(("offset", value) for value in SIZES),
    *(("length", value) for value in [0, 399, 401, *SIZES]),
    *(("shape", [value]) for value in [0, *SIZES]),
    *(("shape", value) for value in [None, 100, "100", {}, [], [100, 0], [-10, -10], [100.0]]),
    ("shape", [100] + [1] * 40),
    ("shape", [2**32, 2**32]),
    *(("dtype", each) for each in ["<i8", "<u2", ">i4", "=i4", "i4", "O", "|O", "<U1", "|V4"]),
    *(("dtype", each) for each in ["<M8[s]", "<c8", "<f16", "", "x" * 10_000, None, 4, [], {}]),
    *(("name", value) for value in [None, 1, [], "zzz", "words", "bits"]),
    *(("checksum", value) for value in [None, 1, "", "0" * 16, "0" * 17, "G" * 16, "é" * 16]),
    *(("sha256", value) for value in [None, 1, "", "0" * 63, "0" * 65, "A" * 64]),
]


@pytest.mark.parametrize(("field", "value"), LIES, ids=lambda value: f"{value!r:.24}")
def test_a_wrong_array_entry_is_refused(snapshot_path: Path, field: str, value: Any):
    header, data = parts_of(snapshot_path)
    header["arrays"][0][field] = value
    refused(forge(snapshot_path, canonical(header), data), "array|no canonical|hash differs")


def test_a_wrong_sha256_is_found_by_full(snapshot_path: Path):
    header, data = parts_of(snapshot_path)
    header["arrays"][0]["sha256"] = "0" * 64
    refused(forge(snapshot_path, canonical(header), data), "'atoms' was changed", modes=("full",))


def test_an_empty_array_with_a_shape_beyond_every_address(snapshot_path: Path):
    header, data = parts_of(snapshot_path)
    header["arrays"][2]["shape"] = [0, 2**62, 2**62]
    refused(forge(snapshot_path, canonical(header), data), "'empty' has a shape beyond")


def change(apply: Callable[[Header], object]) -> Callable[[Header], bytes]:
    def changed(header: Header) -> bytes:
        apply(header)
        return canonical(header)

    return changed


HEADERS: dict[str, Callable[[Header], bytes]] = {
    "no arrays": change(lambda header: header.pop("arrays")),
    "no metadata": change(lambda header: header.pop("metadata")),
    "another key": change(lambda header: header.update(more=1)),
    "arrays are an object": change(lambda header: header.update(arrays={})),
    "metadata is a list": change(lambda header: header.update(metadata=[])),
    "an array too few": change(lambda header: header["arrays"].pop()),
    "an array twice": change(lambda header: header["arrays"].append(header["arrays"][-1])),
    "another order": change(lambda header: header["arrays"].reverse()),
    "an array is a number": change(lambda header: header["arrays"].append(1)),
    "a field is missing": change(lambda header: header["arrays"][0].pop("shape")),
    "a field is unknown": change(lambda header: header["arrays"][0].update(more=1)),
    "a list": lambda _: b"[]",
    "nothing": lambda _: b"",
    "spaces": lambda _: b" " * 64,
    "no utf-8": lambda _: b"\xff\xfe",
    "utf-16": lambda header: canonical(header).decode().encode("utf-16"),
    "half": lambda header: canonical(header)[:-9],
    "deep": lambda _: b"[" * 1_000_000,
    "deep objects": lambda _: b'{"a":' * 500_000,
    "a long number": lambda _: b"1" * 1_000_000,
    "not a number": lambda header: canonical(header).replace(b"2.5", b"NaN"),
    "infinite": lambda header: canonical(header).replace(b"2.5", b"1e999"),
    "spelt otherwise": lambda header: canonical(header).replace(b"2.5", b"2.50"),
    "a key twice": lambda header: canonical(header).replace(b'{"cat', b'{"catalog_version":7,"cat'),
    "more spaces": lambda header: canonical(header) + b" " * 64,
    "a space within": lambda header: canonical(header).replace(b",", b", ", 1),
    "zeros behind": lambda header: canonical(header) + b"\0" * 3,
    "escaped": lambda header: canonical(header).replace("é".encode(), b"\\u00e9"),
    "half a pair": lambda header: canonical(header).replace("é".encode(), b"\\ud800"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_of_another_form_is_refused(snapshot_path: Path, name: str):
    header, data = parts_of(snapshot_path)
    refused(forge(snapshot_path, HEADERS[name](header), data), "header|array|metadata")


def lengths(actual: int) -> Iterator[int]:
    yield from (0, 1, 64, actual - 64, actual - 1, actual + 1, actual + 64)
    yield from (HEADER_BYTES_MAX + 64, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1)


def test_a_wrong_header_length_is_refused(snapshot_path: Path):
    header, data = parts_of(snapshot_path)
    for length in lengths(len(canonical(header)) // 64 * 64 + 64):
        forged = forge(snapshot_path, canonical(header), data, header_length=length)
        refused(forged, "header")


def test_a_wrong_file_length_is_refused(snapshot_path: Path):
    header, data = parts_of(snapshot_path)
    for length in lengths(snapshot_path.stat().st_size):
        forged = forge(snapshot_path, canonical(header), data, file_length=length)
        refused(forged, "the file is (cut off|too long)")


@pytest.mark.parametrize("version", [0, 2, 2**64 - 1])
def test_another_version(snapshot_path: Path, version: int):
    header, data = parts_of(snapshot_path)
    forged = forge(snapshot_path, canonical(header), data, version=version)
    refused(forged, f"has format version {version}, and this Headgate reads version 1; compile it")


@given(st.binary(max_size=400))
def test_any_bytes_behind_the_magic_give_an_error(content: bytes):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.headgate"
        path.write_bytes(b"HEADGATE" + content)
        refused(path, "cannot be opened")


@given(json_values)
def test_any_json_as_an_array_gives_an_error(value: Any):
    with tempfile.TemporaryDirectory() as folder:
        header = {"arrays": [value], "metadata": {}}
        refused(forge(Path(folder) / "a", canonical(header)), "cannot be opened")


def test_control_characters_stay_out_of_messages(tmp_path: Path):
    with pytest.raises(SnapshotError) as caught:
        write_arrays(tmp_path, {"a\x1b[31m\n": np.array(["x"])}, {})
    assert str(caught.value).isprintable()
