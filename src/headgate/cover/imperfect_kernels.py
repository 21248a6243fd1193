"""The hot loop of imperfect merging: what a pair's merger would cost, for all cells.

A pair of conjunctions has conditions in common, and differs in others. `first`, `second` and
`joined` list, for each place that differs, the condition of the one, of the other and of the
merger; `both` is what holds where the first and the second hold. −1 (ANY) stands for no condition
at all, and −2 (NEVER) for one that nothing satisfies.
"""

from __future__ import annotations

import numba as nb

ANY, NEVER = -1, -2


@nb.njit(nogil=True, cache=True)
def weigh_pair(  # type: ignore[no-untyped-def]
    common,  # conditions that both conjunctions have
    differences,  # [place, 4]: first, second, joined and both
    low,  # [condition, cell]: the least probability of each condition
    high,  # [condition, cell]: the greatest
    matched_first,  # [cell]: how much the first one's parts match at least
    matched_second,
    weights,  # [cell]
    matched,  # [cell]: filled with what the parts of both match at least
):
    """The greatest probability of the merger, and of the items that it matches in vain."""
    total = vain = 0.0
    for cell in range(weights.shape[0]):
        shared = 1.0
        for number in common:
            shared *= high[number, cell]
        merged = overlap = shared
        left, right = matched_first[cell], matched_second[cell]
        for at in range(differences.shape[0]):
            joined, both = differences[at, 2], differences[at, 3]
            if joined >= 0:
                merged *= high[joined, cell]
            if both == NEVER:
                overlap = 0.0
            elif both >= 0:
                overlap *= high[both, cell]
            # A condition that the merger has not is no longer shared: from now on at its least.
            number = differences[at, 0]
            if number >= 0 and number != joined and low[number, cell] < high[number, cell]:
                left *= low[number, cell] / high[number, cell]
            number = differences[at, 1]
            if number >= 0 and number != joined and low[number, cell] < high[number, cell]:
                right *= low[number, cell] / high[number, cell]
        found = min(merged, max(left, right, left + right - overlap))
        matched[cell] = found
        total += weights[cell] * merged
        vain += weights[cell] * (merged - found)
    return total, vain
