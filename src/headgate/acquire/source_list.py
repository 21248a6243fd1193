"""The list file: which sources a streaming query reads. The run writes it, the query reads it.

Sources are registered and dropped while a query runs, but a query's options are fixed when it
starts. So the options name this file, which is replaced atomically when its content changes. It
contains the schema too, which never changes: sources with another schema belong to another query.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from headgate.model.errors import PipelineError
from headgate.model.schema import Attribute, Schema
from headgate.model.values import Type
from headgate.store.whole_files import write_whole

VERSION = 1


@dataclass(frozen=True, slots=True)
class ListedSource:
    """A source as it was registered."""

    name: str
    path: str
    """A feed's URL, a pattern of file names, or 'kafka://host:port/topic'."""
    kind: str = "stream"
    """feed, stream, table or documents"""
    format: str = ""
    """json, csv, parquet, xml or kafka; empty for a feed"""
    weight: float = 1.0
    """The number of its subscribers."""
    changes: str = ""
    """The attribute that says what happened to a row of a table, if it is registered with one."""
    value_format: str = ""
    """avro or protobuf; empty for values that are JSON, and where there are no messages"""
    value_schema: str = ""
    """The file of their schema."""
    value_message: str = ""
    value_framing: str = ""
    """framed or plain; empty if it was not said."""


@dataclass(frozen=True, slots=True)
class SourceList:
    """The sources of one query: all with the same schema, with distinct names."""

    schema: Schema
    sources: tuple[ListedSource, ...] = ()

    def __post_init__(self) -> None:
        for name, times in Counter(each.name for each in self.sources).items():
            if times > 1:
                raise PipelineError(f"source '{name}' is listed twice")


def write_source_list(path: Path, schema: Schema, sources: Iterable[ListedSource]) -> bool:
    """Replace the list; return False if its content is the same already."""
    source_list = SourceList(schema, tuple(sorted(sources, key=lambda each: each.name)))
    content = json.dumps(
        {
            "version": VERSION,
            "schema": [
                {
                    "name": str(attribute.name),
                    "type": attribute.type.value,
                    "key": attribute.key,
                    "payload": attribute.payload,
                }
                for attribute in source_list.schema.attributes
            ],
            "sources": [asdict(each) for each in source_list.sources],
        },
        indent=1,
    ).encode()
    if path.exists() and path.read_bytes() == content:
        return False
    write_whole(path, content)
    return True


def read_source_list(path: Path) -> SourceList:
    try:
        content = json.loads(path.read_bytes())
        if content["version"] != VERSION:
            raise PipelineError(f"the list of sources '{path}' is not of version {VERSION}")
        attributes = tuple(
            Attribute(
                attribute["name"], Type(attribute["type"]), attribute["key"], attribute["payload"]
            )
            for attribute in content["schema"]
        )
        sources = tuple(ListedSource(**each) for each in content["sources"])
    except OSError as error:
        raise PipelineError(
            f"the list of sources '{path}' cannot be read: {error.strerror}"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"'{path}' is not a list of sources: {error!r}") from error
    return SourceList(Schema(attributes), sources)


class WatchedList:
    """The list file, read again only if it was replaced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None

    def changed(self) -> SourceList | None:
        """The list if it was replaced since the last call, or at the first call; otherwise None."""
        try:
            stat = self._path.stat()
        except OSError as error:
            raise PipelineError(
                f"the list of sources '{self._path}' cannot be read: {error.strerror}"
            ) from error
        stamp = stat.st_ino, stat.st_mtime_ns, stat.st_size
        if stamp == self._stamp:
            return None
        source_list = read_source_list(self._path)
        self._stamp = stamp
        return source_list
