"""Spans of time and counts of items: `every 3 hours`, `for 30 days`, `last 100 items`.

A month is 30 days and a year 365, so that a window is equally long wherever it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from headgate.model.errors import InvalidValue

COUNT_MAX = 10_000_000
YEARS_MAX = 100


class Unit(StrEnum):
    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


_UNIT_S = {
    Unit.SECOND: 1,
    Unit.MINUTE: 60,
    Unit.HOUR: 3_600,
    Unit.DAY: 86_400,
    Unit.WEEK: 7 * 86_400,
    Unit.MONTH: 30 * 86_400,
    Unit.YEAR: 365 * 86_400,
}


@dataclass(frozen=True, slots=True)
class Duration:
    count: int
    unit: Unit

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InvalidValue("a duration is at least 1")
        if self.count * _UNIT_S[self.unit] > YEARS_MAX * _UNIT_S[Unit.YEAR]:
            raise InvalidValue(f"a duration is at most {YEARS_MAX} years")

    @property
    def seconds(self) -> int:
        return self.count * _UNIT_S[self.unit]

    @property
    def timedelta(self) -> timedelta:
        return timedelta(seconds=self.seconds)

    def __str__(self) -> str:
        return f"{self.count} {self.unit}{'' if self.count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class ItemCount:
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.count <= COUNT_MAX:
            raise InvalidValue(f"a window holds 1 to {COUNT_MAX:,} items")

    def __str__(self) -> str:
        return f"{self.count} item{'' if self.count == 1 else 's'}"


WindowSize = Duration | ItemCount
