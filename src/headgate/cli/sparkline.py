"""A row of numbers as a small picture, one character for each.

>>> sparkline([0, 1, 4, 8])
' ▁▄█'
>>> sparkline([]), sparkline([0, 0])
('', '  ')

Something is never shown as nothing: the least bar is for the least number above 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

BARS = "▁▂▃▄▅▆▇█"


def sparkline(numbers: Sequence[float]) -> str:
    greatest = max(numbers, default=0)
    return "".join(
        BARS[max(1, ceil(each / greatest * len(BARS))) - 1] if each > 0 else " " for each in numbers
    )
