"""The layout of a snapshot file: what its first bytes say, and whether that can be true.

    0     "HEADGATE"            8 bytes
    8     format version        64 bits, little-endian like everything here
    16    length of the header  in bytes, a multiple of 64
    24    length of the file    in bytes
    32    SHA-256               of bytes 0 to 31 and the header
    64    header                JSON, filled up with spaces
    …     arrays                sorted by name, each filled up with zeros to a multiple of 64

    {"arrays": [{"checksum": "8c…", "dtype": "<i4", "length": 400, "name": "atoms",
                 "offset": 0, "sha256": "e3…", "shape": [100]}, …],
     "metadata": {…}}

Offsets count from the end of the header, lengths are in bytes without the fill. Both hashes of an
array are taken with its fill. So the hash of the header stands for every byte of the file, and
it names the file.

Law: one content, one file. The header must be exactly the bytes that writing it again would
give (so no key comes twice and no number is NaN), and every array must begin where the one before
it ends. Arrays that overlap, lie outside the file or leave a gap are therefore not a matter of
many checks but of one.

Nothing here trusts the file: a header of somebody who wants harm gets a LayoutError before anything
is mapped, and costs no more memory than its at most 16 MB take as JSON.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from headgate.match.snapshot_checksum import BLOCK_BYTES, whole_blocks
from headgate.model.errors import printable

JSON = None | bool | int | float | str | Sequence["JSON"] | Mapping[str, "JSON"]

MAGIC = b"HEADGATE"
VERSION = 1
HEADER_BYTES_MAX = 16 * 1024 * 1024
DIMENSIONS_MAX = 32

_DTYPE_NAMES = "|b1 |i1 |u1 <i2 <u2 <i4 <u4 <i8 <u8 <f2 <f4 <f8"
DTYPES = {text: np.dtype(text) for text in _DTYPE_NAMES.split()}
"""Bytes have no order, so NumPy writes a bar where the others have '<'."""

_NUMBERS = struct.Struct("<8sQQQ")
_FIELDS = {"checksum", "dtype", "length", "name", "offset", "sha256", "shape"}
_CHECKSUM = re.compile(r"[0-9a-f]{16}")
_SHA256 = re.compile(r"[0-9a-f]{64}")

START_BYTES = _NUMBERS.size + hashlib.sha256().digest_size
assert START_BYTES == BLOCK_BYTES


class LayoutError(ValueError):
    """What is wrong with a file, without the file's name; `snapshot.py` adds it."""


