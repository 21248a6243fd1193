"""The layout of an array file: its header, its checksums, and what is refused.

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

Offsets count from the end of the header, lengths are in bytes without the padding. Both hashes of
an array include its padding. So the hash of the header stands for every byte of the file, and it
names the file.

Invariant: one content, one file. The header must be exactly the bytes that writing it again would
give (so no key occurs twice and no number is NaN), and every array must begin where the one before
it ends. One check therefore finds arrays that overlap, lie outside of the file or leave a gap.

Nothing here trusts the file: a hostile header gets a LayoutError before anything is mapped, and
costs no more memory than its at most 16 MB take as JSON.

*The checksum* reads blocks of eight 64-bit words, one word for each of eight lanes, and ends with
the lanes mixed into one word:

    word 0 ──► lane 0 ─┐          mix(h, w):  h = (h xor w) · K      K odd
    word 1 ──► lane 1 ─┤                      h = h xor (h >> 32)
       ⋮                ├─► mix
    word 7 ──► lane 7 ─┘

`mix` is one-to-one in h for every w, and in w for every h. So a change within a single word, one
bit or all 64, always changes the checksum. Changes of many words are missed with a chance of 2^-64.
It is no protection against intent: that is what the SHA-256 is for.

Cost, for 300 MB in memory on one core of an AMD EPYC with SHA extensions:

    eight lanes of mix, Numba        23 ms   12.8 GB/s   chosen
    four lanes of mix, Numba         29 ms   10.3 GB/s   rejected: slower
    eight lanes without the shift    21 ms   14.6 GB/s   rejected: a high bit of a word only ever
                                                         reaches the bits above it
    zlib.crc32                       86 ms    3.5 GB/s   rejected: 32 bits only, and slower
    zlib.adler32                     97 ms    3.1 GB/s   rejected: the same, and weaker
    hashlib.sha256                  191 ms    1.6 GB/s   too slow for every open; `full` only
    hashlib.blake2b                 381 ms    0.8 GB/s   rejected: slower than SHA-256 here
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numba as nb
import numpy as np
import numpy.typing as npt

from headgate.model.errors import printable

Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

BLOCK_BYTES = 64
BUFFER_BYTES = 1 << 20
"""How much is read and hashed at once: 64 kB took a fifth longer, and 4 MB was no faster."""

_LANES = 8
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


# With explicit types it is loaded with the module, not by the first open: that saves 250 ms.
@nb.njit("void(uint64[::1], uint64[::1])", nogil=True, cache=True)
def mix_blocks(lanes: Words, words: Words) -> None:
    """Mix whole blocks (words uint64) into the lanes (uint64 [8]). Locals keep them in
    registers."""
    a, b, c, d = lanes[0], lanes[1], lanes[2], lanes[3]
    e, f, g, h = lanes[4], lanes[5], lanes[6], lanes[7]
    for i in range(0, len(words), 8):
        a = (a ^ words[i]) * _MULTIPLIER
        b = (b ^ words[i + 1]) * _MULTIPLIER
        c = (c ^ words[i + 2]) * _MULTIPLIER
        d = (d ^ words[i + 3]) * _MULTIPLIER
        e = (e ^ words[i + 4]) * _MULTIPLIER
        f = (f ^ words[i + 5]) * _MULTIPLIER
        g = (g ^ words[i + 6]) * _MULTIPLIER
        h = (h ^ words[i + 7]) * _MULTIPLIER
        a, b, c, d = a ^ (a >> _SHIFT), b ^ (b >> _SHIFT), c ^ (c >> _SHIFT), d ^ (d >> _SHIFT)
        e, f, g, h = e ^ (e >> _SHIFT), f ^ (f >> _SHIFT), g ^ (g >> _SHIFT), h ^ (h >> _SHIFT)
    lanes[0], lanes[1], lanes[2], lanes[3] = a, b, c, d
    lanes[4], lanes[5], lanes[6], lanes[7] = e, f, g, h


def checksum(buffers: Iterable[Words]) -> str:
    """16 hexadecimal digits. How the words are divided into buffers makes no difference."""
    # Different initial values, or two lanes with swapped words would have the same checksum.
    lanes = np.arange(1, _LANES + 1, dtype=np.uint64)
    for words in buffers:
        mix_blocks(lanes, words)
    return f"{_mix_lanes(lanes):016x}"


def checksum_and_sha256(buffers: Iterable[Words]) -> tuple[str, str]:
    """Both hashes in one pass; the SHA-256 has 64 hexadecimal digits."""
    sha256 = hashlib.sha256()

    def seen() -> Iterator[Words]:
        for words in buffers:
            sha256.update(words.data)
            yield words

    return checksum(seen()), sha256.hexdigest()


def buffers_of(content: Bytes) -> Iterator[Words]:
    """The bytes as words, padded with zeros to whole blocks. The buffer is reused."""
    buffer = np.empty(BUFFER_BYTES, np.uint8)
    for start in range(0, len(content), BUFFER_BYTES):
        part = content[start : start + BUFFER_BYTES]
        end = whole_blocks(len(part))
        buffer[: len(part)] = part
        buffer[len(part) : end] = 0
        yield buffer[:end].view(np.uint64)


def whole_blocks(length: int) -> int:
    """The length in bytes, rounded up to whole blocks.

    >>> whole_blocks(0), whole_blocks(1), whole_blocks(64)
    (0, 64, 64)
    """
    return -(-length // BLOCK_BYTES) * BLOCK_BYTES


def _mix_lanes(lanes: Words) -> int:
    mixed = 0
    for lane in lanes.tolist():
        mixed = (mixed ^ lane) * int(_MULTIPLIER) & 0xFFFFFFFFFFFFFFFF
        mixed ^= mixed >> 32
    return mixed


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
    """What is wrong with a file, without its name, which array_file.py adds."""


@dataclass(frozen=True, slots=True)
class ArrayEntry:
    """Where one array lies, its type and its hashes."""

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
    # Nothing is written that could not be opened, for example with too many dimensions.
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
    label = f"array '{printable(name)}'"
    for field, form in (("checksum", _CHECKSUM), ("sha256", _SHA256)):
        value = content[field]
        if not isinstance(value, str) or not form.fullmatch(value):
            raise LayoutError(f"the {field} of {label} is no hash")
    for field in ("offset", "length"):
        if not _is_size(content[field]):
            raise LayoutError(f"the {field} of {label} is no size in bytes")
    shape, dtype = content["shape"], content["dtype"]
    if not isinstance(shape, list) or not all(map(_is_size, shape)):
        raise LayoutError(f"the shape of {label} is no list of sizes")
    entry = ArrayEntry(**{**content, "shape": tuple(shape)})
    if not isinstance(dtype, str) or dtype not in DTYPES:
        names = ", ".join(DTYPES)
        raise LayoutError(f"{label} has an unknown type {dtype!r:.40}; known are {names}")
    _check_shape(entry, label)
    return entry


def _is_size(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _check_shape(entry: ArrayEntry, label: str) -> None:
    if len(entry.shape) > DIMENSIONS_MAX:
        raise LayoutError(
            f"{label} has {len(entry.shape)} dimensions and may have {DIMENSIONS_MAX}"
        )
    itemsize = DTYPES[entry.dtype].itemsize
    if math.prod(entry.shape) * itemsize != entry.length:
        raise LayoutError(f"{label} has a shape that does not fit its length in bytes")
    # NumPy's own limit, which counts even where another dimension is zero.
    if math.prod(each or 1 for each in entry.shape) * itemsize >= 2**63:
        raise LayoutError(f"{label} has a shape beyond every address")


def _check_places(entries: Sequence[ArrayEntry], *, data_length: int) -> None:
    offset, before = 0, None
    for entry in entries:
        label = f"array '{printable(entry.name)}'"
        if before is not None and entry.name <= before:
            raise LayoutError(f"{label} comes twice or out of order")
        if entry.offset != offset:
            raise LayoutError(f"{label} begins at {entry.offset:,} and should at {offset:,}")
        if entry.end > data_length:
            raise LayoutError(f"{label} reaches beyond the end of the file")
        offset, before = entry.end, entry.name
    if offset != data_length:
        raise LayoutError(f"{data_length - offset:,} bytes of the file belong to no array")
