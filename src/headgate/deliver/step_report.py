"""What a step of a worker has done, for who runs it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

ERRORS_MAX = 100


@dataclass(slots=True)
class StepReport:
    """What a step has done. Items are counted, for each subscription that got them."""

    sent: Counter[str] = field(default_factory=Counter)
    """By output."""
    failed: int = 0
    dead: int = 0
    files_written: int = 0
    moved: int = 0
    """How many positions the cursors have advanced."""
    errors: list[tuple[int, str]] = field(default_factory=list)
    """Subscription and error; the first hundred."""

    @property
    def is_idle(self) -> bool:
        return not (self.moved or self.sent or self.failed or self.dead)

    def add_error(self, subscription: int, error: str) -> None:
        if len(self.errors) < ERRORS_MAX:
            self.errors.append((subscription, error))
