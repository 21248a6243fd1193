"""Keys and join values as bytes that are equal if and only if the values are.

    value       bytes
    number      n + float64            an integer that is no float: i + int64
    text        t + length + UTF-8     already in the form in which it compares
    bool        b + 0 or 1
    bytes       y + length + bytes     links too, in the form in which they compare

Numbers are little-endian. 5 and 5.0 are the same number and have the same bytes, so a column of
ints joins with a column of floats. Lengths come before what they measure, so no two tuples of
values have the same bytes.

Whole columns are encoded by row_format.py, which makes the same bytes; this module encodes and
decodes one tuple, and finds the values inside of encoded tuples."""

from __future__ import annotations

import struct

import numba as nb

from headgate.model.errors import StateError
from headgate.tables.messages import Key

Part = str | int | float | bool
MISSING, NUMBER, LONG, TEXT, BOOL, BYTES = 0, ord("n"), ord("i"), ord("t"), ord("b"), ord("y")
"""The tags of values."""
_FLOAT, _INT, _LENGTH = struct.Struct("<d"), struct.Struct("<q"), struct.Struct("<I")
EXACT = 2.0**53


def key_bytes(key: Key) -> bytes:
    return b"".join(map(_part_bytes, key))


def _part_bytes(part: Part) -> bytes:
    match part:
        case bool():
            return b"b" + (b"\1" if part else b"\0")
        case int() if float(part) != part:
            return b"i" + _INT.pack(part)
        case int() | float():
            return b"n" + _FLOAT.pack(part + 0.0)
        case str():
            text = part.encode("utf-8", "surrogatepass")
            return b"t" + _LENGTH.pack(len(text)) + text


def key_of(content: bytes) -> Key:
    """The tuple with these bytes.

    >>> key_of(key_bytes(("GOOG", 5, 2.5, True, 2**62 + 1)))
    ('GOOG', 5, 2.5, True, 4611686018427387905)
    """
    parts: list[Part] = []
    position = 0
    try:
        while position < len(content):
            part, position = _part_at(content, position)
            parts.append(part)
    except (struct.error, ValueError, IndexError) as error:
        raise StateError(f"the bytes of a key cannot be read: {error}") from None
    return tuple(parts)


def _part_at(content: bytes, position: int) -> tuple[Part, int]:
    tag, position = content[position : position + 1], position + 1
    match tag:
        case b"n":
            (number,) = _FLOAT.unpack_from(content, position)
            whole = number.is_integer() and abs(number) <= EXACT
            return (int(number) if whole else number), position + 8
        case b"i":
            return _INT.unpack_from(content, position)[0], position + 8
        case b"b":
            return content[position] == 1, position + 1
        case b"t" | b"y":
            (length,) = _LENGTH.unpack_from(content, position)
            encoded = content[position + 4 : position + 4 + length]
            if len(encoded) < length:
                raise ValueError("a text is truncated")
            text = encoded.decode("utf-8", "surrogatepass") if tag == b"t" else encoded.hex()
            return text, position + 4 + length
    raise ValueError(f"unknown tag {tag!r}")


@nb.njit(nogil=True, cache=True)
def find_parts(start, data, first, begin, length):  # type: ignore[no-untyped-def]
    """Find the parts of the encoded tuples from `first` on; return False if one is damaged.

    Writes where each part begins and its length to `begin` and `length` (int64, [tuple, part]); a
    tuple with fewer parts gets empty ones at its end.
    """
    for line in range(begin.shape[0]):
        position, end = start[first + line], start[first + line + 1]
        for part in range(begin.shape[1]):
            begin[line, part], length[line, part] = position, 0
            if position == end:
                continue
            size = 1
            if data[position] == NUMBER or data[position] == LONG:
                size = 9
            elif data[position] == BOOL:
                size = 2
            elif data[position] == TEXT or data[position] == BYTES:
                if position + 5 > end:
                    return False
                size = 5
                for place in range(4):
                    size += data[position + 1 + place] << (8 * place)
            else:
                return False
            if position + size > end:
                return False
            length[line, part] = size
            position += size
        if position != end:
            return False
    return True
