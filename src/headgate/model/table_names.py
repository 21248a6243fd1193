"""The names in a natural join of tables: what an attribute of one table is called in the result.

    table                        in the result
    Stocks(Symbol, PER, Date)    Symbol, PER, Stocks_Date
    Reviews(Symbol, Rating, Date)         Rating, Reviews_Date        joined on Symbol

A join attribute keeps its name; its value is that of the first table that has it. Any other
attribute keeps its name too, unless several tables have it: then each is called
'<table>_<attribute>', so that no value is lost and no name depends on the order of the tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

Table = tuple[str, Sequence[str]]
"""The name of a table and those of its attributes."""


def merged_names(tables: Iterable[Table], on: Collection[str]) -> list[dict[str, str]]:
    """For each table the name that each of its attributes has in the result.

    >>> merged_names([("S", ["k", "a", "d"]), ("R", ["k", "d"])], on=["k"])
    [{'k': 'k', 'a': 'a', 'd': 'S_d'}, {'k': 'k', 'd': 'R_d'}]
    """
    tables = list(tables)
    times = Counter(attribute for _, attributes in tables for attribute in attributes)
    return [
        {each: each if each in on or times[each] == 1 else f"{table}_{each}" for each in attributes}
        for table, attributes in tables
    ]
