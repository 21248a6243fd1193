"""The names in a natural join of tables: what an attribute of one side is called in the result.

    side                         in the result
    Stocks(Symbol, PER, Date)    Symbol, PER, Stocks_Date
    Reviews(Symbol, Rating, Date)         Rating, Reviews_Date        joined on Symbol

A join attribute keeps its name; its value is that of the first side that declares it. Any other
attribute keeps its name too, unless several sides declare it: then each is called
'<table>_<attribute>', so that no value is lost and no name depends on the order of the tables.
"""

from __future__ import annotations

from collections import Counter

from headgate.plan.algebra import Side


def merged_names(sides: tuple[Side, ...], on: tuple[str, ...]) -> list[dict[str, str]]:
    """For each side the name that each of its attributes has in the result.

    >>> merged_names((Side("S", ("k", "a", "d")), Side("R", ("k", "d"))), ("k",))
    [{'k': 'k', 'a': 'a', 'd': 'S_d'}, {'k': 'k', 'd': 'R_d'}]
    """
    times = Counter(name for side in sides for name in side.attributes)
    return [
        {
            name: name if name in on or times[name] == 1 else f"{side.name}_{name}"
            for name in side.attributes
        }
        for side in sides
    ]


def owners(sides: tuple[Side, ...], on: tuple[str, ...]) -> dict[str, dict[int, str]]:
    """For each attribute of the result, the sides that hold its value and their name for it.

    The first of them is the side whose value it is. A name that two sides give to different
    attributes, as R's `d` and an `R_d` of S, has no owner.

    >>> owners((Side("S", ("k", "a", "d")), Side("R", ("k", "d"))), ("k",))
    {'k': {0: 'k', 1: 'k'}, 'a': {0: 'a'}, 'S_d': {0: 'd'}, 'R_d': {1: 'd'}}
    """
    found: dict[str, dict[int, str]] = {}
    for at, names in enumerate(merged_names(sides, on)):
        for own, merged in names.items():
            clashes = merged in found and merged not in on
            found[merged] = {} if clashes else {**found.get(merged, {}), at: own}
    return found
