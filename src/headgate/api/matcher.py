"""`hg.Matcher`: many named filters, matched together.

    >>> import headgate as hg
    >>> matcher = hg.Matcher({"price": "float", "to": "text"})
    >>> matcher.add("cheap", "price < 100")
    >>> matcher.add_many({"paris": "to contains 'Paris'", "deal": "price < 50 and to is present"})
    >>> matcher.match({"price": 45, "to": "Paris Orly"})
    ['cheap', 'paris', 'deal']

The filters are compiled into one program (match/program.py), in which equal atoms are evaluated
once for a whole batch of items. Filters that are added later go to small programs beside it, so
that adding one does not compile a million again (match/living.py); `compact` and `save` put all of
them into one program.

Thread safety: all methods may be called by any number of threads at once. Matching never waits for
changes other than for the compilation of filters that were just added. Each call of `match`,
`match_frame`, `count_frame` and `explain` sees one consistent state: all changes whose calls have
returned before it began, and of changes that run at the same time either all or nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from headgate.api.explanation import Explanation, explanation
from headgate.api.filter_set import FilterSet, ParsedFilter, compiled_set
from headgate.api.filter_table import StoredMatcher, open_matcher, write_matcher
from headgate.api.frames import batches_of, frame_schema, item_of, schema_of
from headgate.language.parse import FilterParser
from headgate.language.unparse import unparse_filter
from headgate.match.batch import batch_of_arrow, batch_of_items
from headgate.match.bit_rows import Ints, Longs
from headgate.match.matcher import BatchSize
from headgate.model.errors import (
    InvalidValue,
    LanguageError,
    NameTaken,
    UnknownName,
    did_you_mean,
)
from headgate.model.filters import Filter
from headgate.model.schema import Schema

NEAR_NAMES_MAX = 10_000
"""In a larger matcher, an unknown name is not compared with all others for a hint."""
BULK = 1_024
"""From so many filters on, a first `add_many` compiles them at once into the main program."""


class Matcher:
    """Named filters over items of one schema.

    `schema` maps attributes to types of the language: int, float, bool, text, timestamp, link,
    bytes, xml. `Matcher.from_frame` takes the columns of a frame, `Matcher.open` a saved file.

    >>> matcher = Matcher({"price": "float", "to": "text"})
    >>> matcher.add("cheap", "price < 100")
    >>> len(matcher), "cheap" in matcher, list(matcher), matcher["cheap"]
    (1, True, ['cheap'], 'price < 100')
    >>> matcher
    Matcher({'price': 'float', 'to': 'text'}, 1 filter)
    """

    def __init__(self, schema: Mapping[str, str] | Schema) -> None:
        self._start(compiled_set(schema_of(schema), {}))

    def _start(self, filters: FilterSet) -> None:
        self._schema = filters.stored.schema
        self._types = {str(each.name): each.type for each in self._schema.attributes}
        self._parser = FilterParser(self._schema)
        self._lock = threading.RLock()
        """Held by whoever changes the set of filters, or replaces it."""
        self._filters = filters
        self._compacting = threading.Lock()
        self._journal: list[tuple[str, ParsedFilter | None]] | None = None
        """What is added (or, with None, removed) while a compaction runs."""

    @classmethod
    def from_frame(cls, frame: object) -> Matcher:
        """A matcher without filters, whose attributes are the columns of a frame.

        >>> import pyarrow as pa
        >>> Matcher.from_frame(pa.table({"price": [1.5], "to": ["Rome"]}))
        Matcher({'price': 'float', 'to': 'text'}, 0 filters)
        """
        return cls(schema_of(frame_schema(frame)))

    @property
    def schema(self) -> Schema:
        """The attributes and their types; it never changes."""
        return self._schema

    # --- changing -------------------------------------------------------------------------------

    def add(self, name: str, filter: str | Filter) -> None:
        """Add a filter; the next match sees it.

        The filter is a text in the language of `create feed … where`, or an object of
        `headgate.model`. A text that is no filter raises `LanguageError` with line, column and a
        hint; a name that is in use raises `NameTaken`.

        >>> matcher = Matcher({"price": "float"})
        >>> matcher.add("cheap", "prise < 100")
        Traceback (most recent call last):
        headgate.model.errors.LanguageError: line 1, column 1: there is no attribute 'prise'
          prise < 100
          ^
        hint: did you mean 'price'?

        Safe in any thread. Cost: below a millisecond, its share of later compilation included.
        """
        self._add({_checked(name): self._parsed(filter)})

    def add_many(
        self, filters: Mapping[str, str | Filter] | Iterable[tuple[str, str | Filter]]
    ) -> None:
        """Add all of these filters, or none if one of them is wrong; the error says which.

        >>> matcher = Matcher({"price": "float"})
        >>> matcher.add_many((f"below {n}", f"price < {n}") for n in range(100, 400, 100))
        >>> matcher.match({"price": 250})
        ['below 300']
        >>> matcher.add_many({"good": "price > 1", "bad": "price > 'x'"})
        Traceback (most recent call last):
        headgate.model.errors.LanguageError: line 1, column 1: filter 'bad': expected a float, \
