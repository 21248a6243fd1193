"""CSV as rows: a header in the first line, then one record per item (RFC 4180).

`csv` of the standard library finds the end of each record, line by line. A record that begins with
a quote and never ends would swallow the rest of the file. So the size of a record is limited;
beyond it the first line is rejected, and reading continues with the second.

An empty cell is a missing value. Other cells are read by the declared type: numbers as in JSON,
`true` and `false`, and everything else as a JSON string (model/items.py).
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from headgate.acquire.item_rows import RowBuilder, SourceColumns
from headgate.acquire.limits import LINE_BYTES_MAX
from headgate.acquire.read_json import LINES_AT_ONCE, ReadRows
from headgate.acquire.rejected import Rejects
from headgate.model.errors import InvalidValue
from headgate.model.items import value_of_json
from headgate.model.schema import Schema
from headgate.model.values import Type, Value, with_article

_INT = re.compile(r"[+-]?[0-9]{1,40}")
_FLOAT = re.compile(r"[+-]?([0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?")
_BOOL = {"true": True, "false": False}


def read_records(
    lines: Iterator[bytes],
    header: Sequence[str],
    columns: SourceColumns,
    rejects: Rejects,
    *,
    first_line: int,
    continues: bool = False,
) -> Iterator[ReadRows]:
    """The records of these lines. The caller has cut lines at `LINE_BYTES_MAX` + 2 bytes."""
    if not set(header) & set(columns.schema.names):
        names = ", ".join(columns.schema.names)
        rejects.add(1, f"the first line names none of the attributes {names}", ",".join(header))
        return
    if continues and (rest := next(lines, b"")):
        first_line += 1
        if rest.strip(b"\r\n"):
            reason = "the record was continued after its beginning had been read"
            rejects.add(first_line - 1, reason, rest)
    builder = RowBuilder(columns, rejects)
    for number, text, record in _records(lines, rejects, first_line):
        if len(record) > len(header):
            rejects.add(number, f"{len(record)} cells, but the header has {len(header)}", text)
        else:
            _add(builder, rejects, number, dict(zip(header, record, strict=False)), text)
        if len(builder) >= LINES_AT_ONCE:
            yield _take_rows(builder)
    if len(builder):
        yield _take_rows(builder)


def _add(
    builder: RowBuilder, rejects: Rejects, number: int, cells: Mapping[str, str], text: str
) -> None:
    try:
        builder.add_attributes(number, attributes_of_text(cells, builder.schema), text)
    except InvalidValue as error:
        rejects.add(number, error, text)


def _take_rows(builder: RowBuilder) -> ReadRows:
    columns, lines = builder.take()
    return columns, pa.array(lines, pa.int64())


def attributes_of_text(cells: Mapping[str, str], schema: Schema) -> dict[str, Value]:
    """The attributes that the schema declares, from texts; other cells are ignored."""
    attributes: dict[str, Value] = {}
    for attribute in schema.attributes:
        text = cells.get(attribute.name)
        if text:
            try:
                attributes[str(attribute.name)] = value_of_text(text, attribute.type)
            except InvalidValue as reason:
                name = str(attribute.name)
                raise InvalidValue(f"attribute '{name}': {reason}", subject=name) from None
    return attributes


def value_of_text(text: str, type_: Type) -> Value:
    """A cell as a value of the type.

    >>> value_of_text("150", Type.INT), value_of_text("TRUE", Type.BOOL)
    (150, True)
    """
    written = text.strip()
    if type_ is Type.INT and _INT.fullmatch(written):
        return value_of_json(int(written), type_)
    if type_ is Type.FLOAT and _FLOAT.fullmatch(written):
        return float(written)
    if type_ is Type.BOOL and written.casefold() in _BOOL:
        return _BOOL[written.casefold()]
    if type_ in (Type.INT, Type.FLOAT, Type.BOOL):
        raise InvalidValue(f"expected {with_article(type_)}, found '{text[:40]}'")
    return value_of_json(text, type_)


class _RecordLines:
    """An iterator of lines for `csv` that remembers the lines of the current record."""

    def __init__(self, lines: Iterator[bytes], first_line: int) -> None:
        self._lines = lines
        self._again: deque[bytes] = deque()
        self._next = first_line
        self._size = 0
        self.record: list[bytes] = []
        self.first_line = first_line

    def begin(self) -> None:
        """Start the next record."""
        self.record, self.first_line, self._size = [], self._next, 0

    def drop_first_line(self) -> bytes:
        """Drop the first line of this record and return it; the other lines are read again."""
        first, *rest = self.record
        self._again.extendleft(reversed(rest))
        self._next -= len(rest)
        self.begin()
        return first

    def __iter__(self) -> _RecordLines:
        return self

    def __next__(self) -> str:
        if self._size > LINE_BYTES_MAX:
            raise csv.Error(f"the record has more than {LINE_BYTES_MAX:,} bytes")
        line = self._again.popleft() if self._again else next(self._lines)
        self.record.append(line)
        self._size += len(line)
        self._next += 1
        return line.decode("utf-8")


def _records(
    lines: Iterator[bytes], rejects: Rejects, first_line: int
) -> Iterator[tuple[int, str, list[str]]]:
    """Each record with its line and its text."""
    for number, text, record in _steps(lines, first_line):
        if isinstance(record, Exception):
            rejects.add(number, _reason(record), text)
        elif record:
            yield number, text.decode("utf-8"), record


def record_end(lines: Iterator[bytes], *, least: int) -> int:
    """The number of bytes up to the first end of a record that is not before `least`; all bytes if
    there is none. A reader that starts there reads the same records as one that goes on."""
    size = 0
    for _, text, _ in _steps(lines, 1):
        size += len(text)
        if size >= least:
            break
    return size


def _steps(
    lines: Iterator[bytes], first_line: int
) -> Iterator[tuple[int, bytes, list[str] | Exception]]:
    """What is read at a time: a record, or a line that is rejected with its reason."""
    source_lines = _RecordLines(lines, first_line)
    csv.field_size_limit(2 * LINE_BYTES_MAX)
    reader = csv.reader(source_lines, strict=True)
    while True:
        source_lines.begin()
        try:
            record = next(reader)
        except StopIteration:
            return
        except (csv.Error, UnicodeDecodeError) as error:
            if not source_lines.record:
                return
            number = source_lines.first_line
            yield number, source_lines.drop_first_line(), error
            reader = csv.reader(source_lines, strict=True)
        else:
            yield source_lines.first_line, b"".join(source_lines.record), record


def _reason(error: Exception) -> str:
    return "the text is not UTF-8" if isinstance(error, UnicodeDecodeError) else f"no CSV: {error}"
