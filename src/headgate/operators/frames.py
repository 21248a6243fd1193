"""What goes through the pipes between a process and the child that calls its operators.

    1 byte kind, 8 bytes length, and as many bytes as they say

    to the child     SETUP    JSON: where modules are found, what is allowed, operators, limits
                     BATCH    the schema as JSON, and the items as an Arrow stream
                     ASK      a call as JSON, and the rows as 32-bit numbers
    from the child   READY    JSON: the form of each operator, or why it cannot be loaded
                     PART     answers for the next rows of the question, and what failed among them;
                              whether more follow, and whether the child is to be replaced

Beside the pipes both share one page, on which the child says what it is doing and since when. So
the parent knows on which item an operator hangs or died, and an item costs no message.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.operators.answers import Part, Rows
from headgate.operators.call_items import Called
from headgate.operators.failures import Failure

HEAD = struct.Struct("<cQ")
LENGTH = struct.Struct("<I")
_PART = struct.Struct("<BIIdI")
PAGE_BYTES = 16
PAGE = struct.Struct("<qd")
IDLE = -1

SETUP, BATCH, ASK = b"s", b"b", b"a"
READY, PART = b"r", b"p"
MORE, LAST, REPLACE = 0, 1, 2


def pack(kind: bytes, *content: bytes) -> bytes:
    return b"".join([HEAD.pack(kind, sum(map(len, content))), *content])


def pack_batch(batch: pa.RecordBatch, schema: Schema) -> bytes:
    described = json.dumps([(str(each.name), each.type) for each in schema.attributes]).encode()
    return pack(BATCH, LENGTH.pack(len(described)), described, arrow_bytes(batch))


def unpack_batch(content: bytes) -> tuple[pa.RecordBatch, Schema]:
    described, rest = _cut(content)
    attributes = (Attribute(name, Type(type_)) for name, type_ in json.loads(described))
    return arrow_batch(rest), Schema(tuple(attributes))


def pack_ask(call: bytes, rows: Rows) -> bytes:
    return pack(ASK, LENGTH.pack(len(call)), call, rows.tobytes())


def unpack_ask(content: bytes) -> tuple[bytes, Rows]:
    call, rest = _cut(content)
    return call, np.frombuffer(rest, np.int32)


def pack_part(called: Called, then: int) -> bytes:
    """A plain answer is a byte for each row; only bindings need Arrow."""
    part, failures = called.part, b""
    if called.failures:
        failures = json.dumps(called.failures).encode()
    lists = b""
    if part.lists:
        names = [str(number) for number in range(len(part.lists))]
        lists = arrow_bytes(pa.RecordBatch.from_arrays(list(part.lists), names))
    head = _PART.pack(then, len(part), len(part.lists), called.seconds, len(failures))
    return pack(PART, head, failures, part.states.tobytes(), lists)


def unpack_part(content: bytes) -> tuple[Called, int]:
    then, count, columns, seconds, size = _PART.unpack_from(content)
    at = _PART.size + size
    told: Mapping[str, Sequence[object]] = json.loads(content[_PART.size : at] or b"{}")
    states = np.frombuffer(content, np.uint8, count, at)
    lists = tuple(arrow_batch(content[at + count :]).columns) if columns else ()
    failures = {Failure(name): (int(str(n)), str(said)) for name, (n, said) in told.items()}
    return Called(Part(states, lists), seconds, failures), then


def arrow_bytes(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def arrow_batch(content: bytes) -> pa.RecordBatch:
    return pa.ipc.open_stream(content).read_next_batch()


def _cut(content: bytes) -> tuple[bytes, bytes]:
    (size,) = LENGTH.unpack_from(content)
    return content[LENGTH.size : LENGTH.size + size], content[LENGTH.size + size :]
