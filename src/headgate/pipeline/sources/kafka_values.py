"""The schemas of values that are no JSON: read from the base folder, and kept for a restart.

    base folder                       the folder of the query
    click.avsc ──► checked ──► used   sources/kafka.5e0d11-…/schema-<digest>
                      └── stored ──────────┘  used while the file is missing or has an error

A thread of the run looks at the files every two seconds (kafka_source.py). A changed file is used
from the next batch on: the query is started again with it, and goes on from its checkpoint. A batch
that was interrupted before the change is repeated with the new schema.

The stored copy is there because a query that is started without one of its topics forgets its
offsets, and would read the topic from its beginning again when the file is repaired. So an error in
a file that was right before is shown, and changes nothing else.

Tasks get the content of the file and need no folder. A reader is made once in each process.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from headgate.acquire.scan_files import checked_pattern, is_below
from headgate.acquire.source_list import ListedSource
from headgate.model.errors import PipelineError
from headgate.model.schema import Schema
from headgate.pipeline.sources.kafka_avro import AvroReader
from headgate.pipeline.sources.kafka_fields import SchemaFile, ValueReader
from headgate.pipeline.sources.kafka_protobuf import ProtobufReader
from headgate.pipeline.sources.kafka_topics import value_attributes
from headgate.pipeline.sources.source_format import NO_DATA
from headgate.store.whole_files import write_whole

SCHEMA_BYTES_MAX = 4_000_000
READERS_MAX = 1_000


@lru_cache(maxsize=READERS_MAX)
def value_reader(file: SchemaFile, schema: Schema, optional: str) -> ValueReader:
    """The reader of the attributes of this schema. `optional` is an attribute that may be no field:
    that which says what happened to a row of a table."""
    if file.format == "avro":
        return AvroReader(file, schema, optional=optional)
    assert file.format == "protobuf", file.format
    return ProtobufReader(file, schema, optional=optional)


def current_schema(
    source: ListedSource, schema: Schema, *, base: Path | None, folder: Path
) -> tuple[SchemaFile | None, str]:
    """The schema of a source's values, None if there is none that can be used, and a problem."""
    named = [source.name, source.value_format, source.value_schema, source.value_message]
    digest = hashlib.sha256("\0".join([*named, source.changes]).encode()).hexdigest()[:12]
    stored = folder / f"schema-{digest}"
    before = stored.read_bytes() if stored.exists() else None
    try:
        file = _schema_file(source, read_schema(base, source.value_schema))
        value_reader(file, value_attributes(schema), source.changes)
    except PipelineError as error:
        if before is None:
            return None, str(error)
        return _schema_file(source, before), f"{error}; what the file was before is used"
    if file.content != before:
        write_whole(stored, file.content)
    return file, ""


def _schema_file(source: ListedSource, content: bytes) -> SchemaFile:
    return SchemaFile(
        source.value_format,
        source.value_schema,
        content,
        source.value_message,
        source.value_framing,
    )


def read_schema(base: Path | None, name: str) -> bytes:
    """The content of a file below the base folder, with all links resolved."""
    if base is None:
        raise PipelineError(f"schema '{name}': {NO_DATA}")
    path = base / checked_pattern(name)
    if not is_below(path, base.resolve()):
        raise PipelineError(f"schema '{name}' leads out of the base folder by a symbolic link")
    try:
        if not path.is_file():
            raise PipelineError(f"schema '{name}': there is no such file in the base folder")
        with path.open("rb") as file:
            content = file.read(SCHEMA_BYTES_MAX + 1)
    except OSError as error:
        raise PipelineError(f"schema '{name}' cannot be read: {error.strerror}") from None
    if len(content) > SCHEMA_BYTES_MAX:
        raise PipelineError(f"schema '{name}' has more than {SCHEMA_BYTES_MAX:,} bytes")
    return content
