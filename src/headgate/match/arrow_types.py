"""How values of each type are stored in Arrow. By itself, as whoever only needs this need not load
the kernels."""

from __future__ import annotations

import pyarrow as pa

from headgate.model.values import Type

STORED_AS = {
    Type.INT: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.BOOL: pa.bool_(),
    Type.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Type.TEXT: pa.string(),
    Type.LINK: pa.string(),
    Type.XML: pa.string(),
    Type.BYTES: pa.binary(),
}
