"""A merger: one filter that stands for several ([MBD §2])."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.model.filters import Filter


@dataclass(frozen=True, slots=True)
class Merger:
    """P(filter) ⊇ P(part 1) ∪ … ∪ P(part n), where the parts are positions in what was merged.

    `degree` is the share of P(filter) that no part matches ([MBD], Definitions 1 and 2); 0 for a
    perfect merger. `imt` is the degree times the probability of the filter: the share of all items
    that are forwarded in vain.
    """

    filter: Filter
    parts: tuple[int, ...]
    degree: float = 0.0
    imt: float = 0.0
