"""Groups of sources that one streaming query reads: sources of the same kind with the same schema,
and of Kafka topics with the same brokers.

    MuseNews, EventAnnounces, …    feeds-1f0c…       one query for 10,000 web feeds
    Tickets                        files-93ab…
    Stocks, Reviews                files-77de…, files-02c4…
    Clicks                         kafka.5e0d11-93ab…
    Alerts                         post-93ab…        what is posted to the folder of the run

The number of queries depends on the number of schemas, never on the number of subscriptions or
feeds. Materialised feeds are in no group: their items are made within the run (run_batch.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from headgate.acquire.source_list import ListedSource
from headgate.language.statements import (
    Format,
    MaterializeFeed,
    RegisterDocuments,
    RegisterFeed,
    RegisterTable,
)
from headgate.match.item_columns import group_of
from headgate.model.errors import PipelineError
from headgate.model.schema import Schema
from headgate.pipeline.sources.kafka_topics import check_metadata, connection_hash, topic_of
from headgate.pipeline.sources.source_format import NO_DATA

if TYPE_CHECKING:  # workers import this module, and need no catalog
    from headgate.pipeline.layer_builder import Source

FILES = (Format.JSON, Format.CSV, Format.PARQUET, Format.XML)


class GroupKind(StrEnum):
    FEEDS = "feeds"
    FILES = "files"
    KAFKA = "kafka"
    POST = "post"


@dataclass(frozen=True, slots=True)
class SourceGroup:
    kind: GroupKind
    schema: Schema
    sources: tuple[ListedSource, ...]
    brokers: str = ""
    """Of Kafka topics."""

    @property
    def name(self) -> str:
        return group_name(self.kind, self.schema, self.brokers)


@dataclass(slots=True)
class SourceGroups:
    groups: dict[str, SourceGroup] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Sources that cannot be read, each with the reason."""


def group_name(kind: GroupKind, schema: Schema, brokers: str = "") -> str:
    where = f".{connection_hash(brokers)}" if brokers else ""
    return f"{kind}{where}-{group_of(schema)}"


def group_sources(
    sources: Mapping[str, Source],
    schemas: Mapping[str, Schema],
    *,
    weights: Mapping[str, float] | None = None,
    has_files: bool = True,
) -> SourceGroups:
    """The groups of all sources. `weights` are the fetch priorities of web feeds (default 1).
    Unless `has_files`, there is no folder to read files from."""
    result = SourceGroups()
    for name, statement in sources.items():
        if isinstance(statement, MaterializeFeed):
            continue
        kind = _kind(statement)
        if kind is None:
            format_ = getattr(statement, "format", "")
            result.refused[name] = f"sources of format '{format_}' cannot be read yet"
            continue
        if kind is GroupKind.FILES and not has_files:
            result.refused[name] = NO_DATA
            continue
        listed = _listed(name, statement, (weights or {}).get(name, 1.0))
        try:
            brokers = _brokers(listed, schemas[name]) if kind is GroupKind.KAFKA else ""
        except PipelineError as error:
            result.refused[name] = str(error)
            continue
        group = SourceGroup(kind, schemas[name], (listed,), brokers)
        if group.name in result.groups:
            known = result.groups[group.name]
            group = replace(known, sources=(*known.sources, listed))
        result.groups[group.name] = group
    return result


def _brokers(listed: ListedSource, schema: Schema) -> str:
    check_metadata(schema)
    return topic_of(listed.path).brokers


def _kind(statement: Source) -> GroupKind | None:
    if isinstance(statement, RegisterFeed):
        return GroupKind.FEEDS
    assert not isinstance(statement, MaterializeFeed)
    if statement.format is Format.KAFKA:
        return GroupKind.KAFKA
    if statement.format is Format.POST:
        return GroupKind.POST
    return GroupKind.FILES if statement.format in FILES else None


def _listed(name: str, statement: Source, weight: float) -> ListedSource:
    if isinstance(statement, RegisterFeed):
        return ListedSource(name, statement.url, kind="feed", weight=weight)
    assert not isinstance(statement, MaterializeFeed)
    kind, changes = "stream", ""
    if isinstance(statement, RegisterTable):
        kind, changes = "table", str(statement.changes or "")
    elif isinstance(statement, RegisterDocuments):
        kind = "documents"
    listed = ListedSource(
        name, statement.path, kind=kind, format=statement.format.value, changes=changes
    )
    values = None if isinstance(statement, RegisterDocuments) else statement.values
    if values is None:
        return listed
    return replace(
        listed,
        value_format=values.format.value,
        value_schema=values.path,
        value_message=values.message,
        value_framing=values.framing or "",
    )
