r"""CSV as rows: a header in the first record, then one record per item (RFC 4180).

**Line ends.** The header decides: a file whose header ends with '\r' alone has '\r' as line ends,
any other '\n', with or without '\r' before it. The other character in a cell without quotes makes
the record invalid.

**Records.** A line end between quotes belongs to a cell. A quote opens a cell at its beginning only
(`5" disk` is text), and after the quote that closes it comes a comma or a line end. `_RECORD` says
just this, and finds the end of a record as `csv` of the standard library would, which then reads
its cells.

    a record                                  an item, or rejected as a whole: too many cells,
                                              a wrong value, more than `record_bytes_max`
    a quote that is never closed, or          its first line is rejected,
    closed before something else              and reading continues with the second

So a stray quote does not swallow the rest of the file. The search for the closing quote goes on to
the end of the part; each line is searched at most twice, since the next line with an odd number of
quotes ends the search that the one before has begun.

An empty cell is a missing value. Other cells are read by the declared type: numbers as in JSON,
`true` and `false`, and everything else as a JSON string (model/items.py).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from headgate.acquire.item_rows import RowBuilder, SourceColumns
from headgate.acquire.limits import DEFAULT_LIMITS, IntakeLimits
from headgate.acquire.read_json import LINES_AT_ONCE, ReadRows
from headgate.acquire.rejected import TEXT_MAX, Rejects
from headgate.model.errors import InvalidValue
from headgate.model.items import value_of_json
from headgate.model.values import Type, Value, with_article

_INT = re.compile(r"[+-]?[0-9]{1,40}")
_FLOAT = re.compile(r"[+-]?([0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?")
_BOOL = {"true": True, "false": False}


def read_records(
    data: bytes,
    header: Sequence[str],
    columns: SourceColumns,
    rejects: Rejects,
    *,
    first_line: int,
    continues: bool = False,
    line_end: str = "\n",
    limits: IntakeLimits = DEFAULT_LIMITS,
) -> Iterator[ReadRows]:
    """The records of these bytes, which follow the header or another part."""
    if not set(header) & set(columns.schema.names):
        names = ", ".join(columns.schema.names)
        rejects.take(len(data))
        rejects.add(1, f"the first line names none of the attributes {names}", ",".join(header))
        return
    position = 0
    if continues:
        position = line_after(data, 0, line_end)
        rest, first_line = data[:position], first_line + 1
        rejects.take(position, records=int(bool(rest.strip(b"\r\n"))))
        if rest.strip(b"\r\n"):
            reason = "the record was continued after its beginning had been read"
            rejects.add(first_line - 1, reason, rest[: 4 * TEXT_MAX])
    builder = RowBuilder(columns, rejects)
    reader = _RecordReader(builder, rejects, header, limits)
    for extent in extents(data, position, line_end):
        reader.read(first_line, data, extent)
        first_line += extent.lines
        if len(builder) >= LINES_AT_ONCE:
            yield _take_rows(builder)
    if len(builder):
        yield _take_rows(builder)


def _take_rows(builder: RowBuilder) -> ReadRows:
    columns, lines = builder.take()
    return columns, pa.array(lines, pa.int64())


class _RecordReader:
    """Adds records to the rows, or rejects them."""

    def __init__(
        self, builder: RowBuilder, rejects: Rejects, header: Sequence[str], limits: IntakeLimits
    ) -> None:
        self._builder = builder
        self._rejects = rejects
        self._width = len(header)
        self._bytes_max = limits.record_bytes_max
        place_of = {name: place for place, name in enumerate(header)}
        self._cells = [
            (place_of[each.name], str(each.name), each.type)
            for each in builder.schema.attributes
            if each.name in place_of
        ]
        csv.field_size_limit(2 * limits.record_bytes_max)

    def read(self, line: int, data: bytes, extent: CsvExtent) -> None:
        size = extent.end - extent.begin
        written = data[extent.begin : min(extent.end, extent.begin + self._bytes_max)]
        if not written.strip(b"\r\n"):
            self._rejects.take(size, records=0)
            return
        self._rejects.take(size)
        if not extent.is_record:
            self._rejects.add(line, "no CSV: a quote is not closed, or not at its end", written)
        elif size > self._bytes_max:
            reason = f"the record has more than {self._bytes_max:,} bytes"
            self._rejects.add(line, reason, written)
        else:
            self._read_record(line, written)

    def _read_record(self, number: int, written: bytes) -> None:
        try:
            text = written.decode("utf-8")
            line = text.rstrip("\r\n")
            if '"' in line or "\r" in line or "\n" in line:
                cells = next(csv.reader([text], strict=True))
            else:
                cells = line.split(",")
        except UnicodeDecodeError:
            self._rejects.add(number, "the text is not UTF-8", written)
        except csv.Error as error:
            self._rejects.add(number, f"no CSV: {error}", written)
        else:
            self._add(number, cells, text)

    def _add(self, line: int, cells: list[str], text: str) -> None:
        if len(cells) > self._width:
            reason = f"{len(cells)} cells, but the header has {self._width}"
            self._rejects.add(line, reason, text)
            return
        attributes: dict[str, Value] = {}
        for place, name, type_ in self._cells:
            cell = cells[place] if place < len(cells) else ""
            if not cell:
                continue
            try:
                attributes[name] = cell if type_ is Type.TEXT else value_of_text(cell, type_)
            except InvalidValue as reason:
                self._rejects.add(line, f"attribute '{name}': {reason}", text)
                return
        self._builder.add_attributes(line, attributes, text)


def value_of_text(text: str, type_: Type) -> Value:
    """A cell as a value of the type.

    >>> value_of_text("150", Type.INT), value_of_text("TRUE", Type.BOOL)
    (150, True)
    """
    written = text.strip()
    if type_ is Type.INT and _INT.fullmatch(written):
        return value_of_json(int(written), type_)
    if type_ is Type.FLOAT and _FLOAT.fullmatch(written):
        return value_of_json(float(written), type_)
    if type_ is Type.BOOL and written.casefold() in _BOOL:
        return _BOOL[written.casefold()]
    if type_ in (Type.INT, Type.FLOAT, Type.BOOL):
        raise InvalidValue(f"expected {with_article(type_)}, found '{text[:40]}'")
    return value_of_json(text, type_)


# --- where records end ----------------------------------------------------------------------------

BOM = b"\xef\xbb\xbf"
LINE_ENDS = ("\n", "\r")


class CsvExtent(NamedTuple):
    """A record, or a line that is rejected since its quotes are wrong."""

    begin: int
    end: int
    lines: int
    """The line ends in it."""
    is_record: bool


class CsvHeader(NamedTuple):
    names: tuple[str, ...]
    """None if the header cannot be read; the reader of a part then rejects it."""
    end: int
    lines: int
    line_end: str


_QUOTED = rb'"[^"]*+(?:""[^"]*+)*+'


def _cell(line_ends: bytes) -> bytes:
    return rb'(?:%s"|(?!")[^,%s]*+)' % (_QUOTED, line_ends)


def _record(line_ends: bytes, ending: bytes) -> re.Pattern[bytes]:
    cell = _cell(line_ends)
    return re.compile(rb"%s(?:,%s)*+(?:%s)" % (cell, cell, ending))


_RECORD = {"\n": _record(b"\n", rb"\r?(?:\n|\Z)"), "\r": _record(b"\r", rb"\r|\Z")}
_HEADER = _record(b"\r\n", rb"\r\n?|\n|\Z")


def _complete(line_end: bytes) -> re.Pattern[bytes]:
    """Records with their line ends, and lines with wrong quotes. A record that is incomplete where
    the data ends is neither: what follows decides. The last byte may be half of a doubled quote."""
    cell, many = _cell(line_end), b"*+"
    record = rb"%s(?:,%s)*+\r?%s" % (cell, cell, line_end)
    is_open = rb'(?:%s,)*+(?:%s"?|%s\r?)\Z' % (cell, _QUOTED, cell)
    return re.compile(rb"(?:%s|(?!%s)[^%s]*+%s)" % (record, is_open, line_end, line_end) + many)


_COMPLETE = {"\n": _complete(b"\n"), "\r": _complete(b"\r")}


def extents(data: bytes, position: int, line_end: str) -> Iterator[CsvExtent]:
    """What the data consists of from `position` on, without a gap."""
    record, end = _RECORD[line_end], line_end.encode()
    while position < len(data):
        found = record.match(data, position)
        after = found.end() if found else line_after(data, position, line_end)
        yield CsvExtent(position, after, data.count(end, position, after), found is not None)
        position = after


def complete_end(data: bytes, begin: int, line_end: str) -> int:
    """The last place up to which it is certain what the data consists of, whatever follows it; a
    reader that starts there reads the same records as one that goes on."""
    if data.find(b'"', begin) < 0:
        return max(data.rfind(line_end.encode(), begin) + 1, begin)
    found = _COMPLETE[line_end].match(data, begin)
    assert found is not None, "the pattern matches an empty text too"
    return found.end()


def line_after(data: bytes, begin: int, line_end: str) -> int:
    """Where the line ends that begins here, with its line end."""
    found = data.find(line_end.encode(), begin)
    return len(data) if found < 0 else found + 1


def read_header(data: bytes) -> CsvHeader:
    """The names in the first record of a file, and where the others begin."""
    begin = len(BOM) if data.startswith(BOM) else 0
    found = _HEADER.match(data, begin)
    if found is None:
        ends = [line_after(data, begin, each) for each in LINE_ENDS]
        return CsvHeader((), min(ends), 1, "\n")
    line_end = "\r" if found[0].endswith(b"\r") else "\n"
    try:
        names = next(csv.reader([found[0].decode("utf-8")], strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        names = []
    lines = found[0].count(line_end.encode())
    return CsvHeader(tuple(each.strip() for each in names), found.end(), max(lines, 1), line_end)
