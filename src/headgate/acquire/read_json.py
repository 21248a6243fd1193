"""JSON as rows: one object per line, or one array of objects.

The reference is `read_carefully`, which reads each line with `json` and `attributes_of_json`. The
fast path, `read_quickly`, is Arrow's reader on a whole part. It is used only if it must give the
same result:

- Every line begins with '{' and ends with '}', and there are as many rows as lines. Arrow ignores
  line ends between objects, so it would accept two objects on a line, or one on two lines. A value
  that continues on the next line would begin it with something other than '{', and two objects on
  a line make a row too many.
- The text is UTF-8, which Arrow does not check. It has no zero byte, at which Arrow stops, no 'Inf'
  or 'NaN' outside of strings, which Arrow reads in more forms than `json`, no float that is too
  large, and no deep nesting. '-0' is 0.0, as by Python.
- Times and bytes are read as strings and converted as in the reference. Numbers are read as the
  declared type; if Arrow refuses one (1.0 for an int, more than 64 bits) the reference decides.

If the fast path fails for any reason, the part is read by the reference.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from headgate.acquire.item_rows import RowBuilder, SourceColumns
from headgate.acquire.limits import DEFAULT_LIMITS
from headgate.acquire.rejected import Rejects
from headgate.match.item_columns import STORED_AS
from headgate.model.errors import InvalidValue
from headgate.model.items import value_of_json
from headgate.model.schema import Schema
from headgate.model.values import Type

LINES_AT_ONCE = 10_000
NESTING_MAX = DEFAULT_LIMITS.json_nesting_max
LINE_BYTES_MAX = DEFAULT_LIMITS.record_bytes_max
BLOCK = 1 << 20
"""Bytes that are looked at together where the depth is counted."""
SHORTEST_QUICK = 4_096
"""Bytes; for fewer the fast path takes longer to set up."""
_NO_NUMBER = re.compile(rb"[:,\[]\s*[+-]?(?:Inf|NaN)")
_TEXT = re.compile(rb'"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"')
_OPEN, _CLOSE = np.frombuffer(b"[{", np.uint8), np.frombuffer(b"]}", np.uint8)
_PLAIN_TIME = (
    r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(\.[0-9]{3}|\.[0-9]{6})?Z$"
)

ReadRows = tuple[dict[str, pa.Array], pa.Array]
"""Attributes in columns, and the number of the line of each row."""


def read_lines(
    data: bytes,
    columns: SourceColumns,
    rejects: Rejects,
    *,
    first_line: int,
    continues: bool = False,
) -> Iterator[ReadRows]:
    """The objects of these lines, by the fast path if possible."""
    if len(data) >= SHORTEST_QUICK and not continues:
        quick = read_quickly(data, columns)
        if quick is not None:
            lines = np.arange(first_line, first_line + len(quick[next(iter(quick))]))
            rejects.take(len(data), records=len(lines))
            yield quick, pa.array(lines, pa.int64())
            return
    yield from read_carefully(data, columns, rejects, first_line=first_line, continues=continues)


def read_carefully(
    data: bytes,
    columns: SourceColumns,
    rejects: Rejects,
    *,
    first_line: int,
    continues: bool = False,
) -> Iterator[ReadRows]:
    builder = RowBuilder(columns, rejects)
    rejects.take(-1, records=0)  # the last line has no line end
    for number, line in enumerate(data.split(b"\n"), first_line):
        text = line.strip(b" \t\r")
        rejects.take(len(line) + 1, records=int(bool(text)))
        if not text:
            continue
        if continues and number == first_line:
            rejects.add(number, "the line was continued after its beginning had been read", line)
        elif len(line) > LINE_BYTES_MAX:
            rejects.add(number, f"the line has more than {LINE_BYTES_MAX:,} bytes", line)
        else:
            add_json(builder, rejects, number, text)
        if len(builder) >= LINES_AT_ONCE:
            yield _take_rows(builder)
    if len(builder):
        yield _take_rows(builder)


def add_json(builder: RowBuilder, rejects: Rejects, number: int, text: bytes) -> None:
    try:
        if nesting(text) > NESTING_MAX:
            raise RecursionError
        value = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        rejects.add(number, "" if rejects.is_full else _reason(error), text)
    else:
        builder.add(number, value, text)


def nesting(text: bytes) -> int:
    """The nesting depth of lists and objects; an upper bound if that is small enough.

    Python's own limit depends on the depth of the call stack, so it is not reproducible.
    """
    openings = text.count(b"[") + text.count(b"{")
    if openings <= NESTING_MAX:
        return openings
    bare = np.frombuffer(_TEXT.sub(b"", text), np.uint8)
    depth = deepest = 0
    for start in range(0, len(bare), BLOCK):
        block = bare[start : start + BLOCK]
        steps = np.isin(block, _OPEN).view(np.int8) - np.isin(block, _CLOSE).view(np.int8)
        depths = depth + np.cumsum(steps, dtype=np.int64)
        deepest, depth = max(deepest, int(depths.max())), int(depths[-1])
        if deepest > NESTING_MAX:
            break
    return deepest


def read_array(data: bytes, columns: SourceColumns, rejects: Rejects) -> Iterator[ReadRows]:
    """The objects of an array. An array that is not valid JSON is rejected as a whole, so its rows
    are kept until its end was seen; its elements are read one by one, as rows need less memory."""
    found = Rejects("", "")
    rows: list[ReadRows] = []
    builder = RowBuilder(columns, found)
    try:
        if nesting(data) > NESTING_MAX:
            raise RecursionError
        for number, value in enumerate(_elements(data.decode("utf-8-sig")), 1):
            found.take(0)
            if number > DEFAULT_LIMITS.array_elements_max:
                raise ValueError(_TOO_MANY)
            builder.add(number, value, "" if isinstance(value, dict) else json.dumps(value)[:1_000])
            if len(builder) >= LINES_AT_ONCE:
                rows.append(_take_rows(builder))
        rows.append(_take_rows(builder))
    except (ValueError, RecursionError) as error:
        rejects.take(len(data))
        rejects.add(None, _reason(error), data)
        return
    rejects.take(len(data), records=found.records)
    rejects.add_all(found)
    yield from (each for each in rows if len(each[1]))


_TOO_MANY = f"more than {DEFAULT_LIMITS.array_elements_max:,} elements; write one object per line"
_SPACE = re.compile(r"[ \t\n\r]*+")


def _elements(text: str) -> Iterator[object]:
    """The elements of an array; `ValueError` where the text is no array."""
    decode = json.JSONDecoder().raw_decode
    at = _after_space(text, 0)
    if not text.startswith("[", at):
        raise json.JSONDecodeError("Expecting an array", text, at)
    at = _after_space(text, at + 1)
    is_first = True
    while not text.startswith("]", at):
        if not is_first:
            if not text.startswith(",", at):
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
            at = _after_space(text, at + 1)
        value, at = decode(text, at)
        yield value
        at, is_first = _after_space(text, at), False
    at = _after_space(text, at + 1)
    if at != len(text):
        raise json.JSONDecodeError("Extra data", text, at)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None, "the pattern matches an empty text too"
    return found.end()


def _take_rows(builder: RowBuilder) -> ReadRows:
    columns, lines = builder.take()
    return columns, pa.array(lines, pa.int64())


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "the JSON is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "the text is not UTF-8"
    return f"no JSON: {error}"


def read_quickly(data: bytes, columns: SourceColumns) -> dict[str, pa.Array] | None:
    """The columns of all lines; None if the fast path might differ from the reference."""
    count = _line_count(data)
    if count is None or not columns.schema.attributes:
        return None
    try:
        data.decode("utf-8")
        table = pyarrow.json.read_json(
            io.BytesIO(data),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=_arrow_schema(columns.schema), unexpected_field_behavior="ignore"
            ),
        )
        if table.num_rows != count:
            return None
        arrays = _converted(table.combine_chunks(), columns.schema)
    except (pa.ArrowException, UnicodeDecodeError, InvalidValue, ValueError):
        return None
    if any(arrays[each].null_count for each in columns.keys):
        return None
    return columns.stored(arrays)


def _line_count(data: bytes) -> int | None:
    """The number of lines; None unless each looks like an object and is not too long."""
    if b"\0" in data or (_NO_NUMBER.search(data) and _NO_NUMBER.search(_TEXT.sub(b'""', data))):
        return None
    text = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    if not len(data) or text[-1] != ord("\n"):
        ends = np.append(ends, len(data))
    starts = np.concatenate(([0], ends[:-1] + 1))
    if (ends - starts).min() < 2 or (ends - starts).max() > LINE_BYTES_MAX:
        return None
    if (text[starts] != ord("{")).any():
        return None
    openings = (text == ord("{")) | (text == ord("["))
    if np.add.reduceat(openings.view(np.uint8), starts, dtype=np.int64).max() > NESTING_MAX:
        return None
    last = text[ends - 1]
    last = np.where(last == ord("\r"), text[ends - 2], last)
    return None if (last != ord("}")).any() else len(starts)


def _arrow_schema(schema: Schema) -> pa.Schema:
    as_text = (Type.TIMESTAMP, Type.BYTES)
    return pa.schema(
        [
            (
                str(attribute.name),
                pa.string() if attribute.type in as_text else STORED_AS[attribute.type],
            )
            for attribute in schema.attributes
        ]
    )


def _converted(table: pa.Table, schema: Schema) -> dict[str, pa.Array]:
    arrays: dict[str, pa.Array] = {}
    for attribute in schema.attributes:
        name = str(attribute.name)
        column = table.column(name)
        values = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if attribute.type in (Type.TIMESTAMP, Type.BYTES):
            values = _from_texts(values, attribute.type)
        elif attribute.type is Type.FLOAT and not _all_true(pc.is_finite(values)):
            # Arrow reads an integer of 400 digits as infinite; the reference rejects it.
            raise InvalidValue("a number is too large")
        arrays[name] = values
    return arrays


def _from_texts(texts: pa.Array, type_: Type) -> pa.Array:
    """Convert each distinct text once; times in the usual form all at once."""
    stored = STORED_AS[type_]
    if type_ is Type.TIMESTAMP and _all_true(pc.match_substring_regex(texts, _PLAIN_TIME)):
        return texts.cast(stored)
    coded = texts.dictionary_encode()
    read = [value_of_json(text, type_) for text in coded.dictionary.to_pylist()]
    return pa.array(read, stored).take(coded.indices)


def _all_true(answers: pa.Array) -> bool:
    """Whether all values that are not null are true."""
    return bool(pc.all(answers, min_count=0).as_py())
