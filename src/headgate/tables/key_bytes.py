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
    at = 0
    try:
        while at < len(content):
            part, at = _part_at(content, at)
            parts.append(part)
    except (struct.error, ValueError, IndexError) as error:
        raise StateError(f"the bytes of a key cannot be read: {error}") from None
    return tuple(parts)


def _part_at(content: bytes, at: int) -> tuple[Part, int]:
    tag, at = content[at : at + 1], at + 1
    match tag:
        case b"n":
            (number,) = _FLOAT.unpack_from(content, at)
            whole = number.is_integer() and abs(number) <= EXACT
            return (int(number) if whole else number), at + 8
        case b"i":
            return _INT.unpack_from(content, at)[0], at + 8
        case b"b":
            return content[at] == 1, at + 1
        case b"t" | b"y":
            (length,) = _LENGTH.unpack_from(content, at)
            found = content[at + 4 : at + 4 + length]
            if len(found) < length:
                raise ValueError("they are cut off")
            text = found.decode("utf-8", "surrogatepass") if tag == b"t" else found.hex()
            return text, at + 4 + length
    raise ValueError(f"{tag!r} is no part")


@nb.njit(nogil=True, cache=True)
def find_parts(start, data, first, begin, length):  # type: ignore[no-untyped-def]
    """Of strings from `first` on, the parts in their order; False if one is damaged.

    A string that has fewer parts than `begin` has columns has empty ones behind them.
    """
    for line in range(begin.shape[0]):
        at, end = start[first + line], start[first + line + 1]
        for part in range(begin.shape[1]):
            begin[line, part], length[line, part] = at, 0
            if at == end:
                continue
            size = 1
            if data[at] == NUMBER or data[at] == LONG:
                size = 9
            elif data[at] == BOOL:
                size = 2
            elif data[at] == TEXT or data[at] == BYTES:
                if at + 5 > end:
                    return False
                size = 5
                for place in range(4):
                    size += data[at + 1 + place] << (8 * place)
            else:
                return False
            if at + size > end:
                return False
            length[line, part] = size
            at += size
        if at != end:
            return False
    return True
