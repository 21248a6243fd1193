"""Where kernels write the messages of a batch, and whom they tell."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headgate.tables import change_kernels as kernels
from headgate.tables.audience import Audience
from headgate.tables.box_tree_kernels import Floats, Longs
from headgate.tables.schemes import SCHEMES

ROOM_MIN = 1_024


@dataclass(slots=True)
class Desk:
    """Where the messages of a batch are written; it grows, and is used again."""

    header: Longs = field(default_factory=lambda: np.empty((ROOM_MIN, kernels.HEADER), np.int64))
    numbers: Floats = field(default_factory=lambda: np.empty(ROOM_MIN))
    wanted: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(ROOM_MIN, np.bool_))
    used: Longs = field(default_factory=lambda: np.zeros(2, np.int64))

    def make_room(self, needs: Longs) -> None:
        messages, numbers, _, marks = needs[:4].tolist()
        if self.used[0] + messages > len(self.header):
            more = np.empty((len(self.header) + messages, kernels.HEADER), np.int64)
            self.header = np.concatenate([self.header, more])
        if self.used[1] + numbers > len(self.numbers):
            more_numbers = np.empty(len(self.numbers) + numbers)
            self.numbers = np.concatenate([self.numbers, more_numbers])
        if marks > len(self.wanted):
            self.wanted = np.empty(2 * marks, np.bool_)

    def written(self) -> tuple[Longs, Floats]:
        return self.header[: self.used[0]].copy(), self.numbers[: self.used[1]].copy()


def teller(audience: Audience, desk: Desk) -> kernels.Teller:
    return kernels.Teller(
        audience.trees,
        audience.questions,
        audience.anchors,
        SCHEMES[audience.scheme].code,
        kernels.Out(desk.header, desk.numbers, desk.used),
        desk.wanted,
    )
