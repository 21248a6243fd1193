"""Which side of a table join owns an attribute of the result (its names: model/table_names.py)."""

from __future__ import annotations

from headgate.model.table_names import merged_names
from headgate.plan.algebra import Side


def names_of_sides(sides: tuple[Side, ...], on: tuple[str, ...]) -> list[dict[str, str]]:
    """For each side the name that each of its attributes has in the result."""
    return merged_names(((side.name, side.attributes) for side in sides), on)


def owners(sides: tuple[Side, ...], on: tuple[str, ...]) -> dict[str, dict[int, str]]:
    """For each attribute of the result, the sides that hold its value and their name for it.

    The first of them is the side whose value it is. A name that two sides give to different
    attributes, as R's `d` and an `R_d` of S, has no owner.

    >>> owners((Side("S", ("k", "a", "d")), Side("R", ("k", "d"))), ("k",))
    {'k': {0: 'k', 1: 'k'}, 'a': {0: 'a'}, 'S_d': {0: 'd'}, 'R_d': {1: 'd'}}
    """
    found: dict[str, dict[int, str]] = {}
    for at, names in enumerate(names_of_sides(sides, on)):
        for own, merged in names.items():
            clashes = merged in found and merged not in on
            found[merged] = {} if clashes else {**found.get(merged, {}), at: own}
    return found
