"""Posting events to a source that is registered `from post` (`Headgate.post`).

The schema of a source and the folder of its spool are looked up once and remembered until the
catalog has another version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from headgate.acquire.post import Post, Posted, event_line, post_many
from headgate.acquire.spool import Spool
from headgate.catalog.catalog import Catalog
from headgate.language.schemas import schemas_of
from headgate.language.statements import Format, RegisterStream, RegisterTable
from headgate.match.item_columns import group_of
from headgate.model.errors import CatalogError, HeadgateError, UnknownName
from headgate.model.schema import Schema
from headgate.store.data_folder import DataFolder


@dataclass(frozen=True, slots=True)
class PostTarget:
    """Where the events of a source go, and what they must look like."""

    spool: Spool
    schema: Schema
    kind: str


@dataclass(frozen=True, slots=True)
class NewPost:
    """Events for a source, one line of JSON each; those that are posted again with the same key are
    accepted once."""

    source: str
    lines: Sequence[bytes]
    key: str = ""


@dataclass(slots=True)
class PostBox:
    """Thread-safe."""

    catalog: Catalog
    folder: Path
    _version: int = -1
    _targets: dict[str, PostTarget] = field(default_factory=dict)
    _spools: dict[str, Spool] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def post(
        self, source: str, events: Iterable[Mapping[str, object] | bytes], *, key: str = ""
    ) -> Posted:
        lines = [each if isinstance(each, bytes) else event_line(each) for each in events]
        (posted,) = self.post_many([NewPost(source, lines, key)])
        if isinstance(posted, HeadgateError):
            raise posted
        return posted

    def post_many(self, posts: Sequence[NewPost]) -> list[Posted | HeadgateError]:
        """Several posts with one look into the catalog and one sync; each is accepted or refused by
        itself."""
        answers: dict[int, Posted | HeadgateError] = {}
        found: dict[int, Post] = {}
        with self._lock:
            self._refresh()
            for number, each in enumerate(posts):
                try:
                    to = self._target(each.source)
                except CatalogError as error:
                    answers[number] = error
                else:
                    found[number] = Post(
                        to.spool, each.source, each.lines, to.schema, to.kind, each.key
                    )
        answers.update(zip(found, post_many(list(found.values())), strict=True))
        return [answers[number] for number in range(len(posts))]

    def _refresh(self) -> None:
        version = self.catalog.version()
        if version != self._version:
            self._version, self._targets = version, {}

    def _target(self, source: str) -> PostTarget:
        if source not in self._targets:
            self._targets[source] = self._look_up(source)
        return self._targets[source]

    def _look_up(self, source: str) -> PostTarget:
        with self.catalog.looking_up() as definitions:
            statement = definitions.get(source)
            if statement is None:
                raise UnknownName(f"there is no source '{source}'")
            if (
                not isinstance(statement, RegisterStream | RegisterTable)
                or statement.format is not Format.POST
            ):
                raise CatalogError(f"'{source}' takes no events: it is not registered 'from post'")
            schema = next(iter(schemas_of(source, definitions)))
        group = f"{Format.POST}-{group_of(schema)}"
        folder = DataFolder(self.folder.absolute()).sources / group / "spool"
        spool = self._spools.setdefault(group, Spool(folder))
        return PostTarget(
            spool, schema, "table" if isinstance(statement, RegisterTable) else "stream"
        )