@dataclass(frozen=True, slots=True)
class ArrayEntry:
    """Where one array lies, and what is known of it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    length: int
    checksum: str
    sha256: str

    @property
    def end(self) -> int:
        return self.offset + whole_blocks(self.length)


@dataclass(frozen=True, slots=True)
class Start:
    """The first 64 bytes."""

    numbers: bytes
    header_length: int
    file_length: int
    header_sha256: bytes


def encode(entries: Sequence[ArrayEntry], metadata: Mapping[str, JSON]) -> tuple[bytes, str]:
    """Everything before the first array, and the hash that names the file."""
    header = _header(entries, metadata)
    if len(header) > HEADER_BYTES_MAX:
        raise LayoutError(
            f"its header would have {len(header):,} bytes and may have {HEADER_BYTES_MAX:,}; "
            "put large metadata into an array"
        )
    data_length = entries[-1].end if entries else 0
    file_length = START_BYTES + len(header) + data_length
    numbers = _NUMBERS.pack(MAGIC, VERSION, len(header), file_length)
    sha256 = hashlib.sha256(numbers + header)
    start = numbers + sha256.digest()
    # What could not be opened is not written: keys that are no texts, say, or too many dimensions.
    decode_header(decode_start(start, file_length=file_length), header)
    return start + header, sha256.hexdigest()


def decode_start(start: bytes, *, file_length: int) -> Start:
    """The first 64 bytes of a file, or fewer where it has no more."""
    if not start:
        raise LayoutError("the file is empty; write or copy it again")
    if start[: len(MAGIC)] != MAGIC[: len(start)]:
        raise LayoutError("this is no snapshot: it does not begin with HEADGATE")
    if len(start) < START_BYTES:
        raise LayoutError(f"the file is cut off after {len(start)} bytes; write or copy it again")
    _, version, header_length, stated_length = _NUMBERS.unpack_from(start)
    if version != VERSION:
        raise LayoutError(
            f"it has format version {version}, and this Headgate reads version {VERSION}; "
            "compile it again, or use the Headgate that wrote it"
        )
    if file_length != stated_length:
        wrong = "cut off" if file_length < stated_length else "too long"
        raise LayoutError(
            f"the file is {wrong}: it should have {stated_length:,} bytes and has {file_length:,}; "
            "write or copy it again"
        )
    if header_length > HEADER_BYTES_MAX or START_BYTES + header_length > file_length:
        raise LayoutError(f"its header cannot have {header_length:,} bytes")
    return Start(start[: _NUMBERS.size], header_length, file_length, start[_NUMBERS.size :])


def decode_header(start: Start, header: bytes) -> tuple[list[ArrayEntry], dict[str, JSON], str]:
    """The arrays, the metadata, and the hash that names the file."""
    sha256 = hashlib.sha256(start.numbers + header)
    if sha256.digest() != start.header_sha256:
        raise LayoutError("its header was changed: the hash differs; write or copy it again")
    content = _json(header)
    if not isinstance(content, dict) or content.keys() != {"arrays", "metadata"}:
        raise LayoutError("its header does not have just 'arrays' and 'metadata'")
    arrays, metadata = content["arrays"], content["metadata"]
    if not isinstance(metadata, dict):
        raise LayoutError("its metadata is no JSON object")
    if not isinstance(arrays, list):
        raise LayoutError("its header has no list of arrays")
    entries = [_entry(each, number) for number, each in enumerate(arrays, 1)]
    if _header(entries, metadata) != header:
        raise LayoutError(
            "its header is no canonical JSON: keys must be texts, sorted, and come once"
        )
    _check_places(entries, data_length=start.file_length - START_BYTES - len(header))
    return entries, metadata, sha256.hexdigest()


def _header(entries: Sequence[ArrayEntry], metadata: Mapping[str, JSON]) -> bytes:
    content = {"arrays": [asdict(each) for each in entries], "metadata": metadata}
    try:
        text = json.dumps(
            content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        ).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise LayoutError(f"its header cannot be written as JSON: {error}") from None
    return text.ljust(whole_blocks(len(text)))


def _json(header: bytes) -> object:
    try:
        content: object = json.loads(header.decode())
    except (ValueError, RecursionError) as error:
        raise LayoutError(f"its header cannot be read as JSON: {printable(str(error))}") from None
    return content


def _entry(content: object, number: int) -> ArrayEntry:
    if not isinstance(content, dict) or content.keys() != _FIELDS:
        raise LayoutError(f"entry {number} of its header does not describe an array")
    name = content["name"]
    if not isinstance(name, str):
        raise LayoutError(f"array {number} of its header has no name")
    where = f"array '{printable(name)}'"
    for field, form in (("checksum", _CHECKSUM), ("sha256", _SHA256)):
        value = content[field]
        if not isinstance(value, str) or not form.fullmatch(value):
            raise LayoutError(f"the {field} of {where} is no hash")
    for field in ("offset", "length"):
        if not _is_size(content[field]):
            raise LayoutError(f"the {field} of {where} is no size in bytes")
    shape, dtype = content["shape"], content["dtype"]
    if not isinstance(shape, list) or not all(map(_is_size, shape)):
        raise LayoutError(f"the shape of {where} is no list of sizes")
    entry = ArrayEntry(**{**content, "shape": tuple(shape)})
    if not isinstance(dtype, str) or dtype not in DTYPES:
        known = ", ".join(DTYPES)
        raise LayoutError(f"{where} has an unknown type {dtype!r:.40}; known are {known}")
    _check_shape(entry, where)
    return entry


def _is_size(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _check_shape(entry: ArrayEntry, where: str) -> None:
    if len(entry.shape) > DIMENSIONS_MAX:
        raise LayoutError(
            f"{where} has {len(entry.shape)} dimensions and may have {DIMENSIONS_MAX}"
        )
    itemsize = DTYPES[entry.dtype].itemsize
    if math.prod(entry.shape) * itemsize != entry.length:
        raise LayoutError(f"{where} has a shape that does not fit its length in bytes")
    # NumPy's own limit, which counts even where another dimension is zero.
    if math.prod(each or 1 for each in entry.shape) * itemsize >= 2**63:
        raise LayoutError(f"{where} has a shape beyond every address")


def _check_places(entries: Sequence[ArrayEntry], *, data_length: int) -> None:
    place, before = 0, None
    for entry in entries:
        where = f"array '{printable(entry.name)}'"
        if before is not None and entry.name <= before:
            raise LayoutError(f"{where} comes twice or out of order")
        if entry.offset != place:
            raise LayoutError(f"{where} begins at {entry.offset:,} and should at {place:,}")
        if entry.end > data_length:
            raise LayoutError(f"{where} reaches beyond the end of the file")
        place, before = entry.end, entry.name
    if place != data_length:
        raise LayoutError(f"{data_length - place:,} bytes of the file belong to no array")
