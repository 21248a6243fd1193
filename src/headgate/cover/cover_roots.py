"""What every way of covering answers, and what those by cubes have in common.

    insert(numbers, filters)   who is covered now by whom, of the new filters and of the roots
    remove(number)             a root goes; whoever keeps the table inserts again what it covered

*Roots* are the filters that no other covers: those that are forwarded. A coverer may itself be
covered by the same insertion; then it is in the answer too.

A filter that no item satisfies is covered by every other. It is a root only where it is alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

from headgate.cover.cover_cubes import Cube, Cubes
from headgate.model.filters import Filter


class Cover(Protocol):
    def insert(self, numbers: Sequence[int], filters: Sequence[Filter]) -> dict[int, int]:
        """Insert filters in this order; those that are no roots now, with what covers them.

        Numbers are new, and not negative.
        """

    def remove(self, number: int) -> None:
        """Remove a root."""


class CubeCover(ABC):
    """Covering by cubes: filters are described once, and only roots are kept."""

    def __init__(self) -> None:
        self._cubes = Cubes()
        self._filters: dict[int, Filter] = {}
        """The roots that items can satisfy."""
        self._never: int | None = None
        """The root that no item satisfies: only if there is no other."""

    def insert(self, numbers: Sequence[int], filters: Sequence[Filter]) -> dict[int, int]:
        return self.insert_cubes(numbers, filters, self.cubes_of(filters))

    def cubes_of(self, filters: Sequence[Filter]) -> list[Cube]:
        return [self._cubes.cube(each) for each in filters]

    def insert_cubes(
        self, numbers: Sequence[int], filters: Sequence[Filter], cubes: Sequence[Cube]
    ) -> dict[int, int]:
        """As `insert`, for those who measure how long it takes to describe filters and to check."""
        if not any(cube.is_never for cube in cubes):
            covered = self._insert_possible(numbers, filters, cubes)
            return covered | self._cover_never([])
        possible = [at for at, cube in enumerate(cubes) if not cube.is_never]
        covered = self._insert_possible(
            [numbers[at] for at in possible],
            [filters[at] for at in possible],
            [cubes[at] for at in possible],
        )
        never = [number for number, cube in zip(numbers, cubes, strict=True) if cube.is_never]
        return covered | self._cover_never(never)

    def remove(self, number: int) -> None:
        if number == self._never:
            self._never = None
            return
        del self._filters[number]
        self._remove_possible(number)

    def _cover_never(self, numbers: list[int]) -> dict[int, int]:
        """Place what no item satisfies, after the others."""
        if self._never is not None:
            numbers = [self._never, *numbers]
        if not numbers:
            return {}
        root = next(iter(self._filters), None)
        self._never = numbers[0] if root is None else None
        if root is None:
            root, *numbers = numbers
        return dict.fromkeys(numbers, root)

    @abstractmethod
    def _insert_possible(
        self, numbers: Sequence[int], filters: Sequence[Filter], cubes: Sequence[Cube]
    ) -> dict[int, int]:
        """Insert filters that items can satisfy."""

    @abstractmethod
    def _remove_possible(self, number: int) -> None:
        """Remove a root that items can satisfy."""
