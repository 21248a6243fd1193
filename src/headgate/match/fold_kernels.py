"""The kernels that fold texts: as model/text.py defines it, by tables (characters.py).

A text is read once. Most characters fold by themselves: their folded bytes are copied. What has a
combining class or JOINS makes a *segment* with the character before it:

    s o f t U+00AD e U+0301 n       U+00AD and U+0301 join:  s o f [t U+00AD] [e U+0301] n
                                                             s o f  t          é         n

A segment is decomposed, its marks are sorted by combining class, and what composes is composed
(UAX #15). That is correct because what begins with another character, folded or not, neither
composes with what is before it nor changes places with it.

Most segments need none of that: their characters fold to themselves, are in order, and nothing
composes. They are copied too, so Hindi and Thai are as fast as other texts.

Cost: linear. The marks of a long segment, which only a hostile text has, are sorted by counting.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from headgate.match.characters import (
    CLASS_MASK,
    FORM_SHIFT,
    IOTA,
    IOTA_BELOW,
    JOINS,
    YOUNG,
    decode,
    entry_of,
)

FOLDED = np.arange(256).astype(np.uint8)
"""The folded form of each byte of an ASCII text; all kinds of space are a space."""
FOLDED[65:91] += 32
FOLDED[9:14] = 32
FOLDED[28:32] = 32

SPACE = np.uint8(32)
SHORT = 64
"""More marks than these are sorted by counting."""
SCRATCH_PER_BYTE, SCRATCH_MORE = 2, 32
"""A segment has at most 18 points of its first character, and 4 of any two bytes behind it."""
_L, _V, _T, _S = 0x1100, 0x1161, 0x11A7, 0xAC00
_L_COUNT, _V_COUNT, _T_COUNT = 19, 21, 28
_S_COUNT = _L_COUNT * _V_COUNT * _T_COUNT


@nb.njit(nogil=True, cache=True)
def fold_texts(texts, first, characters, scratch, folded, is_young):  # type: ignore[no-untyped-def]
    """Fold the texts from number `first` on, while there is room; the first one that was not.

    In: texts TextArrays, characters CharacterArrays, scratch as in `_fold_segment`. Out: folded
    TextArrays, each text folded, with single spaces; is_young bool [texts], true for a text that
    Python must fold, which is empty.
    """
    start, data = texts
    block, entries, form_start, form_bytes = characters[:4]
    pairs, composed = characters.pairs, characters.composed
    folded_start, into = folded
    used = folded_start[first]
    for text in range(first, start.shape[0] - 1):
        begin, position, end = used, start[text], start[text + 1]
        # Where the segment begins, its last starter (−1 if that is not to be copied), and the class
        # of the mark behind it.
        before, before_used, starter, last_class = position, used, np.int32(-1), np.int32(0)
        if used + (end - position) > into.shape[0]:
            return text
        while position < end:
            byte = data[position]
            if byte < 128:
                before, before_used = position, used
                starter, last_class = np.int32(FOLDED[byte]), np.int32(0)
                used = _append(FOLDED[byte], begin, used, into)
                position += 1
                continue
            code, length = decode(data, position, end)
            entry = entry_of(code, block, entries)
            if entry & YOUNG:
                is_young[text] = True
                used = begin
                break
            form, combining = entry >> FORM_SHIFT, entry & CLASS_MASK
            if combining or entry & JOINS:
                if starter < 0 or not _may_follow(
                    entry, combining, last_class, starter, code, pairs, composed
                ):
                    position, used = _fold_segment(
                        data, before, end, characters, scratch, begin, before_used, into
                    )
                    if used < 0:
                        return text
                    starter = np.int32(-1)
                    continue
                starter = starter if combining else code
            else:
                before, before_used = position, used
                starter = np.int32(-1) if form else code
            last_class = combining
            position += length
            if form == 0:
                for place in range(position - length, position):
                    into[used] = data[place]
                    used += 1
            else:
                if used + form_start[form + 1] - form_start[form] + end - position > into.shape[0]:
                    return text
                for place in range(form_start[form], form_start[form + 1]):
                    used = _append(form_bytes[place], begin, used, into)
        if used > begin and into[used - 1] == SPACE:
            used -= 1
        folded_start[text + 1] = used
    return start.shape[0] - 1


@nb.njit(nogil=True, cache=True, inline="always")
def _may_follow(entry, combining, last_class, starter, code, pairs, composed):  # type: ignore[no-untyped-def]
    """Whether a character stays as it is behind a starter and marks up to a class (UAX #15)."""
    if entry >> FORM_SHIFT or 0 < combining < last_class:
        return False
    is_blocked = last_class > 0 and combining <= last_class
    return (
        is_blocked
        or not entry & JOINS
        or _composition(np.int64(starter), np.int64(code), pairs, composed) < 0
    )


@nb.njit(nogil=True, cache=True, inline="always")
def _append(byte, begin, used, into):  # type: ignore[no-untyped-def]
    """Append a byte, unless it is a space at the beginning or after another one."""
    if byte == SPACE and (used == begin or into[used - 1] == SPACE):
        return used
    into[used] = byte
    return used + 1


@nb.njit(nogil=True, cache=True)
def _fold_segment(data, first, end, characters, scratch, begin, used, into):  # type: ignore[no-untyped-def]
    """Fold the segment that begins at `first`; where it ends, and what is used.

    In: data and into uint8, characters CharacterArrays, scratch: points and classes (int32), which
    have room for any segment. What is used is −1 if there is no room for the folded segment.
    """
    points, classes = scratch
    position, count = first, 0
    while position < end:
        code, length = decode(data, position, end)
        entry = entry_of(code, characters.block, characters.entries)
        if (position > first and not entry & (JOINS | CLASS_MASK)) or entry & YOUNG:
            break
        count = _put_points(np.int64(code), np.int64(entry), characters, points, np.int64(count))
        position += length
    if used + 4 * count + end - position > into.shape[0]:
        return position, -1
    for point in range(count):
        classes[point] = entry_of(points[point], characters.block, characters.entries) & CLASS_MASK
    _order(points, classes, np.int64(count))
    for point in range(count):
        if points[point] == IOTA_BELOW:
            points[point], classes[point] = IOTA, 0
    count = _compose(points, classes, np.int64(count), characters.pairs, characters.composed)
    for point in range(count):
        used = _encode(points[point], begin, used, into)
    return position, used


@nb.njit(nogil=True, cache=True)
def _put_points(code, entry, characters, points, count):  # type: ignore[no-untyped-def]
    """Write the code points of a character, decomposed and folded; how many there are now."""
    if _S <= code < _S + _S_COUNT:
        place = code - _S
        points[count] = _L + place // (_V_COUNT * _T_COUNT)
        points[count + 1] = _V + place // _T_COUNT % _V_COUNT
        points[count + 2] = _T + place % _T_COUNT
        return count + 2 + (place % _T_COUNT > 0)
    form = entry >> FORM_SHIFT
    if form == 0:
        points[count] = code
        return count + 1
    for place in range(characters.point_start[form], characters.point_start[form + 1]):
        points[count] = characters.points[place]
        count += 1
    return count


@nb.njit(nogil=True, cache=True)
def _order(points, classes, count):  # type: ignore[no-untyped-def]
    """Sort each run of marks by its combining classes, which are not 0; equal ones keep their
    order. Both are int32, in place."""
    first = 0
    while first < count:
        last = first
        while last < count and classes[last] > 0:
            last += 1
        if last - first > SHORT:
            _count_sort(points, classes, np.int64(first), np.int64(last))
        else:
            for unsorted in range(first + 1, last):
                point, of_point, place = points[unsorted], classes[unsorted], unsorted
                while place > first and classes[place - 1] > of_point:
                    points[place], classes[place] = points[place - 1], classes[place - 1]
                    place -= 1
                points[place], classes[place] = point, of_point
        first = last + 1


@nb.njit(nogil=True, cache=True)
def _count_sort(points, classes, first, last):  # type: ignore[no-untyped-def]
    """Sort a part of the points by their classes, as many as there are; both int32."""
    place = np.zeros(CLASS_MASK + 2, np.int64)
    for mark in range(first, last):
        place[classes[mark] + 1] += 1
    for of_mark in range(CLASS_MASK + 1):
        place[of_mark + 1] += place[of_mark]
    ordered = np.empty(last - first, np.int32)
    for mark in range(first, last):
        ordered[place[classes[mark]]] = points[mark]
        place[classes[mark]] += 1
    of_mark = 0  # place[c] is now where the marks of class c end
    for mark in range(last - first):
        while place[of_mark] <= mark:
            of_mark += 1
        points[first + mark], classes[first + mark] = ordered[mark], of_mark


@nb.njit(nogil=True, cache=True)
def _compose(points, classes, count, pairs, composed):  # type: ignore[no-untyped-def]
    """Compose what composes, in place; how many points are left. In: points and classes int32."""
    starter, used, last_class = -1, 0, 0
    for point in range(count):
        code, of_code = points[point], classes[point]
        is_next = starter >= 0 and (starter == used - 1 or last_class < of_code)
        both = np.int64(-1)
        if is_next:
            both = _composition(np.int64(points[starter]), np.int64(code), pairs, composed)
        if both >= 0:
            points[starter] = both
            continue
        if of_code == 0:
            starter = used
        points[used] = code
        last_class = of_code
        used += 1
    return used


@nb.njit(nogil=True, cache=True)
def _composition(first, second, pairs, composed):  # type: ignore[no-untyped-def]
    """The code point that two compose to, or −1; all are int64, as Numba compiles this once for
    each type."""
    if _L <= first < _L + _L_COUNT and _V <= second < _V + _V_COUNT:
        return _S + ((first - _L) * _V_COUNT + second - _V) * _T_COUNT
    if _S <= first < _S + _S_COUNT and _T < second < _T + _T_COUNT:
        return np.int64(-1) if (first - _S) % _T_COUNT else first + second - _T
    pair = first << 32 | second
    low, high = 0, pairs.shape[0]
    while low < high:  # the library's search takes seconds to compile
        middle = (low + high) >> 1
        if pairs[middle] < pair:
            low = middle + 1
        else:
            high = middle
    is_pair = low < pairs.shape[0] and pairs[low] == pair
    return np.int64(composed[low]) if is_pair else np.int64(-1)


@nb.njit(nogil=True, cache=True, inline="always")
def _encode(code, begin, used, into):  # type: ignore[no-untyped-def]
    """Append a code point in UTF-8; half of a surrogate pair has three bytes."""
    if code < 0x80:
        return _append(np.uint8(code), begin, used, into)
    if code < 0x800:
        into[used] = 0xC0 | code >> 6
    else:
        if code < 0x10000:
            into[used] = 0xE0 | code >> 12
        else:
            into[used] = 0xF0 | code >> 18
            used += 1
            into[used] = 0x80 | code >> 12 & 0x3F
        used += 1
        into[used] = 0x80 | code >> 6 & 0x3F
    into[used + 1] = 0x80 | code & 0x3F
    return used + 2
