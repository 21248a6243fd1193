"""The names and texts of many filters in arrays, and the file that holds them with their program.

    number    name      filter                         by_name: the numbers, sorted by name
    0         cheap     price < 100                    [0, 2, 1]
    1         paris     to contains 'Paris'
    2         new       price < 100 and new

A table never changes. Its arrays are those of the file, mapped and shared by all processes that
open it, so a table of a million filters is opened without making a million Python objects. A name
is looked up by binary search (10 µs among a million).

File: a snapshot (match/array_file.py) with the schema, the table and the compiled program. Reading
it runs no code from it, and every index is checked when it is opened.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.match.array_file import Verify
from headgate.match.bit_rows import Ints
from headgate.match.bounds import check_indices, refuse_unless
from headgate.match.dataclass_codec import open_stored, write_stored, write_stored_as
from headgate.match.program import Program
from headgate.match.texts import Texts, texts_of
from headgate.model.schema import Schema

KIND, VERSION = "matcher", 2


@dataclass(frozen=True, slots=True, eq=False)
class FilterTable:
    """Filter n has names[n] and filters[n]; by_name has the numbers in the order of the names."""

    names: Texts
    filters: Texts
    by_name: Ints

    def __len__(self) -> int:
        return len(self.names)

    def find(self, name: str) -> int | None:
        """The number of the filter with this name."""
        encoded = name.encode("utf-8", "surrogatepass")
        place = bisect_left(self.by_name, encoded, key=self.names.encoded)
        if place < len(self) and self.names.encoded(number := int(self.by_name[place])) == encoded:
            return number
        return None

    def arrow_names(self) -> pa.Array:
        """The names as an Arrow array of strings; their bytes are not copied."""
        return _arrow(self.names)

    def check(self) -> None:
        """That every index is within its bounds, all texts are UTF-8, and names are distinct."""
        self.names.check("names")
        self.filters.check("filters", count=len(self))
        check_indices("by_name", self.by_name, len(self), length=len(self))
        for name, texts in (("names", self.names), ("filters", self.filters)):
            try:
                _arrow(texts).validate(full=True)
            except pa.ArrowInvalid:
                refuse_unless(False, name, "a text is no UTF-8")
        ordered = self.arrow_names().take(pa.array(self.by_name))
        ascend = pc.all(pc.less(ordered[:-1], ordered[1:])).as_py()
        refuse_unless(len(self) < 2 or ascend, "by_name", "names do not ascend")


def filter_table(names: Sequence[str], filters: Sequence[str]) -> FilterTable:
    """The table of these filters, which have the numbers from 0 on. Names are distinct."""
    stored = texts_of(names)
    by_name = pc.array_sort_indices(_arrow(stored))
    return FilterTable(stored, texts_of(filters), np.asarray(by_name).astype(np.int32))


def _arrow(texts: Texts) -> pa.Array:
    buffers = [None, pa.py_buffer(texts.start), pa.py_buffer(texts.data)]
    return pa.Array.from_buffers(pa.large_string(), len(texts), buffers)


@dataclass(frozen=True, slots=True, eq=False)
class StoredMatcher:
    """A schema, filters, and the program in which filter n is subscription n."""

    schema: Schema
    table: FilterTable
    program: Program

    def check(self) -> None:
        self.program.check()
        self.table.check()
        count = len(self.table)
        numbered = self.program.subscription_count == count
        refuse_unless(numbered, "table", "it has other filters than the program")
        dense = count == 0 or int(self.program.names[-1]) == count - 1
        refuse_unless(dense, "program.names", "they are not the numbers of the table")


def write_matcher(path: Path, stored: StoredMatcher) -> None:
    """A file of this name; it replaces what was there once it is complete."""
    write_stored_as(path, stored, kind=KIND, version=VERSION)


def write_matcher_in(folder: Path, stored: StoredMatcher) -> Path:
    """A file in this folder, named by its content: the same matcher has the same file."""
    return write_stored(folder, stored, kind=KIND, version=VERSION)


def open_matcher(path: Path, *, verify: Verify = "checksum") -> StoredMatcher:
    """What is in the file, mapped and checked. Use verify="full" for a file from elsewhere."""
    return open_stored(
        path, StoredMatcher, kind=KIND, version=VERSION, verify=verify, any_name=True
    )
