"""Subscriptions of one signature as boxes, and samples of them (§4, Appendix D)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.tables.boxes import Boxes
from headgate.tables.join_graph import Signature


@dataclass(frozen=True, slots=True, eq=False)
class SignatureBoxes:
    """Subscriptions of one signature; bounds as in `MultiwayServer.subscribe`."""

    signature: Signature
    boxes: Boxes

    def sample(self, share: float, chance: np.random.Generator) -> SignatureBoxes:
        """About this share of the subscriptions, at least one."""
        boxes = self.boxes
        count = min(len(boxes.numbers), max(1, round(share * len(boxes.numbers))))
        kept = np.sort(chance.choice(len(boxes.numbers), count, replace=False))
        some = Boxes(boxes.numbers[kept], boxes.low[kept], boxes.high[kept])
        return SignatureBoxes(self.signature, some)
