"""Named filters and the program that matches them: what a `Matcher` holds between compactions.

    number   0 … n-1        FilterTable and the main program, as compiled or opened
             n …            filters added since: lists, and the tiers of the living program

Invariants. Numbers ascend in the order of adding and are not used twice, so a view of the program
(match/living.py) can always be translated into names, whatever is added or removed later. A name
has at most one living number.

One thread at a time may change a set (`Matcher` has a lock); any number may read it meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headgate.api.filter_table import FilterTable, StoredMatcher, filter_table
from headgate.match.living import LivingProgram, View
from headgate.match.program import compile_program
from headgate.model.filters import Filter
from headgate.model.schema import Schema


@dataclass(frozen=True, slots=True)
class ParsedFilter:
    """A filter as it was written, and typed."""

    text: str
    filter: Filter


class FilterSet:
    def __init__(self, stored: StoredMatcher) -> None:
        self.stored = stored
        self.living = LivingProgram(stored.schema, stored.program)
        self._table: FilterTable = stored.table
        self._names: list[str] = []
        self._texts: list[str] = []
        self._numbers: dict[str, int] = {}
        """Of the living filters that were added since."""
        self._arrow_names: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.living)

    def __iter__(self) -> Iterator[str]:
        """The living names in the order of adding, as they are now."""
        numbers = pa.array(self.living.names())
        return iter(self.arrow_names().take(numbers).to_pylist())

    @property
    def is_as_stored(self) -> bool:
        """Whether nothing was added or removed since it was compiled."""
        return not self._names and len(self.living) == len(self._table)

    def number_of(self, name: str) -> int | None:
        number = self._numbers.get(name)
        if number is None:
            number = self._table.find(name)
            return number if number is not None and number in self.living else None
        return number

    def name_of(self, number: int) -> str:
        first = len(self._table)
        return self._names[number - first] if number >= first else self._table.names.text(number)

    def text_of(self, number: int) -> str:
        first = len(self._table)
        return self._texts[number - first] if number >= first else self._table.filters.text(number)

    def add_many(self, filters: Mapping[str, ParsedFilter]) -> None:
        """Filters under names that are free."""
        first = len(self._table) + len(self._names)
        numbers = {name: first + n for n, name in enumerate(filters)}
        # Names come first: a view that has a number must find its name.
        self._names += filters
        self._texts += [each.text for each in filters.values()]
        self.living.add_many({numbers[name]: each.filter for name, each in filters.items()})
        self._numbers |= numbers

    def remove(self, name: str) -> None:
        """The filter with this name, which is there."""
        number = self.number_of(name)
        assert number is not None
        self.living.remove(number)
        self._numbers.pop(name, None)

    def view(self) -> View:
        return self.living.view()

    def arrow_names(self) -> pa.Array:
        """The names of all numbers so far, removed ones included, as Arrow strings."""
        count = len(self._table) + len(self._names)
        known = self._arrow_names
        if known is None or len(known) < count:
            added = pa.array(self._names, pa.large_string())
            joined = pa.concat_arrays([self._table.arrow_names(), added])
            fits = joined.nbytes < 2**31
            known = self._arrow_names = joined.cast(pa.string()) if fits else joined
        return known


def compiled_set(schema: Schema, filters: Mapping[str, ParsedFilter]) -> FilterSet:
    """These filters in one program, numbered from 0 on."""
    texts: Sequence[str] = [each.text for each in filters.values()]
    program = compile_program([each.filter for each in filters.values()], schema)
    return FilterSet(StoredMatcher(schema, filter_table(list(filters), texts), program))
