"""The messages between a process and the child process that calls its operators.

    1 byte kind, 8 bytes length, and so many bytes of content

    to the child     SETUP     JSON: module search path, allowed modules, operators, limits
                     BATCH     the schema as JSON, and the items as an Arrow stream
                     REQUEST   calls as JSON, and the rows of each as 32-bit integers
    from the child   READY     JSON: the form of each operator, or why it cannot be loaded
                     RESPONSE  answers for the next rows of a request, and their failures; whether
                               more follow, and whether the child must be replaced

Besides the pipes both processes share one page of memory, on which the child writes the item that
it is working on and since when. So the parent knows on which item an operator hangs or died,
without a message for each item.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.operators.answers import Floats, Rows, States
from headgate.operators.call_items import CallResult
from headgate.operators.failures import Failure, FailureCounts

HEAD = struct.Struct("<cQ")
LENGTH = struct.Struct("<I")
_REQUEST = struct.Struct("<II")
_RESPONSE = struct.Struct("<BIIII")
PAGE_BYTES = 16
PAGE = struct.Struct("<qd")
IDLE = -1

SETUP, BATCH, REQUEST = b"s", b"b", b"a"
READY, RESPONSE = b"r", b"p"
MORE, LAST, REPLACE = 0, 1, 2


def pack(kind: bytes, *content: bytes) -> bytes:
    return b"".join([HEAD.pack(kind, sum(map(len, content))), *content])


def pack_batch(batch: pa.RecordBatch, schema: Schema) -> bytes:
    described = json.dumps([(str(each.name), each.type) for each in schema.attributes]).encode()
    return pack(BATCH, LENGTH.pack(len(described)), described, arrow_bytes(batch))


def unpack_batch(content: bytes) -> tuple[pa.RecordBatch, Schema]:
    described, stream = _split_prefixed(content)
    attributes = (Attribute(name, Type(type_)) for name, type_ in json.loads(described))
    return arrow_batch(stream), Schema(tuple(attributes))


@dataclass(frozen=True, slots=True, eq=False)
class CallRequest:
    """Calls, one after the other: calls[n] is for rows[ends[n - 1]] … rows[ends[n] - 1]."""

    calls: Sequence[bytes]
    ends: Rows
    rows: Rows


@dataclass(frozen=True, slots=True, eq=False)
class CallResponse:
    """Answers to call `first` and those after it: the number of rows and the seconds of each.

    `failures` and `lists` (bound values) are by the position of the call among these.
    """

    then: int
    first: int
    counts: Rows
    seconds: Floats
    states: States
    failures: Mapping[int, FailureCounts]
    lists: Mapping[int, tuple[pa.ListArray, ...]]


def pack_request(request: CallRequest) -> bytes:
    lengths = np.array([len(call) for call in request.calls], np.int32)
    head = _REQUEST.pack(len(request.calls), int(lengths.sum()))
    arrays = (each.tobytes() for each in (request.ends, lengths))
    return pack(REQUEST, head, *arrays, *request.calls, request.rows.tobytes())


def unpack_request(content: bytes) -> CallRequest:
    count, size = _REQUEST.unpack_from(content)
    ends, lengths = np.frombuffer(content, np.int32, 2 * count, _REQUEST.size).reshape(2, count)
    offset = _REQUEST.size + 8 * count
    places = [offset, *(offset + np.cumsum(lengths)).tolist()]
    calls = [content[begin:end] for begin, end in pairwise(places)]
    return CallRequest(calls, ends, np.frombuffer(content, np.int32, offset=offset + size))


def pack_response(first: int, answers: Sequence[CallResult], then: int) -> bytes:
    """An answer is one byte for each row; bound values and failures follow where there are any."""
    counts = np.array([len(each.part) for each in answers], np.int32)
    seconds = np.array([each.seconds for each in answers], np.float64)
    failures = {n: each.failures for n, each in enumerate(answers) if each.failures}
    by_types: dict[tuple[pa.DataType, ...], list[int]] = {}
    for n, answer in enumerate(answers):
        if answer.part.lists:
            by_types.setdefault(tuple(column.type for column in answer.part.lists), []).append(n)
    bound = [_pack_lists([answers[n].part.lists for n in group]) for group in by_types.values()]
    details = b""
    if failures or bound:
        sizes = [len(each) for each in bound]
        groups = list(zip(by_types.values(), sizes, strict=True))
        details = json.dumps({"failures": failures, "groups": groups}).encode()
    states = b"".join(each.part.states.tobytes() for each in answers)
    head = _RESPONSE.pack(then, first, len(answers), len(states), len(details))
    return pack(RESPONSE, head, counts.tobytes(), seconds.tobytes(), states, details, *bound)


def unpack_response(content: bytes) -> CallResponse:
    then, first, calls, rows, size = _RESPONSE.unpack_from(content)
    offset = _RESPONSE.size
    counts = np.frombuffer(content, np.int32, calls, offset)
    seconds = np.frombuffer(content, np.float64, calls, offset + 4 * calls)
    offset += 12 * calls
    states = np.frombuffer(content, np.uint8, rows, offset)
    if int(counts.sum()) != rows:
        raise ValueError("the number of rows is not the sum of the counts")
    offset += rows
    details = json.loads(content[offset : offset + size] or b'{"failures": {}, "groups": []}')
    offset += size
    lists: dict[int, tuple[pa.ListArray, ...]] = {}
    for group, length in details["groups"]:
        lists |= _unpack_lists(content[offset : offset + length], group, counts)
        offset += length
    failures = {
        int(n): {
            Failure(name): (int(str(count)), str(said)) for name, (count, said) in each.items()
        }
        for n, each in details["failures"].items()
    }
    return CallResponse(then, first, counts, seconds, states, failures, lists)


def _pack_lists(parts: Sequence[tuple[pa.ListArray, ...]]) -> bytes:
    """All bound values of the same types as one batch: Arrow takes 0.1 ms for each batch."""
    columns = [pa.concat_arrays(list(column)) for column in zip(*parts, strict=True)]
    return arrow_bytes(pa.RecordBatch.from_arrays(columns, list(map(str, range(len(columns))))))


def _unpack_lists(
    content: bytes, group: Sequence[int], counts: Rows
) -> dict[int, tuple[pa.ListArray, ...]]:
    batch, lists, row = arrow_batch(content), {}, 0
    batch.validate(full=True)  # Arrow itself does not look where its offsets point
    columns = batch.columns
    for column in columns:
        if not pa.types.is_list(column.type) or column.null_count or column.values.null_count:
            raise ValueError("bound values are lists without nulls")
    for call in group:
        count = int(counts[call])
        if not 0 <= row <= row + count <= batch.num_rows:
            raise ValueError("there are fewer bound values than rows")
        lists[call] = tuple(column.slice(row, count) for column in columns)
        row += count
    return lists


def arrow_bytes(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def arrow_batch(content: bytes) -> pa.RecordBatch:
    try:
        return pa.ipc.open_stream(content).read_next_batch()
    except StopIteration:
        raise ValueError("there is no batch") from None


def _split_prefixed(content: bytes) -> tuple[bytes, bytes]:
    (size,) = LENGTH.unpack_from(content)
    return content[LENGTH.size : LENGTH.size + size], content[LENGTH.size + size :]
