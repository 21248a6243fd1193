"""The parts of join values: where each begins, and how long it is (`key_bytes.py`)."""

from __future__ import annotations

import numba as nb

from headgate.tables.row_kernels import BOOL, BYTES, LONG, NUMBER, TEXT


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
