"""The hot loop over flat feeds that read others: an AND of rows of bits."""

from __future__ import annotations

import numba as nb


@nb.njit(nogil=True, cache=True)
def and_members(first, end, filter_, member_start, members, own, rows):  # type: ignore[no-untyped-def]
    """Rows first … end: those of their members, and what their filters let through, in `own`."""
    for row in range(first, end):
        low, high = member_start[row], member_start[row + 1]
        for word in range(rows.shape[1]):
            bits = own[filter_[row], word] if filter_[row] >= 0 else rows[members[low], word]
            for at in range(low, high):
                bits &= rows[members[at], word]
            rows[row, word] = bits