found the text 'x'
          price > 'x'
          ^

        Safe in any thread; a match sees all of them or none. Many filters are compiled at once,
        which takes about 30 µs each.
        """
        pairs = filters.items() if isinstance(filters, Mapping) else filters
        parsed: dict[str, ParsedFilter] = {}
        for name, filter_ in pairs:
            if _checked(name) in parsed:
                raise NameTaken(f"two of the filters are called '{name}'")
            try:
                parsed[name] = self._parsed(filter_)
            except LanguageError as error:
                raise LanguageError(
                    f"filter '{name}': {error.message}",
                    line=error.line,
                    column=error.column,
                    source=error.source,
                    hint=error.hint,
                ) from None
        if parsed:
            self._add(parsed)

    def remove(self, name: str) -> None:
        """Remove a filter; the next match does not see it. An unknown name is `UnknownName`.

        Safe in any thread. A removed filter takes its memory and some matching time until the
        next `compact`.
        """
        with self._lock:
            if self._filters.number_of(name) is None:
                raise self._unknown(name)
            self._filters.remove(name)
            if self._journal is not None:
                self._journal.append((name, None))

    def compact(self) -> None:
        """Compile all filters into one program: matching is as fast as after `open`, and removed
        filters are forgotten.

        Safe in any thread. It takes as long as adding all filters anew; other threads go on adding,
        removing and matching meanwhile.
        """
        self._compacted()

    def _parsed(self, given: str | Filter) -> ParsedFilter:
        text = given if isinstance(given, str) else unparse_filter(given)
        return ParsedFilter(text, self._parser.parse(text))

    def _add(self, filters: dict[str, ParsedFilter]) -> None:
        compiled = None
        if len(filters) >= BULK and self._filters.is_as_stored and not len(self._filters):
            compiled = compiled_set(self._schema, filters)
        with self._lock:
            for name in filters:
                if self._filters.number_of(name) is not None:
                    raise NameTaken(f"there is a filter '{name}' already; remove it first")
            if self._journal is not None:
                self._journal += filters.items()
            elif compiled is not None and self._filters.is_as_stored and not len(self._filters):
                self._filters = compiled
                return
            self._filters.add_many(filters)

    def _compacted(self) -> StoredMatcher:
        """All filters of one instant during the call, compiled; the matcher goes on with them."""
        with self._compacting:
            with self._lock:
                before = self._filters
                if before.is_as_stored:
                    return before.stored
                numbers = before.living.names().tolist()
                journal = self._journal = []
            try:
                parsed = {before.name_of(n): self._parsed(before.text_of(n)) for n in numbers}
                after = compiled_set(self._schema, parsed)
                stored = after.stored
                with self._lock:
                    for name, change in journal:
                        if change is None:
                            after.remove(name)
                        else:
                            after.add_many({name: change})
                    self._filters = after
            finally:
                with self._lock:
                    self._journal = None
            return stored

    # --- matching -------------------------------------------------------------------------------

    def match(self, item: Mapping[str, object]) -> list[str]:
        """The names of the filters that match an item, in the order in which they were added.

        The item maps attributes to values. An attribute may be missing or None: every atom on it is
        false. Attributes that the schema does not have are ignored. A value that does not fit its
        attribute's type is an `InvalidValue`.

        Safe in any thread.
        """
        filters, read = self._filters, item_of(item, self._schema)
        found = filters.view().match(batch_of_items([read], self._types))
        return [filters.name_of(number) for number in np.sort(found.of(0)).tolist()]

    def match_frame(self, frame: object) -> pa.Table:
        """The matches of a whole frame: a table with a line for each row and filter that match.

        The frame is a DataFrame of pandas or Polars, a pyarrow Table, RecordBatch or
        RecordBatchReader, or anything else that exports Arrow streams or arrays. The result has
        the columns `row` (int64, from 0 on, ascending) and `name` (strings, dictionary-encoded;
        within a row in no particular order). It exports Arrow streams too: `pl.DataFrame(result)`
        and `result.to_pandas()` copy little or nothing.

        >>> import pyarrow as pa
        >>> matcher = Matcher({"price": "float", "to": "text"})
        >>> matcher.add_many({"cheap": "price < 100", "paris": "to contains 'Paris'"})
        >>> frame = pa.table({"price": [80.0, 120.0], "to": ["Rome", "Paris"]})
        >>> matcher.match_frame(frame).to_pylist()
        [{'row': 0, 'name': 'cheap'}, {'row': 1, 'name': 'paris'}]

        Columns that are no attributes are ignored, and an attribute without a column is missing
        everywhere; but a frame without any of the attributes is an `InvalidValue`, and so is a
        column that does not fit its attribute's type.

        Safe in any thread; the whole frame is matched by the filters of one instant.
        """
        filters = self._filters
        view, size, offset = filters.view(), BatchSize(), 0
        rows: list[Longs] = []
        numbers: list[Ints] = []
        for batch in batches_of(frame, self._schema, size):
            found = view.match(batch_of_arrow(batch, self._schema))
            size.learn(found)
            rows.append(found.rows(offset))
            numbers.append(found.subscriptions)
            offset += batch.num_rows
        names = _named(numbers, filters.arrow_names())
        return pa.table({"row": pa.chunked_array(rows, pa.int64()), "name": names})

    def count_frame(self, frame: object, *, by: Literal["row", "name"] = "row") -> pa.Table:
        """How many matches each row of a frame has, or each filter.

        by="row"     `row`, `count`: a line for each row of the frame, in its order
        by="name"    `name`, `count`: a line for each filter, in the order of adding

        Lines with a count of 0 are there too. Frames are as in `match_frame`. Safe in any thread.

        >>> import pyarrow as pa
        >>> matcher = Matcher({"price": "float"})
        >>> matcher.add_many({"cheap": "price < 100", "free": "price = 0"})
        >>> matcher.count_frame(pa.table({"price": [80, 120, 0]}))["count"].to_pylist()
        [1, 0, 2]
        >>> matcher.count_frame(pa.table({"price": [80, 120, 0]}), by="name").to_pylist()
        [{'name': 'cheap', 'count': 2}, {'name': 'free', 'count': 1}]
        """
        filters = self._filters
        view = filters.view()
        columns = batches_of(frame, self._schema, BatchSize())
        batches = (batch_of_arrow(each, self._schema) for each in columns)
        if by == "row":
            counts = [np.diff(view.match(batch).starts) for batch in batches]
            joined = np.concatenate([np.zeros(0, np.int64), *counts])
            return pa.table({"row": np.arange(joined.size), "count": joined})
        if by != "name":
            raise InvalidValue(f"matches are counted by 'row' or by 'name', not by {by!r}")
        numbers = np.sort(np.concatenate([each.program.names[~each.dead] for each in view.parts]))
        total = np.zeros(numbers.size, np.int64)
        for batch in batches:
            total += view.count(batch)[1]
        return pa.table({"name": filters.arrow_names().take(pa.array(numbers)), "count": total})

    def explain(self, name: str, item: Mapping[str, object]) -> Explanation:
        """Why an item matches a filter, or why not.

        >>> matcher = Matcher({"price": "float", "to": "text"})
        >>> matcher.add("deal", "price < 100 and to contains 'Paris'")
        >>> print(matcher.explain("deal", {"price": 50, "to": "Rome"}))
        no    all of
              yes   price < 100              price is 50
              no    `to` contains 'Paris'    to is 'Rome'

        The result is true if the item matches, and prints as text. Safe in any thread.
        """
        text = self[name]
        return explanation(name, self._parser.parse(text), item_of(item, self._schema))

    # --- files ----------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the filters and their program to one file, which replaces what was there.

        Filters that were added since the last `compact` are compiled first. The file has no code in
        it. A crash leaves the old file or the new one. Safe in any thread; what is saved is the
        state of one instant during the call.
        """
        write_matcher(Path(path), self._compacted())

    @classmethod
    def open(
        cls, path: str | PathLike[str], *, verify: Literal["checksum", "full"] = "checksum"
    ) -> Matcher:
        """The matcher that was saved in a file. Filters can be added and removed as before.

        The file is mapped into memory, so processes on one machine share it, and a million filters
        are opened in a fraction of a second. It is checked against damage; verify="full" checks it
        by SHA-256 too. A file that is no matcher, or is damaged, is a `SnapshotError`.
        """
        matcher = cls.__new__(cls)
        matcher._start(FilterSet(open_matcher(Path(path), verify=verify)))
        return matcher

    # --- as a collection ------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, name: object) -> bool:
        with self._lock:
            return isinstance(name, str) and self._filters.number_of(name) is not None

    def __iter__(self) -> Iterator[str]:
        """The names in the order of adding, as they were when the iteration began."""
        with self._lock:
            return iter(self._filters)

    def __getitem__(self, name: str) -> str:
        """The text of a filter."""
        with self._lock:
            number = self._filters.number_of(name)
            if number is None:
                raise self._unknown(name)
            return self._filters.text_of(number)

    def __repr__(self) -> str:
        types = {str(each.name): str(each.type) for each in self._schema.attributes}
        count = len(self)
        return f"Matcher({types}, {count:,} filter{'' if count == 1 else 's'})"

    def _unknown(self, name: str) -> UnknownName:
        known = list(self._filters) if len(self._filters) <= NEAR_NAMES_MAX else []
        near = did_you_mean(name, known)
        return UnknownName(f"there is no filter '{name}'" + (f"; {near}" if near else ""))


def _checked(name: str) -> str:
    if not isinstance(name, str):
        raise InvalidValue(f"a filter's name is a text, not {name!r}")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidValue(f"the name {name!r} is no valid Unicode text") from None
    return name


def _named(chunks: list[Ints], names: pa.Array) -> pa.ChunkedArray:
    """The numbers as names: the chunks share one dictionary. Where there are fewer matches than
    names, it has only the names that occur."""
    if sum(chunk.size for chunk in chunks) < len(names):
        numbers = np.concatenate([np.zeros(0, np.int32), *chunks])
        present, places = np.unique(numbers, return_inverse=True)
        names, chunks = names.take(pa.array(present)), [places.astype(np.int32)]
    # Numbers are places in `names` by construction: Arrow need not check each one.
    arrays = [pa.DictionaryArray.from_arrays(pa.array(c), names, safe=False) for c in chunks]
    return pa.chunked_array(arrays, pa.dictionary(pa.int32(), names.type))
