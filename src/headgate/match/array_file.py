"""Array files: named arrays and JSON metadata, immutable, mapped into memory, checked by hash.

    write_arrays(folder, arrays, metadata)  ──►  folder/2f9c…51.headgate
    open_arrays(path)                       ──►  ArrayFile(path, hash, metadata, arrays)

    name ◄─ SHA-256 of the header ◄─ lists, for each array ─┬─ a 64-bit checksum   each open
            each open                                        └─ a SHA-256          verify="full"

Invariants. The same arrays and metadata give the same bytes, so the same name. The opened content
is the written content: every byte is covered by a hash. A file appears under its name complete, or
not at all; once `write_arrays` has returned it survives a loss of power. Reading runs no code from
the file (array_file_layout.py has the layout, and what is refused).

*What is checked when?* An open must not take longer than 100 ms for a few hundred MB, and SHA-256
takes 191 ms for 300 MB. So an open checks the header and the name with SHA-256, and the arrays with
a checksum at the speed of memory. That finds accidents: bad copies, flipped bits, files mixed up.
Against somebody who changes a file on purpose and keeps its checksums, `verify="full"` compares the
SHA-256 of every array, which the header holds and which the name therefore stands for. Use it
whenever a file comes from elsewhere.

    to open, median of nine         200 MB    300 MB
    verify="checksum"                36 ms     66 ms
    … with no page in the cache     117 ms    187 ms    after FADV_DONTNEED, once
    verify="full"                   168 ms    262 ms

*Why is the content read, and then mapped?* Checking through the mapping takes 32 ms for 300 MB and
reading takes 50 ms, both from the page cache. But a disk that cannot read a page of a mapping kills
the process by SIGBUS; a failed read is an error that can be reported. After the check the
pages are in the cache, and the mapping finds them there.

*How long does it live?* The arrays are read-only views of one shared mapping and keep it alive: it
is unmapped with the last array. There is nothing to close. Processes that open the same file share
its pages. A file may be deleted or replaced while it is mapped; it must never be written to or
truncated, and therefore it has no write permission.

Rejected: a hash of the whole file as its name, because it could not be checked at each open;
`.npz`, which cannot be mapped; one `.npy` per array, because a folder cannot be renamed over
another one and nothing would hold the parts together; Arrow IPC
(docs/design/2026-11-17-array-container.md).
"""

from __future__ import annotations

import mmap
import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from headgate.match.array_file_layout import (
    BUFFER_BYTES,
    DTYPES,
    JSON,
    START_BYTES,
    ArrayEntry,
    Bytes,
    LayoutError,
    Words,
    buffers_of,
    checksum,
    checksum_and_sha256,
    decode_header,
    decode_start,
    encode,
    whole_blocks,
)
from headgate.model.errors import SnapshotError, printable

SUFFIX = ".headgate"
NAME_DIGITS = 32

Array = npt.NDArray[Any]  # of one of DTYPES: which one, only the header knows
Verify = Literal["checksum", "full"]


@dataclass(frozen=True, slots=True, eq=False)
class ArrayFile:
    """An open file. Thread-safe; the arrays are read-only views.

    Two files with the same hash have the same arrays and the same metadata.
    """

    path: Path
    hash: str
    metadata: Mapping[str, JSON]
    arrays: Mapping[str, Array]


def write_arrays(folder: Path, arrays: Mapping[str, Array], metadata: Mapping[str, JSON]) -> Path:
    """Write a file with this content. If it exists already and is sound, it is left as it is.

    Many processes may write at once, the same content too. Arrays must not change meanwhile.
    """
    with _as_snapshot_errors(f"a snapshot in {folder}", "written"):
        contents = {name: _plain_array(name, arrays[name]) for name in sorted(arrays)}
        entries = _entries(contents)
        start, sha256 = encode(entries, dict(metadata))
        path = folder / f"{sha256[:NAME_DIGITS]}{SUFFIX}"
        if not _is_valid_file(path):
            _write_whole(path, start, [_bytes(each) for each in contents.values()])
        _sync_folder(folder)
    return path


def write_arrays_as(path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, JSON]) -> None:
    """Write a file of this name; it replaces what was there. Its name does not depend on its
    content, so it is opened with `any_name`."""
    with _as_snapshot_errors(f"the snapshot {path}", "written"):
        contents = {name: _plain_array(name, arrays[name]) for name in sorted(arrays)}
        start, _ = encode(_entries(contents), dict(metadata))
        _write_whole(path, start, [_bytes(each) for each in contents.values()])
        _sync_folder(path.parent)


