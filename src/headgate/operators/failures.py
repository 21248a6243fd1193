"""How often each operator failed, in what way, and what it said last. One failure is one item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from headgate.model.errors import printable

MESSAGE_LENGTH_MAX = 500


class Failure(StrEnum):
    RAISED = "raised"
    """It raised an exception."""
    WRONG = "wrong answer"
    """Its answer is not of the form or the types that it should have."""
    LATE = "late"
    """It took longer than it may; its process was killed."""
    DIED = "died"
    """Its process ended: a crash in C, no memory, a call of `exit`."""
    PAUSED = "paused"
    """It was not called, as it had failed too often in a row."""
    NOT_LOADED = "not loaded"
    """There is no function to call."""


Failed = dict[Failure, tuple[int, str]]
"""For how many items, and what was said last."""


@dataclass(slots=True)
class Failures:
    """Of one operator."""

    counts: dict[Failure, int] = field(default_factory=dict)
    last: str = ""

    def add(self, failure: Failure, count: int, message: str) -> None:
        self.counts[failure] = self.counts.get(failure, 0) + count
        # That it was not called says less than why.
        if failure is not Failure.PAUSED or not self.last:
            self.last = short(message)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def to_json(self) -> dict[str, object]:
        return {"counts": {str(each): count for each, count in self.counts.items()}} | (
            {"last": self.last} if self.last else {}
        )

    def merge(self, told: Mapping[str, object]) -> None:
        """Add what another process has counted."""
        counts, last = told.get("counts"), told.get("last")
        assert isinstance(counts, Mapping)
        for name, count in counts.items():
            self.add(Failure(name), int(count), str(last or self.last))


def short(message: str) -> str:
    """The message on one line and of a bounded length; an operator may say anything."""
    told = printable(message[: 2 * MESSAGE_LENGTH_MAX]).strip()
    return told if len(told) <= MESSAGE_LENGTH_MAX else told[: MESSAGE_LENGTH_MAX - 1] + "…"
