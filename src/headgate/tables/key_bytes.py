"""Keys and join values as bytes that are equal where the values are.

    part        bytes
    number      n + float64            a whole number that is no float: i + int64
    text        t + length + UTF-8     already in the form in which it compares
    bool        b + 0 or 1
    bytes       y + length + bytes     of links too, which compare part by part; shown as hex digits

Numbers are little-endian. 5 and 5.0 are the same number, so they have the same bytes: a column of
ints joins with a column of floats. Lengths stand before what they measure, so that no two tuples of
parts have the same bytes.

Whole columns are written by row_format.py, which makes the same bytes; here is the form for one
tuple, and back.
"""

from __future__ import annotations

import struct

from headgate.model.errors import StateError
from headgate.tables.messages import Key

Part = str | int | float | bool
NUMBER, LONG, TEXT, BOOL, BYTES = b"n", b"i", b"t", b"b", b"y"
_FLOAT, _INT, _LENGTH = struct.Struct("<d"), struct.Struct("<q"), struct.Struct("<I")
EXACT = 2.0**53


def key_bytes(key: Key) -> bytes:
    return b"".join(map(_part_bytes, key))


def _part_bytes(part: Part) -> bytes:
    match part:
        case bool():
            return BOOL + (b"\1" if part else b"\0")
        case int() if float(part) != part:
            return LONG + _INT.pack(part)
        case int() | float():
            return NUMBER + _FLOAT.pack(part + 0.0)
        case str():
            text = part.encode("utf-8", "surrogatepass")
            return TEXT + _LENGTH.pack(len(text)) + text


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
            text = found.decode("utf-8", "surrogatepass") if tag == TEXT else found.hex()
            return text, at + 4 + length
    raise ValueError(f"{tag!r} is no part")
