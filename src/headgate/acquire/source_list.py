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
    """json, csv, parquet, xml, kafka; of a feed nothing, as its document tells"""
    weight: float = 1.0
    """How many subscribers it has."""


@dataclass(frozen=True, slots=True)
class SourceList:
    """The sources of one query. They have one schema, and no name twice."""

    schema: Schema
    sources: tuple[ListedSource, ...] = ()

    def __post_init__(self) -> None:
        for name, times in Counter(each.name for each in self.sources).items():
            if times > 1:
                raise PipelineError(f"source '{name}' is listed twice")


def write_source_list(path: Path, schema: Schema, sources: Iterable[ListedSource]) -> bool:
    """Replace the list; false where it says the same already."""
    listed = SourceList(schema, tuple(sorted(sources, key=lambda each: each.name)))
    content = json.dumps(
        {
            "version": VERSION,
            "schema": [
                {
                    "name": str(each.name),
                    "type": each.type.value,
                    "key": each.key,
                    "payload": each.payload,
                }
                for each in listed.schema.attributes
            ],
            "sources": [asdict(each) for each in listed.sources],
        },
        indent=1,
    ).encode()
    if path.exists() and path.read_bytes() == content:
        return False
    write_whole(path, content)
    return True


def read_source_list(path: Path) -> SourceList:
    try:
        found = json.loads(path.read_bytes())
        if found["version"] != VERSION:
            raise PipelineError(f"the list of sources '{path}' is not of version {VERSION}")
        attributes = tuple(
            Attribute(each["name"], Type(each["type"]), each["key"], each["payload"])
            for each in found["schema"]
        )
        sources = tuple(ListedSource(**each) for each in found["sources"])
    except OSError as error:
        raise PipelineError(
            f"the list of sources '{path}' cannot be read: {error.strerror}"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"'{path}' is no list of sources: {error!r}") from error
    return SourceList(Schema(attributes), sources)


class WatchedList:
    """The list file, read again only when it is another file than before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: tuple[int, int, int] | None = None

    def changed(self) -> SourceList | None:
        """The list if it is new, or was replaced since the last call."""
        try:
            found = self._path.stat()
        except OSError as error:
            raise PipelineError(
                f"the list of sources '{self._path}' cannot be read: {error.strerror}"
            ) from error
        known = found.st_ino, found.st_mtime_ns, found.st_size
        if known == self._known:
            return None
        listed = read_source_list(self._path)
        self._known = known
        return listed
