"""Items that come one by one, as rows: the careful way, which every quick one is compared with.

Each item is attributes by name (model/json_values.py). What cannot be one, for whatever reason, is
rejected with its text, and the others go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from headgate.acquire.item_rows import Columns
from headgate.acquire.rejected import Rejects
from headgate.match.arrow_types import STORED_AS
from headgate.model.errors import InvalidValue
from headgate.model.json_values import attributes_of_json
from headgate.model.schema import Schema
from headgate.model.values import Value


class RowBuilder:
    """Collects items of one source and gives them as batches."""

    def __init__(self, columns: Columns, rejects: Rejects) -> None:
        self._columns = columns
        self._rejects = rejects
        self._found: list[tuple[int, Mapping[str, Value], bytes | str]] = []

    @property
    def schema(self) -> Schema:
        return self._columns.schema

    def __len__(self) -> int:
        return len(self._found)

    def add(self, line: int, found: object, text: bytes | str) -> None:
        """A JSON value that should be an object of the schema."""
        if not isinstance(found, dict):
            self._rejects.add(line, "expected an object", text)
            return
        try:
            attributes = attributes_of_json(found, self._columns.schema)
        except (InvalidValue, OverflowError) as error:
            self._rejects.add(line, error, text)
            return
        self.add_attributes(line, attributes, text)

    def add_attributes(self, line: int, attributes: Mapping[str, Value], text: bytes | str) -> None:
        missing = [each for each in self._columns.keys if each not in attributes]
        if missing:
            self._rejects.add(line, f"the key '{missing[0]}' is missing", text)
        else:
            self._found.append((line, attributes, text))

    def take(self) -> tuple[dict[str, pa.Array], list[int]]:
        """The columns of what was added since the last call, and the lines they come from."""
        found, self._found = self._found, []
        try:
            return self._arrays([each[1] for each in found]), [each[0] for each in found]
        except (pa.ArrowException, UnicodeError, OverflowError, ValueError):
            kept = [each for each in found if self._fits(*each)]
            return self._arrays([each[1] for each in kept]), [each[0] for each in kept]

    def _fits(self, line: int, attributes: Mapping[str, Value], text: bytes | str) -> bool:
        """A text with half a character in it, for one, is a text of Python but of nothing else."""
        try:
            self._arrays([attributes])
        except (pa.ArrowException, UnicodeError, OverflowError, ValueError) as error:
            self._rejects.add(line, error, text)
            return False
        return True

    def _arrays(self, found: Sequence[Mapping[str, Value]]) -> dict[str, pa.Array]:
        return {
            str(each.name): pa.array([row.get(each.name) for row in found], STORED_AS[each.type])
            for each in self._columns.schema.attributes
        }