def open_arrays(path: Path, *, verify: Verify = "checksum", any_name: bool = False) -> ArrayFile:
    """The arrays of this file, mapped and checked; the module docstring says what each check
    finds."""
    assert verify in get_args(Verify), f"verify is one of {get_args(Verify)}, not {verify!r}"
    with _as_snapshot_errors(f"the snapshot {path}", "opened"), _opened(path) as descriptor:
        file_length = _regular_file_length(descriptor)
        start = decode_start(os.pread(descriptor, START_BYTES, 0), file_length=file_length)
        header = _read(descriptor, START_BYTES, start.header_length)
        entries, metadata, sha256 = decode_header(start, header)
        name = f"{sha256[:NAME_DIGITS]}{SUFFIX}"
        if path.name != name and not any_name:
            raise LayoutError(f"its content belongs to the name {name}; copy it again or rename it")
        data_start = START_BYTES + start.header_length
        for entry in entries:
            _check_content(descriptor, data_start, entry, verify)
        arrays = _map(descriptor, file_length, data_start, entries)
    return ArrayFile(
        path, sha256[:NAME_DIGITS], MappingProxyType(metadata), MappingProxyType(arrays)
    )


def _plain_array(name: str, array: Array) -> Array:
    """The array in C order and little-endian; it is copied only if it is not so already."""
    if not isinstance(name, str):
        raise LayoutError(f"the name {name!r:.40} of an array is no text")
    dtype = array.dtype.newbyteorder("<")
    if dtype.str not in DTYPES:
        raise LayoutError(
            f"array '{printable(name)}' has the type {array.dtype}; known are {', '.join(DTYPES)}"
        )
    return np.asarray(array, dtype=dtype, order="C")


def _bytes(array: Array) -> Bytes:
    return array.reshape(-1).view(np.uint8)


def _entries(contents: Mapping[str, Array]) -> list[ArrayEntry]:
    entries: list[ArrayEntry] = []
    for name, array in contents.items():
        offset = entries[-1].end if entries else 0
        hashes = checksum_and_sha256(buffers_of(_bytes(array)))
        entries.append(
            ArrayEntry(name, array.dtype.str, array.shape, offset, array.nbytes, *hashes)
        )
    return entries


def _is_valid_file(path: Path) -> bool:
    """Whether the file can stay. A new file in its place would not share pages with the old one."""
    try:
        open_arrays(path)
    except SnapshotError:
        return False
    return True


def _write_whole(path: Path, start: bytes, contents: Sequence[Bytes]) -> None:
    """Write under a temporary name, then rename; a process that is killed leaves only the
    temporary."""
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(8)}.tmp")
    read_only = 0o444  # permissions apply to later opens, not to this descriptor
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, read_only)
    try:
        with open(descriptor, "wb") as file:
            file.write(start)
            for content in contents:
                file.write(content.data)
                file.write(bytes(whole_blocks(len(content)) - len(content)))
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _sync_folder(folder: Path) -> None:
    """A name is on the disk only when its folder is, even if another process has written it."""
    with _opened(folder) as descriptor:
        os.fsync(descriptor)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    # Without O_NONBLOCK, opening a pipe would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _regular_file_length(descriptor: int) -> int:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise LayoutError("this is no file; name a file that write_arrays has made")
    return status.st_size


def _read(descriptor: int, offset: int, length: int) -> bytes:
    content = bytearray(length)
    _fill(descriptor, memoryview(content), offset)
    return bytes(content)


def _fill(descriptor: int, buffer: memoryview, offset: int) -> None:
    """A read may return early, before a page that cannot be read; the next call then reports
    why."""
    while buffer:
        length = os.preadv(descriptor, [buffer], offset)
        if not length:
            raise LayoutError("the file was cut off while it was read")
        buffer, offset = buffer[length:], offset + length


def _check_content(descriptor: int, data_start: int, entry: ArrayEntry, verify: Verify) -> None:
    buffers = _read_buffers(descriptor, data_start + entry.offset, data_start + entry.end)
    if verify == "full":
        sound = checksum_and_sha256(buffers) == (entry.checksum, entry.sha256)
    else:
        sound = checksum(buffers) == entry.checksum
    if not sound:
        raise LayoutError(
            f"array '{printable(entry.name)}' was changed: its hash differs; write or copy it again"
        )


def _read_buffers(descriptor: int, offset: int, end: int) -> Iterator[Words]:
    buffer = np.empty(min(BUFFER_BYTES, end - offset), np.uint8)
    while offset < end:
        part = buffer[: end - offset]
        _fill(descriptor, part.data, offset)
        offset += len(part)
        yield part.view(np.uint64)


def _map(
    descriptor: int, file_length: int, data_start: int, entries: Sequence[ArrayEntry]
) -> dict[str, Array]:
    try:
        mapping = mmap.mmap(descriptor, file_length, access=mmap.ACCESS_READ)
    except ValueError:  # the file is shorter than it was a moment ago
        raise LayoutError("the file was cut off while it was read") from None
    return {
        entry.name: np.ndarray(
            entry.shape, DTYPES[entry.dtype], buffer=mapping, offset=data_start + entry.offset
        )
        for entry in entries
    }


@contextmanager
def _as_snapshot_errors(subject: str, done: str) -> Iterator[None]:
    """Turn a LayoutError or OSError into a SnapshotError that names its subject."""
    subject = printable(subject)
    try:
        yield
    except LayoutError as error:
        raise SnapshotError(f"{subject} cannot be {done}: {error}") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SnapshotError(f"{subject} cannot be {done}: {reason}") from error
